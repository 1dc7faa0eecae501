"""A system that fails and is repaired, again and again: availability, MTTF and MTTR with their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.statistics.distributions import logistic, t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_TAIL = 0.975


@dataclass(frozen=True, slots=True)
class CycleEstimate:
    """A figure over cycles of failure and repair, with its 95 % confidence interval."""

    value: float | None
    """None where nothing of the kind was seen."""
    ci95: tuple[float, float] | None
    """None for fewer than two whole cycles: a single one has no spread."""
    cycles: int
    """How many whole ones the interval rests on."""


def availability_of_cycles(
    up_s: float, down_s: float, cycles: Sequence[tuple[float, float]]
) -> CycleEstimate:
    """Return the share of time in which a system was up, 0 to 1.

    ``up_s`` and ``down_s`` are all of its times in s, those that were cut off at the end included; ``cycles`` are the
    times up and down of the whole cycles, of which the interval takes the spread. It is that of a ratio of means by the
    delta method, for the logarithm of down / up, with Student's t of one degree of freedom fewer than cycles, turned
    back into a share: so it stays inside 0 … 1. It takes cycles as independent, and as of one law.

    Coverage by simulation (``tests/test_renewal.py``) of exponential times with MTTF 10 and MTTR 1, at 3, 5, 10 and 30
    cycles: 92, 93, 93, 94 %; of Weibull times with shape 1.5 93 to 95 %; with shape 0.7, a heavier tail, 90 to 92 %.

    Raises ``ValueError`` for a negative time.
    """
    if min(up_s, down_s, *(min(cycle) for cycle in cycles), 0.0) < 0:
        raise ValueError("a time below 0; allowed: 0 and above")
    total = up_s + down_s
    if total == 0:
        return CycleEstimate(None, None, len(cycles))
    share = up_s / total
    up, down = (
        np.asarray(times, np.float64) for times in (zip(*cycles, strict=True) if cycles else ((), ()))
    )
    if len(cycles) < 2 or not 0 < share < 1 or up.sum() == 0 or down.sum() == 0:  # noqa: PLR2004
        return CycleEstimate(share, None, len(cycles))
    half = _half_width(down / down.mean() - up / up.mean())
    odds = math.log(down_s / up_s)
    return CycleEstimate(share, (logistic(-odds - half), logistic(-odds + half)), len(cycles))


def mean_time(total_s: float, ended_s: Sequence[float]) -> CycleEstimate:
    """Return the mean time to an event, in s: MTTF from times up, MTTR from times down.

    ``total_s`` is all of the time under observation, ``ended_s`` the times that ended with the event. Time that was cut
    off counts in the total and brings no event: for exponential times this is the maximum-likelihood estimate, and a
    mean of the ended times alone would be too short. None where no event was seen. The interval is that of the
    logarithm of the mean, with Student's t.

    Coverage by simulation of exponential times, at 2, 5 and 20 events: 95, 95, 92 %.

    Raises ``ValueError`` for a negative time.
    """
    times = np.asarray(ended_s, np.float64)
    if total_s < 0 or (len(times) and times.min() < 0):
        raise ValueError("a time below 0; allowed: 0 and above")
    if not len(times):
        return CycleEstimate(None, None, 0)
    mean = total_s / len(times)
    if len(times) < 2 or times.sum() == 0:  # noqa: PLR2004
        return CycleEstimate(mean, None, len(times))
    factor = math.exp(_half_width(times / times.mean()))
    return CycleEstimate(mean, (mean / factor, mean * factor), len(times))


def _half_width(relative: NDArray[np.float64]) -> float:
    """Return half of the interval of a logarithm, from deviations relative to the mean."""
    n = len(relative)
    half = t_quantile(n - 1, _TAIL) * float(np.std(relative, ddof=1)) / math.sqrt(n)
    # Of times that differ in nothing but rounding there is no spread.
    return min(half, 700.0) if half > 1e-12 else 0.0  # noqa: PLR2004
