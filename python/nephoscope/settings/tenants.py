"""The table of tenants."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from nephoscope.settings.base import Settings
from nephoscope.settings.resources import Resources
from nephoscope.settings.urls import Urls

ONLY = "default"
"""The name of the tenant of a system without tenants."""


class TenantServer(Settings):
    """An entry of ``[[tenants.servers]]``: a tenant's own server."""

    rw: Annotated[Urls, Field(min_length=1)]
    """The URLs of its endpoints that take writes; a single one needs no brackets."""
    ro: Urls = Field(default_factory=list)
    """The URLs of its read-only endpoints."""
    resources: Resources | None = None
    """What it was given, for its cost; the same as the system if left out."""


class TenantsTable(Settings):
    """``[tenants]``: the number of tenants, and what they share."""

    number: Annotated[int, Field(ge=1, le=1000)] = 1
    """How many tenants there are, called ``tenant1``, ``tenant2`` …; one is the system without tenants."""
    share: Literal["schema", "database", "server"] = "schema"
    """What sets them apart: a schema each in one database, a database each on one server, or a server each."""
    prefix: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,40}$")] = "nephoscope_tenant"
    """What schemas and databases are called, with the tenant's number behind it; they are made where missing."""
    servers: list[TenantServer] = Field(default_factory=list)
    """The servers of the second tenant and those after it; the first has the system of ``[system]``."""

    @model_validator(mode="after")
    def _servers_match(self) -> Self:
        wanted = self.number - 1 if self.share == "server" else 0
        if len(self.servers) != wanted:
            raise ValueError(
                f'{self.number} tenants with share = "{self.share}" need {wanted} servers'
                f" beside the system's own; servers has {len(self.servers)}"
            )
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tenants."""
        if self.number == 1:
            return (ONLY,)
        return tuple(f"tenant{place}" for place in range(1, self.number + 1))
