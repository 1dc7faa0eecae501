"""How long and how often to measure: the warm-up, the window, and the repetitions that a wanted precision takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.statistics.distributions import chi_square_quantile, t_quantile
from nephoscope.statistics.series import checked, effective_sample_size, is_constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nephoscope.statistics.series import Values

_BATCH = 5
"""Intervals are looked at in batches of five (MSER-5): single ones are too noisy to tell where a warm-up ends."""
_LEAST_INTERVALS = 20
_MOST_REPETITIONS = 10_000


@dataclass(frozen=True, slots=True)
class MeasurementPlan:
    """What repetitions of one load tell about how it should be measured; numbers of intervals, shares of the mean."""

    mean: float
    """The mean without the warm-up, in the unit of the series."""
    warm_up: int | None
    """How many intervals the warm-up takes; None where the repetitions are too short to tell."""
    within: float
    """The standard deviation of a repetition's mean by its own noise, as a share of the mean, at its full length."""
    between: float
    """The standard deviation from one repetition to the next beyond that, as a share of the mean."""
    window: int
    """The longest useful window: a longer one takes more time than one repetition more, and tells less."""
    repetitions: int | None
    """How many repetitions of this window the wanted precision takes, about; None of more than 10,000."""
    repetitions_at_most: int | None
    """The same by the upper 95 % bound of the spread between repetitions: few of them hardly know it."""


def warm_up_length(series: Sequence[Values]) -> int | None:
    """Return how many intervals of the beginning are not like the rest; None where the series are too short to tell.

    ``series`` are repetitions from a cold start, in equal intervals; their mean is looked at (Welch, 1983), in batches
    of five, and cut where the standard error of what is left is smallest (White, Simulation 69, 1997: MSER-5). The
    smallest at the middle means that no steady part was seen.

    Raises ``ValueError`` for no series, an empty one, or a value that is not finite.
    """
    mean = _mean_of(series)
    batches = mean[: len(mean) - len(mean) % _BATCH].reshape(-1, _BATCH).mean(axis=1)
    if len(mean) < _LEAST_INTERVALS:
        return None
    if is_constant(batches):
        return 0
    # Beyond the middle so few are left that a small error is chance.
    middle = len(batches) // 2
    each = [batches[cut:] for cut in range(middle + 1)]
    cut = int(np.argmin([float(np.square(left - left.mean()).sum()) / len(left) ** 2 for left in each]))
    return cut * _BATCH if cut < middle else None


def _mean_of(series: Sequence[Values]) -> NDArray[np.float64]:
    if not series:
        raise ValueError("no series; allowed: one at least")
    each = [checked(one) for one in series]
    shortest = min(map(len, each))
    return np.asarray(np.mean([one[:shortest] for one in each], axis=0), np.float64)


def plan_measurement(series: Sequence[Values], precision: float, overhead: float) -> MeasurementPlan | None:
    """Plan how to measure what these repetitions have measured; None where their mean is 0.

    ``precision`` is the half-width of the mean's 95 % interval that is wanted, as a share of the mean. ``overhead`` is
    what a repetition takes besides its window and its warm-up (a rest, a restart), in intervals.

    The variance of a repetition's mean has two parts: its own noise, which falls with the length of the window, by as
    many independent intervals as it is worth; and what differs from one repetition to the next, which does not. The
    window that is worth its time is the root of overhead times noise of one interval over that difference (Kalibera and
    Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, equation 3), the whole length where no difference is
    seen. Repetitions follow from Student's t.

    Raises ``ValueError`` for fewer than two repetitions, one without intervals after the warm-up, a value that is not
    finite, or a precision or overhead that is not above 0.
    """
    if len(series) < 2:  # noqa: PLR2004 - one has no spread
        raise ValueError("a single repetition; allowed: two or more")
    if not (precision > 0 and overhead >= 0 and math.isfinite(precision) and math.isfinite(overhead)):
        raise ValueError(
            f"a precision of {precision}, an overhead of {overhead}; allowed: above 0, and 0 or more"
        )
    warm_up = warm_up_length(series)
    left = [checked(one)[warm_up or 0 :] for one in series]
    means = np.array([float(one.mean()) for one in left])
    mean = float(means.mean())
    if mean == 0:
        return None
    length = min(map(len, left))
    noise = float(
        np.mean([one.var(ddof=1) / effective_sample_size(one) if len(one) > 1 else 0.0 for one in left])
    )
    spread = float(means.var(ddof=1))
    between = max(spread - noise, 0.0)
    window = _window(noise * length, between, overhead + (warm_up or 0), length)
    freedom = len(series) - 1
    largest = spread * freedom / chi_square_quantile(freedom, 0.95)
    wanted = precision * abs(mean)
    needed, at_most = (
        _repetitions(max(whole - noise, 0.0) + noise * length / window, wanted) for whole in (spread, largest)
    )
    return MeasurementPlan(
        mean, warm_up, math.sqrt(noise) / abs(mean), math.sqrt(between) / abs(mean), window, needed, at_most
    )


def _window(of_an_interval: float, between: float, overhead: float, length: int) -> int:
    """Return the window in intervals; ``of_an_interval`` is the variance of one as if they were independent."""
    if between == 0:
        return length
    return min(max(math.ceil(math.sqrt(overhead * of_an_interval / between)), 1), length)


def _repetitions(variance: float, half: float) -> int | None:
    """Return the smallest number of repetitions, two at the least, whose mean has no wider an interval."""

    def is_enough(n: int) -> bool:
        return t_quantile(n - 1, 0.975) * math.sqrt(variance / n) <= half

    if not is_enough(_MOST_REPETITIONS):
        return None
    low, high = 1, _MOST_REPETITIONS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
