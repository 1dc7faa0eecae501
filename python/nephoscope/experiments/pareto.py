"""The Pareto front over conflicting objectives, as far as intervals tell.

A treatment dominates another where it is at least as good in each objective and better in one. Means alone would
always have an answer; here an objective is better only where the two 95 % intervals lie apart, and the same only where
both are one equal value. So a treatment is dominated, not dominated, or it cannot be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.statistics import MeanEstimate

Standing = Literal["dominated", "not dominated", "cannot tell"]
_Relation = Literal["better", "worse", "same", "cannot tell"]


@dataclass(frozen=True)
class Knee:
    """Where an objective begins to gain less than it costs."""

    place: int
    """The place of the treatment among those that were given."""
    clear: bool
    """Whether no other would be the knee at the unfavourable ends of both intervals."""


def knee(
    costs: Sequence[float],
    values: Sequence[MeanEstimate],
    higher: bool,  # noqa: FBT001 - a direction
) -> Knee | None:
    """Find the knee of an objective over its cost, each treatment having one of both.

    It is the treatment farthest on the better side of the straight line from the cheapest to the best one, both axes
    scaled to the distance between these two (Satopää and others, "Finding a Kneedle in a Haystack", 2011). Only the
    treatments that are better than every cheaper one are looked at. None where they are fewer than three, or none is on
    the better side.
    """
    sign = 1.0 if higher else -1.0
    front: list[int] = []
    for place in sorted(range(len(costs)), key=lambda at: (costs[at], -sign * values[at].mean)):
        if not front or sign * (values[place].mean - values[front[-1]].mean) > 0:
            front.append(place)
    if len(front) < 3:  # noqa: PLR2004 - two ends and what is between them
        return None
    first, last = front[0], front[-1]
    rise = values[last].mean - values[first].mean

    def above(place: int, value: float) -> float:
        run = (costs[place] - costs[first]) / (costs[last] - costs[first])
        return (value - values[first].mean) / rise - run

    between = front[1:-1]
    best = max(between, key=lambda at: above(at, values[at].mean))
    if above(best, values[best].mean) <= 0:
        return None
    ends = {at: sorted(above(at, end) for end in ci) for at in between if (ci := values[at].ci95) is not None}
    known = len(ends) == len(between)
    return Knee(best, known and all(ends[best][0] > max(ends[at][1], 0.0) for at in between if at != best))


def standings(
    treatments: Sequence[Sequence[MeanEstimate]], higher_is_better: Sequence[bool]
) -> list[Standing]:
    """Tell of each treatment whether another dominates it; each has an estimate for each objective."""
    return [
        _standing([_dominates(other, one, higher_is_better) for other in treatments if other is not one])
        for one in treatments
    ]


def _standing(dominated: Sequence[bool | None]) -> Standing:
    if True in dominated:
        return "dominated"
    return "cannot tell" if None in dominated else "not dominated"


def _dominates(
    one: Sequence[MeanEstimate], other: Sequence[MeanEstimate], higher: Sequence[bool]
) -> bool | None:
    """Tell whether one dominates the other; None where the intervals do not tell."""
    found = [_relation(a, b, up) for a, b, up in zip(one, other, higher, strict=True)]
    if "worse" in found or set(found) == {"same"}:
        return False
    return None if "cannot tell" in found else True


def _relation(one: MeanEstimate, other: MeanEstimate, higher: bool) -> _Relation:  # noqa: FBT001 - a direction
    if one.ci95 is None or other.ci95 is None:
        return "cannot tell"
    if one.ci95 == other.ci95 == (one.mean, one.mean):
        return "same"
    if one.ci95[0] > other.ci95[1]:
        return "better" if higher else "worse"
    if one.ci95[1] < other.ci95[0]:
        return "worse" if higher else "better"
    return "cannot tell"
