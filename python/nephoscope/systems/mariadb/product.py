"""MariaDB as a product whose clusters this tool runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, field_validator

from nephoscope.systems.cluster.product import Product, SettingValue
from nephoscope.systems.cluster.provider import ClusterProviderSettings
from nephoscope.systems.machine.account import server_accounts
from nephoscope.systems.mariadb import settings as chosen
from nephoscope.systems.mariadb.folder import TRAITS, MariadbFolder
from nephoscope.systems.mariadb.install import find_install
from nephoscope.systems.mariadb.node import MariadbNode
from nephoscope.systems.mariadb.server import MariadbServer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nephoscope.systems.cluster.product import Install, Making
    from nephoscope.systems.machine.account import Account
    from nephoscope.systems.machine.capacity import Machine

_OWN = {"information_schema", "performance_schema", "mysql", "sys"}


class MariadbSettings(ClusterProviderSettings):
    """What the ``[system]`` table says of every MariaDB that this tool starts."""

    version: Annotated[str | None, Field(pattern=r"^\d+\.\d+$")] = None
    """The series that the machine's MariaDB has to be of, as `"10.11"`; by default whichever it has."""
    settings: dict[str, SettingValue] = Field(default_factory=dict)
    """Settings as in my.cnf, with underscores, over those that suit the machine."""

    @field_validator("settings")
    @classmethod
    def _check_settings(cls, settings: dict[str, SettingValue]) -> dict[str, SettingValue]:
        chosen.check_settings(settings)
        return settings

    @field_validator("database")
    @classmethod
    def _check_database(cls, database: str) -> str:
        if database.lower() in _OWN:
            raise ValueError(f"{database} is MariaDB's own")
        return database


class Mariadb(Product):
    """The MariaDB that this machine has."""

    traits = TRAITS

    def folder_name(self, version: Any) -> str:  # noqa: ANN401 - a series, or None
        """Have a folder for each series."""
        return f"mariadb-{version or find_install(None, server_accounts(TRAITS.name)[0]).series}"

    def install(self, version: Any, account: Account) -> Install:  # noqa: ANN401 - a series, or None
        """Find the machine's programs."""
        return find_install(version, account)

    def node(self, name: str, folder: Path, making: Making) -> MariadbNode:
        """Describe a node in a folder."""
        return MariadbNode(name, MariadbServer(MariadbFolder(folder), making), making.delay_s)

    def check_settings(self, settings: Mapping[str, SettingValue]) -> None:
        """Check names and values. Raises ``ValueError``."""
        chosen.check_settings(settings)

    def sane_settings(self, machine: Machine, storage_bytes: int) -> dict[str, SettingValue]:
        """Choose the settings for a machine."""
        return chosen.sane_settings(machine, storage_bytes)

    def memory_settings(self, machine: Machine) -> dict[str, SettingValue]:
        """Choose what follows from the memory."""
        return chosen.memory_settings(machine)

    def replication_settings(self, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """Choose what the nodes of a cluster need."""
        del settings
        return chosen.replication_settings()

    def recording_settings(self, version: Any) -> dict[str, SettingValue]:  # noqa: ANN401 - a series, or None
        """Have InnoDB's own threads read and write: of what the kernel does for it no call is seen."""
        del version
        return {"innodb_use_native_aio": False}

    def synchronous_settings(self, how: str) -> dict[str, SettingValue]:
        """Have commits wait."""
        del how
        return chosen.semi_sync_settings()
