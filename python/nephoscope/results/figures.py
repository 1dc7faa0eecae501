"""The figures of a run's measured points: what comparisons, histories and cards are made of."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.store import StoredRun


@dataclass(frozen=True)
class Kind:
    """A figure that points have."""

    name: str
    unit: str
    field: str
    """The path of the figure in a point."""
    higher_is_better: bool
    quantile: float | None = None
    """The share below it, of a percentile: that of all repetitions together is no mean of theirs."""


KINDS = (
    Kind("TPS", "1/s", "tps", higher_is_better=True),
    Kind("p50", "ms", "p50", higher_is_better=False, quantile=0.50),
    Kind("p95", "ms", "p95", higher_is_better=False, quantile=0.95),
    Kind("p99", "ms", "p99", higher_is_better=False, quantile=0.99),
    Kind("client CPU", "µs", "cpu_us", higher_is_better=False),
)


FIGURES: Sequence[str] = tuple(kind.name for kind in KINDS)
"""The names of the figures that are compared."""

Key = tuple[str, float | None, float | None, str]
"""Mix, concurrency, rate, and the entry of ``[[measure]]``: its evaluator and its number among that evaluator's."""


def points_of(run: StoredRun, scores: Mapping[str, Any]) -> dict[Key, list[Mapping[str, Any]]]:
    """Group the points of a run; steps of a search are omitted."""
    found: dict[Key, list[Mapping[str, Any]]] = {}
    labels = {phase.number: phase.labels for phase in run.phases}
    entries = _entries(run)
    for point in scores["points"]:
        of = labels.get(point["phase"], {})
        if not of.get("search"):
            mix = point["mix"] or str(of.get("load") or "load")
            key = (mix, point["concurrency"], point["rate"], entries.get(point["measure"], ""))
            found.setdefault(key, []).append(point)
    return found


def values_of(points: Sequence[Mapping[str, Any]], kind: Kind) -> list[float]:
    """Return a figure of each repetition."""
    found = [
        point[kind.field] if kind.field in point else (point["latency_ms"] or {}).get(kind.field)
        for point in points
    ]
    return [float(value) for value in found if value is not None]


def together(runs: Sequence[StoredRun], points: Sequence[Sequence[Mapping[str, Any]]], kind: Kind) -> float:
    """Return a figure of the repetitions of runs together: a percentile is that of their merged histograms."""
    if kind.quantile is None:
        values = [value for of in points for value in values_of(of, kind)]
        return math.fsum(values) / len(values)
    merged = []
    for run, of in zip(runs, points, strict=True):
        phases = frozenset(point["phase"] for point in of)
        merged += [
            run.merged(Selection(phases=phases)),
            run.merged(Selection(phases=phases, kind="censored")),
        ]
    for other in merged[1:]:
        merged[0].add(other)
    return merged[0].quantile(kind.quantile) / 1e6


def _entries(run: StoredRun) -> dict[int, str]:
    """Name the entries of ``[[measure]]``, so that those of two studies can be matched."""
    try:
        measures = tomllib.loads(run.study).get("measure", [])
    except tomllib.TOMLDecodeError:
        return {}
    names = [str(entry.get("evaluator")) if isinstance(entry, dict) else "" for entry in measures]
    return {place: f"{name} {names[:place].count(name) + 1}" for place, name in enumerate(names)}


def label_of(key: Key) -> str:
    """Name a point: its mix and its load."""
    mix, concurrency, rate, _ = key
    level = f" c={concurrency:g}" if concurrency is not None else ""
    return mix + (f" {rate:g}/s" if rate is not None else level)
