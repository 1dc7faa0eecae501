"""Outages and recoveries, found in probes and intervals; pure functions (METRICS, section 3, "F and R").

A probe asks at a fixed rate, each role with its own connections, so that time resolves to milliseconds whatever the
load does. Times are seconds on one clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

LATE_S = 0.1
"""The longest time, in s, from a probe's due time to its answer that counts as served in time."""
CALM_S = 1.0
"""How long the service has to serve, in s, until a further interruption counts as another one."""
RECOVERED = 0.95
"""The share of the throughput before a failure that it has to come back to."""


@dataclass(frozen=True)
class RoleProbes:
    """The availability probes of a role, in the order in which they were due."""

    due_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    """When they were answered or given up; of those that were missing, when they were due."""
    ok: NDArray[np.bool_]
    sent: NDArray[np.bool_]
    """Whether they were sent; others are missing, as no connection was free."""

    @classmethod
    def of(
        cls, due_s: ArrayLike, end_s: ArrayLike, ok: ArrayLike, sent: ArrayLike | None = None
    ) -> RoleProbes:
        """Take samples in any order; all were sent where nothing is said."""
        due = np.asarray(due_s, np.float64)
        order = np.argsort(due, kind="stable")
        were_sent = np.ones(len(due), np.bool_) if sent is None else np.asarray(sent, np.bool_)[order]
        return cls(
            due[order], np.asarray(end_s, np.float64)[order], np.asarray(ok, np.bool_)[order], were_sent
        )

    def served(self, late_s: float) -> NDArray[np.bool_]:
        """Tell which were served in time.

        A missing probe counts as served if a served one was in flight at its due time: the lack of a connection was the
        client's.
        """
        good = self.ok & (self.end_s - self.due_s <= late_s)
        if not good.any():
            return good
        latest_end = np.maximum.accumulate(np.where(good, self.end_s, -np.inf))
        return good | ~self.sent & (latest_end >= self.due_s)


@dataclass(frozen=True)
class Outage:
    """An interruption: a time in which an endpoint was not served."""

    last_success_s: float | None
    """The last answer before it; None if there was none."""
    first_bad_s: float
    """The due time of the first probe that failed, was missing or late."""
    back_s: float | None
    """The first success after the last such probe; None where the service did not come back."""
    failed: int
    """Probes that failed or were missing."""
    late: int
    """Probes that were answered, and late."""
    gap_s: float
    """The uncertainty of the service's return: from the due time of the last failed probe to the first answer after it.
    If that probe was only late, to the due time of the next one: its own answer tells when the service was back."""


def find_outages(
    probes: RoleProbes, since_s: float, until_s: float, *, late_s: float = LATE_S, calm_s: float = CALM_S
) -> list[Outage]:
    """Find the interruptions that overlap a window, in order; none if every probe was served in time.

    An interruption has two bad probes (failed, missing or late) or more, or a single one that took longer than
    ``late_s``: a single failure is none. It lasts from the first to the last bad probe. A single success, of a request
    in flight or of a node not yet down, does not end it: only serving for ``calm_s`` does.
    """
    bad = ~probes.served(late_s)
    # A probe that was due before the fault may be the first to fail.
    within = (probes.end_s >= since_s) & (probes.due_s < until_s)
    places = np.flatnonzero(bad & within)
    if len(places) == 0:
        return []
    # Consecutive bad probes belong together, at any rate.
    calm = (np.diff(probes.due_s[places]) >= calm_s) & (np.diff(places) > 1)
    groups = np.split(places, np.flatnonzero(calm) + 1)
    return [_outage(probes, bad, group) for group in groups if _is_interruption(probes, group, late_s)]


def _is_interruption(probes: RoleProbes, group: NDArray[np.intp], late_s: float) -> bool:
    return len(group) > 1 or bool(probes.end_s[group[0]] - probes.due_s[group[0]] > late_s)


def outage_of(
    found: Sequence[Sequence[Outage]], acted_s: float, *, calm_s: float = CALM_S
) -> tuple[Outage | None, list[tuple[int, Outage]]]:
    """Separate the outage that a fault has caused from later interruptions.

    ``found`` has the interruptions of each endpoint of a role since the fault, in order; ``acted_s`` is the end of the
    fault's action. The outage is the endpoint's first interruption with failed probes that began before the action's
    end or within ``calm_s`` after it: an action may delay probes before it strikes. If no probe failed, it is the
    first interruption; of several endpoints, the one whose service came back last. If no interruption began by then,
    the first one counts: an asynchronous action may take effect later.

    Returns the outage, and all other interruptions with the place of their endpoint.
    """
    firsts = [(place, outages[0]) for place, outages in enumerate(found) if outages]
    own = [
        (place, one)
        for place, outages in enumerate(found)
        if (one := _caused(outages, acted_s + calm_s)) is not None
    ]
    own = own or sorted(firsts, key=lambda first: first[1].first_bad_s)[:1]
    others = [
        (place, one) for place, outages in enumerate(found) for one in outages if (place, one) not in own
    ]
    # Of several endpoints of a role the longest outage counts; one without an end is the longest.
    outage = max((one for _, one in own), key=lambda one: one.back_s or math.inf, default=None)
    return outage, sorted(others, key=lambda other: other[1].first_bad_s)


def _caused(outages: Sequence[Outage], until_s: float) -> Outage | None:
    """Return the fault's interruption, begun by a given time: the first with failed probes, else the first."""
    begun = [one for one in outages if one.first_bad_s <= until_s]
    return next((one for one in begun if one.failed), begun[0] if begun else None)


def _outage(probes: RoleProbes, bad: NDArray[np.bool_], group: NDArray[np.intp]) -> Outage:
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


def _gap(probes: RoleProbes, group: NDArray[np.intp], after: NDArray[np.bool_], back_s: float) -> float:
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

    def means(self, window_s: float) -> NDArray[np.float64]:
        """Return the TPS over a window from each interval on; at the end over what there is.

        The window is an interval alone, if that is longer.
        """
        starts, ends = self.start_s, self.end_s
        last = np.searchsorted(ends, starts + window_s + 1e-9, side="right")
        last = np.clip(last, np.arange(len(starts)) + 1, len(starts))
        sums = np.concatenate([[0.0], np.cumsum(self.committed)])
        counts = sums[last] - sums[: len(starts)]
        means: NDArray[np.float64] = counts / (ends[last - 1] - starts)
        return means


_LOW = 0.05


def least_tps(throughput: Throughput, since_s: float, until_s: float, window_s: float) -> float:
    """Return the TPS that a closed load has to come back to: 95 % of its mean before the fault.

    Where its windows were not that steady before the fault, their 5th percentile.
    """
    rows = (throughput.start_s >= since_s - 1e-9) & (throughput.start_s + window_s <= until_s + 1e-9)
    least = RECOVERED * throughput.mean(since_s, until_s)
    if not rows.any():
        return least
    return min(least, float(np.quantile(throughput.means(window_s)[rows], _LOW)))


def most_latency_ms(p95_ms: Sequence[float | None], is_before: NDArray[np.bool_]) -> float | None:
    """Return the p95 latency that an open load has to come back to: the upper end of its band before the fault.

    The highest p95 of a window before the fault, plus its distance from the median, because a few windows do not show
    the highest latency that noise brings. At least 5 % above the highest, as the TPS may be 5 % less. None if nothing
    was committed before the fault.
    """
    known = [value for value, before in zip(p95_ms, is_before, strict=True) if before and value is not None]
    if not known:
        return None
    highest = max(known)
    return max(highest * highest / median(known), highest / RECOVERED)


def served_as_before(
    p95_ms: Sequence[float | None],
    backlog: NDArray[np.float64],
    most_ms: float | None,
    rate: float,
    length: int,
) -> NDArray[np.bool_]:
    """Tell in which windows an open load is served as before a fault: no backlog, no latency above ``most_ms``.

    While a backlog drains the TPS says nothing. A window begins with each interval and has ``length`` of them.
    ``p95_ms`` is the p95 latency of each window, from the intended start, None where nothing was committed;
    ``backlog`` the arrivals that waited at the end of each interval: it is gone when no more wait than come at
    ``rate``, in 1/s, within the latency that is allowed.
    """
    if most_ms is None:
        return np.zeros(len(p95_ms), np.bool_)
    latency = np.array([np.inf if value is None else value for value in p95_ms], np.float64)
    waiting = np.array([backlog[row : row + length].max() for row in range(len(backlog))])
    served: NDArray[np.bool_] = (latency <= most_ms) & (waiting <= rate * most_ms / 1000)
    return served


def recovered_at(
    start_s: NDArray[np.float64], served: NDArray[np.bool_], back_s: float, hold_s: float, until_s: float
) -> float | None:
    """Find the first moment after the service's return from which every window is served for ``hold_s``.

    ``start_s`` has the windows' starts. None where it does not come so far before ``until_s``, the end of the
    measurement. The moment is a window's start, or the service's return itself if the first window after it is served:
    shorter times cannot be resolved.
    """
    rows = np.flatnonzero(start_s >= back_s - 1e-9)
    for row in rows:
        begin = float(start_s[row])
        if begin + hold_s > until_s + 1e-9:
            return None  # the measurement ends before it has held
        if served[(start_s >= begin) & (start_s < begin + hold_s - 1e-9)].all():
            # The interval of the return is partly outage, so its throughput is no evidence.
            return back_s if row == rows[0] else begin
    return None
