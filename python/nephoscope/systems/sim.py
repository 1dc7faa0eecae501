"""A simulated database whose truth is planted: latency, capacity, faults, and what it was given at which time."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal
from urllib.parse import quote

from pydantic import Field, field_validator, model_validator

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.base import (
    Action,
    Allocation,
    Done,
    Provider,
    Resources,
    Role,
    Settings,
    System,
    SystemSettings,
)
from nephoscope.units import Duration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

_numbers = itertools.count(1)

Plan = str | dict[str, str | int | float | list[str]]
"""What is planted: the query of a ``sim://`` URL, or its keys as a table."""


class AllocationSettings(Settings):
    """A step of the planted allocation: from then on the system has other resources. What is left out stays."""

    at: Duration
    """When, since the start of the load."""
    nodes: Annotated[int, Field(ge=1)] | None = None
    """Nodes of the same size."""
    vcores: Annotated[float, Field(ge=0)] | None = None
    """Virtual cores of a node."""
    memory_gb: Annotated[float, Field(ge=0)] | None = None
    """Memory of a node."""
    storage_gb: Annotated[float, Field(ge=0)] | None = None
    """Storage of a node."""
    iops: Annotated[float, Field(ge=0)] | None = None
    """I/O operations per second of the system as a whole."""
    network_gbps: Annotated[float, Field(ge=0)] | None = None
    """Network bandwidth of the system as a whole."""


class SimSettings(SystemSettings):
    """The ``[system]`` table of a study that measures a simulated database."""

    provider: Literal["sim"] = "sim"
    plan: Plan = ""
    """What is planted in the endpoint that takes writes: see [the simulated database](systems.md#sim)."""
    read_only: list[Plan] = Field(default_factory=list)
    """What is planted in each read-only endpoint; there are as many as this has entries."""
    capacity_per_vcore: Annotated[int, Field(ge=1)] | None = None
    """How many round trips a vCore serves at once, so that the capacity follows what was allocated."""
    allocation: list[AllocationSettings] = Field(default_factory=list)
    """The planted allocation after ``resources``, as a time line: see [allocation](systems.md#systemallocation)."""
    outage: Duration = 1.0
    """How long a node is away after ``restart`` and ``kill``."""
    pause: Duration = 1.0
    """How long a node stands still after ``pause``."""

    @field_validator("allocation")
    @classmethod
    def _in_order(cls, steps: list[AllocationSettings]) -> list[AllocationSettings]:
        if any(later.at <= earlier.at for earlier, later in itertools.pairwise(steps)):
            raise ValueError("the steps of an allocation stand in the order of their times")
        return steps

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.resources is None and (self.allocation or self.capacity_per_vcore):
            raise ValueError("an allocation, and a capacity per vCore, need resources to begin with")
        if self.capacity_per_vcore and any(
            "capacity=" in _query(plan) for plan in (self.plan, *self.read_only)
        ):
            raise ValueError("the capacity is planted, or follows from capacity_per_vcore: not both")
        for plan in (self.plan, *self.read_only):
            try:
                _engine.check_url(f"sim://?{_query(plan)}")
            except InputError as error:
                raise ValueError(str(error).removeprefix("url: ")) from None
        return self


class Sim(Provider):
    """Hands out simulated databases of this process, and acts on them."""

    name: ClassVar[str] = "sim"
    summary: ClassVar[str] = "a simulated database with planted latency, capacity, faults and allocation"
    settings_type: ClassVar[type[SystemSettings]] = SimSettings

    def __init__(self, settings: SimSettings) -> None:
        """Take validated settings; touch nothing yet."""
        self._settings = settings
        self._urls: dict[str, str] = {}
        self._kept: list[_engine.Admin] = []
        self._begun_ns = 0
        self._resized: list[Allocation] = []

    def start(self) -> System:
        """Make the databases; each lives until ``stop``."""
        number = next(_numbers)
        for node, plan in self._plans().items():
            self._urls[node] = f"sim://{number}-{node}?{'&'.join(self._planted(plan))}"
            self._kept.append(_engine.Admin(self._urls[node]))
        self._begun_ns = _engine.monotonic_ns()
        return System(rw=self.endpoints("rw"), ro=self.endpoints("ro"), resources=self._settings.resources)

    def stop(self) -> None:
        """Let go of the databases."""
        for admin in self._kept:
            admin.close()
        self._kept.clear()

    def nodes(self) -> Mapping[str, Role]:
        """``rw``, and ``ro1``, ``ro2`` … ."""
        return {node: "rw" if node == "rw" else "ro" for node in self._plans()}

    def endpoints(self, role: Role, tenant: str | None = None) -> tuple[str, ...]:
        """Tell the URLs of a role; all tenants share them."""
        del tenant
        return tuple(self._urls[node] for node, of in self.nodes().items() if of == role)

    def allocation(self) -> tuple[Allocation, ...]:
        """Tell the resources of the beginning, and the steps whose time has come."""
        base = self._settings.resources
        if base is None or not self._kept:
            return ()
        begun = Allocation(time_ns=self._begun_ns, resources=base)
        _, rows = self._kept[0].query("")
        started = int(rows[0][2] or 0)
        now = _engine.monotonic_ns()
        steps = [
            Allocation(time_ns=started + round(at * 1e9), resources=resources)
            for at, resources in self._time_line(base)
        ]
        come = [step for step in (*steps, *self._resized) if step.time_ns <= now]
        return (begun, *sorted(come, key=lambda step: step.time_ns))

    def actions(self) -> frozenset[Action]:
        """Tell what can be planted while it runs."""
        known = {Action.RESTART, Action.KILL, Action.PAUSE}
        return frozenset(known | {Action.RESIZE} if self._settings.resources else known)

    def act(
        self,
        action: Action,
        *,
        node: str | None = None,
        resources: Resources | None = None,
        settings: Mapping[str, bool | int | float | str] | None = None,
    ) -> Done:
        """Plant it now. A restart is done when its outage is over; the others at once."""
        if action not in self.actions():
            return super().act(action, node=node, resources=resources, settings=settings)
        if action is Action.RESIZE:
            return self._resize(resources)
        chosen = node or "rw"
        if chosen not in self._urls:
            raise MeasurementError(f"there is no node {chosen!r}; nodes are {', '.join(self._urls)}")
        fault, seconds = (
            ("stall", self._settings.pause) if action is Action.PAUSE else ("outage", self._settings.outage)
        )
        began = _engine.sim_plant(self._urls[chosen], f"{fault}=0s%2B{_time(seconds)}")
        if action is Action.RESTART:
            time.sleep(seconds)
        return Done(action=action, node=chosen, began_ns=began, ended_ns=_engine.monotonic_ns())

    def _resize(self, resources: Resources | None) -> Done:
        if resources is None:
            raise MeasurementError("resize needs the resources that the nodes are to have")
        began = _engine.monotonic_ns()
        if capacity := self._capacity(resources):
            for url in self._urls.values():
                _engine.sim_plant(url, f"capacity={capacity}")
        elif capacity == 0:
            raise MeasurementError("a node of no vCores serves nothing: that can only be planted before")
        self._resized.append(Allocation(time_ns=began, resources=resources))
        return Done(action=Action.RESIZE, node=None, began_ns=began, ended_ns=_engine.monotonic_ns())

    def _plans(self) -> dict[str, Plan]:
        read_only = {f"ro{place}": plan for place, plan in enumerate(self._settings.read_only, start=1)}
        return {"rw": self._settings.plan, **read_only}

    def _planted(self, plan: Plan) -> list[str]:
        """Put the capacity that follows from the allocation to what is planted."""
        parts = [query] if (query := _query(plan)) else []
        base = self._settings.resources
        if base is not None and self._settings.capacity_per_vcore:
            steps = [f"{_time(at)}:{self._capacity(resources)}" for at, resources in self._time_line(base)]
            parts.append(f"capacity={','.join([str(self._capacity(base)), *steps])}")
        return parts

    def _capacity(self, resources: Resources) -> int | None:
        """How many round trips a node of these resources serves at once; None where that is not limited by them."""
        per_vcore = self._settings.capacity_per_vcore
        return None if per_vcore is None else round(per_vcore * resources.vcores)

    def _time_line(self, base: Resources) -> list[tuple[float, Resources]]:
        line = []
        for step in self._settings.allocation:
            base = base.model_copy(update=step.model_dump(exclude={"at"}, exclude_none=True))
            line.append((step.at, base))
        return line


def _query(plan: Plan) -> str:
    """Write a plan as the query of a URL."""
    if isinstance(plan, str):
        return plan
    pairs = (
        (key, one) for key, value in plan.items() for one in (value if isinstance(value, list) else [value])
    )
    return "&".join(f"{key}={quote(str(one), safe='(),:.')}" for key, one in pairs)


def _time(seconds: float) -> str:
    return f"{round(seconds * 1e6)}us"
