"""Probes: what they cost the load beside them, and how sharply they see replication lag."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from benches.client import load_spec, measure
from benches.engine import at_least
from benches.results import Result, at_most, result
from benches.servers import load_sales, server
from nephoscope import _engine
from nephoscope.probes import Endpoint, Probes, ProbeSettings
from nephoscope.store import RunWriter, StoredRun
from nephoscope.systems.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nephoscope.systems.base import System

PAIRS = 7
SCALE = 0.1
HALF_WIDTH_MS = 0.15
SECONDS = 10.0


def probes(folder: Path) -> Iterator[Result]:
    """TPS with and without probes at 200/s, in turns; half the width of a lag's bounds on this machine."""
    with server(folder / "server") as on:
        load_sales(on, folder, SCALE)
        spec = load_spec(on.url, "sales", SCALE, "RW", level={"concurrency": 8}, seconds=5.0)
        ratios, rates = [], []
        for pair in range(PAIRS):
            # In turns, and each first in every other pair: what drifts hits both.
            order = [True, False] if pair % 2 else [False, True]
            tps = {with_probes: measure({**spec, "probes": with_probes})["tps"] for with_probes in order}
            ratios.append(tps[True] / tps[False])
            rates.append(tps[False])
        detail = f"{statistics.median(rates):,.0f} TPS without"
        yield result("TPS with probes at 200/s", "without", ratios, at_least(0.99), detail)
    settings = EmbeddedPostgresSettings(data=folder / "cluster", replicas=1)
    with EmbeddedPostgres(settings) as cluster:
        yield _half_width(cluster.start(), folder / "run")


def _half_width(system: System, folder: Path) -> Result:
    """Measure on a primary and its replica, each behind its address, as users have them."""
    folder.mkdir()
    writer = RunWriter(folder, {}, "")
    beginning = _engine.monotonic_ns()
    making = Probes(Endpoint.of(system), writer, beginning, ProbeSettings(), availability=False, lag=True)
    with making as running:
        time.sleep(SECONDS)
        running.stop()
    writer.close()
    rows = [row for row in StoredRun(folder).probes.to_pylist() if row["outcome"] == "ok"]
    halves = sorted((row["upper_ms"] - row["lower_ms"]) / 2 for row in rows)
    p50 = statistics.median(halves)
    detail = (
        f"{len(rows)} markers, p50 {p50 * 1000:.0f} µs, p99 {halves[int(len(halves) * 0.99)] * 1000:.0f} µs"
    )
    return result("half-width of a lag, p50", "150 µs", [p50 / HALF_WIDTH_MS], at_most(1.0), detail)
