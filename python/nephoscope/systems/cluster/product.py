"""What a product gives, so that the cluster of this package can run it: one class, and what its traits are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope.errors import InputError

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nephoscope.systems.cluster.node import Node
    from nephoscope.systems.machine.account import Account
    from nephoscope.systems.machine.capacity import Machine
    from nephoscope.systems.machine.control_group import ControlGroup

SettingValue = bool | int | float | str
"""What a setting may be in a study."""


@dataclass(frozen=True)
class Traits:
    """What is the same for every server of a product."""

    name: str
    """As messages say it."""
    program: str
    """The server's program, as the list of processes shows it."""
    scheme: str
    """Of its URLs."""
    user: str
    """The superuser, as whom everything is done."""
    mark: str
    """A file that every whole database of the product has at its top."""
    configuration: str
    """The name of the file of settings, which is written at every start."""
    password_file: str
    stages: Sequence[tuple[signal.Signals, float]]
    """Signals that ask a server for its end, each with the seconds to wait before the next; SIGKILL comes last."""
    orphaned: signal.Signals
    """The signal that a server gets should its supervisor be killed."""
    port_taken: str
    """What its log says where somebody else listens on its port."""
    initialise_s: float = 120.0
    """The longest that an empty database may take to be made."""


@dataclass(frozen=True)
class Install:
    """The programs of a product, executable by the server's user."""

    folders: tuple[Path, ...]
    """Where they are; the first folder that has a program is taken."""
    server_version: str
    """As the server says it, ``18.4`` for one."""
    package_version: str

    @property
    def series(self) -> str:
        """The series of its version, within which databases fit: ``10.11`` of ``10.11.4``."""
        return ".".join(self.server_version.split(".")[:2])

    def check_series(self, version: str | None, product: str) -> None:
        """See that the machine's programs are of the series that a study asks for. Raises ``InputError``."""
        if version not in {None, self.series}:
            raise InputError(
                f"system.version is {version}, and this machine has {product} {self.server_version}: leave "
                f"system.version out, or install {product} {version}"
            )

    def program(self, name: str) -> Path:
        """Path of one of the programs."""
        places = [folder / name for folder in self.folders]
        return next((place for place in places if place.exists()), places[0])


@dataclass(frozen=True)
class Making:
    """What a node is made with."""

    install: Install
    account: Account
    """The user that runs the server."""
    settings: Mapping[str, SettingValue]
    """All settings but where the server listens and who may come in."""
    chosen: Mapping[str, SettingValue]
    """Those among them that the user wrote, to tell mistakes in a study from other trouble."""
    group: ControlGroup | None
    """The control group that the server's processes are in."""
    delay_s: float
    """So much later does a replica show every commit."""
    records_io: bool = False
    """Whether its processes record their I/O."""


class Product(ABC):
    """How servers of a product are found, made and set up."""

    traits: ClassVar[Traits]

    @abstractmethod
    def folder_name(self, version: Any) -> str:  # noqa: ANN401 - as the product's settings have it
        """Name the folder in the cache that databases of a version are kept in by default."""

    @abstractmethod
    def install(self, version: Any, account: Account) -> Install:  # noqa: ANN401 - as above
        """Find the programs of a version.

        Raises:
            InputError: they cannot be used by ``account``.
            MeasurementError: they are absent or do not work here.

        """

    @abstractmethod
    def node(self, name: str, folder: Path, making: Making) -> Node:
        """Describe a node in a folder; nothing is touched."""

    @abstractmethod
    def check_settings(self, settings: Mapping[str, SettingValue]) -> None:
        """Check what can be checked without a server. Raises ``ValueError``."""

    @abstractmethod
    def sane_settings(self, machine: Machine, storage_bytes: int) -> dict[str, SettingValue]:
        """Choose the settings of a server that has this machine for itself, on a file system of this size."""

    @abstractmethod
    def memory_settings(self, machine: Machine) -> dict[str, SettingValue]:
        """Choose the settings that follow from the cores and the memory of a machine."""

    @abstractmethod
    def replication_settings(self, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """Choose the settings of the nodes of a cluster, beside those that suit the machine."""

    def synchronous_settings(self, how: str) -> dict[str, SettingValue]:
        """Choose the settings of nodes whose commits wait for replicas, in one of the product's ways."""
        del how
        return {}

    def recording_settings(self, version: Any) -> dict[str, SettingValue]:  # noqa: ANN401 - as above
        """Choose the settings of nodes that record their I/O: every call is made where the library sees it."""
        del version
        return {}

    def kept_log_settings(self) -> dict[str, SettingValue]:
        """Choose the settings of nodes whose log is read after they have ended: all of it, and redo alone."""
        return {}

    def delay_settings(self, delay_s: float) -> dict[str, SettingValue]:
        """Choose the settings of nodes that show every commit so many seconds later."""
        del delay_s
        return {}
