"""The Pareto front over conflicting objectives, as far as intervals tell.

A treatment dominates another where it is at least as good in each objective and better in one. Means alone would
always have an answer; here an objective is better only where the two 95 % intervals lie apart, and the same only where
both are one equal value. So a treatment is dominated, not dominated, or it cannot be told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.statistics import MeanEstimate

Standing = Literal["dominated", "not dominated", "cannot tell"]
_Relation = Literal["better", "worse", "same", "cannot tell"]


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
