"""The settings of the evaluator of isolation in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from nephoscope.scoring.isolation import Order
from nephoscope.settings.actions import FaultName
from nephoscope.settings.loads import MOST_CONCURRENCY, AccessSetting, Isolation, MixSetting, each_once
from nephoscope.settings.registered import MeasureSettings
from nephoscope.settings.units import Duration, one_as_list

if TYPE_CHECKING:
    from typing import Self


class IsolationSettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "isolation"``."""

    evaluator: Literal["isolation"] = "isolation"
    isolation: Annotated[list[Isolation], BeforeValidator(one_as_list), Field(min_length=1)]
    """The isolation levels that are gone through, one or several: `read uncommitted`, `read committed`,
    `repeatable read`, `serializable`. SQLite has `serializable` alone."""
    order: Order = "real-time"
    """What orders transactions besides their dependencies where a level is judged: `real-time`, `session`, or `none`,
    where reads may go to replicas that lag."""
    mix: MixSetting = "ALL"
    """Which transactions run: see [mixes](#mixes)."""
    concurrency: Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] = 16
    """Transactions at a time."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""
    renew: str | None = "renew"
    """The transaction that opens new keys before each history; without one a history may meet what another has left."""
    duration: Duration = 10.0
    """Of the history of each level."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often all levels are gone through."""
    fault: FaultName | None = None
    """A fault of the node that takes writes, half-way through each history, as of [`failover`](#measure-failover)."""
    pause: Duration = 2.0
    """How long a fault lasts that is a `pause`."""
    action_limit: Duration = 600.0
    """How long the provider may take to do what a fault is, besides the pause."""

    _each_once = field_validator("isolation")(each_once)

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if min(self.duration, self.action_limit) <= 0:
            raise ValueError("duration and action_limit must be above 0")
        return self
