"""A time line of allocated resources: scaling, cost, over- and under-provisioning."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from pydantic import ValidationError

from nephoscope.scoring.prices import Stretch, allocated_cost
from nephoscope.settings.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nephoscope.scoring.prices import PriceBook
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


@dataclass(frozen=True)
class Step:
    """Resources from a time on, in seconds since the start of the load.

    Of a provider that was asked, the change lies between ``low_s``, when it was asked for the last time that gave
    something else, and ``high_s``, when the answer was there; ``time_s`` is their middle.
    """

    time_s: float
    resources: Resources
    low_s: float
    high_s: float
    gap_s: float = 0.0
    """The time between the two answers; 0 where the provider keeps a time line of its own."""


@dataclass(frozen=True)
class Answer:
    """A provider's answer to a poll; times in seconds since the start of the load."""

    asked_s: float
    answered_s: float
    resources: Resources


class AllocationTimeline:
    """The allocation over time, in seconds since the start of the load."""

    def __init__(
        self, steps: Sequence[tuple[float, Resources] | Step], answers: Sequence[Answer] = ()
    ) -> None:
        """Take steps in the order of their times, at least one: the first holds for all time before it as well.

        ``answers`` are those that the steps were made of, if the provider was polled.
        """
        kept: list[Step] = []
        for step in (one if isinstance(one, Step) else Step(*one, one[0], one[0]) for one in steps):
            if not kept or kept[-1].resources != step.resources:
                kept.append(step)
        self._steps = kept
        self._times = [step.time_s for step in kept]
        self._resources = [step.resources for step in kept]
        self._answers = answers

    @classmethod
    def of(cls, run: StoredRun) -> AllocationTimeline | None:
        """Read the ``allocation`` events of a run; None where the provider told nothing."""
        told = [
            (float(event["time_s"]), event.get("answered_s"), resources)
            for event in run.events
            if event["event"] == "allocation" and (resources := _resources(event)) is not None
        ]
        told.sort(key=lambda one: one[0])
        answers = [Answer(at, float(by), given) for at, by, given in told if by is not None]
        if answers and len(answers) == len(told):
            return cls.asked(answers, list(_load_changes(run)))
        return cls([(at, given) for at, _, given in told]) if told else None

    @classmethod
    def asked(cls, answers: Sequence[Answer], load_changes: Sequence[float]) -> AllocationTimeline:
        """Make a time line of answers, at least one, in their order.

        A change of the allocation that may have come before or after one of the load is taken to follow it.
        """
        first = answers[0]
        steps = [Step(first.asked_s, first.resources, first.asked_s, first.asked_s)]
        for before, after in pairwise(answers):
            inside = [at for at in load_changes if before.asked_s < at < after.answered_s]
            low_s, high_s = max([before.asked_s, *inside]), after.answered_s
            gap_s = after.answered_s - before.asked_s
            steps.append(Step((low_s + high_s) / 2, after.resources, low_s, high_s, gap_s))
        return cls(steps, answers)

    @property
    def answers(self) -> int:
        """The number of answers of a polled provider; 0 for one with a time line of its own."""
        return len(self._answers)

    def gap(self, start_s: float, end_s: float) -> float:
        """Return the longest time, in seconds, between two answers in a stretch of time; 0 if nobody was asked."""
        if not self._answers:
            return 0.0
        gaps = [
            after.answered_s - before.asked_s
            for before, after in pairwise(self._answers)
            if before.asked_s < end_s and after.answered_s > start_s
        ]
        return max([end_s - self._answers[-1].asked_s, *gaps])

    def extreme(self, book: PriceBook, *, dearest: bool) -> AllocationTimeline:
        """Place each change, within its range, where the cost is the highest or the lowest."""

        def hourly(step: Step) -> float:
            return cost_of([(3600.0, step.resources)], book)

        steps, at = [self._steps[0]], -math.inf
        for before, after in pairwise(self._steps):
            is_early = (hourly(after) > hourly(before)) == dearest
            at = max(at, after.low_s if is_early else after.high_s)
            steps.append(replace(after, time_s=at))
        return AllocationTimeline(steps)

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

    def last_step(self, start_s: float, end_s: float) -> Step | None:
        """Return the last change of the allocation from a time on and before another; None where there was none."""
        steps = [step for step in self._steps[1:] if start_s <= step.time_s < end_s]
        return steps[-1] if steps else None

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
    return allocated_cost([Stretch(*piece) for piece in pieces], book)


def _load_changes(run: StoredRun) -> Iterator[float]:
    """Find when the load of patterns changed, in seconds since the start of the load."""
    before: object = 0
    for phase in run.phases:
        if "pattern" in phase.labels:
            wanted = phase.labels.get("sessions", 0)
            if wanted != before:
                yield phase.start_s
            before = wanted


def _vcores(resources: Resources) -> float:
    return resources.nodes * resources.vcores


def _resources(event: Mapping[str, object]) -> Resources | None:
    try:
        return Resources.model_validate(event.get("resources"))
    except ValidationError:
        return None
