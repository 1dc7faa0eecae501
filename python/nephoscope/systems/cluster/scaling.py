"""What a serverless system is given next, from what it has and uses: policies without a server or a clock.

CloudyBench, section III-A, describes what vendors do: up at once and down little by little (CDB1), both at once and
a pause when nobody is there (CDB3). Here each is stated to the last digit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

PolicyName = Literal["immediate", "gradual-down", "stepwise", "pause-and-resume"]
"""How a study names a policy."""

_ROUNDED = 9
_EQUAL = 1e-9
"""vCores that differ by less are the same."""


@dataclass(frozen=True, kw_only=True)
class Levels:
    """The vCores that can be given: the least, whole steps above it, and the most."""

    least: float
    most: float
    step: float

    def covering(self, vcores: float) -> float:
        """Return the least level that is at least so many vCores; the most where none is."""
        return self._level(math.ceil((vcores - self.least) / self.step - _EQUAL))

    def above(self, vcores: float) -> float:
        """Return the next level above; the most where none is."""
        return self._level(math.floor((vcores - self.least) / self.step + _EQUAL) + 1)

    def below(self, vcores: float) -> float:
        """Return the next level below; the least where none is."""
        return self._level(math.ceil((vcores - self.least) / self.step - _EQUAL) - 1)

    def _level(self, number: int) -> float:
        return round(min(max(self.least + number * self.step, self.least), self.most), _ROUNDED)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What is known of a system that runs when it is decided what it is given next."""

    given: float
    """vCores that it has, above 0."""
    used: float
    """vCores that it used on average since the sample before."""
    held_s: float
    """For how long it has had what it has."""
    idle_s: float
    """For how long nobody has been connected to it."""


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """How a system is scaled. It begins with the most; after a pause it goes on with the least."""

    policy: PolicyName
    levels: Levels
    scale_up: float
    """Who uses this share of what it has, or more, is given more."""
    scale_down: float
    """Who uses less than this share of it is given less."""
    step_time_s: float
    """How long a level is kept at the least before a single step."""
    pause_after_s: float
    """How long nobody is connected before a pause."""

    def next(self, sample: Sample) -> float:
        """Decide how many vCores the system has from now on; 0 is a pause."""
        wanted, given = self._wanted(sample), sample.given
        is_due = sample.held_s >= self.step_time_s - _EQUAL
        match self.policy:
            case "pause-and-resume" if sample.idle_s >= self.pause_after_s:
                return 0.0
            case "gradual-down" if wanted < given:
                return self.levels.below(given) if is_due else self._within(given)
            case "stepwise" if wanted != given:
                step = self.levels.above if wanted > given else self.levels.below
                return step(given) if is_due else self._within(given)
            case _:
                return wanted

    def _wanted(self, sample: Sample) -> float:
        """Say what would suit: of a load that fills what there is nobody sees how much more it would use."""
        if sample.used >= self.scale_up * sample.given:
            return self.levels.covering(2 * sample.given)
        if sample.used < self.scale_down * sample.given:
            halfway = (self.scale_up + self.scale_down) / 2
            return min(self.levels.covering(sample.used / halfway), self._within(sample.given))
        return self._within(sample.given)

    def _within(self, vcores: float) -> float:
        """Keep to the bounds where these have been changed."""
        return min(max(vcores, self.levels.least), self.levels.most)
