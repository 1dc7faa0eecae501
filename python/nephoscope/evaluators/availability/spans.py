"""Times up and down of endpoints, and of the service that they give together; pure functions, times in s."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from nephoscope.evaluators.outages import find_outages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.evaluators.outages import RoleProbes


@dataclass(frozen=True)
class Down:
    """A time in which nobody was served, within a measured time."""

    start_s: float
    end_s: float
    ended: bool
    """Whether it ended within the measured time."""
    resolution_s: float = 0.0
    """How far apart the probes on both sides of its end are."""


def downs_of(probes: RoleProbes, start_s: float, end_s: float, *, late_s: float, calm_s: float) -> list[Down]:
    """Find the interruptions of an endpoint within a measured time, in order: see `find_outages`."""
    found = []
    for outage in find_outages(probes, start_s, end_s, late_s=late_s, calm_s=calm_s):
        back_s = outage.back_s
        ended = back_s is not None and back_s <= end_s
        first, last = max(outage.first_bad_s, start_s), min(end_s if back_s is None else back_s, end_s)
        if last > first:
            found.append(Down(first, last, ended, outage.gap_s))
    return found


def down_together(endpoints: Sequence[Sequence[Down]]) -> list[Down]:
    """Find when all endpoints were down at once: the service needs one of them. None of no endpoint."""
    if not endpoints:
        return []
    together = list(endpoints[0])
    for other in endpoints[1:]:
        together = [both for one in together for two in other if (both := _both(one, two)) is not None]
    return together


def _both(one: Down, two: Down) -> Down | None:
    start_s, end_s = max(one.start_s, two.start_s), min(one.end_s, two.end_s)
    if end_s <= start_s:
        return None
    first = min(one, two, key=lambda down: (down.end_s, not down.ended))
    return Down(start_s, end_s, first.ended, first.resolution_s)


def total(downs: Sequence[Down]) -> float:
    """Add up the time down."""
    return sum((down.end_s - down.start_s for down in downs), 0.0)


@dataclass(frozen=True)
class ServiceCourse:
    """A measured time of a service: what was up and down in it, in s."""

    start_s: float
    end_s: float
    downs: tuple[Down, ...]

    @property
    def seconds(self) -> float:
        """How long it was measured."""
        return self.end_s - self.start_s

    @property
    def ups(self) -> list[float]:
        """The times up that ended with a failure: the one after the last failure was cut off, and is none."""
        starts = [self.start_s, *(down.end_s for down in self.downs)]
        return [down.start_s - start for start, down in zip(starts, self.downs, strict=False)]

    @property
    def repairs(self) -> list[float]:
        """The times down that ended."""
        return [down.end_s - down.start_s for down in self.downs if down.ended]

    @property
    def cycles(self) -> list[tuple[float, float]]:
        """The whole cycles: a time up and the time down that followed it."""
        return [
            (up, down.end_s - down.start_s)
            for up, down in zip(self.ups, self.downs, strict=True)
            if down.ended and up > 0
        ]

    @property
    def windows(self) -> list[tuple[float, float]]:
        """The measured time, cut where each failure begins: what a failure does to requests is in one of them."""
        cuts = [
            self.start_s,
            *(down.start_s for down in self.downs if down.start_s > self.start_s),
            self.end_s,
        ]
        return list(pairwise(cuts))
