"""A MariaDB that this tool starts itself, from the machine's own package: nothing to set up, nothing left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import field_validator

from nephoscope.systems.cluster.embedded import EmbeddedCluster, EmbeddedClusterSettings
from nephoscope.systems.mariadb.product import Mariadb, MariadbSettings

if TYPE_CHECKING:
    from nephoscope.settings.registered import SystemSettings
    from nephoscope.systems.cluster.product import Product


class EmbeddedMariadbSettings(MariadbSettings, EmbeddedClusterSettings):
    """The ``[system]`` table of a study that measures the embedded MariaDB."""

    provider: Literal["embedded-mariadb"] = "embedded-mariadb"
    synchronous: Literal["off", "semi-sync"] = "off"
    """Whether a commit waits until one of the replicas that run has received it."""

    @field_validator("replica_delay")
    @classmethod
    def _whole(cls, seconds: float) -> float:
        if seconds != round(seconds):
            raise ValueError(f"MariaDB's replicas are late by whole seconds; it is {seconds:g} s")
        return seconds


class EmbeddedMariadb(EmbeddedCluster):
    """Starts MariaDB as it is: one server, or a cluster."""

    name: ClassVar[str] = "embedded-mariadb"
    summary: ClassVar[str] = "the machine's own MariaDB, started by nephoscope: one server, or a cluster"
    settings_type: ClassVar[type[SystemSettings]] = EmbeddedMariadbSettings
    product: ClassVar[Product] = Mariadb()
    dialect_url: ClassVar[str] = "mysql://reader@localhost/none"
