"""A simulated database whose truth is planted: latency, capacity, faults, and what it was given at which time."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal
from urllib.parse import quote

from pydantic import Field, field_validator, model_validator

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.settings.registered import SystemSettings
from nephoscope.settings.resources import Resources, ResourcesChange
from nephoscope.settings.units import Duration
from nephoscope.systems.base import Allocation, Done, Provider, System

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from nephoscope.settings.base import Role

_numbers = itertools.count(1)

Plan = str | dict[str, str | int | float | list[str]]
"""What is planted: the query of a ``sim://`` URL, or its keys as a table."""


class AllocationSettings(ResourcesChange):
    """A step of the planted allocation: from then on the system has other resources. What is left out stays."""

    at: Duration
    """When, since the start of the load."""


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
    node: Plan | None = None
    """What is planted in each read-only node that is added while it runs; none can be added without it."""
    node_time: Duration = 1.0
    """How long adding a node takes."""
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
        plans = (self.plan, *self.read_only, *([] if self.node is None else [self.node]))
        if self.capacity_per_vcore and any("capacity=" in _query(plan) for plan in plans):
            raise ValueError("the capacity is planted, or follows from capacity_per_vcore: not both")
        for plan in plans:
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
        self._number = 0
        self._urls: dict[str, str] = {}
        self._kept: dict[str, _engine.Admin] = {}
        self._begun_ns = 0
        self._changed: list[Allocation] = []
        self._set_capacity = _planted_capacity(settings.plan)

    def start(self) -> System:
        """Make the databases; each lives until ``stop``."""
        self._number = next(_numbers)
        for node, plan in self._plans().items():
            self._make(node, plan)
        self._begun_ns = _engine.monotonic_ns()
        return System(rw=self.endpoints("rw"), ro=self.endpoints("ro"), resources=self._settings.resources)

    def stop(self) -> None:
        """Let go of the databases."""
        for admin in self._kept.values():
            admin.close()
        self._kept.clear()

    def _make(self, node: str, plan: Plan) -> None:
        self._urls[node] = f"sim://{self._number}-{node}?{'&'.join(self._planted(plan))}"
        self._kept[node] = _engine.Admin(self._urls[node])

    def nodes(self) -> Mapping[str, Role]:
        """``rw``, and ``ro1``, ``ro2`` … ."""
        return {node: "rw" if node == "rw" else "ro" for node in self._urls}

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
        _, rows = self._kept["rw"].query("")
        started = int(rows[0][2] or 0)
        now = _engine.monotonic_ns()
        steps = [
            Allocation(time_ns=started + round(at * 1e9), resources=resources)
            for at, resources in self._time_line(base)
        ]
        come = [step for step in (*steps, *self._changed) if step.time_ns <= now]
        return (begun, *sorted(come, key=lambda step: step.time_ns))

    def actions(self) -> frozenset[Action]:
        """Tell what can be planted while it runs."""
        known = {Action.RESTART, Action.KILL, Action.PAUSE}
        if self._settings.resources:
            known.add(Action.RESIZE)
        if self._settings.node is not None:
            # What is taken away can be put back.
            known |= {Action.ADD_NODE, Action.REMOVE_NODE} if len(self._urls) > 1 else {Action.ADD_NODE}
        if self._set_capacity is not None:
            known.add(Action.SET)
        return frozenset(known)

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
        if action is Action.SET:
            return self._set(settings)
        if action is Action.ADD_NODE:
            return self._add_node(node)
        if action is Action.REMOVE_NODE:
            return self._remove_node(node)
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
        self._changed.append(Allocation(time_ns=began, resources=resources))
        return Done(action=Action.RESIZE, node=None, began_ns=began, ended_ns=_engine.monotonic_ns())

    def _set(self, settings: Mapping[str, bool | int | float | str] | None) -> Done:
        capacity = dict(settings or {}).pop("capacity", None)
        if set(settings or {}) != {"capacity"} or not isinstance(capacity, int) or capacity < 1:
            raise MeasurementError("what can be set of a simulated database is its capacity, to 1 or more")
        began = _engine.monotonic_ns()
        for url in self._urls.values():
            _engine.sim_plant(url, f"capacity={capacity}")
        self._set_capacity = capacity
        return Done(action=Action.SET, node=None, began_ns=began, ended_ns=_engine.monotonic_ns())

    def parameter(self, name: str) -> bool | int | float | str:
        """Tell the capacity, where a single one is planted: there is nothing else that can be set."""
        if name != "capacity" or self._set_capacity is None:
            raise MeasurementError(
                f"the simulated database has no parameter {name}: what can be set is a planted capacity"
            )
        return self._set_capacity

    def _add_node(self, node: str | None) -> Done:
        name = next(name for number in itertools.count(1) if (name := f"ro{number}") not in self._urls)
        if node not in {None, name}:
            raise MeasurementError(f"the next node is {name}, and not {node}")
        began = _engine.monotonic_ns()
        time.sleep(self._settings.node_time)
        self._make(name, self._settings.node or "")
        self._count_nodes(1)
        return Done(action=Action.ADD_NODE, node=name, began_ns=began, ended_ns=_engine.monotonic_ns())

    def _remove_node(self, node: str | None) -> Done:
        chosen = node or next(name for name in reversed(self._urls) if name != "rw")
        if chosen == "rw" or chosen not in self._urls:
            there = ", ".join(name for name in self._urls if name != "rw")
            raise MeasurementError(f"there is no read-only node {chosen!r}; these are {there}")
        began = _engine.monotonic_ns()
        del self._urls[chosen]
        self._kept.pop(chosen).close()
        self._count_nodes(-1)
        return Done(action=Action.REMOVE_NODE, node=chosen, began_ns=began, ended_ns=_engine.monotonic_ns())

    def _count_nodes(self, more: int) -> None:
        """Keep it in the time line of the allocation, where there is one."""
        if line := self.allocation():
            resources = line[-1].resources
            resources = resources.model_copy(update={"nodes": max(resources.nodes + more, 1)})
            self._changed.append(Allocation(time_ns=_engine.monotonic_ns(), resources=resources))

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
            base = step.over(base)
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


def _planted_capacity(plan: Plan) -> int | None:
    """Find the capacity of a plan that has one, and the same all the time."""
    pairs = (pair.partition("=") for pair in _query(plan).split("&"))
    return next((int(value) for key, _, value in pairs if key == "capacity" and value.isdecimal()), None)


def _time(seconds: float) -> str:
    return f"{round(seconds * 1e6)}us"
