"""A Redis that this tool starts itself, from the machine's own package: nothing to set up, nothing left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator

from nephoscope.systems.cluster.embedded import EmbeddedCluster, EmbeddedClusterSettings
from nephoscope.systems.cluster.product import Install, Product, SettingValue
from nephoscope.systems.machine.account import server_accounts
from nephoscope.systems.machine.programs import find_program, said_version
from nephoscope.systems.redis import server as chosen
from nephoscope.systems.redis.node import RedisNode
from nephoscope.systems.redis.server import TRAITS, RedisFolder, RedisServer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nephoscope.settings.registered import SystemSettings
    from nephoscope.systems.cluster.product import Making
    from nephoscope.systems.machine.account import Account
    from nephoscope.systems.machine.capacity import Machine


class EmbeddedRedisSettings(EmbeddedClusterSettings):
    """The ``[system]`` table of a study that measures the embedded Redis."""

    provider: Literal["embedded-redis"] = "embedded-redis"
    version: Annotated[str | None, Field(pattern=r"^\d+\.\d+$")] = None
    """The series that the machine's Redis has to be of, as `"7.0"`; by default whichever it has."""
    settings: dict[str, SettingValue] = Field(default_factory=dict)
    """Settings as in redis.conf, over those that suit the machine."""

    @field_validator("database", "synchronous", "replica_delay", "record_io", "keep_log")
    @classmethod
    def _refuse(cls, value: object) -> object:
        if value and value != "off":
            raise ValueError("Redis has nothing of the kind; leave it out")
        return value

    @field_validator("settings")
    @classmethod
    def _check_settings(cls, settings: dict[str, SettingValue]) -> dict[str, SettingValue]:
        chosen.check_settings(settings)
        return settings

    def of_workload(self, name: str) -> Self:
        """Have one database for all workloads."""
        del name
        return self


class Redis(Product):
    """The Redis that this machine has."""

    traits = TRAITS

    def folder_name(self, version: Any) -> str:  # noqa: ANN401 - a series, or None
        """Have a folder for each series."""
        return f"redis-{version or self.install(None, server_accounts(TRAITS.name)[0]).series}"

    def install(self, version: Any, account: Account) -> Install:  # noqa: ANN401 - a series, or None
        """Find the machine's programs."""
        where = "Debian and Ubuntu have it in redis-server and redis-tools"
        programs = [find_program(name, TRAITS.name, where) for name in ("redis-server", "redis-cli")]
        said = said_version(programs[0], ["--version"], chosen.VERSION, account)
        folders = tuple(dict.fromkeys(program.parent for program in programs))
        install = Install(folders=folders, server_version=said[1], package_version=said[1])
        install.check_series(version, TRAITS.name)
        return install

    def node(self, name: str, folder: Path, making: Making) -> RedisNode:
        """Describe a node in a folder."""
        return RedisNode(name, RedisServer(RedisFolder(folder), making))

    def check_settings(self, settings: Mapping[str, SettingValue]) -> None:
        """Check names and values. Raises ``ValueError``."""
        chosen.check_settings(settings)

    def sane_settings(self, machine: Machine, storage_bytes: int) -> dict[str, SettingValue]:
        """Choose the settings for a machine."""
        del storage_bytes
        return chosen.sane_settings(machine)

    def memory_settings(self, machine: Machine) -> dict[str, SettingValue]:
        """Choose what follows from the memory."""
        return chosen.memory_settings(machine)

    def replication_settings(self, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """Choose what the nodes of a cluster need."""
        del settings
        return chosen.replication_settings()


class EmbeddedRedis(EmbeddedCluster):
    """Starts Redis as it is: one server, or a primary and its replicas."""

    name: ClassVar[str] = "embedded-redis"
    summary: ClassVar[str] = "the machine's own Redis, started by nephoscope: one server, or replicated"
    settings_type: ClassVar[type[SystemSettings]] = EmbeddedRedisSettings
    product: ClassVar[Product] = Redis()
    dialect_url: ClassVar[str] = "redis://reader@localhost/0"
