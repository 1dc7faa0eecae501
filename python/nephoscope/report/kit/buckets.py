"""Buckets of time: thousands of intervals are shown as some hundreds of points, each a true figure.

Counts are summed over a bucket and divided by its length; percentiles come from the bucket's merged
histogram. A bucket never reaches across the border of a phase, because an interval does not either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.tables.numbers import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nephoscope.report.kit.run import Run, ShownPhase

MOST_POINTS = 600
"""The most points that a reader can tell apart on a page."""

_NICE = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)


@dataclass(frozen=True)
class TimeBuckets:
    """Consecutive slices of a run."""

    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    length_s: float
    interval_s: float

    @classmethod
    def of(cls, run: Run, most: int = MOST_POINTS, phases: Sequence[ShownPhase] | None = None) -> TimeBuckets:
        """Slices of a whole number of intervals: of one, if no more than ``most`` are needed.

        They cover the whole run, or the given phases of it, which follow one another.
        """
        interval = run.intervals.length_s
        span = run.end_s if not phases else phases[-1].end_s - phases[0].start_s
        length = bucket_length(span, interval, most)
        starts: list[float] = []
        ends: list[float] = []
        for phase in run.phases if phases is None else phases:
            edges = _edges(phase.start_s, phase.end_s, length)
            starts.extend(edges[:-1])
            ends.extend(edges[1:])
        return cls(np.asarray(starts, float), np.asarray(ends, float), length, interval)

    @cached_property
    def middles(self) -> NDArray[np.float64]:
        """The place of a bucket's point on the axis."""
        return (self.starts + self.ends) / 2

    @property
    def windows(self) -> list[tuple[float, float]]:
        """The buckets as pairs of start and end."""
        return list(zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    @property
    def merged(self) -> bool:
        """Whether a bucket holds more than one interval."""
        return self.length_s > self.interval_s

    @property
    def length_text(self) -> str:
        """The length of a bucket, in words."""
        return duration(self.length_s)

    def index(self, times: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the bucket of each moment; -1 for a moment outside all of them.

        A moment on a border belongs to the bucket that ends there: what is written at the end of an
        interval is about that interval.
        """
        if not self.starts.size:
            return np.full(times.shape, -1, np.intp)
        found = np.searchsorted(self.starts, times, side="left") - 1
        found = np.where(times == self.starts[0], 0, found)
        # The load's last moments may be counted a little after the last phase: they belong to its last
        # bucket.
        outside = (found < 0) | (times > self.ends[found] + self.length_s)
        return np.where(outside, -1, found)

    def rate(self, times: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Events per second in each bucket."""
        where = self.index(times)
        inside = where >= 0
        sums = np.bincount(where[inside], weights=counts[inside], minlength=self.starts.size)
        return sums / np.maximum(self.ends - self.starts, 1e-9)

    def reduce(
        self, times: NDArray[np.float64], values: NDArray[np.float64], *, largest: bool
    ) -> list[float | None]:
        """Return the mean, or the largest, of the values in each bucket; None where there are none."""
        where = self.index(times)
        inside = (where >= 0) & np.isfinite(values)
        where, values = where[inside], values[inside]
        seen = np.bincount(where, minlength=self.starts.size)
        if largest:
            reduced = np.full(self.starts.size, -np.inf)
            np.maximum.at(reduced, where, values)
        else:
            reduced = np.bincount(where, weights=values, minlength=self.starts.size) / np.maximum(seen, 1)
        return [float(value) if n else None for value, n in zip(reduced, seen, strict=True)]


def bucket_length(span_s: float, interval_s: float, most: int) -> float:
    """Return a whole and round number of intervals, so that at most ``most`` buckets cover the span."""
    needed = max(1, math.ceil(span_s / interval_s / most - 1e-9))
    nice = next((n for n in _NICE if n >= needed), needed)
    return nice * interval_s


def _edges(start: float, end: float, length: float) -> Sequence[float]:
    """Return the borders of the buckets of one phase, counted from its start as its intervals are.

    A sliver at its end joins its neighbour: a rate over a few milliseconds would be noise drawn as a spike.
    """
    inner = [start + n * length for n in range(1, math.ceil((end - start) / length))]
    return [start, *(edge for edge in inner if end - edge >= length / 2), end]
