"""Whole workloads on PostgreSQL: what a transaction costs the client, beside BenchBase and pgbench."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benches.against_pgbench import pgbench
from benches.client import load_spec, measure
from benches.costs import ROUNDS, SECONDS, median, ratios, told, ways
from benches.results import Result, at_most, result
from benches.servers import load_data, server
from benches.tpcc_scripts import scripts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

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


def tpcc(folder: Path) -> Iterator[Result]:
    """Client CPU per TPC-C transaction, standard mix, against ``pgbench -f`` of the same statements, one by one."""
    io = ways()[-1]
    forms = {True: "batched", False: "statement by statement"}
    with server(folder / "server") as on:
        load_data(on.url, folder, "tpcc", 1)
        arguments = scripts(folder)
        for sessions in (_SESSIONS, 32):
            theirs: list[dict[str, float]] = []
            ours: dict[bool, list[dict[str, Any]]] = {batched: [] for batched in forms}
            for _ in range(ROUNDS):
                theirs.append(pgbench(on, sessions, *arguments))
                for batched, found in ours.items():
                    spec = load_spec(on.url, "tpcc", 1, "TPCC", io=io)
                    spec["tenants"][0]["workload"]["options"] = {"batched": batched}
                    found.append(measure({**spec, "level": {"concurrency": sessions}, "seconds": SECONDS}))
            for batched, found in ours.items():
                name = f"client CPU per TPC-C transaction, {forms[batched]}, {sessions} sessions, {io}"
                peer = "pgbench -f, statement by statement"
                yield result(name, peer, ratios(found, theirs), at_most(0.8), told(found, theirs))
