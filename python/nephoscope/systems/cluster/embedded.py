"""A cluster of a product that this tool starts itself: nothing to set up, nothing left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.settings.resources import Resources
from nephoscope.settings.units import Duration  # noqa: TC001 - pydantic looks it up at run time
from nephoscope.systems.base import Allocation
from nephoscope.systems.cluster.cluster import Cluster
from nephoscope.systems.cluster.provider import ClusterProvider
from nephoscope.systems.cluster.quota import NodeQuotas, NodesSettings
from nephoscope.systems.machine.capacity import GIB, Machine, storage_bytes, this_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nephoscope.systems.cluster.node import Began, Node
    from nephoscope.systems.cluster.product import SettingValue
    from nephoscope.systems.cluster.provider import Deeds
    from nephoscope.systems.machine.control_group import ControlGroup


class EmbeddedClusterSettings(NodesSettings):
    """The ``[system]`` table of a study that measures a product's cluster on this machine."""

    replicas: Annotated[int, Field(ge=0, le=16)] = 0
    """Read-only nodes that stream from the one that takes writes."""
    synchronous: str = "off"
    """Whether a commit waits for replicas."""
    replica_delay: Duration = 0.0
    """Replicas show every commit so much later: a lag that is known, to test what measures it."""
    front: bool = False
    """Put addresses that stay before the nodes even if there are no replicas yet; with replicas they always are."""
    record_io: bool = False
    """Have each server record its reads, writes and syncs in its folder `io`, for `nephoscope storage capture`."""
    keep_log: bool = False
    """Keep the whole log, and no images of pages in it, for the log view of a capture. A crash of the machine may then
    damage the data unseen: `data` should name a folder of its own, which is thrown away."""

    @classmethod
    def nodes_of(cls, table: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever TOML can hold
        """Count the primary and the replicas."""
        replicas = table.get("replicas", 0)
        return 1 + replicas if isinstance(replicas, int) else None


class EmbeddedCluster(ClusterProvider):
    """Starts a product as it is: one server, or a cluster."""

    def __init__(self, settings: EmbeddedClusterSettings) -> None:
        """Take validated settings; touch nothing yet."""
        super().__init__(settings)
        self._allocation: list[Allocation] = []
        self._quotas = NodeQuotas(settings.cpu_quota)
        self._replica_delay_s = settings.replica_delay
        self._records_io = settings.record_io
        self._keeps_log = settings.keep_log

    @property
    def _has_front(self) -> bool:
        return bool(self._settings.front or self._settings.replicas > 0)

    # --- a system ------------------------------------------------------------------------------------------------

    def _resources(self, storage: int) -> Resources:
        """Tell what each node is given: what the study says, or an equal share of the machine."""
        self._quotas.find_place()
        given = self._shares(storage)
        self._quotas.keep_to(given.vcores)
        return given

    def _shares(self, storage: int) -> Resources:
        nodes = 1 + self._settings.replicas
        chosen: Resources | None = self._settings.resources
        if chosen is not None:
            return chosen
        machine = this_machine()
        # Loopback has no bandwidth to buy, and the machine's own disk no operations.
        return Resources(
            nodes=nodes,
            vcores=machine.cores / nodes,
            memory_gb=machine.memory_gb / nodes,
            storage_gb=storage / GIB / nodes,
        )

    def _server_settings(self, given: Resources) -> dict[str, SettingValue]:
        machine, nodes = this_machine(), given.nodes
        share = Machine(cores=machine.cores / nodes, memory_bytes=machine.memory_bytes // nodes)
        if self._settings.resources is not None:
            memory = min(given.memory_gb * GIB, machine.memory_bytes)
            share = Machine(cores=min(given.vcores, machine.cores), memory_bytes=int(memory))
        settings = self.product.sane_settings(share, storage_bytes(self._folder()) // nodes)
        if self._has_front:
            settings |= self.product.replication_settings(settings)
        if self._settings.synchronous != "off":
            settings |= self.product.synchronous_settings(self._settings.synchronous)
        if self._settings.replica_delay:
            settings |= self.product.delay_settings(self._settings.replica_delay)
        chosen: dict[str, SettingValue] = self._settings.settings
        return settings | chosen | self._recording_settings(chosen)

    def _recording_settings(self, chosen: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """Choose what recording needs. Raises ``InputError`` where the study has chosen something else."""
        needed: dict[str, SettingValue] = {}
        if self._records_io:
            needed |= self.product.recording_settings(self._settings.version)
        if self._keeps_log:
            needed |= self.product.kept_log_settings()
        for name, value in needed.items():
            if chosen.get(name, value) != value:
                raise InputError(
                    f"system.record_io and keep_log need {name} = {value}, and system.settings has {chosen[name]}"
                )
        return needed

    def _group_of(self, folder: Path) -> ControlGroup | None:
        return self._quotas.group_of(folder)

    def _facts(self, cluster: Cluster) -> dict[str, object]:
        """Tell also what each node is kept to, or why it is not."""
        return {**super()._facts(cluster), **self._quotas.facts()}

    def stop(self) -> None:
        """End all servers and their control groups; harmless where they have ended or were never started.

        Raises:
            MeasurementError: a process of a server cannot be ended, or a group cannot be removed.

        """
        self._quotas.lift()
        try:
            super().stop()
        finally:
            self._quotas.remove()

    def _new_cluster(self, home: Path, make_node: Callable[[str, Path], Node]) -> Cluster:
        is_synchronous = self._settings.synchronous != "off"
        return Cluster(home, make_node, has_front=self._has_front, is_synchronous=is_synchronous)

    def _begin(self, cluster: Cluster, given: Resources) -> None:
        cluster.start(self._settings.replicas, self._make_database)
        self._allocation = [Allocation(time_ns=_engine.monotonic_ns(), resources=given)]

    # --- what can be done to it ----------------------------------------------------------------------------------

    def actions(self) -> frozenset[Action]:
        """Tell what ``act`` can do: nodes come, go and change roles only behind a front."""
        cannot = set[Action]()
        if not self._has_front:
            cannot.add(Action.ADD_NODE)
        if len(self.nodes()) <= 1:
            cannot |= {Action.PROMOTE, Action.REMOVE_NODE}
        return frozenset(Action) - cannot

    def _deeds(
        self,
        cluster: Cluster,
        node: str | None,
        resources: Resources | None,
        settings: Mapping[str, SettingValue] | None,
    ) -> Deeds:
        return {
            **self._deeds_on_a_node(cluster, node),
            Action.PROMOTE: lambda: cluster.promote(node),
            Action.ADD_NODE: lambda: cluster.add_node(node),
            Action.REMOVE_NODE: lambda: cluster.remove_node(node),
            Action.RESIZE: lambda: self._resize(cluster, resources),
            Action.SET: lambda: self._set(cluster, settings),
        }

    def _resize(self, cluster: Cluster, resources: Resources | None) -> Began:
        """Give every node other memory and, where that is kept to, vCores: settings follow, and it is restarted."""
        if resources is None:
            raise MeasurementError("resize needs resources")
        now = len(self.nodes())
        if "nodes" in resources.model_fields_set and resources.nodes != now:
            raise MeasurementError(
                f"resize leaves the {now} nodes there are: add_node and remove_node change them"
            )
        machine = Machine(cores=resources.vcores, memory_bytes=int(resources.memory_gb * GIB))
        began = cluster.set(self.product.memory_settings(machine))
        self._quotas.keep_to(resources.vcores)
        return began

    def _note(self, action: Action, time_ns: int, resources: Resources | None) -> None:
        """Keep the time line of what the system was given."""
        if action in {Action.ADD_NODE, Action.REMOVE_NODE, Action.RESIZE}:
            given = resources if action == Action.RESIZE and resources else self._allocation[-1].resources
            given = given.model_copy(update={"nodes": len(self.nodes())})
            self._allocation.append(Allocation(time_ns=time_ns, resources=given))

    def allocation(self) -> tuple[Allocation, ...]:
        """Tell what the system was given since its start."""
        return tuple(self._allocation)
