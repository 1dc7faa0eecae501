"""Change points of a series: where the level of runs over time has moved, and how sure that is.

E-divisive with means (Matteson and James, Journal of the American Statistical Association 109, 2014), as MongoDB and
Apache Otava use it for the histories of benchmarks (Daly et al., ICPE 2020; Fleming et al., ICPE 2023): the split with
the largest energy distance between its two sides is a change point if permutations of the values seldom have as large
a one; then each side is searched in turn. The exponent of the distance is 1, which outliers move little.

There is no dependency for it: apache-otava 0.8 asks for exactly numpy 2.2 and brings the clients of BigQuery, Slack
and PostgreSQL; signal-processing-algorithms 2.1 for numpy below 2; ruptures 1.1 wants a penalty in the place of a
significance, and has no stated rate of false alarms.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.statistics.intervals import SEED
from nephoscope.statistics.series import checked, is_constant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nephoscope.statistics.series import Values

LEAST_SEGMENT = 3
"""The fewest values on each side of a change point: what has been seen once or twice may be an outlier."""
MOST_VALUES = 500
"""The longest series: time grows with its square, and a permutation of so many takes milliseconds."""

_RESOLUTION = 20
"""A chance is known to this part of the significance."""
_AT_ONCE = 1_000_000
"""Distances that are permuted at a time: bounds memory."""
_FIRST = 50
"""Permutations at first; then twice as many each time. Most series without a change need no more."""


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A place where the level of a series has moved."""

    place: int
    """The index of the first value after the change."""
    p_value: float
    """The chance that values in a random order have as clear a split; no more than the significance."""


def change_points(values: Values, significance: float = 0.05, seed: int = SEED) -> list[ChangePoint]:
    """Find the change points of a series, in their order.

    In a series without a change any is found with the chance ``significance``, whatever the law of the values, as long
    as they are exchangeable: a drift, or values that resemble their neighbours, are changes to this test. A segment
    has `LEAST_SEGMENT` values at least.

    Raises ``ValueError`` for no values, a non-finite one, more than `MOST_VALUES`, or a significance outside 0 … 1.
    """
    x = checked(values)
    if len(x) > MOST_VALUES:
        raise ValueError(f"{len(x)} values; allowed: {MOST_VALUES} at most")
    if not 0 < significance < 1:
        raise ValueError(f"a significance of {significance}; allowed: between 0 and 1")
    found: dict[int, float] = {}
    while True:
        ends = [0, *sorted(found), len(x)]
        parts = [x[start:end] for start, end in itertools.pairwise(ends)]
        splits = [_best_split(part) for part in parts]
        largest = max(range(len(parts)), key=lambda at: splits[at][0])
        size, place = splits[largest]
        if size <= 0 or (p := _chance(parts, size, significance, seed)) is None:
            return [ChangePoint(at, found[at]) for at in sorted(found)]
        found[ends[largest] + place] = p


def _best_split(x: NDArray[np.float64]) -> tuple[float, int]:
    """Return the largest energy distance between the two sides of a split, and where the second side begins."""
    if len(x) < 2 * LEAST_SEGMENT or is_constant(x):
        return 0.0, 0
    sizes = _sizes(np.abs(x[:, None] - x[None, :])[None])[0]
    at = int(np.argmax(sizes))
    return float(sizes[at]), at + LEAST_SEGMENT


def _chance(parts: list[NDArray[np.float64]], size: float, significance: float, seed: int) -> float | None:
    """Return the chance of so large a distance by permutations within the segments; None where it is not significant.

    It ends as soon as it is certain that it is not.
    """
    wanted = math.ceil(_RESOLUTION / significance)
    most = math.floor(significance * wanted)
    longest = [part for part in parts if len(part) >= 2 * LEAST_SEGMENT and not is_constant(part)]
    bits = np.random.PCG64(seed)
    reached, done = 1, 1  # the series itself is one of its orders
    most_at_once = max(1, _AT_ONCE // max(len(part) ** 2 for part in longest))
    at_once = _FIRST
    while done < wanted:
        number = min(at_once, most_at_once, wanted - done)
        largest = np.max([_permuted(part, number, bits) for part in longest], axis=0)
        reached += int(np.count_nonzero(largest >= size * (1 - 1e-12)))
        done += number
        at_once *= 2
        if reached > most:
            return None
    return reached / done


def _permuted(x: NDArray[np.float64], number: int, bits: np.random.PCG64) -> NDArray[np.float64]:
    """Return the largest distance of each of so many permutations.

    From the raw bits: numpy promises that those of a seeded PCG64 stay the same, and not ``Generator.permutation``.
    """
    order = np.argsort(bits.random_raw(number * len(x)).reshape(number, len(x)), axis=1, kind="stable")
    values = x[order]
    largest: NDArray[np.float64] = _sizes(np.abs(values[:, :, None] - values[:, None, :])).max(axis=1)
    return largest


def _sizes(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the energy distance of each split of each series, scaled by its sizes; ``distances`` is of pairs."""
    n = distances.shape[1]
    earlier = np.tril(distances, -1).sum(axis=2)
    later = distances.sum(axis=2) - earlier
    first = np.arange(LEAST_SEGMENT, n - LEAST_SEGMENT + 1)
    second = n - first
    within_first = np.cumsum(earlier, axis=1)[:, first - 1]
    total = earlier.sum(axis=1, keepdims=True)
    within_second = total - np.cumsum(later, axis=1)[:, first - 1]
    between = total - within_first - within_second
    energy = (
        2 * between / (first * second)
        - 2 * within_first / (first * (first - 1))
        - 2 * within_second / (second * (second - 1))
    )
    scaled: NDArray[np.float64] = energy * (first * second / n)
    return scaled
