"""A PostgreSQL that this tool starts itself and scales by a quota of processor time, as serverless databases are."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from nephoscope.systems.cluster.serverless import Serverless, ServerlessSettings
from nephoscope.systems.postgres.product import Postgres, PostgresSettings

if TYPE_CHECKING:
    from nephoscope.settings.registered import SystemSettings
    from nephoscope.systems.cluster.product import Product


class EmbeddedServerlessSettings(PostgresSettings, ServerlessSettings):
    """The ``[system]`` table of a study that measures the embedded PostgreSQL with autoscaling."""

    provider: Literal["embedded-serverless"] = "embedded-serverless"


class EmbeddedServerless(Serverless):
    """One PostgreSQL server in a control group, behind an address that holds connections while it wakes up."""

    name: ClassVar[str] = "embedded-serverless"
    summary: ClassVar[str] = "the embedded PostgreSQL with autoscaling by CPU quota: up, down, to zero"
    settings_type: ClassVar[type[SystemSettings]] = EmbeddedServerlessSettings
    product: ClassVar[Product] = Postgres()
