"""The settings of failures in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from nephoscope.evaluators.outages import LATE_S
from nephoscope.settings.actions import FaultName
from nephoscope.settings.base import Role
from nephoscope.settings.loads import (
    HIGHEST_RATE,
    MOST_CONCURRENCY,
    AccessSetting,
    MixSetting,
)
from nephoscope.settings.registered import MeasureSettings
from nephoscope.settings.units import Duration, one_as_list

if TYPE_CHECKING:
    from typing import Self


class FailoverSettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "failover"``."""

    evaluator: Literal["failover"] = "failover"
    fault: FaultName = "restart"
    """What happens: a `restart`; a `kill`, and the node is started again; a `node-loss`: it is killed, and the system
    itself has to bring the service back; a `crash`: it is killed, and a replica is promoted; `promote`, a planned
    switchover; a `pause` of the node."""
    roles: Annotated[tuple[Role, ...], BeforeValidator(one_as_list), Field(min_length=1, strict=False)] = (
        "rw",
    )
    """Whose node fails: that of `rw`, or one of `ro`. A crash and a promotion are of `rw`."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 3
    """How often each is done."""
    mix: MixSetting = "RW"
    """Which transactions run: see [mixes](#mixes)."""
    concurrency: Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] = 16
    """Transactions at a time, best near τ: below it R says little, as a slower system would serve them as well."""
    rate: Annotated[float, Field(gt=0, le=HIGHEST_RATE)] | None = None
    """Transactions that arrive in a second, in place of a concurrency: who asks a service does not wait for it. R is
    then the time until the backlog of the outage is gone and the latency is what it was."""
    utilization: Annotated[float, Field(gt=0, lt=1)] | None = None
    """In place of a rate: the share of the system's capacity that arrives, such as 0.6. The capacity is the throughput
    of `concurrency` transactions at a time, which is measured for `before` ahead of the first failure."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""
    warmup: Duration = 2.0
    """How long the load runs before it counts, each time."""
    before: Duration = 5.0
    """How long it is measured before the fault: what R has to come back to."""
    after: Duration = 20.0
    """How long it is measured after the fault. What has not come back by then has not come back."""
    pause: Duration = 2.0
    """How long a pause lasts."""
    action_limit: Duration = 600.0
    """How long the provider may take to do what a fault is, besides the pause. What takes longer is given up, and the
    run ends."""
    probe_rate: Annotated[float, Field(gt=0, le=10_000)] = 200.0
    """Probes a second, for each role."""
    late: Duration = LATE_S
    """A probe that is answered later than this after it was due counts as not served."""
    hold: Duration = 2.0
    """How long the load has to be served as before the fault, for that to be its recovery."""
    window: Duration = 0.5
    """Over how long throughput and latency are taken each time: what they do within that is noise, and a shorter
    recovery is not told apart from none."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.fault in ("crash", "promote") and self.roles != ("rw",):
            raise ValueError(f"a {self.fault} is of the node that takes writes: roles must be ['rw']")
        if self.after <= self.hold or min(self.before, self.warmup, self.action_limit) <= 0:
            raise ValueError("warmup, before and action_limit must be above 0, and after longer than hold")
        if self.rate is not None and self.utilization is not None:
            raise ValueError(
                "rate and utilization exclude each other: a rate is given, or made of the capacity"
            )
        if self.is_open and self.before < self.window:
            raise ValueError(
                "before must be as long as window: that is where the latency of a rate is taken from"
            )
        return self

    @property
    def is_open(self) -> bool:
        """Whether transactions arrive at a rate, whatever the system does."""
        return self.rate is not None or self.utilization is not None
