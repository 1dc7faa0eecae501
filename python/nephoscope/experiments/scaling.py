"""Scale-up, speed-up and linearity over the levels of a factor (the runtime quality framework, section III)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nephoscope.statistics import mean_ci, r_squared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Key = tuple[object, ...]
    Values = Mapping[tuple[float, Key], float]
    """A figure of each run, by the level and by what the runs that are compared share: other levels, replicate."""


@dataclass(frozen=True)
class Ratio:
    """How many times a figure is that of the first level, with its interval."""

    level: float
    value: float
    ci95: tuple[float, float] | None
    pairs: int


def ratios(values: Values, *, inverse: bool = False) -> list[Ratio]:
    """Compare each level with the lowest: scale-up of throughputs, ``inverse`` speed-up of times.

    Runs are compared in pairs that share the other factors' levels and the replicate; the ratio is the geometric mean.
    """
    levels = sorted({level for level, _ in values})
    found = []
    for level in levels[1:]:
        logs = [
            math.log(value / values[levels[0], key]) * (-1 if inverse else 1)
            for (at, key), value in values.items()
            if at == level and value > 0 and values.get((levels[0], key), 0) > 0
        ]
        if logs:
            mean = mean_ci(logs)
            ci95 = None if mean.ci95 is None else (math.exp(mean.ci95[0]), math.exp(mean.ci95[1]))
            found.append(Ratio(level, math.exp(mean.mean), ci95, mean.count))
    return found


def linearity(values: Values) -> float | None:
    """Return R² of a straight line through the mean throughput of each level; None for two levels."""
    by_level: dict[float, list[float]] = {}
    for (level, _), value in sorted(values.items(), key=lambda entry: entry[0][0]):
        by_level.setdefault(level, []).append(value)
    means: Sequence[float] = [math.fsum(of) / len(of) for of in by_level.values()]
    return r_squared(list(by_level), means)
