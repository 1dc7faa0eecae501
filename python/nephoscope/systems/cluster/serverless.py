"""A server that this tool starts itself and scales by a quota of processor time, as serverless databases are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from nephoscope.errors import InputError, MeasurementError, NephoscopeError
from nephoscope.settings.actions import Action
from nephoscope.settings.resources import Resources
from nephoscope.settings.units import Duration  # noqa: TC001 - pydantic looks it up at run time
from nephoscope.systems.cluster.autoscaler import Autoscaler
from nephoscope.systems.cluster.cluster import Cluster
from nephoscope.systems.cluster.provider import ClusterProvider, ClusterProviderSettings
from nephoscope.systems.cluster.scaling import Levels, PolicyName, Scaling
from nephoscope.systems.machine.capacity import GIB, Machine, this_machine
from nephoscope.systems.machine.control_group import LEAST_VCORES, ControlGroup
from nephoscope.systems.machine.control_groups import Place, find_place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nephoscope.systems.base import Allocation, Done
    from nephoscope.systems.cluster.node import Began, Node
    from nephoscope.systems.cluster.product import SettingValue
    from nephoscope.systems.cluster.provider import Deeds

_LEAST_PERIOD_S = 0.05
Vcores = Annotated[float, Field(ge=LEAST_VCORES)]


class ServerlessSettings(ClusterProviderSettings):
    """The ``[system]`` table of a study that measures a product with autoscaling."""

    resources: Resources | None = None
    """Not here: they follow from `max_vcores` and the keys below."""
    policy: PolicyName = "immediate"
    """How it is scaled: see [policies](systems.md#policies)."""
    min_vcores: Vcores = 0.25
    """The least that it has while it runs."""
    max_vcores: Vcores | None = None
    """The most that it has; by default all processors of the machine."""
    step: Vcores = 0.25
    """What it has is the least and whole steps above it, or the most."""
    period: Duration = 1.0
    """How often its use is looked at; at least 50 ms."""
    scale_up: Annotated[float, Field(gt=0, le=1)] = 0.8
    """It gets more when it uses this share of what it has, or more."""
    scale_down: Annotated[float, Field(ge=0, lt=1)] = 0.4
    """It gets less when it uses less than this share of what it has."""
    step_time: Duration = 10.0
    """How long a level is kept at the least before a single step."""
    pause_after: Duration = 60.0
    """How long nobody is connected before it pauses, with the policy `"pause-and-resume"`."""
    memory_gb_per_vcore: Annotated[float, Field(ge=0)] = 2.0
    """The memory that comes with a vCore, for the cost; in units of 2**30 bytes."""
    storage_gb: Annotated[float | None, Field(ge=0)] = None
    """Storage for the cost, in units of 2**30 bytes; by default the size of the file system."""
    iops: Annotated[float, Field(ge=0)] = 0
    """I/O operations per second for the cost."""
    network_gbps: Annotated[float, Field(ge=0)] = 0
    """Network bandwidth for the cost."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.resources is not None:
            raise ValueError(
                "resources follow from max_vcores, memory_gb_per_vcore, storage_gb, iops and network_gbps"
            )
        if self.max_vcores is not None and self.max_vcores < self.min_vcores:
            raise ValueError(f"max_vcores is {self.max_vcores:g}, which is less than min_vcores")
        if self.scale_down >= self.scale_up:
            raise ValueError(f"scale_down is {self.scale_down:g}, and must be less than scale_up")
        if self.period < _LEAST_PERIOD_S:
            raise ValueError("period must be 50 ms or more: the kernel counts in periods of 100 ms itself")
        return self


class Serverless(ClusterProvider):
    """One server in a control group, behind an address that holds connections while it wakes up."""

    def __init__(self, settings: ServerlessSettings) -> None:
        """Take validated settings; touch nothing yet."""
        super().__init__(settings)
        self._place: Place | None = None
        self._group: ControlGroup | None = None
        self._autoscaler: Autoscaler | None = None
        self._largest: Resources | None = None

    # --- a system ------------------------------------------------------------------------------------------------

    def _resources(self, storage: int) -> Resources:
        """Tell the most that it is given, where this machine has as much and lets us limit it."""
        try:
            self._place = find_place()
        except InputError as error:
            raise InputError(f"system.provider: {self.name}: {error}") from error
        most = self._settings.max_vcores or this_machine().cores
        self._check_most(most)
        chosen = self._settings.storage_gb
        self._largest = Resources(
            vcores=most,
            memory_gb=most * self._settings.memory_gb_per_vcore,
            storage_gb=storage / GIB if chosen is None else chosen,
            iops=self._settings.iops,
            network_gbps=self._settings.network_gbps,
        )
        return self._largest

    def _check_most(self, most: float) -> None:
        cores, least = this_machine().cores, self._settings.min_vcores
        if most > cores:
            raise InputError(f"system.max_vcores: the machine has {cores:g} processors; it is {most:g}")
        if most < least:
            raise InputError(
                f"system.min_vcores: the machine has {cores:g} processors, of which {most:g} are for the system; "
                f"it is {least:g}"
            )

    def _server_settings(self, given: Resources) -> dict[str, SettingValue]:
        settings = self.product.sane_settings(_machine_of(given), math.floor(given.storage_gb * GIB))
        settings |= self.product.replication_settings(settings)
        chosen: dict[str, SettingValue] = self._settings.settings
        return settings | chosen

    def _group_of(self, folder: Path) -> ControlGroup | None:
        if self._group is None and self._place is not None:
            self._group = ControlGroup(self._place, folder)
        return self._group

    def _new_cluster(self, home: Path, make_node: Callable[[str, Path], Node]) -> Cluster:
        return Cluster(home, make_node, has_front=True)

    def _begin(self, cluster: Cluster, given: Resources) -> None:
        cluster.start(0, self._make_database)
        if cluster.front is None or self._group is None:
            raise MeasurementError(f"this {self.name} is being stopped")
        self._autoscaler = Autoscaler(
            cluster=cluster,
            endpoint=cluster.front.rw,
            group=self._group,
            scaling=self._scaling(given.vcores),
            period_s=self._settings.period,
            resources=self._of,
        )
        self._autoscaler.start()

    def _scaling(self, most: float) -> Scaling:
        settings = self._settings
        return Scaling(
            policy=settings.policy,
            levels=self._levels(most),
            scale_up=settings.scale_up,
            scale_down=settings.scale_down,
            step_time_s=settings.step_time,
            pause_after_s=settings.pause_after,
        )

    def _levels(self, most: float) -> Levels:
        return Levels(least=self._settings.min_vcores, most=most, step=self._settings.step)

    def _of(self, vcores: float) -> Resources:
        """Tell what comes with so many vCores: memory in proportion; storage and network stay."""
        largest = self._largest
        if largest is None:
            raise MeasurementError(f"this {self.name} has not been started")
        memory_gb = largest.memory_gb * vcores / largest.vcores
        return largest.model_copy(update={"vcores": vcores, "memory_gb": memory_gb})

    def _facts(self, cluster: Cluster) -> dict[str, object]:
        folders = self._group.folders if self._group is not None else ()
        return {**cluster.facts(), "control_groups": [str(folder) for folder in folders]}

    def stop(self) -> None:
        """End the autoscaler, the server and its control group; harmless where they have ended.

        Raises:
            MeasurementError: a process of the server cannot be ended, or the group cannot be removed.

        """
        autoscaler, self._autoscaler = self._autoscaler, None
        group, self._group = self._group, None
        if group is not None:
            group.lift()
        try:
            if autoscaler is not None:
                autoscaler.stop()
            if group is not None:
                group.lift()  # it may have set its quota once more
        finally:
            try:
                super().stop()
            finally:
                if group is not None:
                    group.remove()

    # --- what can be done to it ----------------------------------------------------------------------------------

    def actions(self) -> frozenset[Action]:
        """Tell what ``act`` can do to a single node."""
        return frozenset(Action) - {Action.PROMOTE, Action.ADD_NODE, Action.REMOVE_NODE}

    def act(
        self,
        action: Action,
        *,
        node: str | None = None,
        resources: Resources | None = None,
        settings: Mapping[str, SettingValue] | None = None,
    ) -> Done:
        """Do something to the system, which is woken up before where it has paused; returns when that is done.

        Raises:
            MeasurementError: it cannot be done, has failed, or is not done in time.

        """
        if self._autoscaler is None:
            raise MeasurementError(f"this {self.name} has not been started")
        with self._autoscaler.kept_awake():
            return super().act(action, node=node, resources=resources, settings=settings)

    def _deeds(
        self,
        cluster: Cluster,
        node: str | None,
        resources: Resources | None,
        settings: Mapping[str, SettingValue] | None,
    ) -> Deeds:
        return {
            **self._deeds_on_a_node(cluster, node),
            Action.RESIZE: lambda: self._resize(cluster, resources),
            Action.SET: lambda: self._set(cluster, settings),
        }

    def _resize(self, cluster: Cluster, resources: Resources | None) -> Began:
        """Set the most that it may have from now on, and the memory that goes with it; it is restarted."""
        if resources is None:
            raise MeasurementError("resize needs resources")
        if resources.nodes != 1:
            raise MeasurementError(
                f"resize leaves the one node there is: resources.nodes is {resources.nodes}"
            )
        try:
            self._check_most(resources.vcores)
        except NephoscopeError as error:
            raise MeasurementError(str(error)) from None
        began = cluster.set(self.product.memory_settings(_machine_of(resources)))
        self._largest = resources
        if self._autoscaler is not None:
            self._autoscaler.change(self._levels(resources.vcores))
        return began

    # --- what it is now ------------------------------------------------------------------------------------------

    def allocation(self) -> tuple[Allocation, ...]:
        """Tell what the autoscaler has given since the start. Raises ``MeasurementError`` where it has failed."""
        return self._autoscaler.line() if self._autoscaler is not None else ()


def _machine_of(resources: Resources) -> Machine:
    """Give the part of this machine that a server is sized for: its memory is not more than there is."""
    memory = min(resources.memory_gb * GIB, this_machine().memory_bytes)
    return Machine(cores=resources.vcores, memory_bytes=int(memory))
