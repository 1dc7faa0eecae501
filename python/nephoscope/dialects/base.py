"""What a dialect of SQL is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Dialect:
    """The SQL of one dialect. ``{…}`` is filled in by ``str.format``."""

    begin: str
    """Begins a transaction in which every look at the catalogue gives what there was at the first look, and what the
    transaction itself has changed since: changes of other sessions are not mistaken for its own."""
    lock: str
    """Keeps other sessions from writing to ``{table}`` until the transaction ends. The first statement in it."""
    relations: str
    """Finds all that has one of the ``{names}`` wherever statements of this session look for tables, be it readable or
    not: kind, id, qualified name, name, columns as a list in JSON. What statements would take comes first."""
    objects: str
    """Lists all objects of the database that users have made and that stand alone: kind, id, qualified name."""
    label: str
    """Gives this session a ``{label}`` that all sessions of the server can see; at most 63 bytes of ASCII."""
    labels: str
    """Lists the labels of all sessions of the server that begin with ``{prefix}``."""
    session: str
    """Gives what tells this session from all others of the server."""
    room: str | None
    """Lists the limits on the sessions of this role in this database: what limits them, how many it allows, and how
    many there are besides this one; None where there are none."""
    isolation: str | None
    """Has a session's transactions run in the isolation ``{level}``; None where all are serializable."""
    quotes: tuple[str, str]
    """What begins and ends a text."""
    escapes: Mapping[str, str]
    """What stands for a character within a text."""

    product: str = "the database"
    """As messages name the server."""
    schemes: tuple[str, ...] = ()
    """Of the URLs whose servers can be asked for their settings."""
    setting: str | None = None
    """Tells what the setting of the ``{name}``, a literal, is; NULL, or nothing, where the server has none."""
    is_inside: bool = False
    """Whether the database is a library in the client's own process."""

    def literal(self, text: str) -> str:
        """Write a text so that the server reads the same, whatever its settings."""
        first, last = self.quotes
        return f"{first}{''.join(self.escapes.get(one, one) for one in text)}{last}"
