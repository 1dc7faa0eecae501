"""The settings of scale-out in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, field_validator, model_validator

from nephoscope.scoring.formulas import DEFAULT_DELTA
from nephoscope.settings.loads import MOST_CONCURRENCY, AccessSetting, Mixes, each_once
from nephoscope.settings.registered import MeasureSettings
from nephoscope.settings.units import Duration

if TYPE_CHECKING:
    from typing import Self


class ScaleoutSettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "scaleout"``."""

    evaluator: Literal["scaleout"] = "scaleout"
    nodes: Annotated[int, Field(ge=1, le=100)] = 2
    """How many nodes are added, one by one."""
    mixes: Mixes = Field(default=["RO"])
    """The mixes that are measured with each number of nodes; each has transactions that only read."""
    concurrency: Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] = 32
    """Transactions at a time. It should saturate all nodes: else another one has nothing to add."""
    reads: Literal["all", "ro"] = "all"
    """Where transactions run that only read: `"all"` is on the node that takes writes and all read-only ones, dealt by
    `load.writer_weight`, as in the paper; with `"ro"` they leave that node for the first read-only one."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""
    warmup: Duration = 5.0
    """How long the load runs before it counts, with each number of nodes."""
    duration: Duration = 30.0
    """How long it is measured with each number of nodes."""
    rounds: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often the numbers of nodes are gone through in each repetition: first as nodes come, then by leading the load
    to none, one and more of those that are there."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often all nodes are added; they are removed after each time."""
    delta: Annotated[float, Field(gt=0)] = DEFAULT_DELTA
    """δ, the unit of E2: so many TPS more per node are a score of 1."""
    limit: Duration = 600.0
    """How long adding or removing a node may take, its first transaction after that, and sessions to leave it."""

    _each_once = field_validator("mixes")(each_once)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.duration <= 0 or self.limit <= 0:
            raise ValueError("duration and limit must be above 0")
        if self.concurrency < self.nodes:
            raise ValueError(
                f"a concurrency of {self.concurrency} leaves some of {self.nodes} nodes without a session"
            )
        return self
