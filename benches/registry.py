"""Every benchmark, by the name that ``ONLY=`` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benches import against_cassandra, against_redis, against_sqlite, against_sysbench
from benches.against_pgbench import floor, lag, order_payment, point_select
from benches.engine import collector, instructions, noop, sessions, soak
from benches.intervals import intervals
from benches.loading import load, load_mariadb, load_tpcc
from benches.observation import observation
from benches.probes import lag_resolution, probes
from benches.storage_capture import storage_capture
from benches.storage_execute import execute
from benches.storage_generate import generate
from benches.sysbench_scripts import scripts
from benches.trace_record import trace_record
from benches.truths import rate, stall
from benches.workloads import benchbase, tpcc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benches.results import Result

BENCHMARKS: dict[str, Callable[[Path], Iterator[Result]]] = {
    "point-select": point_select,
    "point-select-mariadb": against_sysbench.point_select,
    "sysbench-scripts": scripts,
    "sqlite": against_sqlite.sqlite,
    "redis": against_redis.redis,
    "floor": floor,
    "floor-mariadb": against_sysbench.floor,
    "floor-cassandra": against_cassandra.floor,
    "order-payment": order_payment,
    "benchbase": benchbase,
    "tpcc": tpcc,
    "lag": lag,
    "noop": noop,
    "instructions": instructions,
    "collector": collector,
    "sessions": sessions,
    "stall": stall,
    "rate": rate,
    "load": load,
    "load-mariadb": load_mariadb,
    "load-tpcc": load_tpcc,
    "probes": probes,
    "observation": observation,
    "lag-resolution": lag_resolution,
    "intervals": intervals,
    "storage-generate": generate,
    "storage-capture": storage_capture,
    "trace-record": trace_record,
    "soak": soak,
    "storage-execute": execute,
}

ON_DEMAND = frozenset({"soak"})
"""These take long, and run only if they are named."""
