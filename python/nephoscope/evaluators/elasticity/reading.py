"""The patterns of a stored run: slots, changes of load and allocation, and the E1-Score."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nephoscope.evaluators.base import Measurements
from nephoscope.evaluators.connected import absent_for
from nephoscope.evaluators.elasticity.allocations import AllocationTimeline, cost_of
from nephoscope.evaluators.points import by_mix, read_points
from nephoscope.evaluators.search import describe_saturation, searched
from nephoscope.scoring.formulas import Absent, Score, e1_score, over_repetitions
from nephoscope.settings.units import describe_count
from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nephoscope.evaluators.elasticity.allocations import Step
    from nephoscope.evaluators.points import Point
    from nephoscope.evaluators.search import SearchSettings
    from nephoscope.evaluators.stored import Stored
    from nephoscope.scoring.prices import PriceBook
    from nephoscope.store import Phase

_NO_RESOURCES = "neither the provider nor the study ([system.resources]) tells what the system was given"
_CONSTANT = "the provider tells no allocation: the declared resources are taken to have stayed the same"
_TOLD = "as the provider told it"


@dataclass(frozen=True)
class Played:
    """A pattern that was played to its end, once."""

    pattern: str
    repetition: int
    tau: int
    slots: tuple[Phase, ...]
    points: tuple[Point, ...]
    """One for each slot."""
    end_s: float
    """Until when its allocation was watched."""

    @property
    def start_s(self) -> float:
        """When its first slot began."""
        return self.slots[0].start_s

    @cached_property
    def mean_tps(self) -> float:
        """Mean over the slots."""
        return math.fsum(point.tps for point in self.points) / len(self.points)

    @cached_property
    def ci95(self) -> tuple[float, float] | None:
        """The interval of the mean from within the slots: their errors are those of separate phases."""
        ends = [(point.tps, point.ci95) for point in self.points]
        if any(ci95 is None for _, ci95 in ends):
            return None
        below = math.hypot(*(tps - ci95[0] for tps, ci95 in ends if ci95)) / len(ends)
        above = math.hypot(*(ci95[1] - tps for tps, ci95 in ends if ci95)) / len(ends)
        return self.mean_tps - below, self.mean_tps + above


def read_elasticity(
    stored: Stored, window_s: float, slo_s: float | None, steps: SearchSettings
) -> Measurements:
    """Read the results of an entry of ``[[measure]]`` with patterns."""
    read = read_points(stored, slo_s)
    points = read.points
    found = Measurements(points=points, warnings=read.warnings, shortfalls=read.shortfalls)
    of_search = searched(stored)
    for mix, group in by_mix([point for point in points if point.phase in of_search]).items():
        short = [one for one in read.shortfalls if one.mix == mix and one.is_step]
        found.saturation[mix] = describe_saturation(stored, group, steps, short)
    played = _played(stored, points)
    timeline, origin = AllocationTimeline.of(stored.run), _TOLD
    if timeline is None and stored.resources is not None:
        timeline, origin = AllocationTimeline([(0.0, stored.resources)]), _CONSTANT
    if timeline is None:
        found.scores["E1"] = Absent(reason=_NO_RESOURCES)
        return found
    found.warnings += _rarely_asked(played, timeline)
    reader = _Reader(stored, timeline, stored.prices.book, window_s, slo_s)
    found.scores["E1"] = absent_for(read.shortfalls) or reader.score(played, origin)
    return found


def _rarely_asked(played: Sequence[Played], timeline: AllocationTimeline) -> list[str]:
    """Warn where a whole slot may have passed unseen."""
    found = []
    for one in played:
        slot_s = min(slot.end_s - slot.start_s for slot in one.slots)
        if (gap_s := timeline.gap(one.start_s, one.end_s)) > slot_s:
            found.append(
                f"the allocation was asked for less than once a slot in {one.pattern}: for {gap_s:.3g} s nothing was"
                f" known of it, and a slot has {slot_s:.3g} s; what came and went meanwhile is in no figure of E1"
            )
    return list(dict.fromkeys(found))


def _played(stored: Stored, points: Sequence[Point]) -> list[Played]:
    """Group the slots by pattern; an unfinished pattern is left out."""
    groups: dict[tuple[str, int], list[Phase]] = {}
    for phase in stored.run.phases:
        if phase.labels.get("measure") == stored.index and "pattern" in phase.labels:
            key = (str(phase.labels["pattern"]), int(phase.labels.get("repetition", 1)))
            groups.setdefault(key, []).append(phase)
    by_phase = {point.phase: point for point in points}
    found = []
    for (pattern, repetition), phases in groups.items():
        slots = tuple(phase for phase in phases if "slot" in phase.labels)
        whole = [by_phase[slot.number] for slot in slots if slot.number in by_phase]
        # The phase after the last slot is requested with it: if it is missing, the run ended before.
        if not slots or len(whole) < len(slots) or phases[-1] is slots[-1]:
            continue
        tau = int(slots[0].labels.get("tau", 0))
        found.append(Played(pattern, repetition, tau, slots, tuple(whole), phases[-1].end_s))
    return found


class _Reader:
    """Reads patterns against an allocation."""

    def __init__(
        self,
        stored: Stored,
        timeline: AllocationTimeline,
        book: PriceBook,
        window_s: float,
        slo_s: float | None,
    ) -> None:
        self._stored = stored
        self._timeline = timeline
        self._book = book
        self._window_s = window_s
        self._slo_s = slo_s
        self._woken: dict[object, float] = {}
        for event in stored.run.events:
            if event["event"] == "woken" and isinstance(waited := event.get("waited_s"), int | float):
                self._woken.setdefault(event.get("phase"), float(waited))

    def score(self, played: Sequence[Played], origin: str) -> Score | Absent:
        """E1 of a repetition is the mean over its patterns and mixes."""
        if not played:
            return Absent(reason="no pattern was played to its end")
        entries = [self._entry(one) for one in played]
        repetitions: dict[int, list[dict[str, Any]]] = {}
        for entry in entries:
            repetitions.setdefault(entry["repetition"], []).append(entry)
        # Without one of its patterns a repetition has another mean.
        whole = max(len(group) for group in repetitions.values())
        groups = [group for group in repetitions.values() if len(group) == whole]
        if any(entry["e1"] is None for entry in entries):
            return Absent(reason="CPU, memory and IOPS cost nothing over the window")
        values = [math.fsum(entry["e1"] for entry in group) / whole for group in groups]
        detail = {
            "allocation": self._told(entries, origin),
            "allocation_gap_s": max(entry["allocation_gap_s"] for entry in entries) or None,
            "assumed": self._assumed(entries, origin),
            "price_book": self._book.name,
            "full_vcores": self._timeline.full,
            "patterns": entries,
        }
        return over_repetitions("E1", values, within=_within(groups[0], values[0]), detail=detail)

    def _told(self, entries: Sequence[dict[str, Any]], origin: str) -> str:
        """Describe the source of the allocation, and how often it was polled."""
        if not self._timeline.answers:
            return origin
        gap_s = max(entry["allocation_gap_s"] for entry in entries)
        often = describe_count(self._timeline.answers, "answer")
        return (
            f"{origin} when it was asked: {often}, at most {gap_s:.3g} s apart while patterns were played; "
            "no scaling time is known more finely"
        )

    def _assumed(self, entries: Iterable[dict[str, Any]], origin: str) -> str | None:
        """Warn of the part of the cost window in which the allocation was not watched."""
        longest = max(entry["assumed_s"] for entry in entries)
        if origin != _TOLD or longest <= 0:
            return None
        return (
            f"up to {longest:.0f} s of a window of {self._window_s:.0f} s were not watched: "
            "the allocation is taken to have stayed as it was"
        )

    def _entry(self, played: Played) -> dict[str, Any]:
        """Describe a pattern that was played."""
        end_s = played.start_s + self._window_s
        watched = self._timeline.pieces(played.start_s, min(end_s, played.end_s))
        dollars = self._cost(self._timeline, played, end_s)
        least, most = (
            self._cost(self._timeline.extreme(self._book, dearest=dearest), played, end_s)
            if self._timeline.answers
            else dollars
            for dearest in (False, True)
        )
        e1 = e1_score([point.tps for point in played.points], dollars)
        value = e1 if isinstance(e1, float) else None
        return {
            "pattern": played.pattern,
            "repetition": played.repetition,
            "tau": played.tau,
            "mean_tps": played.mean_tps,
            "ci95": played.ci95,
            "cost": dollars,
            "cost_low": least,
            "cost_high": most,
            "allocation_gap_s": self._timeline.gap(played.start_s, played.end_s),
            "window_s": self._window_s,
            "assumed_s": max(end_s - played.end_s, 0.0),
            "mean_vcores": _mean_vcores(watched),
            "e1": value,
            "e1_ci95": [played.ci95[0] / most, played.ci95[1] / least] if played.ci95 and least else None,
            "slots": [
                self._slot(slot, point) for slot, point in zip(played.slots, played.points, strict=True)
            ],
            "transitions": self._transitions(played),
        }

    def _cost(self, timeline: AllocationTimeline, played: Played, end_s: float) -> float:
        """Dollars over the window; changes after the watched time, as the next pattern's, do not count."""
        watched_s = min(end_s, played.end_s)
        pieces = timeline.pieces(played.start_s, watched_s)
        if end_s > watched_s and pieces:
            pieces.append((end_s - watched_s, pieces[-1][1]))
        return cost_of(pieces, self._book)

    def _slot(self, slot: Phase, point: Point) -> dict[str, Any]:
        return {
            "slot": slot.labels["slot"],
            "phase": slot.number,
            "start_s": slot.start_s,
            "end_s": slot.end_s,
            "sessions": slot.labels["sessions"],
            "tps": point.tps,
            "p99_ms": point.latency_ms.p99 if point.latency_ms else None,
            "cost": self._timeline.cost(slot.start_s, slot.end_s, self._book),
            "vcores": self._timeline.vcores(math.nextafter(slot.end_s, -math.inf)),
        }

    def _transitions(self, played: Played) -> list[dict[str, Any]]:
        """Describe the changes of the load, the last of them to nothing."""
        levels = [0, *(int(slot.labels["sessions"]) for slot in played.slots), 0]
        times = [*(slot.start_s for slot in played.slots), played.slots[-1].end_s]
        changes = [place for place in range(len(times)) if levels[place] != levels[place + 1]]
        # Each up to the next: equal slots in a row are one load.
        ends = [*(times[place] for place in changes[1:]), played.end_s]
        return [
            self._transition(played, place, levels[place : place + 2], (times[place], end_s))
            for place, end_s in zip(changes, ends, strict=True)
        ]

    def _transition(
        self, played: Played, place: int, sessions: Sequence[int], span: tuple[float, float]
    ) -> dict[str, Any]:
        start_s, end_s = span
        last = self._timeline.last_step(start_s, end_s)
        slot = played.slots[place] if place < len(played.slots) else None
        point = played.points[place] if slot else None
        demand = sessions[1] / played.tau * self._timeline.full if played.tau else 0.0
        return {
            "at_s": start_s,
            "from_sessions": sessions[0],
            "to_sessions": sessions[1],
            **self._scaling(last, start_s),
            "from_vcores": self._timeline.vcores(math.nextafter(start_s, -math.inf)),
            "to_vcores": self._timeline.vcores(math.nextafter(end_s, -math.inf)),
            "demand_vcores": demand,
            "oscillations": self._timeline.oscillations(start_s, end_s),
            **asdict(self._timeline.provisioning(start_s, end_s, demand)),
            "slo_broken": self._broken(slot, point) if slot and point else None,
            "wake_up_s": self._woken.get(slot.number) if slot and sessions[0] == 0 else None,
        }

    def _scaling(self, last: Step | None, start_s: float) -> dict[str, float | None]:
        """Describe how long a scaling took up to its last step, and what that cost.

        A time that is finer than two answers are apart is only known to be in its range, and its cost is not known.
        """
        if last is None:
            return dict.fromkeys(("scaling_s", "scaling_low_s", "scaling_high_s", "scaling_cost"))
        took_s = last.time_s - start_s
        is_known = took_s >= last.gap_s
        is_asked = last.gap_s > 0
        return {
            "scaling_s": took_s if is_known else None,
            "scaling_low_s": last.low_s - start_s if is_asked else None,
            "scaling_high_s": last.high_s - start_s if is_asked else None,
            "scaling_cost": self._timeline.cost(start_s, last.time_s, self._book) if is_known else None,
        }

    def _broken(self, slot: Phase, point: Point) -> int | None:
        """Count the transactions of a slot that were committed too late, or failed."""
        if self._slo_s is None:
            return None
        histogram = self._stored.run.merged(Selection(phases=frozenset({slot.number})))
        return histogram.count - histogram.count_up_to(round(self._slo_s * 1e9)) + point.failed


def _within(group: Sequence[dict[str, Any]], value: float) -> tuple[float, float] | None:
    """Join the patterns' own intervals, for a single repetition."""
    if any(entry["e1_ci95"] is None for entry in group):
        return None
    below = math.hypot(*(entry["e1"] - entry["e1_ci95"][0] for entry in group)) / len(group)
    above = math.hypot(*(entry["e1_ci95"][1] - entry["e1"] for entry in group)) / len(group)
    return value - below, value + above


def _mean_vcores(pieces: Sequence[tuple[float, Any]]) -> float | None:
    seconds = math.fsum(length for length, _ in pieces)
    if seconds <= 0:
        return None
    return math.fsum(length * one.nodes * one.vcores for length, one in pieces) / seconds
