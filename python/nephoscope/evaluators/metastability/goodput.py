"""Goodput over the time of a step, and whether it has returned after the trigger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.evaluators.metastability.settings import MetastabilitySettings

Part = Literal["before", "trigger", "after"]
"""The parts of a step."""
PARTS: tuple[Part, ...] = ("before", "trigger", "after")
Outcome = Literal["returned", "stayed down", "too much before", "not known"]
"""What has become of goodput. Too much before: it was not there before the trigger either. Not known: the client itself
was late."""

EPSILON_S = 1e-6
"""Times that differ by less are the same, in s."""


@dataclass(frozen=True)
class Interval:
    """An interval of the load; times in s since its start."""

    start_s: float
    end_s: float
    arrivals: int
    """Transactions that were due."""
    good: int
    """Transactions that were committed within the limit."""
    ended: int
    """Transactions that ended, however."""
    retries: int
    """Attempts of these beyond their first."""
    lag_s: float
    """How late the client started a transaction at the most, although a session was free."""


@dataclass(frozen=True)
class Step:
    """A rate with its trigger, as it was measured; goodput is a share of the arrivals."""

    outcome: Outcome
    before: float | None
    """Goodput before the trigger."""
    during: float | None
    after: float | None
    """Goodput in the last half of the time after the trigger."""
    returned_s: float | None
    """How long after the trigger's end goodput was back; None where it was not."""
    attempts_before: float | None
    """Attempts per transaction that ended; None where none did."""
    attempts_after: float | None


def judged(parts: Mapping[Part, Sequence[Interval]], over_s: float, settings: MetastabilitySettings) -> Step:
    """Judge a step by its intervals; the trigger was over at ``over_s``."""
    before, after = _goodput(parts["before"]), [one for one in parts["after"] if one.end_s > over_s]
    back_s = _back(after, settings.share * (before or 0.0), settings.hold)
    middle_s = (over_s + after[-1].end_s) / 2 if after else over_s
    late = [one for one in after if one.start_s >= middle_s - EPSILON_S]
    outcome: Outcome
    if before is None or before < settings.share:
        outcome = "not known" if _is_late(parts["before"], settings.limit) else "too much before"
    elif back_s is not None:
        outcome = "returned"
    else:
        outcome = "not known" if _is_late(late, settings.limit) else "stayed down"
    return Step(
        outcome=outcome,
        before=before,
        during=_goodput(parts["trigger"]),
        after=_goodput(late),
        returned_s=max(back_s - over_s, 0.0) if outcome == "returned" and back_s is not None else None,
        attempts_before=_attempts(parts["before"]),
        attempts_after=_attempts(late),
    )


def _goodput(intervals: Sequence[Interval]) -> float | None:
    arrivals = sum(one.arrivals for one in intervals)
    return sum(one.good for one in intervals) / arrivals if arrivals else None


def _back(intervals: Sequence[Interval], wanted: float, hold_s: float) -> float | None:
    """Return from when on goodput is the wanted share: for ``hold_s``, and on average from there to the end."""
    if not intervals:
        return None
    ends = np.array([one.end_s for one in intervals])
    starts = np.array([one.start_s for one in intervals])
    good, due = (
        np.concatenate([[0], np.cumsum(counts)])
        for counts in ([one.good for one in intervals], [one.arrivals for one in intervals])
    )
    for place, start in enumerate(starts):
        held = int(np.searchsorted(ends, start + hold_s - EPSILON_S)) + 1
        if held > len(ends):
            return None
        if all(
            good[until] - good[place] >= wanted * (due[until] - due[place]) for until in (held, len(ends))
        ):
            return float(start)
    return None


def _attempts(intervals: Sequence[Interval]) -> float | None:
    ended = sum(one.ended for one in intervals)
    return 1 + sum(one.retries for one in intervals) / ended if ended else None


def _is_late(intervals: Sequence[Interval], limit_s: float) -> bool:
    return max((one.lag_s for one in intervals), default=0.0) > limit_s
