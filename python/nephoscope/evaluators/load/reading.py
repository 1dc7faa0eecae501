"""The streams of a stored run: throughput and latency of each in the phases that were measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.evaluators.points import latency_of, measured_phases, series_of
from nephoscope.statistics import block_bootstrap_ci
from nephoscope.store.protocol import stream_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.evaluators.points import Point
    from nephoscope.evaluators.stored import Stored


def read_streams(stored: Stored, points: Sequence[Point]) -> list[dict[str, Any]]:
    """Read what each stream did in the phases of these points; empty where the load had none.

    The first stream is the first tenant, and the others are named after it.
    """
    table = stored.run.intervals
    columns = {name: table.column(name).to_numpy() for name in ("phase", "start_s", "end_s", "committed")}
    tenants = np.asarray(table.column("tenant").to_pylist(), object)
    counted = {point.phase for point in points}
    told = stored.run.manifest.get("system", {}).get("tenants", {}).get("each") or [{}]
    first = str(told[0].get("name", ""))
    found = []
    for phase in measured_phases(stored.run, stored.index)[0]:
        if phase.number not in counted:
            continue
        for place, stream in enumerate(phase.labels.get("streams") or ()):
            name = stream_name(first, place + 1)
            series = series_of(columns, (columns["phase"] == phase.number) & (tenants == name))
            rates = series.rates(phase, stored.interval_s)
            latency = latency_of(stored, frozenset({phase.number}), name)
            found.append(
                {
                    "phase": phase.number,
                    "name": phase.name,
                    "repetition": int(phase.labels.get("repetition", 1)),
                    "stream": name,
                    "mix": stream.get("mix"),
                    "concurrency": stream.get("concurrency"),
                    "rate": stream.get("rate"),
                    "committed": int(series.committed.sum()),
                    "tps": float(series.committed.sum()) / (phase.end_s - phase.start_s),
                    "ci95": block_bootstrap_ci(rates).ci95 if rates.size else None,
                    "latency_ms": latency.model_dump() if latency else None,
                }
            )
    return found
