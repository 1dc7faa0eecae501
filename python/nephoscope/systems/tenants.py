"""Tenants: several users of one system, each with its own data, and what they share.

A tenant's URLs are made of the system's: a schema by the search path that its sessions begin with, a database by its
name, a server by URLs of its own. Schemas and databases are made where they are missing; nothing is ever dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.dialects import dialect_of
from nephoscope.errors import InputError
from nephoscope.settings.tenants import ONLY, TenantServer, TenantsTable
from nephoscope.settings.variables import endpoint

if TYPE_CHECKING:
    from nephoscope.settings.resources import Resources
    from nephoscope.systems.base import System


_ROOM_S = 60.0
"""How long making a schema or a database may take: the latter copies a small one."""


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
    dialect = dialect_of(url)
    if table.number == 1 or dialect is None or table.share not in dialect.shares:
        return
    share = dialect.shares[table.share]
    names = [f"{table.prefix}{place}" for place in range(1, table.number + 1)]
    admin = _engine.Admin(url, connect_timeout_s=connect_timeout, answer_timeout_s=_ROOM_S)
    try:
        _, rows = admin.query(share.there.format(names=", ".join(map(dialect.literal, names))))
        there = {row[0] for row in rows}
        for name in names:
            if name not in there:
                admin.query(share.make.format(name=name))  # the prefix's pattern leaves nothing to quote
    finally:
        admin.close()


def _own_urls(server: TenantServer, place: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the URLs of a tenant's own server, with their environment variables put in."""
    where = f"tenants.servers.{place}"
    rw = tuple(endpoint(url, f"{where}.rw") for url in server.rw)
    return rw, tuple(endpoint(url, f"{where}.ro") for url in server.ro)


def _url_of(name: str, share: str, url: str) -> str:
    """Make a tenant's URL of the system's. A driver that stores nothing has no data to keep apart."""
    scheme = url.partition(":")[0]
    if scheme in {"sim", "noop"}:
        return url
    dialect = dialect_of(url)
    shares = dialect.shares if dialect is not None else {}
    if share not in shares:
        allowed = " or ".join(f'"{known}"' for known in (*shares, "server"))
        raise InputError(
            f'tenants.share: tenants of {scheme}:// cannot share a "{share}"; it must be {allowed}'
        )
    try:
        return shares[share].url(url, name)
    except ValueError as error:
        raise InputError(f"tenants: {error}") from None
