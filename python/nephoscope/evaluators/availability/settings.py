"""The settings of availability in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from nephoscope.evaluators.outages import CALM_S, LATE_S
from nephoscope.settings.base import Settings
from nephoscope.settings.failures import FailureSettings, MeanTime
from nephoscope.settings.loads import (
    HIGHEST_RATE,
    MOST_CONCURRENCY,
    AccessSetting,
    LatencyBound,
    MixSetting,
)
from nephoscope.settings.units import Duration  # noqa: TC001 - pydantic looks it up at run time

if TYPE_CHECKING:
    from typing import Self


class FailureData(Settings):
    """Failure data of a node from elsewhere: from a vendor, or from the operation of years."""

    mttf: MeanTime
    """The mean time to failure of a node."""
    mttr: MeanTime | None = None
    """The mean time to repair of a node; the measured one if left out."""


class AvailabilitySettings(FailureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "availability"``."""

    evaluator: Literal["availability"] = "availability"
    given: FailureData | None = None
    """Failure data from elsewhere, from which the availability is foretold beside the measured one: see
    [failure data](#measuregiven)."""
    mix: MixSetting = "RW"
    """Which transactions run: see [mixes](#mixes)."""
    concurrency: Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] = 8
    """Transactions at a time. While the system is away its sessions ask for nothing: take a `rate` for the yield."""
    rate: Annotated[float, Field(gt=0, le=HIGHEST_RATE)] | None = None
    """Transactions that arrive in a second, in place of a concurrency, whatever the system does."""
    slo: LatencyBound = 1.0
    """How long a client waits: a later answer is not counted in the yield in time."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""
    warmup: Duration = 2.0
    """How long the load runs before it counts, each time."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often it is measured; the cycles of all repetitions count together."""
    probe_rate: Annotated[float, Field(ge=1, le=10_000)] = 100.0
    """Probes a second, to each endpoint."""
    late: Duration = LATE_S
    """A probe that is answered later than this after it was due counts as not served."""
    calm: Annotated[Duration, Field(ge=0.01, le=60)] = CALM_S
    """How long an endpoint has to serve until an interruption is over: shorter times up belong to it."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.warmup <= 0:
            raise ValueError("warmup must be above 0")
        return self
