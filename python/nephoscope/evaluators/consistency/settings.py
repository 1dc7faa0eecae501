"""The settings of consistency in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from nephoscope.settings.failures import FailureSettings
from nephoscope.settings.loads import MOST_CONCURRENCY, AccessSetting, LoadBeside, Reads
from nephoscope.settings.units import Duration  # noqa: TC001 - pydantic looks it up at run time

if TYPE_CHECKING:
    from typing import Self

_MOST_WRITES = 10_000
"""No more may be looked for at once: the engine's limit."""


class ConsistencySettings(FailureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "consistency"``."""

    evaluator: Literal["consistency"] = "consistency"
    readers: Annotated[int, Field(ge=1, le=1000)] = 12
    """Sessions that read, each by a connection of its own."""
    read_interval: Annotated[Duration, Field(ge=0.0001, le=60)] = 0.001
    """The time between two reads of a session. A read that is due while the one before is on its way is sent when that
    is answered; where the next one is due before, it is missed, and counted."""
    writers: Annotated[int, Field(ge=1, le=1000)] = 1
    """Sessions that write. Each reads what it has written, as often as the others read."""
    write_interval: Annotated[Duration, Field(ge=0.001, le=3600)] = 1.0
    """The time between the intended starts of two writes of a session."""
    keys: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Registers: rows that are written and read. Each is written by one session, in turn with its others, and read by
    all in turn. As many as `writers` if left out."""
    read_from: Reads | Literal["auto"] = "auto"
    """The endpoints that are read: the read-only ones, the first that takes writes, or `all` of both. `auto` is `ro`
    where there is one, else `rw`; with `long_fork` it is `all`."""
    routing: Literal["affinity", "round_robin"] = "affinity"
    """Which endpoint a session reads: always the same, or one after the other, as behind a balancer of requests."""
    long_fork: bool = False
    """Look for [long forks](metrics.md#consistency) in place of the two guarantees about writes: two sessions write at
    the same time, and each read is of both writes."""
    levels: Annotated[list[str], Field(min_length=1)] | None = None
    """Consistency levels of the sessions, each measured in its turn. That of `load.consistency` if left out."""
    loads: Annotated[list[LoadBeside], Field(min_length=1)] | None = None
    """The loads beside which it is measured: see [loads beside](#measureloads). By default the system is idle."""
    concurrency: Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] = 8
    """Transactions at a time, of loads with a mix."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""
    warmup: Duration = 1.0
    """How long each load runs before it is measured."""
    duration: Duration = 60.0
    """How long it is measured beside each load."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often all loads are gone through."""
    limit: Duration = 10.0
    """How long a write may take, and how long it is looked for afterwards."""
    read_timeout: Annotated[Duration, Field(ge=0.01, le=60)] = 1.0
    """How long a read may take."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for field in ("levels", "loads"):
            names = [getattr(entry, "name", entry) for entry in getattr(self, field) or ()]
            if len(set(names)) < len(names):
                raise ValueError(f"{field}: each may be there once")
        if self.limit < 0.01:  # noqa: PLR2004 - the engine's limit
            raise ValueError("limit must be at least 10ms")
        if self.registers < self.writers:
            raise ValueError(
                f"keys is {self.keys}; each of the {self.writers} writers needs a key of its own"
            )
        if self.limit > _MOST_WRITES * self.write_interval:
            raise ValueError(
                f"write_interval is {self.write_interval:g} s; with a limit of {self.limit:g} s it must be at least"
                f" {self.limit / _MOST_WRITES:g} s, or more than {_MOST_WRITES:,} writes would be looked for"
            )
        return self

    @property
    def registers(self) -> int:
        """How many registers there are."""
        return self.keys if self.keys is not None else self.writers
