"""A search for the place of a change by noisy measurements, which stops as early as it may.

Places stand in an order; somewhere the level of a figure may change, once. Each hypothesis about where splits the
values into those before and those after the change, and has a two-sample Bayes factor against no change at all: the
mean and the spread are integrated out by their invariant prior, and the change, in units of the spread, has a normal
prior (Gönen, Johnson, Lu and Westfall, The American Statistician 59, 2005). Such a factor, and a mean of several, is at
least 1 / error with a chance of no more than the error if nothing has changed, however often it is looked at (Ville's
inequality; Hendriksen, de Heide and Grünwald, Bayesian Analysis 16, 2021; Pérez-Ortiz, Lardy, de Heide and Grünwald,
Annals of Statistics 52, 2024). So the search needs no number of runs that is fixed beforehand.

First both ends are measured in turns, until they differ, or until a change as large as is looked for is ruled out. Then
the place is measured that lies before the change as likely as after it (probabilistic bisection: Waeber, Frazier and
Henderson, SIAM Journal on Control and Optimization 51, 2013), as often as it takes: a place may come again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SCALES = (1.0, 4.0)
"""The standard deviations of the change's prior, in units of the spread between runs: half of the weight each."""
_LEAST_EACH = 2
"""So often each end is measured before anything is concluded."""
_ENDS = (0, 1, 1, 0)
"""The order of the ends: a drift of the machine falls on both alike."""
_FARTHEST = 1e12
"""A larger square of Student's t is none any more."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What is known after so many measurements."""

    answer: Literal["changed", "no change", "open"]
    """``changed``: a place has the chance 1 - error. ``no change``: none between the ends as large as is looked for."""
    chances: tuple[float, ...]
    """The chance of each place to be the first after the change; 0 of the first place. Equal while nothing is known."""
    evidence: float
    """The largest Bayes factor so far for a change between the ends: 1 / error is enough."""
    difference: float | None
    """The mean after the change less that before it, at the likeliest place."""
    interval: tuple[float, float] | None
    """Its confidence interval, which holds however the search was stopped."""
    following: int | None
    """The place to measure next; None where there is an answer."""


def search(places: int, observed: Sequence[tuple[int, float]], least: float, error: float = 0.05) -> Searched:
    """Say what the measurements so far tell, and which place to measure next.

    ``places`` are 2 or more; ``observed`` are places, from 0, and values in the order of their measurement. ``least``
    is the smallest change that is looked for, in the unit of the values. Raises ``ValueError`` for anything else.
    """
    if places < 2 or least <= 0 or not 0 < error < 1:  # noqa: PLR2004
        raise ValueError(
            f"{places} places, a change of {least}, an error of {error}; allowed: 2 and more, above 0, 0 … 1"
        )
    at = np.array([place for place, _ in observed], dtype=np.int64)
    given = np.array([value for _, value in observed], dtype=np.float64)
    if len(at) and not (np.isfinite(given).all() and at.min() >= 0 and at.max() < places):
        raise ValueError("a value is not finite, or its place is none of the places")
    values = given - given.mean() if len(at) else given
    evidence = _evidence(values, at, places)
    logs = _log_factors(_splits(values, at[None, :] >= np.arange(1, places)[:, None]))
    weights = np.exp(logs - logs.max())
    chances = (0.0, *(float(weight) for weight in weights / weights.sum()))
    best = int(np.argmax(chances))
    difference, interval = _difference(values, at >= best, error)
    if evidence < 1 / error:
        ruled_out = interval is not None and max(abs(interval[0]), abs(interval[1])) < least
        answer: Literal["no change", "open"] = "no change" if ruled_out else "open"
        end = None if ruled_out else (places - 1) * _ENDS[len(at) % len(_ENDS)]
        return Searched(answer, chances, evidence, difference, interval, end)
    if chances[best] >= 1 - error:
        return Searched("changed", chances, evidence, difference, interval, None)
    # The chance of each place but the ends to lie after the change.
    after = np.cumsum(chances)[1:-1]
    middle = 1 + int(np.argmin(np.abs(after - 0.5)))
    return Searched("open", chances, evidence, difference, interval, middle)


@dataclass(frozen=True, slots=True)
class _Split:
    """Splits of values into two sides, an entry each."""

    difference: NDArray[np.float64]
    variance: NDArray[np.float64]
    """Of a value, within the sides."""
    size: NDArray[np.float64]
    """Of a mean of so many values the difference has the variance; 0 where a side is empty."""
    freedom: NDArray[np.float64]


def _split_of(
    number: NDArray[np.float64],
    second: NDArray[np.float64],
    total: NDArray[np.float64],
    of_second: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> _Split:
    """Compute splits from how many values there are, how many on the second side, their sums and their squares' sum."""
    first, of_first = number - second, total - of_second
    both = (first > 0) & (second > 0)
    n0, n1 = np.where(both, first, 1.0), np.where(both, second, 1.0)
    within = squares - of_first**2 / n0 - of_second**2 / n1
    # What is left of equal values is rounding alone.
    within = np.where(within <= _ROUNDING * squares, 0.0, within)
    freedom = number - 2
    size = np.where(both & (freedom > 0), n0 * n1 / np.maximum(number, 1.0), 0.0)
    return _Split(of_second / n1 - of_first / n0, within / np.maximum(freedom, 1.0), size, freedom)


_ROUNDING = 1e-12


def _splits(values: NDArray[np.float64], after: NDArray[np.bool_]) -> _Split:
    """Split values in several ways, a row of ``after`` each."""
    ones = np.ones(len(after))
    return _split_of(
        len(values) * ones,
        after.sum(axis=1) * 1.0,
        values.sum() * ones,
        after @ values,
        float(values @ values) * ones,
    )


def _evidence(values: NDArray[np.float64], at: NDArray[np.int64], places: int) -> float:
    """Return the largest factor for a change between the ends, while only those had been measured."""
    inner = np.flatnonzero((at > 0) & (at < places - 1))
    number = int(inner[0]) if len(inner) else len(at)
    if number < 2 * _LEAST_EACH:
        return 1.0
    x, after = values[:number], at[:number] > 0
    counts, seconds = np.arange(1.0, number + 1), np.cumsum(after.astype(np.float64))
    split = _split_of(counts, seconds, np.cumsum(x), np.cumsum(x * after), np.cumsum(x**2))
    return float(np.exp(np.minimum(_log_factors(split)[2 * _LEAST_EACH - 1 :].max(), _LARGEST)))


_LARGEST = 700.0


def _log_factors(split: _Split) -> NDArray[np.float64]:
    """Return the logarithms of the Bayes factors of splits against no change; 0 where they say nothing."""
    apart = split.difference**2 * split.size
    with np.errstate(divide="ignore", invalid="ignore"):
        t_squared = np.where(apart > 0, apart / split.variance, 0.0)
    return _of_t(t_squared, split.size, np.maximum(split.freedom, 1.0))


def _of_t(
    t_squared: NDArray[np.float64], size: NDArray[np.float64], freedom: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the logarithm of the factor of Student's t, over the mixture of the prior's scales."""
    logs = []
    for scale in _SCALES:
        wider = 1 + size * scale**2
        t = np.minimum(t_squared, _FARTHEST)
        ratio = np.log1p(t / freedom) - np.log1p(t / (freedom * wider))
        logs.append((freedom + 1) / 2 * ratio - np.log(wider) / 2)
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - math.log(len(logs)), dtype=np.float64)


def _difference(
    values: NDArray[np.float64], after: NDArray[np.bool_], error: float
) -> tuple[float | None, tuple[float, float] | None]:
    """Return a difference and its confidence interval: the differences that the factor does not reject."""
    split = _splits(values, after[None, :])
    if len(values) < 2 * _LEAST_EACH or split.size[0] <= 0:
        return None, None
    difference = float(split.difference[0])

    def beyond(t_squared: float) -> float:
        return float(_of_t(np.array([t_squared]), split.size, split.freedom)[0]) + math.log(error)

    if beyond(_FARTHEST) < 0:
        return difference, None
    from scipy.optimize import brentq  # noqa: PLC0415 - a quarter of a second, which few commands need

    t_squared = brentq(beyond, 0.0, _FARTHEST, rtol=1e-6)
    half = math.sqrt(t_squared * float(split.variance[0] / split.size[0]))
    return difference, (difference - half, difference + half)
