"""The settings of lag in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from nephoscope.settings.loads import MOST_CONCURRENCY, AccessSetting, LoadBeside
from nephoscope.settings.registered import MeasureSettings
from nephoscope.settings.units import Duration

if TYPE_CHECKING:
    from typing import Self


_MOST_MARKERS = 10_000
"""No more may be on their way at once: the engine's limit."""


class LagSettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "lag"``."""

    evaluator: Literal["lag"] = "lag"
    loads: Annotated[list[LoadBeside], Field(min_length=1)] | None = None
    """The loads beside which the lag is measured: see [loads beside](#measureloads). By default none (idle) and, where
    the workload has a mix `IUD`, that one and each of its transactions alone, as the paper does."""
    concurrency: Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] = 8
    """Transactions at a time."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""
    warmup: Duration = 1.0
    """How long each load runs before the lag is measured."""
    duration: Duration = 10.0
    """How long it is measured beside each load."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 3
    """How often all loads are gone through."""
    marker_interval: Annotated[Duration, Field(ge=0.001)] = 0.05
    """The time between the intended starts of two markers. None waits for another, so up to `limit / marker_interval`
    are on their way at once: 10,000 at most."""
    limit: Duration = 10.0
    """How long a marker is looked for. One that is not seen by then lags by at least that."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        names = [load.name for load in self.loads or ()]
        if len(set(names)) < len(names):
            raise ValueError("each load needs a name of its own")
        if self.duration <= 0 or self.limit <= 0:
            raise ValueError("duration and limit must be above 0")
        if self.limit > _MOST_MARKERS * self.marker_interval:
            raise ValueError(
                f"marker_interval is {self.marker_interval:g} s; with a limit of {self.limit:g} s it must be at least"
                f" {self.limit / _MOST_MARKERS:g} s, or more than {_MOST_MARKERS:,} markers would be on their way"
            )
        return self
