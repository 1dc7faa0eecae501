"""The settings of a measurement of how to measure in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, field_validator, model_validator

from nephoscope.settings.loads import HIGHEST_RATE, MOST_CONCURRENCY, AccessSetting, Mixes, each_once
from nephoscope.settings.registered import MeasureSettings
from nephoscope.settings.units import Duration

if TYPE_CHECKING:
    from typing import Self


class SteadySettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "steady"``."""

    evaluator: Literal["steady"] = "steady"
    mixes: Mixes = Field(default=["RW"])
    """The mixes that are looked at, one after another."""
    concurrency: Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] = 8
    """Transactions at a time."""
    rate: Annotated[float, Field(gt=0, le=HIGHEST_RATE)] | None = None
    """Arrivals a second, in place of a concurrency. A rate that the system keeps up with says nothing of its TPS."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""
    rest: Duration = 5.0
    """How long the load rests, without connections, before each repetition: it begins cold."""
    duration: Duration = 120.0
    """Of each repetition, its warm-up included: more than twice as long as the warm-up may be."""
    repetitions: Annotated[int, Field(ge=2, le=1000)] = 5
    """How many repetitions tell what changes from one to the next; five know the spread to a factor of 2.4."""
    precision: Annotated[float, Field(ge=0.001, le=1)] = 0.02
    """The half-width of the interval of the mean TPS that is wanted, as a share of it."""

    _each_once = field_validator("mixes")(each_once)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.duration <= 0:
            raise ValueError("duration must be above 0")
        return self
