"""How many arrivals of a phase were committed within a latency limit, and how certain their share is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from nephoscope.statistics import clustered_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope import _engine

Outcome = Literal["held", "not held", "not known"]

_CLUSTER_S = 1.0
"""Arrivals of this time share a queue, so they count as one cluster."""
_BY_CHANCE = 3.0
"""In standard deviations: so many more arrivals than expected may be in flight by chance."""


@dataclass(frozen=True)
class WithinLimit:
    """The arrivals of one phase, or of several at the same rate, in clusters of time."""

    arrivals: tuple[int, ...]
    """Committed, failed, and not ended with their phase; those that the workload rolled back are left out."""
    within: tuple[int, ...]
    """Of these, committed within the limit."""
    excused: tuple[int, ...]
    """Of these, committed within the limit if the client's own lateness is taken off their latency."""

    @classmethod
    def of_all(cls, phases: Sequence[WithinLimit]) -> WithinLimit:
        """Join phases at the same rate."""
        return cls(
            sum((one.arrivals for one in phases), ()),
            sum((one.within for one in phases), ()),
            sum((one.excused for one in phases), ()),
        )

    @property
    def count(self) -> int:
        """How many arrivals there are."""
        return sum(self.arrivals)

    @property
    def share(self) -> float | None:
        """The share that was committed within the limit, 0 to 1; None without arrivals."""
        return sum(self.within) / self.count if self.count else None

    @property
    def excused_share(self) -> float | None:
        """The same without the client's own lateness."""
        return sum(self.excused) / self.count if self.count else None

    @cached_property
    def ci95(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the share, with clusters of one second."""
        return self._interval(self.within)

    def outcome(self, percentile: float) -> Outcome:
        """Tell whether the rate held, by the share itself. Not known: the client's lateness could be the reason."""
        if self.share is None or self.excused_share is None:
            return "not known"
        if self.share >= percentile:
            return "held"
        return "not held" if self.excused_share < percentile else "not known"

    def certainty(self, percentile: float) -> Outcome:
        """Tell the same by the intervals: not known where an interval holds the percentile."""
        if self.count and self.ci95[0] >= percentile:
            return "held"
        if self.count and self._interval(self.excused)[1] < percentile:
            return "not held"
        return "not known"

    def _interval(self, hits: Sequence[int]) -> tuple[float, float]:
        return clustered_interval(np.asarray(hits, np.int64), np.asarray(self.arrivals, np.int64))


def certain_interval(certainties: Mapping[float, Outcome]) -> tuple[float | None, float | None]:
    """Return the highest rate that certainly held, and the lowest that certainly did not; None where there is none.

    ``certainties`` are by rate. Where a rate held above one that did not, neither counts: the system has changed.
    """
    held = [rate for rate, of in certainties.items() if of == "held"]
    not_held = [rate for rate, of in certainties.items() if of == "not held"]
    lowest, highest = min(not_held, default=math.inf), max(held, default=0.0)
    return (
        max((rate for rate in held if rate < lowest), default=None),
        min((rate for rate in not_held if rate > highest), default=None),
    )


class LimitCounter:
    """Counts the arrivals of a phase interval by interval."""

    def __init__(self, limit_s: float, rate: float) -> None:
        """Take the latency limit in s and the rate in arrivals per second."""
        self._limit_s = limit_s
        self._rate = rate
        self._clusters: dict[int, list[int]] = {}
        self._late_s = 0.0
        """The lateness of the last interval."""
        self._queued_s = 0.0
        """The lateness that a queue may still hold."""
        self._excuse_s = 0.0
        self._fastest_s = math.inf
        self._ended = 0

    def add(
        self, after_s: float, latency: _engine.Histogram | None, others: int, lag_s: float | None
    ) -> None:
        """Add an interval that starts ``after_s`` seconds after its phase.

        ``latency`` is that of committed transactions; ``others`` are failed ones and those that had not ended;
        ``lag_s`` is how late the client started a transaction at the most.
        """
        self._excuse(lag_s or 0.0, latency)
        counts = self._clusters.setdefault(int(after_s / _CLUSTER_S + 1e-6), [0, 0, 0])
        counts[0] += others
        if latency is not None:
            counts[0] += latency.count
            counts[1] += latency.count_up_to(round(self._limit_s * 1e9))
            counts[2] += latency.count_up_to(round((self._limit_s + self._excuse_s) * 1e9))
        self._ended += others + (latency.count if latency is not None else 0)

    def _excuse(self, lag_s: float, latency: _engine.Histogram | None) -> None:
        """Find by how much the client's lateness may have lengthened the latencies of an interval, in s.

        A late start delays what is committed in its interval, and in the next one. Where requests are served in order,
        it delays those behind it by no more than itself, until the queue is empty. As long as it is not, even the
        fastest transaction is slower than the fastest one of the phase.
        """
        queue_s = 0.0
        if latency is not None and latency.count:
            fastest_s = latency.quantile(0.0) / 1e9
            self._fastest_s = min(self._fastest_s, fastest_s)
            queue_s = fastest_s - self._fastest_s
        self._queued_s = max(lag_s, min(self._queued_s, queue_s))
        self._excuse_s = max(self._queued_s, self._late_s)
        self._late_s = lag_s

    def counted(self, arrivals: int, aborted: int) -> WithinLimit:
        """Return the counts of the whole phase, which had so many arrivals.

        Sessions may still run transactions when a phase ends. More of them than can have arrived within the limit
        are late for certain: a system that stands still has no sample of them.
        """
        expected = self._rate * self._limit_s
        recent = expected + _BY_CHANCE * math.sqrt(expected)
        overdue = math.floor(arrivals - aborted - self._ended - recent)
        counts = [list(self._clusters[place]) for place in sorted(self._clusters)] or [[0, 0, 0]]
        counts[-1][0] += max(overdue, 0)
        columns = zip(*counts, strict=True)
        return WithinLimit(*(tuple(column) for column in columns))
