"""Tenants: several users of one system, each with its own data, and what they share.

A tenant's URLs are made of the system's: a schema by the search path that its sessions begin with, a database by its
name, a server by URLs of its own. Schemas and databases are made where they are missing; nothing is ever dropped.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import quote, unquote

from pydantic import Field, model_validator

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.settings.variables import endpoint
from nephoscope.systems.base import Resources, Settings
from nephoscope.systems.url import Urls

if TYPE_CHECKING:
    from nephoscope.systems.base import System

ONLY = "default"
"""What the tenant of a system with one is called."""

_ROOM_S = 60.0
"""How long making a schema or a database may take: the latter copies a small one."""
_URL = re.compile(r"(?P<server>[a-z]+://[^/?#]*)(?P<path>/[^?#]*)?(\?(?P<query>[^#]*))?")


class TenantServer(Settings):
    """An entry of ``[[tenants.servers]]``: a tenant's own server."""

    rw: Annotated[Urls, Field(min_length=1)]
    """The URLs of its endpoints that take writes; a single one needs no brackets."""
    ro: Urls = Field(default_factory=list)
    """The URLs of its read-only endpoints."""
    resources: Resources | None = None
    """What it was given, for its cost; the same as the system if left out."""


class TenantsTable(Settings):
    """``[tenants]``: how many there are, and what they share."""

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
        """What the tenants are called."""
        if self.number == 1:
            return (ONLY,)
        return tuple(f"tenant{place}" for place in range(1, self.number + 1))


@dataclass(frozen=True)
class Tenant:
    """A tenant: its endpoints, and its resources where they are its own."""

    name: str
    # Not in the text form: these URLs may hold passwords.
    rw: tuple[str, ...] = field(repr=False)
    ro: tuple[str, ...] = field(default=(), repr=False)
    resources: Resources | None = None
    """What it was given alone; None where all tenants share what the system was given."""

    def facts(self) -> dict[str, Any]:
        """Describe the tenant for the manifest."""
        return {
            "name": self.name,
            "rw": [_engine.redact(url) for url in self.rw],
            "ro": [_engine.redact(url) for url in self.ro],
            "resources": self.resources.model_dump() if self.resources else None,
        }


def check_tenants(table: TenantsTable, system_url: str) -> None:
    """Check what can be wrong with tenants before anything is touched; ``system_url`` is any of the system's.

    Raises ``InputError``.
    """
    for place, server in enumerate(table.servers):
        _own_urls(server, place)
    if table.number > 1 and table.share != "server":
        _url_of(f"{table.prefix}1", table.share, system_url)


def tenants_of(table: TenantsTable, system: System) -> tuple[Tenant, ...]:
    """Tell the tenants of a system that was started; touches nothing.

    Raises ``InputError`` where the system's URLs cannot be made into tenants'.
    """
    if table.number == 1:
        return (Tenant(ONLY, system.rw, system.ro),)
    if table.share == "server":
        first = Tenant(table.names[0], system.rw, system.ro, system.resources)
        others = [
            Tenant(name, *_own_urls(server, place), server.resources or system.resources)
            for place, (name, server) in enumerate(zip(table.names[1:], table.servers, strict=True))
        ]
        return (first, *others)
    made = []
    for place, name in enumerate(table.names, start=1):
        rw, ro = (
            tuple(_url_of(f"{table.prefix}{place}", table.share, url) for url in urls)
            for urls in (system.rw, system.ro)
        )
        made.append(Tenant(name, rw, ro))
    return tuple(made)


def make_room(table: TenantsTable, system: System, connect_timeout: float) -> None:
    """Make the schemas or databases of the tenants that are not there yet. Raises ``MeasurementError``."""
    url = system.rw[0]
    if table.number == 1 or table.share == "server" or not _is_postgres(url):
        return
    names = [f"{table.prefix}{place}" for place in range(1, table.number + 1)]
    admin = _engine.Admin(url, connect_timeout_s=connect_timeout, answer_timeout_s=_ROOM_S)
    try:
        # The prefix's pattern leaves nothing to quote.
        catalogue = "pg_namespace" if table.share == "schema" else "pg_database"
        column = "nspname" if table.share == "schema" else "datname"
        wanted = ", ".join(f"'{name}'" for name in names)
        _, rows = admin.query(f"SELECT {column} FROM {catalogue} WHERE {column} IN ({wanted})")
        there = {row[0] for row in rows}
        for name in names:
            if name not in there:
                admin.query(f"CREATE {table.share.upper()} {name}")
    finally:
        admin.close()


def _own_urls(server: TenantServer, place: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the URLs of a tenant's own server, with their environment variables put in."""
    where = f"tenants.servers.{place}"
    rw = tuple(endpoint(url, f"{where}.rw") for url in server.rw)
    return rw, tuple(endpoint(url, f"{where}.ro") for url in server.ro)


def _is_postgres(url: str) -> bool:
    return url.startswith(("postgres://", "postgresql://"))


def _url_of(name: str, share: str, url: str) -> str:
    """Make a tenant's URL of the system's. A driver that stores nothing has no data to keep apart."""
    if not _is_postgres(url):
        scheme = url.partition(":")[0]
        if scheme in {"sim", "noop"}:
            return url
        raise InputError(f'tenants.share: "{share}" is for PostgreSQL; with {scheme}:// it must be "server"')
    found = _URL.match(url)
    if found is None:
        raise InputError("tenants: the system's URL cannot be taken apart")
    # Kept as they stand: what is decoded and encoded again may come out different ("+" is a plus here).
    query = [part for part in (found["query"] or "").split("&") if part]
    path = found["path"] or ""
    if share == "database":
        path = f"/{name}"
        query = [part for part in query if _key(part) != "dbname"]
    else:
        given = [unquote(part.partition("=")[2]) for part in query if _key(part) == "options"]
        before = given[-1] if given else os.environ.get("PGOPTIONS", "")
        query = [part for part in query if _key(part) != "options"]
        # The last of several options for one setting holds.
        query.append(f"options={quote(f'{before} -csearch_path={name}'.strip(), safe='')}")
    text = "&".join(query)
    return f"{found['server']}{path}" + (f"?{text}" if text else "")


def _key(part: str) -> str:
    return unquote(part.partition("=")[0])
