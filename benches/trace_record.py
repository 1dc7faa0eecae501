"""What a recording costs: one closed load on a server directly, through the plain proxy, and through the recorder."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benches.client import load_spec, measure
from benches.results import Result, at_least, at_most, result
from benches.servers import NEPHOSCOPE, SCALE, load_data, mariadb, own_cpu, server
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


@dataclass
class Between:
    """What stands between client and server."""

    url: str
    """Where clients connect to."""
    cpu_s: float = 0.0
    """Processor seconds that it has used at its end."""
    is_recorder: bool = False
    recorded: int = 0
    """How many statements it has recorded."""


def trace_record(folder: Path) -> Iterator[Result]:
    """TPS of each way over another's, in turns; and the processor time a transaction of what stands between."""
    ways: dict[str, Callable[[Server], AbstractContextManager[Between]]] = {
        "directly": _directly,
        "proxy": _through_proxy,
        "recorder": lambda on: _through_recorder(on, folder / "trace.parquet"),
    }
    for product, start in (("PostgreSQL", server), ("MariaDB", mariadb)):
        with start(folder / product) as on:
            load_data(on.url, folder, "tpcb", SCALE)
            for mix, what in (("SELECT", "point selects"), ("TPCB", "TPC-B")):
                found: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
                for turn in range(ROUNDS):
                    # Each is first in its turn: what drifts hits all.
                    for name in [*ways, *ways][turn % len(ways) :][: len(ways)]:
                        found[name].append(_turn(on, mix, ways[name]))
                yield from _results(f"{what}, {product}", found)


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
    with way(on) as between:
        spec = load_spec(between.url, "tpcb", SCALE, mix, level={"concurrency": SESSIONS}, seconds=SECONDS)
        found = measure(spec)
    if between.recorded < found["committed"] and between.is_recorder:
        raise RuntimeError(
            f"{between.recorded} statements of {found['committed']} transactions were recorded"
        )
    return {"tps": found["tps"], "cpu_us": between.cpu_s * 1e6 / (found["tps"] * (WARM_UP_S + SECONDS))}


@contextmanager
def _directly(on: Server) -> Iterator[Between]:
    yield Between(on.url)


@contextmanager
def _through_proxy(on: Server) -> Iterator[Between]:
    proxy = _engine.FaultProxy(f"{on.parts.hostname}:{on.parts.port}")
    before = sum(own_cpu())
    between = Between(_at(on, proxy.address))
    try:
        yield between
    finally:
        proxy.close()
    between.cpu_s = sum(own_cpu()) - before


@contextmanager
def _through_recorder(on: Server, out: Path) -> Iterator[Between]:
    """Record as a user does. The end counts, too: there the last statements are written."""
    source = f"{on.parts.scheme}://{on.parts.hostname}:{on.parts.port}/"
    command = [NEPHOSCOPE, "trace", "record", "--from", source, "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        line: Any = process.stdout.readline() if process.stdout else ""
        before = _cpu_of(process.pid)
        port = line.partition("port=")[2].split()[0]
        between = Between(_at(on, f"127.0.0.1:{port}"), is_recorder=True)
        try:
            yield between
        finally:
            process.send_signal(signal.SIGINT)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError("the recording failed; standard error says why")
    between.cpu_s = usage.ru_utime + usage.ru_stime - before
    between.recorded = pq.ParquetFile(out).metadata.num_rows


def _at(on: Server, address: str) -> str:
    """Give the server's URL at another address."""
    user = on.parts.netloc.rpartition("@")[0]
    return on.parts._replace(netloc=f"{user}@{address}").geturl()


def _cpu_of(pid: int) -> float:
    """Processor seconds that a process has used, all of its threads'."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S
