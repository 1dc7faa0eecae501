"""A system that this tool starts itself: what all providers of one have in common, whatever the product."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, field_validator

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.settings.registered import OwnSystemSettings
from nephoscope.systems.base import Done, Provider, System
from nephoscope.systems.cluster.folder import choose_account
from nephoscope.systems.cluster.product import Making, SettingValue
from nephoscope.systems.machine.capacity import storage_bytes
from nephoscope.systems.machine.folders import cache_folder
from nephoscope.systems.parameters import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nephoscope.settings.base import Role
    from nephoscope.settings.resources import Resources
    from nephoscope.systems.cluster.cluster import Cluster
    from nephoscope.systems.cluster.node import Began, Node
    from nephoscope.systems.cluster.product import Product
    from nephoscope.systems.cluster.server import Server
    from nephoscope.systems.machine.control_group import ControlGroup


class ClusterProviderSettings(OwnSystemSettings):
    """What the ``[system]`` table says of every system that this tool starts."""

    version: int | str | None = None
    """Which version of the product."""
    data: Annotated[Path | None, Field(strict=False)] = None
    """The folder that everything is kept in, made if need be; by default one per version in the cache."""
    settings: dict[str, SettingValue] = Field(default_factory=dict)
    """Settings of the server, over those that suit the machine."""

    @field_validator("data")
    @classmethod
    def _check_data(cls, data: Path | None) -> Path | None:
        if not str(data).isprintable():  # it has to stand in the server's configuration
            raise ValueError("the name of a folder cannot hold control characters")
        return data


Deeds = dict[Action, "Callable[[], Began]"]
"""What can be done to a cluster, ready to be called."""


class ClusterProvider(Provider):
    """Starts servers of a product on free loopback ports, and ends them."""

    product: ClassVar[Product]

    def __init__(self, settings: Any) -> None:  # noqa: ANN401 - each provider takes its own settings type
        """Take validated settings; touch nothing yet."""
        self._settings = settings
        self._cluster: Cluster | None = None

    @property
    def _server(self) -> Server | None:
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
    def _group_of(self, folder: Path) -> ControlGroup | None:
        """Give the control group of the node in a folder; None where nothing limits it."""

    @abstractmethod
    def _new_cluster(self, home: Path, make_node: Callable[[str, Path], Node]) -> Cluster:
        """Describe the cluster."""

    _replica_delay_s = 0.0
    """So much later do replicas show every commit."""
    _records_io = False
    """Whether the servers record their I/O."""
    _keeps_log = False
    """Whether all of their log is kept."""

    @abstractmethod
    def _begin(self, cluster: Cluster, given: Resources) -> None:
        """Start the cluster and whatever belongs to it; ``stop`` is called where this fails."""

    @abstractmethod
    def _deeds(
        self,
        cluster: Cluster,
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
        account = choose_account(folder, self.product.traits.name)
        given = self._resources(storage_bytes(folder))
        install = self.product.install(self._settings.version, account)
        settings = self._server_settings(given)

        def make_node(name: str, place: Path) -> Node:
            making = Making(
                install=install,
                account=account,
                settings=settings,
                chosen=self._settings.settings,
                group=self._group_of(place),
                delay_s=self._replica_delay_s,
                records_io=self._records_io,
            )
            return self.product.node(name, place, making)

        cluster = self._cluster = self._new_cluster(folder, make_node)
        try:
            self._begin(cluster, given)
        except BaseException:
            self.stop()
            raise
        return System(
            rw=cluster.urls("rw", self._settings.database_name),
            ro=cluster.urls("ro", self._settings.database_name),
            resources=given,
            facts=self._facts(cluster),
            is_cached=self._settings.data is None,
        )

    def stop(self) -> None:
        """End all servers; harmless where they have ended or were never started.

        Raises:
            MeasurementError: a process of a server cannot be ended.

        """
        if self._cluster is not None:
            cluster, self._cluster = self._cluster, None
            cluster.stop()

    def _facts(self, cluster: Cluster) -> dict[str, object]:
        """Tell what is worth keeping with a measurement; nothing of it is secret."""
        return cluster.facts()

    def _folder(self) -> Path:
        data = self._settings.data or cache_folder() / self.product.folder_name(self._settings.version)
        folder: Path = data.expanduser().resolve()
        return folder

    def _make_database(self, server: Server) -> None:
        server.make_database(self._settings.database_name)

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
    def _deeds_on_a_node(cluster: Cluster, node: str | None) -> Deeds:
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

    def _set(self, cluster: Cluster, settings: Mapping[str, SettingValue] | None) -> Began:
        if not settings:
            raise MeasurementError("set needs settings")
        try:
            self.product.check_settings(settings)
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
        return self._started().urls(role, self._settings.database_name)

    def processes(self) -> tuple[int, ...]:
        """Find the processes of all nodes that run."""
        return self._cluster.processes() if self._cluster is not None else ()

    def io_records(self) -> Path | None:
        """Tell the folder in which the node that takes writes records its I/O; None where it does not."""
        recorder = self._started().primary.server.recorder
        return recorder.records if recorder is not None else None

    def log_folder(self) -> Path | None:
        """Tell the folder of the log of the node that takes writes; None where it is not kept, or is no log of redo."""
        return self._started().primary.server.log_folder if self._keeps_log else None

    def relation_files(self) -> Mapping[str, str]:
        """Ask the node that takes writes for the files of its relations."""
        return self._started().primary.server.relation_files(self._settings.database_name)

    def vacuum(self) -> None:
        """Let the node that takes writes do it. Raises ``MeasurementError``."""
        self._started().primary.server.vacuum(self._settings.database_name)

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

    def _started(self) -> Cluster:
        if self._cluster is None:
            raise MeasurementError(f"this {self.name} has not been started")
        return self._cluster
