"""The settings of elasticity in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from nephoscope.evaluators.elasticity.patterns import PatternSetting, resolve
from nephoscope.evaluators.search import SearchSettings
from nephoscope.settings.loads import (
    MOST_CONCURRENCY,
    AccessSetting,
    LatencyBound,
    Mixes,
    Think,
    each_once,
)
from nephoscope.settings.registered import MeasureSettings
from nephoscope.settings.units import Duration, one_as_list

if TYPE_CHECKING:
    from typing import Self


_LEAST_S = 0.1
"""How long a system is left without load at the least: so that a pattern begins and ends with a change of load."""


class ElasticitySettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "elasticity"``."""

    evaluator: Literal["elasticity"] = "elasticity"
    patterns: Annotated[list[PatternSetting], BeforeValidator(one_as_list), Field(min_length=1)] = Field(
        default=["single-peak", "large-spike", "single-valley", "zero-valley"]
    )
    """The patterns, one after another: the paper's four by name, or [one's own](#patterns)."""
    mixes: Mixes = Field(default=["RW"])
    """The mixes that each pattern is played with."""
    tau: Literal["search"] | Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] = "search"
    """τ, which the patterns are shares of: a concurrency, or ``"search"``: saturation is searched for in each mix."""
    search: SearchSettings = Field(default_factory=SearchSettings)
    """How saturation is searched for: see [search](#measuresearch)."""
    slot: Duration = 60.0
    """How long a slot of a pattern is."""
    window: Duration = 600.0
    """How long resources are paid for, from a pattern's start: so that giving them back slowly costs something."""
    rest: Duration = 60.0
    """How long the system is left without load before a pattern, so that what came before it is over."""
    watch: Duration | None = None
    """How long the allocation is watched after a pattern, without load; by default to the end of the window where the
    provider tells its allocation. What is not watched is taken to stay as it was."""
    action_limit: Duration = 60.0
    """How long the provider may take to tell its allocation; then it is given up, with a warning."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often all patterns are played."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""
    think: Think | None = None
    """A pause of each session between two transactions: see [think time](#think-time)."""
    slo: LatencyBound | None = None
    """A latency bound: how many transactions break it is told for each change of the load."""

    _each_once = field_validator("patterns", "mixes")(each_once)

    @field_validator("slot")
    @classmethod
    def _long_enough(cls, seconds: float) -> float:
        if seconds <= 0:
            raise ValueError("a slot needs a length above 0")
        return seconds

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.action_limit <= 0:
            raise ValueError("action_limit must be above 0")
        names = [resolve(pattern)[0] for pattern in self.patterns]
        if len(set(names)) < len(names):
            raise ValueError("two patterns have the same name")
        for name, shares in map(resolve, self.patterns):
            if self.window < len(shares) * self.slot:
                raise ValueError(f"the window of {self.window:g} s is shorter than the pattern {name}")
        return self
