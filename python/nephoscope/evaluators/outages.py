"""Outages and recoveries, found in what probes and intervals say; pure functions (METRICS, section 3, "F and R").

A probe asks at a fixed rate, each role with its own connections, so that time resolves to milliseconds whatever the
load does. Times are seconds on one clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

LATE_S = 0.1
"""A probe that is answered later than this after it was due was not served in time."""
CALM_S = 1.0
"""So long without a failed, missing or late probe, and what comes then is an interruption of its own."""
RECOVERED = 0.95
"""The share of the throughput before a failure that it has to come back to."""


@dataclass(frozen=True)
class Probes:
    """The availability probes of a role, in the order in which they were due."""

    due_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    """When they were answered or given up; of those that were missing, when they were due."""
    ok: NDArray[np.bool_]
    sent: NDArray[np.bool_]
    """Whether they were sent at all; others are missing: nothing was free to send them by."""

    @classmethod
    def of(cls, due_s: ArrayLike, end_s: ArrayLike, ok: ArrayLike, sent: ArrayLike | None = None) -> Probes:
        """Take samples in any order; all were sent where nothing is said."""
        due = np.asarray(due_s, np.float64)
        order = np.argsort(due, kind="stable")
        were_sent = np.ones(len(due), np.bool_) if sent is None else np.asarray(sent, np.bool_)[order]
        return cls(
            due[order], np.asarray(end_s, np.float64)[order], np.asarray(ok, np.bool_)[order], were_sent
        )

    def served(self, late_s: float) -> NDArray[np.bool_]:
        """Tell which were served in time.

        A missing probe counts as served while another one was under way that was: that one says what the missing one
        would have found, and that there was no connection for both is the instrument's own doing.
        """
        good = self.ok & (self.end_s - self.due_s <= late_s)
        if not good.any():
            return good
        latest_end = np.maximum.accumulate(np.where(good, self.end_s, -np.inf))
        return good | ~self.sent & (latest_end >= self.due_s)


@dataclass(frozen=True)
class Outage:
    """A time in which a role was not served."""

    last_success_s: float | None
    """The last answer before; None where there was none."""
    first_bad_s: float
    """When the first probe was due that failed, was missing or late."""
    back_s: float | None
    """The first success after the last such probe; None where the service did not come back."""
    failed: int
    """Probes that failed or were missing."""
    late: int
    """Probes that were answered, and late."""
    gap_s: float
    """What the time of the service's return is known to: from when the last probe that failed was due to the first
    answer after it; where that one was only late, to when the next was due, as its own answer says when the service was
    back."""


def find_outages(
    probes: Probes, since_s: float, until_s: float, *, late_s: float = LATE_S, calm_s: float = CALM_S
) -> list[Outage]:
    """Find the outages that begin in a window; none where every probe was served in time.

    A success after the fault, of a request that was under way or of a node that was not yet gone, ends no outage: an
    outage lasts from the first to the last probe that failed, was missing or late, as long as these are less than
    ``calm_s`` apart.
    """
    bad = ~probes.served(late_s)
    # A probe that was due before the fault may well be its first victim.
    within = (probes.end_s >= since_s) & (probes.due_s < until_s)
    places = np.flatnonzero(bad & within)
    if len(places) == 0:
        return []
    breaks = np.flatnonzero(np.diff(probes.due_s[places]) >= calm_s) + 1
    return [_outage(probes, bad, group) for group in np.split(places, breaks)]


def _outage(probes: Probes, bad: NDArray[np.bool_], group: NDArray[np.intp]) -> Outage:
    first, last = float(probes.due_s[group[0]]), float(probes.due_s[group[-1]])
    good = ~bad & probes.sent
    before = probes.end_s[good & (probes.due_s < first)]
    after = good & (probes.due_s > last)
    back = float(probes.end_s[after].min()) if after.any() else None
    return Outage(
        last_success_s=float(before.max()) if len(before) else None,
        first_bad_s=first,
        back_s=back,
        failed=int(np.count_nonzero(~probes.ok[group])),
        late=int(np.count_nonzero(probes.ok[group])),
        gap_s=_gap(probes, group, after, back) if back is not None else 0.0,
    )


def _gap(probes: Probes, group: NDArray[np.intp], after: NDArray[np.bool_], back_s: float) -> float:
    last = group[-1]
    upper = float(probes.due_s[after].min()) if probes.ok[last] else back_s
    return upper - float(probes.due_s[last])


@dataclass(frozen=True)
class Throughput:
    """Committed transactions of consecutive intervals of equal length."""

    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    committed: NDArray[np.float64]

    @classmethod
    def of(cls, start_s: Sequence[float], end_s: Sequence[float], committed: Sequence[float]) -> Throughput:
        """Take intervals in their order."""
        return cls(
            np.asarray(start_s, np.float64),
            np.asarray(end_s, np.float64),
            np.asarray(committed, np.float64),
        )

    def mean(self, since_s: float, until_s: float) -> float:
        """TPS of the intervals that lie whole in a window; 0 where none does."""
        rows = (self.start_s >= since_s - 1e-9) & (self.end_s <= until_s + 1e-9)
        seconds = float((self.end_s[rows] - self.start_s[rows]).sum())
        return float(self.committed[rows].sum()) / seconds if seconds > 0 else 0.0


def recovered_at(
    throughput: Throughput,
    before_tps: float,
    back_s: float,
    hold_s: float,
    *,
    window_s: float = 0.0,
    share: float = RECOVERED,
) -> float | None:
    """Find the first moment after the service's return from which the TPS stays at or above its share.

    It has to stay so for ``hold_s``, in the mean over ``window_s`` from each interval on (an interval alone, if that is
    longer): the shorter, the more the noise of a load looks like its absence. None where it does not come so far in
    what was measured. The moment is an interval's start, or the service's return itself if the TPS is back with it.
    """
    starts, ends = throughput.start_s, throughput.end_s
    rows = np.flatnonzero(starts >= back_s - 1e-9)
    enough = _means(throughput, window_s) >= share * before_tps
    for row in rows:
        held = (starts >= starts[row]) & (starts < starts[row] + hold_s - 1e-9)
        if ends[held].max() < starts[row] + hold_s - 1e-9:
            return None  # the measurement ends before it has held
        if enough[held].all():
            # The interval that the service came back in is partly outage, and no evidence against it.
            return back_s if row == rows[0] else float(starts[row])
    return None


def _means(throughput: Throughput, window_s: float) -> NDArray[np.float64]:
    """TPS over a window from each interval on; at the end over what there is."""
    starts, ends = throughput.start_s, throughput.end_s
    last = np.searchsorted(ends, starts + window_s + 1e-9, side="right")
    last = np.clip(last, np.arange(len(starts)) + 1, len(starts))
    sums = np.concatenate([[0.0], np.cumsum(throughput.committed)])
    counts = sums[last] - sums[: len(starts)]
    means: NDArray[np.float64] = counts / (ends[last - 1] - starts)
    return means
