"""The settings of the search for the highest rate within a latency limit in a study."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, field_validator, model_validator

from nephoscope.settings.loads import AccessSetting, LatencyBound, Mixes, each_once
from nephoscope.settings.rates import RateSearchSettings
from nephoscope.settings.units import Duration

if TYPE_CHECKING:
    from typing import Self


class SloSettings(RateSearchSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "slo"``."""

    evaluator: Literal["slo"] = "slo"
    limit: LatencyBound
    """The latency limit: a rate holds if enough of its arrivals are committed within it."""
    percentile: Annotated[float, Field(gt=0, lt=1)] = 0.99
    """The share of arrivals that must be committed within the limit, such as 0.99 for the p99."""
    mixes: Mixes = Field(default=["RW"])
    """The mixes that are measured, one after another."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""
    rest: Duration = 2.0
    """How long the load rests before each rate. What its sessions have in flight must end meanwhile: else a rate starts
    with the queue of another."""
    warmup: Duration = 5.0
    """How long the load runs at each rate before it is measured; it is stored and does not count."""
    duration: Duration = 30.0
    """Of each measured phase."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 3
    """How many phases in a row confirm the rate that was found. If one does not hold, the search goes on below."""

    _each_once = field_validator("mixes")(each_once)

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if self.duration <= self.limit:
            raise ValueError("duration must be longer than limit")
        needed = math.ceil(1 / (1 - self.percentile) - 1e-6)
        if (arrivals := self.least * self.duration) < needed:
            raise ValueError(
                f"a phase at the rate least has {arrivals:.4g} arrivals, and percentile {self.percentile:g}"
                f" takes {needed} at the least: duration must be {needed / self.least:.4g}s or longer, or least higher"
            )
        return self
