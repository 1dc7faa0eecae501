"""A Cassandra ring that this tool starts itself, of this machine's Java: nothing to set up, nothing left behind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.settings.resources import Resources
from nephoscope.settings.units import Duration  # noqa: TC001 - pydantic looks it up at run time
from nephoscope.systems.base import Allocation
from nephoscope.systems.cassandra.install import find_install
from nephoscope.systems.cassandra.server import (
    TRAITS,
    CassandraFolder,
    CassandraNode,
    CassandraServer,
    Ports,
    RingPlan,
)
from nephoscope.systems.cluster.product import Product, SettingValue
from nephoscope.systems.cluster.provider import ClusterProvider
from nephoscope.systems.cluster.quota import NodeQuotas, NodesSettings
from nephoscope.systems.cluster.ring import RingCluster
from nephoscope.systems.machine.capacity import GIB, this_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Self

    from nephoscope.settings.base import Role
    from nephoscope.settings.registered import SystemSettings
    from nephoscope.systems.cluster.cluster import Cluster
    from nephoscope.systems.cluster.node import Began, Node
    from nephoscope.systems.cluster.product import Install, Making
    from nephoscope.systems.cluster.provider import Deeds
    from nephoscope.systems.machine.account import Account
    from nephoscope.systems.machine.capacity import Machine
    from nephoscope.systems.machine.control_group import ControlGroup

OURS = frozenset(
    {
        *(
            "cluster_name",
            "partitioner",
            "listen_address",
            "broadcast_address",
            "rpc_address",
            "storage_port",
        ),
        *("native_transport_port", "seed_provider", "authenticator", "authorizer", "data_file_directories"),
        *("commitlog_directory", "saved_caches_directory", "hints_directory", "endpoint_snitch"),
    }
)
"""Settings that this tool needs for itself: a study cannot have them."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def check_settings(settings: Mapping[str, SettingValue]) -> None:
    """Check what can be checked without a node. Raises ``ValueError``."""
    for name in settings:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a setting of cassandra.yaml")
        if name in OURS:
            raise ValueError(f"{name} cannot be set: embedded-cassandra sets it itself")


class EmbeddedCassandraSettings(NodesSettings):
    """The ``[system]`` table of a study that measures the embedded Cassandra."""

    provider: Literal["embedded-cassandra"] = "embedded-cassandra"
    version: Annotated[str | None, Field(pattern=r"^\d+\.\d+$")] = None
    """The series that the jars have to be of, as `"5.0"`; by default whichever there is."""
    nodes: Annotated[int, Field(ge=1, le=16)] = 3
    """The nodes of the ring, at 127.0.0.1, 127.0.0.2 and so on."""
    replication_factor: Annotated[int, Field(ge=1, le=16)] = 3
    """On how many nodes each row is."""
    heap: Annotated[str, Field(pattern=r"^[1-9]\d*[MG]$")] = "256M"
    """The memory of each node's Java heap; a node takes 400 MB besides."""
    routing: Literal["fixed", "token-aware"] = "fixed"
    """Which node coordinates a request: the one that the session is connected to, or one that has the row: see
    [Cassandra's URLs](#cassandra-urls)."""
    replica_delay: Duration = 0.0
    """What other nodes send to the last of these nodes comes so much later: a lag that is known, to test what measures
    it."""
    settings: dict[str, SettingValue] = Field(default_factory=dict)
    """Settings as in cassandra.yaml, such as `concurrent_writes` or `row_cache_size`."""

    @model_validator(mode="after")
    def _has_somebody_to_wait_for(self) -> Self:
        if self.replica_delay and self.nodes == 1:
            raise ValueError(
                "replica_delay needs two nodes or more: of one there is no other that sends anything"
            )
        return self

    @classmethod
    def nodes_of(cls, table: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever TOML can hold
        """Tell the size of the ring."""
        return table.get("nodes", 3)

    @field_validator("settings")
    @classmethod
    def _check_settings(cls, settings: dict[str, SettingValue]) -> dict[str, SettingValue]:
        check_settings(settings)
        return settings


class Cassandra(Product):
    """The Cassandra whose jars this machine has."""

    traits = TRAITS

    def __init__(self, ring: RingPlan) -> None:
        """Take what the nodes of a ring share."""
        self.ring = ring

    def folder_name(self, version: Any) -> str:  # noqa: ANN401 - a series, or None
        """Have a folder for each series."""
        return f"cassandra-{find_install(version).series}"

    def install(self, version: Any, account: Account) -> Install:  # noqa: ANN401 - a series, or None
        """Find the machine's programs."""
        del account
        return find_install(version)

    def node(self, name: str, folder: Path, making: Making) -> CassandraNode:
        """Describe a node in a folder."""
        number = int(name.removeprefix("node"))
        return CassandraNode(name, CassandraServer(CassandraFolder(folder), making, number, self.ring))

    def check_settings(self, settings: Mapping[str, SettingValue]) -> None:
        """Check names. Raises ``ValueError``."""
        check_settings(settings)

    def sane_settings(self, machine: Machine, storage_bytes: int) -> dict[str, SettingValue]:
        """Choose nothing: what a node has is in its file."""
        del machine, storage_bytes
        return {}

    def memory_settings(self, machine: Machine) -> dict[str, SettingValue]:
        """Choose nothing: a node's memory is its heap."""
        del machine
        return {}

    def replication_settings(self, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """Choose nothing: a keyspace says where its rows are."""
        del settings
        return {}


class EmbeddedCassandra(ClusterProvider):
    """Starts a ring."""

    name: ClassVar[str] = "embedded-cassandra"
    summary: ClassVar[str] = "a ring of Cassandra nodes on this machine's Java, started by nephoscope"
    settings_type: ClassVar[type[SystemSettings]] = EmbeddedCassandraSettings
    dialect_url: ClassVar[str] = "cassandra://localhost/none"

    def __init__(self, settings: EmbeddedCassandraSettings) -> None:
        """Take validated settings; touch nothing yet."""
        super().__init__(settings)
        self._cassandra = Cassandra(RingPlan(settings.nodes, settings.heap, settings.routing))
        self.product = self._cassandra  # type: ignore[misc]
        self._allocation: list[Allocation] = []
        self._replica_delay_s = settings.replica_delay
        self._quotas = NodeQuotas(settings.cpu_quota)

    def _resources(self, storage: int) -> Resources:
        """Tell what each node is given: what the study says, or an equal share of the machine."""
        self._quotas.find_place()
        nodes, chosen = self._settings.nodes, self._settings.resources
        if chosen is not None:
            given: Resources = chosen
            return given
        machine = this_machine()
        return Resources(
            nodes=nodes,
            vcores=machine.cores / nodes,
            memory_gb=machine.memory_gb / nodes,
            storage_gb=storage / GIB / nodes,
        )

    def _server_settings(self, given: Resources) -> dict[str, SettingValue]:
        del given
        return dict(self._settings.settings)

    def _folder(self) -> Path:
        """Have a folder for each size of a ring besides: its nodes share the data."""
        folder = super()._folder()
        return (
            folder
            if self._settings.data is not None
            else folder.with_name(f"{folder.name}-{self._settings.nodes}")
        )

    def _group_of(self, folder: Path) -> ControlGroup | None:
        return self._quotas.group_of(folder)

    def _facts(self, cluster: Cluster) -> dict[str, object]:
        """Tell also what each node is kept to, or why it is not."""
        return {**super()._facts(cluster), **self._quotas.facts()}

    def stop(self) -> None:
        """End all nodes and their control groups; harmless where they have ended or were never started.

        Raises:
            MeasurementError: a process of a node cannot be ended, or a group cannot be removed.

        """
        self._quotas.lift()
        try:
            super().stop()
        finally:
            self._quotas.remove()

    def _new_cluster(self, home: Path, make_node: Callable[[str, Path], Node]) -> Cluster:
        self._cassandra.ring.ports = Ports.of(home, self._settings.nodes)
        return RingCluster(home, make_node)

    def _begin(self, cluster: Cluster, given: Resources) -> None:
        def prepare(server: Any) -> None:  # noqa: ANN401 - a server of this product
            server.make_keyspace(self._settings.database_name, self._settings.replication_factor)

        # A start takes a node some ten seconds of a processor: it would take long within a quota.
        cluster.start(self._settings.nodes - 1, prepare)
        self._quotas.keep_to(given.vcores)
        self._cassandra.ring.ports.keep(self._folder())
        self._allocation = [Allocation(time_ns=_engine.monotonic_ns(), resources=given)]

    def adds(self) -> Role:
        """Every node takes writes."""
        return "rw"

    def endpoint_of(self, node: str) -> str:
        """Tell the URL of a node, whose sessions stay with it."""
        url = self._started().node(node).server.url(self._settings.database_name)
        return url.partition("?")[0]

    def actions(self) -> frozenset[Action]:
        """Tell what ``act`` can do: nothing leads a ring, and a node's memory is its heap."""
        cannot = {Action.PROMOTE, Action.RESIZE}
        if len(self.nodes()) <= 1:
            cannot.add(Action.REMOVE_NODE)
        return frozenset(Action) - cannot

    def _deeds(
        self,
        cluster: Cluster,
        node: str | None,
        resources: Resources | None,
        settings: Mapping[str, SettingValue] | None,
    ) -> Deeds:
        if resources is not None:
            raise MeasurementError(f"{self.name} cannot change what a node is given")
        return {
            **self._deeds_on_a_node(cluster, node),
            Action.ADD_NODE: lambda: self._add_node(cluster, node),
            Action.REMOVE_NODE: lambda: cluster.remove_node(node),
            Action.SET: lambda: self._set(cluster, settings),
        }

    def _add_node(self, cluster: Cluster, node: str | None) -> Began:
        """Add a node, which is kept to its quota once it serves."""
        self._quotas.keep_to(None)
        try:
            return cluster.add_node(node)
        finally:
            self._quotas.keep_to(self._allocation[-1].resources.vcores)

    def _note(self, action: Action, time_ns: int, resources: Resources | None) -> None:
        """Keep the time line of what the system was given."""
        del resources
        if action in {Action.ADD_NODE, Action.REMOVE_NODE}:
            given = self._allocation[-1].resources.model_copy(update={"nodes": len(self.nodes())})
            self._allocation.append(Allocation(time_ns=time_ns, resources=given))

    def allocation(self) -> tuple[Allocation, ...]:
        """Tell what the system was given since its start."""
        return tuple(self._allocation)
