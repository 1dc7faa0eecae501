"""The benchmarks themselves."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches.client import load_spec
from benches.results import Result, at_most, result
from benches.servers import BIN, Server, server, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDS = 5
_SECONDS = 4.0
_SCALE = 10


def client(spec: dict[str, Any]) -> dict[str, Any]:
    """Run a load in a process of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(spec, file)
        file.flush()
        used = timed([sys.executable, "-m", "benches.client", file.name])
    found: dict[str, Any] = json.loads(used.output)
    return found


def _pgbench_tables(on: Server) -> None:
    on.run("pgbench", "-i", "-q", "-s", str(_SCALE))


def _pgbench(on: Server, sessions: int, *arguments: str) -> dict[str, float]:
    """Run pgbench for some seconds; give its processor time per transaction."""
    command = [str(BIN / "pgbench"), "-n", "-M", "prepared", "-c", str(sessions), "-j", "1"]
    used = on.timed([*command, "-T", f"{_SECONDS:g}", *arguments])
    line = next(line for line in used.output.splitlines() if "actually processed" in line)
    count = int(line.split(":")[1].split("/")[0])
    return {
        "cpu_us": used.cpu * 1e6 / count,
        "user_us": used.user * 1e6 / count,
        "tps": count / _SECONDS,
    }


def point_select(folder: Path) -> Iterator[Result]:
    """Client CPU per point select against pgbench, on one thread: Lua, histograms and error handling on."""
    with server(folder) as on:
        _pgbench_tables(on)
        for sessions in (8, 32, 128):
            ours, theirs = [], []
            for _ in range(ROUNDS):
                theirs.append(_pgbench(on, sessions, "-S"))
                spec = load_spec(on.url, "tpcb", _SCALE, "SELECT")
                ours.append(client({**spec, "level": {"concurrency": sessions}, "seconds": _SECONDS}))
            bar = at_most(1.0)
            ratios = [a["cpu_us"] / b["cpu_us"] for a, b in zip(ours, theirs, strict=True)]
            detail = (
                f"{_median(ours, 'cpu_us'):.2f} µs against {_median(theirs, 'cpu_us'):.2f} µs a transaction "
                f"(user {_median(ours, 'user_us'):.2f} against {_median(theirs, 'user_us'):.2f}); "
                f"TPS {_median(ours, 'tps'):,.0f} against {_median(theirs, 'tps'):,.0f}"
            )
            name = f"client CPU per point select, {sessions} sessions"
            yield result(name, "pgbench -S -M prepared", ratios, bar, detail)


def _median(found: list[Any], key: str) -> float:
    return float(statistics.median(entry[key] for entry in found))


def stall(_folder: Path) -> Iterator[Result]:
    """A planted stall of 2 s at 500/s for 20 s: p99 against the truth computed from the plan."""
    rate, seconds, at, length, service = 500, 20.0, 9.0, 2.0, 0.001
    spec = load_spec(f"sim://?latency=constant(1ms)&stall={at + 1:g}s%2B{length:g}s", "tpcb", 1, "SELECT")
    found = client({**spec, "level": {"rate": rate}, "seconds": seconds})
    # Arrivals lie evenly; whoever comes in the stall waits for its end.
    times = [(k + 0.5) / rate for k in range(round(rate * seconds))]
    truth = sorted((at + length - t if at - service <= t < at + length else 0.0) + service for t in times)
    p99 = truth[int(0.99 * len(truth)) - 1]
    ratio = found["latency_ns"]["0.99"] / 1e9 / p99
    bar = ("within 5 %", lambda ratio: abs(ratio - 1) <= 0.05)
    detail = f"p99 {found['latency_ns']['0.99'] / 1e9:.3f} s, truth {p99:.3f} s"
    yield result("p99 under a planted stall", "the plan", [ratio], bar, detail)


def rate(folder: Path) -> Iterator[Result]:
    """A constant rate of 2,000/s on a real PostgreSQL: how many arrivals each second has."""
    with server(folder) as on:
        _pgbench_tables(on)
        spec = load_spec(on.url, "tpcb", _SCALE, "SELECT")
        found = client({**spec, "level": {"rate": 2000}, "seconds": 10.0})
    counts = [interval["arrivals"] / interval["seconds"] / 2000 for interval in found["intervals"]]
    detail = (
        f"{len(counts)} seconds; {found['committed']:,} committed, {found['failed']} failed; "
        f"schedule lag p50 {found['lag_ns']['0.5'] / 1000:.0f} µs, p99 {found['lag_ns']['0.99'] / 1000:.0f} µs"
    )
    exact = ("exact in every second", lambda _: set(counts) == {1.0})
    yield result("arrivals per second at 2,000/s", "the rate", counts, exact, detail)


_STUDY = """
study.name = "load"
[system]
provider = "url"
rw = "{url}"
[workload]
name = "sales"
scale = {scale}
[[measure]]
evaluator = "throughput"
"""


def load(folder: Path) -> Iterator[Result]:
    """Loading sales at scale factor 1 against ``psql \\copy`` of the same rows from ready files."""
    nephoscope = str(Path(sys.executable).parent / "nephoscope")
    with server(folder / "server") as on:
        study, small = folder / "study.toml", folder / "small.toml"
        study.write_text(_STUDY.format(url=on.url, scale=1))
        small.write_text(_STUDY.format(url=on.url, scale=0.1))
        memory = {0.1: timed([nephoscope, "load", str(small)]).memory}
        timed([nephoscope, "load", str(study), "--force"])
        copy = _ready_files(on, folder)
        ours, theirs = [], []
        for _ in range(3):
            on.run("psql", "-qc", "CHECKPOINT")
            theirs.append(on.timed([str(BIN / "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f", str(copy)]).wall)
            on.run("psql", "-qc", "DROP TABLE customer, orders, orderline")
            on.run("psql", "-qc", "DROP TABLE nephoscope_data")
            on.run("psql", "-qc", "CHECKPOINT")
            used = timed([nephoscope, "load", str(study)])
            ours.append(used.wall)
            memory[1] = used.memory
            on.run("psql", "-qc", "DROP TABLE customer, orders, orderline")
    bar = at_most(1.1)
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    detail = (
        f"{statistics.median(ours):.1f} s against {statistics.median(theirs):.1f} s, keys and indexes included; "
        "the peer's files were made beforehand"
    )
    yield result("loading sales, SF 1", "psql \\copy of ready files", ratios, bar, detail)
    bar = at_most(1.0)
    detail = f"largest resident set {memory[1]:.0f} MB at SF 1, {memory[0.1]:.0f} MB at SF 0.1"
    yield result("memory of loading, SF 1", "200 MB", [memory[1] / 200], bar, detail)


def _ready_files(on: Server, folder: Path) -> Path:
    """Write the loaded tables as files, empty the database, and give a script that loads the files."""
    workloads = Path(__file__).parent.parent / "workloads"
    schema = (workloads / "sales" / "schema.sql").read_text()
    sections = {
        part.split("\n", 1)[0].strip(): part.split("\n", 1)[1] for part in schema.split("-- name:")[1:]
    }
    script = [sections["create"]]
    for table in ("customer", "orders", "orderline"):
        file = folder / f"{table}.txt"
        on.run("psql", "-qc", f"\\copy {table} TO '{file}'")
        script.append(f"\\copy {table} FROM '{file}'")
    script.append(sections["keys"])
    on.run("psql", "-qc", "DROP TABLE customer, orders, orderline")
    path = folder / "copy.sql"
    path.write_text("\n".join(script))
    return path


BENCHMARKS: dict[str, Callable[[Path], Iterator[Result]]] = {
    "point-select": point_select,
    "stall": stall,
    "rate": rate,
    "load": load,
}
"""Every benchmark, by the name that ``ONLY=`` takes."""
