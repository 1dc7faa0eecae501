"""What a recording costs: one closed load on PostgreSQL directly, through the plain proxy, and through the recorder."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches.client import load_spec, measure
from benches.engine import at_least
from benches.results import Result, at_most, result
from benches.servers import NEPHOSCOPE, SCALE, own_cpu, pgbench_tables, server
from nephoscope import _engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from benches.servers import Server

ROUNDS = 4
SECONDS = 3.0
WARM_UP_S = 1.0
SESSIONS = 8
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")

Between = tuple[str, list[float]]
"""Where clients connect to; and, at the end, the processor seconds of what stands there."""


def trace_record(folder: Path) -> Iterator[Result]:
    """TPS of each way over another's, in turns; and the processor time a transaction of what stands between."""
    ways: dict[str, Callable[[Server], AbstractContextManager[Between]]] = {
        "directly": _directly,
        "proxy": _through_proxy,
        "recorder": lambda on: _through_recorder(on, folder / "trace.parquet"),
    }
    with server(folder / "server") as on:
        pgbench_tables(on)
        for mix, what in (("SELECT", "point selects"), ("TPCB", "TPC-B")):
            found: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
            for turn in range(ROUNDS):
                # Each is first in its turn: what drifts hits all.
                for name in [*ways, *ways][turn % len(ways) :][: len(ways)]:
                    found[name].append(_turn(on, mix, ways[name]))
            yield from _results(what, found)


def _results(what: str, found: dict[str, list[dict[str, float]]]) -> Iterator[Result]:
    def ratios(key: str, ours: str, theirs: str) -> list[float]:
        return [one[key] / other[key] for one, other in zip(found[ours], found[theirs], strict=True)]

    def each(key: str) -> str:
        middle = {name: statistics.median(one[key] for one in turns) for name, turns in found.items()}
        return ", ".join(f"{name} {value:,.1f}" for name, value in middle.items())

    tps = f"TPS: {each('tps')}"
    name = f"TPS of {what}, {SESSIONS} sessions, through"
    yield result(
        f"{name} the plain proxy", "directly", ratios("tps", "proxy", "directly"), at_least(0.4), tps
    )
    yield result(
        f"{name} the recorder", "directly", ratios("tps", "recorder", "directly"), at_least(0.3), tps
    )
    yield result(
        f"CPU per transaction of the recorder, {what}",
        "the plain proxy's",
        ratios("cpu_us", "recorder", "proxy"),
        at_most(2.0),
        f"µs: {each('cpu_us')}",
    )


def _turn(on: Server, mix: str, way: Callable[[Server], AbstractContextManager[Between]]) -> dict[str, float]:
    with way(on) as (url, used):
        spec = load_spec(url, "tpcb", SCALE, mix, level={"concurrency": SESSIONS}, seconds=SECONDS)
        tps: float = measure(spec)["tps"]
    return {"tps": tps, "cpu_us": sum(used) * 1e6 / (tps * (WARM_UP_S + SECONDS))}


@contextmanager
def _directly(on: Server) -> Iterator[Between]:
    yield on.url, []


@contextmanager
def _through_proxy(on: Server) -> Iterator[Between]:
    used: list[float] = []
    proxy = _engine.FaultProxy(f"{on.parts.hostname}:{on.parts.port}")
    before = sum(own_cpu())
    try:
        yield _at(on, proxy.address), used
    finally:
        proxy.close()
    used.append(sum(own_cpu()) - before)


@contextmanager
def _through_recorder(on: Server, out: Path) -> Iterator[Between]:
    """Record as a user does. The end counts, too: there the last statements are written."""
    used: list[float] = []
    source = f"postgresql://{on.parts.hostname}:{on.parts.port}/"
    command = [NEPHOSCOPE, "trace", "record", "--from", source, "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        line: Any = process.stdout.readline() if process.stdout else ""
        before = _cpu_of(process.pid)
        try:
            yield _at(on, f"127.0.0.1:{line.partition('port=')[2].split()[0]}"), used
        finally:
            process.send_signal(signal.SIGINT)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError("the recording failed; standard error says why")
    used.append(usage.ru_utime + usage.ru_stime - before)


def _at(on: Server, address: str) -> str:
    """Give the server's URL at another address."""
    user = on.parts.netloc.rpartition("@")[0]
    return on.parts._replace(netloc=f"{user}@{address}").geturl()


def _cpu_of(pid: int) -> float:
    """Processor seconds that a process has used, all of its threads'."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S
