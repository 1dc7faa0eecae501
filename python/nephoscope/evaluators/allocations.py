"""A time line of allocated resources, and what may be read off it: scaling, cost, too much and too little."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pydantic import ValidationError

from nephoscope.price_book import Allocation, allocated_cost
from nephoscope.systems.base import Resources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.price_book import PriceBook
    from nephoscope.store import StoredRun

_EQUAL = 1e-9
"""vCores that differ by less are the same."""


@dataclass(frozen=True)
class Provisioning:
    """How an allocation compares with a demand over a stretch of time.

    Times are shares of the stretch; areas are vCores too few or too many, averaged over it, as a share of the full
    size. (Herbst, Kounev, Reussner, "Elasticity in cloud computing", ICAC 2013, section 3.)
    """

    under_time: float
    over_time: float
    under_area: float
    over_area: float


class Timeline:
    """What a system was given from when on, in seconds since the start of the load."""

    def __init__(self, steps: Sequence[tuple[float, Resources]]) -> None:
        """Take steps in the order of their times, at least one: the first holds for all time before it as well."""
        kept: list[tuple[float, Resources]] = []
        for time_s, resources in steps:
            if not kept or kept[-1][1] != resources:
                kept.append((time_s, resources))
        self._times = [time_s for time_s, _ in kept]
        self._resources = [resources for _, resources in kept]

    @classmethod
    def of(cls, run: StoredRun) -> Timeline | None:
        """Read the ``allocation`` events of a run; None where the provider told nothing."""
        steps = [
            (float(event["time_s"]), resources)
            for event in run.events
            if event["event"] == "allocation" and (resources := _resources(event)) is not None
        ]
        return cls(sorted(steps, key=lambda step: step[0])) if steps else None

    @property
    def full(self) -> float:
        """The most vCores, all nodes together, that the system ever had."""
        return max(_vcores(resources) for resources in self._resources)

    def vcores(self, time_s: float) -> float:
        """Return the vCores at a time, all nodes together."""
        return _vcores(self._resources[max(bisect_right(self._times, time_s) - 1, 0)])

    def changes(self, start_s: float, end_s: float) -> list[float]:
        """Return when the allocation changed, from a time on and before another."""
        return [time_s for time_s in self._times[1:] if start_s <= time_s < end_s]

    def pieces(self, start_s: float, end_s: float) -> list[tuple[float, Resources]]:
        """Cut a stretch of time where the allocation changed: lengths and resources."""
        edges = [start_s, *(time for time in self.changes(start_s, end_s) if time > start_s), end_s]
        return [
            (later - earlier, self._resources[max(bisect_right(self._times, earlier) - 1, 0)])
            for earlier, later in pairwise(edges)
            if later > earlier
        ]

    def cost(self, start_s: float, end_s: float, book: PriceBook) -> float:
        """Return the dollars for CPU, memory and IOPS over a stretch of time (equation 2)."""
        return cost_of(self.pieces(start_s, end_s), book)

    def oscillations(self, start_s: float, end_s: float) -> int:
        """Count how often the vCores turned from rising to falling, or back, under one load."""
        levels = [_vcores(resources) for _, resources in self.pieces(start_s, end_s)]
        before = self.vcores(math.nextafter(start_s, -math.inf))
        directions = [
            later > earlier for earlier, later in pairwise([before, *levels]) if abs(later - earlier) > _EQUAL
        ]
        return sum(one != other for one, other in pairwise(directions))

    def provisioning(self, start_s: float, end_s: float, demand: float) -> Provisioning:
        """Compare the vCores with a demand, over a stretch of time."""
        length, full = end_s - start_s, max(self.full, _EQUAL)
        gaps = [(seconds, _vcores(resources) - demand) for seconds, resources in self.pieces(start_s, end_s)]
        return Provisioning(
            under_time=math.fsum(seconds for seconds, gap in gaps if gap < -_EQUAL) / length,
            over_time=math.fsum(seconds for seconds, gap in gaps if gap > _EQUAL) / length,
            under_area=math.fsum(-gap * seconds for seconds, gap in gaps if gap < -_EQUAL) / length / full,
            over_area=math.fsum(gap * seconds for seconds, gap in gaps if gap > _EQUAL) / length / full,
        )


def cost_of(pieces: Sequence[tuple[float, Resources]], book: PriceBook) -> float:
    """Return the dollars for CPU, memory and IOPS of pieces: lengths and resources."""
    return allocated_cost([Allocation(*piece) for piece in pieces], book)


def _vcores(resources: Resources) -> float:
    return resources.nodes * resources.vcores


def _resources(event: Mapping[str, object]) -> Resources | None:
    try:
        return Resources.model_validate(event.get("resources"))
    except ValidationError:
        return None
