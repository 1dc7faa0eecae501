"""The settings of a course of load in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from nephoscope.settings.base import Settings
from nephoscope.settings.loads import (
    HIGHEST_RATE,
    MOST_CONCURRENCY,
    AccessSetting,
    LatencyBound,
    Level,
    MixSetting,
    RampSetting,
    Think,
)
from nephoscope.settings.registered import MeasureSettings
from nephoscope.settings.units import Duration

if TYPE_CHECKING:
    from typing import Self


class PhaseSettings(Settings):
    """A phase. Values that are left out stay those of the phase before it."""

    name: Annotated[str, Field(pattern=r"^[^|,\x00-\x1f]{1,80}$")] | None = None
    """Its name in the report; without ``|`` and commas, at most 80 characters."""
    kind: Literal["warm_up", "measure", "ramp_down", "pause"] = "measure"
    """Its purpose: only phases of the kind ``measure`` become points."""
    duration: Duration
    """How long it lasts."""
    concurrency: Level | None = None
    """A closed load: so many transactions at a time."""
    think: Think | None = None
    """A pause of each session between two transactions: see [think time](#think-time)."""
    rate: Level | None = None
    """An open load: so many arrivals a second, whatever the system does."""
    arrivals: Literal["constant", "poisson"] | None = None
    """How the arrivals of a rate are spread: evenly, or as a Poisson process."""
    mix: MixSetting | None = None
    """Which transactions run: see [mixes](#mixes)."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own unless set."""

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        if self.concurrency is not None and self.rate is not None:
            raise ValueError("concurrency and rate exclude each other: a load is closed or open")
        if self.duration <= 0:
            raise ValueError("a phase needs a duration above 0")
        for what, level, most in (
            ("concurrency", self.concurrency, MOST_CONCURRENCY),
            ("rate", self.rate, HIGHEST_RATE),
        ):
            if _highest(level) > most:
                raise ValueError(f"a {what} must be {most:.0f} at the most")
        return self


class LoadSettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "load"``."""

    evaluator: Literal["load"] = "load"
    phases: Annotated[list[PhaseSettings], Field(min_length=1)]
    """The phases, in their order: see [phases](#measurephases)."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often all phases are gone through."""
    slo: LatencyBound | None = None
    """A latency bound; goodput counts the transactions within it."""

    @model_validator(mode="after")
    def _begins(self) -> Self:
        first = self.phases[0]
        if first.concurrency is None and first.rate is None:
            raise ValueError("the first phase needs a concurrency or a rate")
        if first.mix is None:
            raise ValueError("the first phase needs a mix")
        if not any(_highest(level) for phase in self.phases for level in (phase.concurrency, phase.rate)):
            raise ValueError("no phase has a load: every concurrency and every rate is 0")
        closed = True
        for place, phase in enumerate(self.phases):
            if phase.concurrency is not None or phase.rate is not None:
                closed = phase.concurrency is not None
            if closed and phase.arrivals is not None:
                raise ValueError(
                    f"arrivals belong to a rate, and in phases.{place} the load has a concurrency"
                )
            if not closed and phase.think is not None:
                raise ValueError(f"think belongs to a concurrency, and in phases.{place} the load has a rate")
        return self


def _name(phase: PhaseSettings, place: int) -> str:
    return phase.name or f"{phase.kind} {place + 1}"


def _highest(level: Level | None) -> float:
    if isinstance(level, RampSetting):
        return max(level.from_, level.to)
    return level or 0.0


def _levels(phase: PhaseSettings) -> dict[str, float]:
    """Label a phase with its level; a ramp with where it leads."""
    given = {"concurrency": phase.concurrency, "rate": phase.rate}
    return {
        name: level.to if isinstance(level, RampSetting) else level
        for name, level in given.items()
        if level is not None
    }
