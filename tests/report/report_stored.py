"""A made-up run, stored in memory: what the report reads."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.store.layout import CHECKS, PROBES
from nephoscope.store.protocol import ALL, Selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

Counts = np.ndarray[Any, np.dtype[np.int64]]

# Buckets 1 % wide from 1 µs to 100 s: HdrHistogram's are narrower, which changes no shape.
BOUNDS = np.unique(np.round(1000 * 1.01 ** np.arange(1852)).astype(np.int64))


@dataclass(frozen=True)
class Record:
    """The histogram of one row."""

    phase: int
    middle: float
    tenant: str
    transaction: str
    kind: str
    first: int
    counts: Counts


@dataclass
class SyntheticRun:
    """A ``RunReader`` that holds everything in memory."""

    name: str
    manifest: Mapping[str, Any]
    study: str
    scores: Mapping[str, Any] | None
    intervals: pa.Table
    events: Sequence[Mapping[str, Any]]
    system_metrics: pa.Table
    records: list[Record] = field(default_factory=list)
    probes: pa.Table = field(default_factory=PROBES.empty_table)
    checks: pa.Table = field(default_factory=CHECKS.empty_table)

    def histogram(self, selection: Selection = ALL) -> Sequence[tuple[int, int]]:
        merged = np.zeros(BOUNDS.size, np.int64)
        for record in self.records:
            if _selected(record, selection):
                merged[record.first : record.first + record.counts.size] += record.counts
        kept = np.flatnonzero(merged)
        return [(int(BOUNDS[i]), int(merged[i])) for i in kept]

    def percentiles(
        self,
        windows: Sequence[tuple[float, float]],
        percentiles: Sequence[float],
        selection: Selection = ALL,
    ) -> Sequence[Sequence[float | None]]:
        starts = np.asarray([start for start, _ in windows])
        merged: dict[int, Counts] = {}
        for record in self.records:
            window = int(np.searchsorted(starts, record.middle, side="right")) - 1
            if window < 0 or record.middle >= windows[window][1] or not _selected(record, selection):
                continue
            into = merged.setdefault(window, np.zeros(BOUNDS.size, np.int64))
            into[record.first : record.first + record.counts.size] += record.counts
        return [
            [value_at(merged.get(i), percentile) for percentile in percentiles] for i in range(len(windows))
        ]


def _selected(record: Record, selection: Selection) -> bool:
    return (
        record.kind == selection.kind
        and (selection.phases is None or record.phase in selection.phases)
        and (selection.tenant is None or record.tenant == selection.tenant)
        and (selection.transaction is None or record.transaction == selection.transaction)
    )


def value_at(counts: Counts | None, percentile: float) -> float | None:
    if counts is None or not counts.any():
        return None
    rank = max(1, math.ceil(percentile / 100 * int(counts.sum()) - 1e-9))
    return float(BOUNDS[np.searchsorted(np.cumsum(counts), rank)])
