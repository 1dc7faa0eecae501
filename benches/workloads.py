"""Whole workloads on PostgreSQL: what a transaction costs the client, beside what it cost BenchBase's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benches.client import load_spec, measure
from benches.costs import ROUNDS, SECONDS, median, ways
from benches.results import Result, at_most, result
from benches.servers import load_data, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SESSIONS = 8
_BENCHBASE = (
    ("tpcc", "TPCC", 1, 452.0),
    ("ycsb", "RO", 100, 34.7),
    ("smallbank", "SMALLBANK", 1, 128.0),
    ("tatp", "TATP", 1, 48.0),
)
"""Workload, mix, scale factor, and BenchBase's µs of client CPU a transaction. It is in no package registry: these were
measured elsewhere, on such a machine."""


def benchbase(folder: Path) -> Iterator[Result]:
    """Client CPU per transaction of four workloads' standard mixes, against what BenchBase took."""
    io = ways()[-1]
    for workload, mix, scale, theirs in _BENCHBASE:
        with server(folder / workload) as on:
            load_data(on.url, folder, workload, scale)
            spec = load_spec(on.url, workload, scale, mix, io=io)
            load = {**spec, "level": {"concurrency": _SESSIONS}, "seconds": SECONDS}
            found = [measure(dict(load)) for _ in range(ROUNDS)]
        each = [entry["cpu_us"] / theirs for entry in found]
        detail = (
            f"{median(found, 'cpu_us'):.1f} µs against {theirs:g} µs a transaction "
            f"(user {median(found, 'user_us'):.1f}); TPS {median(found, 'tps'):,.0f}"
        )
        name = f"client CPU per transaction, {workload} {mix}, {_SESSIONS} sessions, {io}"
        yield result(name, "BenchBase, measured elsewhere", each, at_most(0.25), detail)
