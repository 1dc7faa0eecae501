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
    from collections.abc import Sequence
    from typing import Self

MOST_STREAMS = 16
"""Each stream has Lua states of its own on every thread."""


class LevelSettings(Settings):
    """A load: how many transactions, which ones, on which keys."""

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
        for what, level, most in (
            ("concurrency", self.concurrency, MOST_CONCURRENCY),
            ("rate", self.rate, HIGHEST_RATE),
        ):
            if _highest(level) > most:
                raise ValueError(f"a {what} must be {most:.0f} at the most")
        return self

    @property
    def has_work(self) -> bool:
        """Whether the level is above 0 at some time."""
        return bool(_highest(self.concurrency) or _highest(self.rate))


class StreamSettings(LevelSettings):
    """A stream: a load beside others on the same data, with sessions of its own. It is given whole."""

    mix: MixSetting
    """Which transactions run: see [mixes](#mixes)."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.concurrency is None and self.rate is None:
            raise ValueError("a stream needs a concurrency or a rate")
        if self.arrivals is not None and self.rate is None:
            raise ValueError("arrivals belong to a rate, and the stream has a concurrency")
        if self.think is not None and self.concurrency is None:
            raise ValueError("think belongs to a concurrency, and the stream has a rate")
        return self


class NamedPhase(Settings):
    """What a phase is, whatever its load."""

    name: Annotated[str, Field(pattern=r"^[^|,\x00-\x1f]{1,80}$")] | None = None
    """Its name in the report; without ``|`` and commas, at most 80 characters."""
    kind: Literal["warm_up", "measure", "ramp_down", "pause"] = "measure"
    """Its purpose: only phases of the kind ``measure`` become points."""
    duration: Duration
    """How long it lasts."""

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if self.duration <= 0:
            raise ValueError("a phase needs a duration above 0")
        return self


class PhaseSettings(LevelSettings, NamedPhase):
    """A phase. Values that are left out stay those of the phase before it."""

    streams: Annotated[list[StreamSettings], Field(min_length=1, max_length=MOST_STREAMS)] | None = None
    """In place of these, several loads at a time: see [streams](#streams)."""
    transition: Duration | None = None
    """How long the mix and the access distribution move from those before to these: see [transitions](#transitions)."""

    @model_validator(mode="after")
    def _moves(self) -> Self:
        if self.transition is None:
            return self
        if not 0 < self.transition <= self.duration:
            raise ValueError("a transition takes a time above 0, and ends within its phase")
        if self.mix is None and self.access is None:
            raise ValueError("a transition moves the mix or the access, and the phase gives neither")
        return self

    @model_validator(mode="after")
    def _streams_alone(self) -> Self:
        if self.streams is not None and (given := self.given):
            raise ValueError(
                f"a phase with streams has no {given[0]} beside them: it belongs into one of the streams"
            )
        return self

    @property
    def given(self) -> list[str]:
        """The values of a single load that are given."""
        return [name for name in LevelSettings.model_fields if getattr(self, name) is not None]

    @property
    def loads(self) -> Sequence[LevelSettings]:
        """The loads that are given: those of the streams, or the only one."""
        return self.streams or [self]


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
        if first.streams is None and first.concurrency is None and first.rate is None:
            raise ValueError("the first phase needs a concurrency or a rate, or streams")
        if first.streams is None and first.mix is None:
            raise ValueError("the first phase needs a mix")
        if first.transition is not None:
            raise ValueError("the first phase has nothing before it that a transition could move from")
        if not any(load.has_work for phase in self.phases for load in phase.loads):
            raise ValueError("no phase has a load: every concurrency and every rate is 0")
        return self

    @model_validator(mode="after")
    def _goes_on(self) -> Self:
        """Check what each phase says against those before it."""
        has_streams, closed = self.phases[0].streams is not None, True
        for place, phase in enumerate(self.phases):
            if has_streams and phase.given:
                raise ValueError(f"the load is one of streams, and phases.{place} gives {phase.given[0]}")
            if not has_streams and phase.streams is not None:
                raise ValueError(f"phases.{place} has streams: then the first phase needs them too")
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


def _levels(load: LevelSettings) -> dict[str, float]:
    """Label a load with its level; a ramp with where it leads."""
    given = {"concurrency": load.concurrency, "rate": load.rate}
    return {
        name: level.to if isinstance(level, RampSetting) else level
        for name, level in given.items()
        if level is not None
    }
