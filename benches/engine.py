"""The engine alone, on drivers that cost nothing or whose truth is planted."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any

from benches.client import load_spec, measure
from benches.results import Result, at_least, at_most, result
from benches.servers import SCALE, example, pgbench_tables, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROUNDS = 3


def noop(_folder: Path) -> Iterator[Result]:
    """Transactions per second and core on the driver noop, through Lua, engine and recorder; and on two threads."""
    spec = load_spec("noop://", "sales", 1, "RO", level={"concurrency": 8}, seconds=3.0)
    one, two = [], []
    for _ in range(ROUNDS):
        one.append(1 / measure(dict(spec))["load_cpu_us"])
        two.append(measure({**spec, "threads": 2})["tps"] / 1e6)
    detail = f"two threads: {max(two):.2f} M transactions per second together"
    yield result("noop, million transactions per CPU second", "1", one, at_least(1.5), detail)
    scaling = [pair / (2 * single) for single, pair in zip(one, two, strict=True)]
    yield result("noop, two threads against twice one", "linear", scaling, at_least(0.8))


def instructions(folder: Path) -> Iterator[Result]:
    """Instructions per transaction, as valgrind counts them: the same on a quiet and on a noisy machine."""
    if shutil.which("valgrind") is None:
        return
    drive = example("nephoscope-engine", "drive")
    for workload, mix, bar in (("sales", "RO", 3.2), ("tpcb", "TPCB", 10.6)):
        each = _instructions(drive, load_spec("noop://", workload, 1, mix), sessions=8)
        name = f"instructions per transaction on noop, {workload} {mix}"
        yield result(name, "1000", [each / 1000], at_most(bar))
    with server(folder) as on:
        pgbench_tables(on)
        each = _instructions(drive, load_spec(on.url, "tpcb", SCALE, "SELECT"), sessions=32)
    yield result("instructions per point select, 32 sessions, epoll", "1000", [each / 1000], at_most(5.0))


def _instructions(drive: Path, spec: dict[str, Any], sessions: int) -> float:
    """Count the instructions of a transaction of a closed load."""
    # The difference of a longer and a shorter run has no start-up in it, and no more intervals than one.
    (short, few), (long, many) = (_count(drive, dict(spec), sessions, seconds) for seconds in (1.0, 5.0))
    return (long - short) / (many - few)


def _count(drive: Path, spec: dict[str, Any], sessions: int, seconds: float) -> tuple[int, int]:
    """Run a load under valgrind; give its instructions and its committed transactions."""
    phase = {"name": "all", "kind": "measure", "seconds": seconds}
    phase["loads"] = {"*": {"concurrency": sessions, "mix": spec.pop("mix")}}
    # valgrind runs one thread at a time, and does not know that a wait by io_uring lets others run.
    spec |= {"io": "epoll", "interval_ms": 60_000, "phases": [phase]}
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(spec, file)
        file.flush()
        command = [*tool, str(drive), file.name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    committed = re.search(r"^committed (\d+)", done.stdout, re.MULTILINE)
    if counted is None or committed is None:
        raise RuntimeError(f"valgrind did not say what it counted:\n{done.stderr}")
    return int(counted[1]), int(committed[1])


def collector(_folder: Path) -> Iterator[Result]:
    """Collect what 64 workers have of 10 series and more in each 50 ms: what it takes of a processor beside them."""
    spec = load_spec("noop://", "sales", 1, "RW", threads=64, interval_ms=50)
    (tenant,) = spec["tenants"]
    spec["tenants"] = [{**tenant, "name": f"t{number}"} for number in range(4)]
    shares, late, series = [], [], 0
    for _ in range(ROUNDS):
        found = measure({**spec, "level": {"rate": 10_000}, "seconds": 5.0})
        shares.append((found["cpu_us"] - found["load_cpu_us"]) * found["tps"] / 1e6)
        late += [interval["late_s"] * 1000 for interval in found["intervals"]]
        series = min(interval["series"] for interval in found["intervals"])
    late.sort()
    detail = (
        f"{series} series or more; an interval is told {late[len(late) // 2]:.0f} ms after its end, "
        f"p99 {late[len(late) * 99 // 100]:.0f} ms"
    )
    name = "collecting 64 workers' intervals of 50 ms, reading included"
    yield result(name, "a processor", shares, at_most(0.5), detail)


def sessions(_folder: Path) -> Iterator[Result]:
    """Memory of 5,000 sessions of the driver sim on one thread."""
    spec = load_spec("sim://?latency=constant(5ms)", "sales", 1, "RO", seconds=5.0)
    few = measure({**spec, "level": {"concurrency": 10}})
    many = measure({**spec, "level": {"concurrency": 5_000}})
    each = (many["grown_mb"] - few["grown_mb"]) * 1000 / 4_990
    detail = f"{many['tps']:,.0f} TPS, p99 {many['latency_ns']['0.99'] / 1e6:.1f} ms for a planted 5 ms"
    yield result("memory per session, 5,000 sessions of sim", "50 KB", [each / 50], at_most(1.0), detail)


def soak(folder: Path) -> Iterator[Result]:
    """Ten minutes at full speed and ten at 1,000/s: memory after the first minute, and drift of the lag."""
    with server(folder) as on:
        pgbench_tables(on)
        spec = load_spec(on.url, "tpcb", SCALE, "SELECT", seconds=600.0)
        for name, level in (("at full speed", {"concurrency": 32}), ("at 1,000/s", {"rate": 1000})):
            found = measure({**spec, "level": level})
            memory = [interval["memory_mb"] for interval in found["intervals"]]
            growth = max(memory[60:]) - memory[60]
            detail = f"{found['committed']:,} transactions; {growth:.1f} MB more after the first minute"
            yield result(f"memory growth in ten minutes {name}", "5 MB", [growth / 5], at_most(1.0), detail)
            lags = [interval["lag_p50_ns"] for interval in found["intervals"] if interval["lag_p50_ns"]]
            if lags:
                half = len(lags) // 2
                drift = sum(lags[half:]) / len(lags[half:]) / (sum(lags[:half]) / half)
                bar = ("within 20 %", lambda ratio: abs(ratio - 1) <= 0.2)
                yield result(f"lag, second half against first, {name}", "no drift", [drift], bar)
