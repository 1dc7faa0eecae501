"""The settings of throughput in a study."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from nephoscope.evaluators.search import SearchSettings
from nephoscope.settings.loads import (
    AccessSetting,
    LatencyBound,
    Levels,
    Mixes,
    Think,
    each_once,
)
from nephoscope.settings.registered import MeasureSettings
from nephoscope.settings.units import Duration


class ThroughputSettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "throughput"``."""

    evaluator: Literal["throughput"] = "throughput"
    mixes: Mixes = Field(default=["RO", "RW", "WO"])
    """The mixes that are measured, one after another."""
    concurrency: Literal["search"] | Levels = "search"
    """The levels that are measured, or ``"search"``: saturation is searched for, and measured."""
    search: SearchSettings = Field(default_factory=SearchSettings)
    """How saturation is searched for: see [search](#measuresearch)."""
    warmup: Duration = 5.0
    """How long the load runs before each measured phase; it is stored and does not count."""
    duration: Duration = 30.0
    """Of each measured phase."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 3
    """How often each point is measured; each repetition goes through all points."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""
    think: Think | None = None
    """A pause of each session between two transactions: see [think time](#think-time)."""
    slo: LatencyBound | None = None
    """A latency bound; goodput counts the transactions within it."""
    score: Literal["peak", "mean"] = "peak"
    """P from the throughput at saturation (or the best of a sweep), or from the mean over the sweep as in the paper."""

    _each_once = field_validator("mixes", "concurrency")(each_once)

    @field_validator("duration")
    @classmethod
    def _long_enough(cls, seconds: float) -> float:
        if seconds <= 0:
            raise ValueError("a measured phase needs a duration above 0")
        return seconds
