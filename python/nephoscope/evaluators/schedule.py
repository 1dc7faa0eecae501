"""The schedule of failures: from a script, or drawn by the laws of MTTF and MTTR before the run begins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from nephoscope.settings.actions import FaultName
    from nephoscope.settings.failures import FailureSettings, TimeLaw


@dataclass(frozen=True)
class PlannedFailure:
    """A failure that is planned; times in seconds since the start of the measured time."""

    at_s: float
    fault: FaultName
    target: str
    for_s: float | None
    """From the failure until the repair begins; None where the repair begins at once, or there is none to wait for."""
    up_s: float | None = None
    """How long the target is up before, since its last repair, as the law has it; None of a script. A repair takes time
    of its own: by as much the failure comes later than ``at_s``."""


def planned(settings: FailureSettings, repetition: int) -> list[PlannedFailure]:
    """Return the failures of a repetition (from 1) in the order of their times: a pure function of the settings."""
    failures = [
        PlannedFailure(failure.at, settings.fault_of(failure), settings.target_of(failure), failure.for_)
        for failure in settings.script
    ]
    if settings.mttf is not None:
        for place, target in enumerate(settings.targets):
            failures += _drawn(settings, settings.mttf, target, (settings.seed, repetition, place))
    return sorted(failures, key=lambda failure: failure.at_s)


def _drawn(
    settings: FailureSettings, mttf: TimeLaw, target: str, seeds: tuple[int, ...]
) -> list[PlannedFailure]:
    """Draw the failures of a target: up by one law and down by the other, in turn, until the time is over."""
    draw = uniform(seeds)
    failures: list[PlannedFailure] = []
    at_s = up_s = length(mttf, draw())
    while at_s < settings.duration:
        for_s = None if settings.mttr is None else length(settings.mttr, draw())
        failures.append(PlannedFailure(at_s, settings.fault, target, for_s, up_s))
        up_s = length(mttf, draw())
        at_s += (for_s or 0.0) + up_s
    return failures


def length(law: TimeLaw, share: float) -> float:
    """Return the time that a law exceeds with a chance of 1 - ``share``, in s; ``share`` is from 0 to below 1."""
    if law.law == "constant":
        return law.mean
    exponential = -math.log1p(-share)
    if law.shape is None:
        return law.mean * exponential
    scale = law.mean / math.gamma(1 + 1 / law.shape)
    return float(scale * exponential ** (1 / law.shape))


def uniform(seeds: tuple[int, ...]) -> Callable[[], float]:
    """Make a source of numbers between 0 and 1, neither included.

    They are made of the raw bits: numpy promises that those of a seeded PCG64 stay the same in every version.
    """
    bits = np.random.PCG64(np.random.SeedSequence(seeds))
    return lambda: ((int(bits.random_raw()) >> 12) + 0.5) * 2.0**-52
