"""The settings of a sweep in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from nephoscope.settings.loads import (
    AccessSetting,
    LatencyBound,
    Levels,
    Mixes,
    each_once,
)
from nephoscope.settings.registered import MeasureSettings
from nephoscope.settings.resources import ResourcesChange
from nephoscope.settings.units import Duration, one_as_list

if TYPE_CHECKING:
    from typing import Self


Value = bool | int | float | str


class SweepSettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "sweep"``."""

    evaluator: Literal["sweep"] = "sweep"
    parameter: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,62}$")]
    """The parameter of the server, such as ``"shared_buffers"``."""
    values: Annotated[list[Value], BeforeValidator(one_as_list), Field(min_length=1)]
    """What it is set to, one after another; afterwards it is what it was before."""
    resources: list[ResourcesChange] = Field(default_factory=list)
    """What the system is given at each value, where that changes its cost: one [table](#measureresources) for each."""
    mixes: Mixes = Field(default=["RW"])
    """The mixes that are measured at each value."""
    concurrency: Levels = Field(default=[16])
    """The levels that are measured at each value."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""
    slo: LatencyBound | None = None
    """A latency bound; goodput counts the transactions within it."""
    warmup: Duration = 5.0
    """How long the load runs before each measured phase: a server that was restarted has an empty buffer."""
    duration: Duration = 30.0
    """Of each measured phase."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 3
    """How often all values are gone through."""
    limit: Duration = 600.0
    """How long setting the parameter may take."""

    _each_once = field_validator("values", "mixes", "concurrency")(each_once)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.duration <= 0 or self.limit <= 0:
            raise ValueError("duration and limit must be above 0")
        if self.resources and len(self.resources) != len(self.values):
            raise ValueError(
                f"resources has {len(self.resources)} entries, and there are {len(self.values)} values:"
                " one for each, or none"
            )
        return self
