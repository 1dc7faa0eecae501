"""The settings of the metastability probe in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from nephoscope.settings.actions import FaultName
from nephoscope.settings.loads import AccessSetting, LatencyBound, MixSetting
from nephoscope.settings.rates import RateSearchSettings
from nephoscope.settings.retries import RetrySetting
from nephoscope.settings.units import Duration

if TYPE_CHECKING:
    from typing import Self

_LEAST_ARRIVALS = 20
"""Of fewer a single late one is too much of goodput."""
PolicyName = Annotated[str, Field(pattern=r"^[^|,\x00-\x1f]{1,40}$")]


class MetastabilitySettings(RateSearchSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "metastability"``."""

    evaluator: Literal["metastability"] = "metastability"
    precision: Annotated[float, Field(ge=0.01, le=1)] = 0.2
    """Narrowing ends when the lowest rate at which goodput does not return exceeds the highest at which it does by this
    share at most."""
    limit: LatencyBound = 1.0
    """How long a client waits: a later commit is no goodput."""
    policies: dict[PolicyName, RetrySetting] = Field(default_factory=dict, max_length=20)
    """Retry policies by name, each with the keys of [`load.retry`](#loadretry); that one alone if left out. What a
    client gives up by `load.statement_timeout` is tried again only where `classes` has `statement_timeout`."""
    trigger: FaultName | Literal["surge"] = "surge"
    """What goes wrong: more arrivals for a while (`surge`), or a [fault](#measure-failover) of a node, which is
    repaired at once."""
    surge: Annotated[float, Field(gt=1, le=1000)] = 5.0
    """How many times the rate arrives during a `surge`."""
    length: Duration = 2.0
    """How long a `surge` and a `pause` last. Another fault takes as long as it takes."""
    target: Literal["rw", "ro"] = "rw"
    """In which role the node is that fails."""
    mix: MixSetting = "RW"
    """Which transactions run: see [mixes](#mixes)."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""
    rest: Duration = 5.0
    """How long the load rests before each rate. What clients still try again, and the server still works on, must end
    meanwhile."""
    warmup: Duration = 2.0
    """How long the load runs at each rate before it is measured."""
    before: Duration = 5.0
    """How long goodput is measured before the trigger. A rate without it there is more than the system can do."""
    patience: Duration = 15.0
    """How long goodput may take to return once the trigger is over."""
    share: Annotated[float, Field(ge=0.1, lt=1)] = 0.9
    """Goodput has returned at this share of that before the trigger."""
    hold: Duration = 1.0
    """For so long at least."""
    repetitions: Annotated[int, Field(ge=1, le=100)] = 1
    """How many times in a row goodput has to return at the rate that was found. If it does not, the search goes on
    below."""
    action_limit: Duration = 60.0
    """How long the provider may take for an action. What takes longer is given up, and the run ends."""

    @model_validator(mode="after")
    def _has_time(self) -> Self:
        if min(self.before, self.length, self.hold, self.action_limit) <= 0:
            raise ValueError("before, length, hold and action_limit must be above 0")
        if (arrivals := self.least * self.before) < _LEAST_ARRIVALS:
            raise ValueError(
                f"before has {arrivals:.4g} arrivals at the rate least, and it takes {_LEAST_ARRIVALS}: before must be"
                f" {_LEAST_ARRIVALS / self.least:.4g}s or longer, or least higher"
            )
        if self.patience < 2 * self.hold:
            raise ValueError(f"patience must be twice hold or more, {2 * self.hold:g}s")
        return self
