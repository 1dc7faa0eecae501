"""What a dialect of SQL is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nephoscope.dialects.shares import Share


@dataclass(frozen=True)
class ImplicitCommit:
    """What takes the place of a transaction where statements that define data commit by themselves."""

    take: str
    """Waits up to ``{seconds}`` for a lock that the session holds across transactions; answers 1 where it has it."""
    give: str
    """Gives the lock back."""
    mark: str
    """Writes ``{mark}``, letters and digits, on the table ``{name}``, which tells it from another in its place."""
    drop: str
    """Drops the object ``{name}`` of a ``{kind}``, whatever refers to it."""


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
    """Lists the labels of all sessions of the server that begin with ``{prefix}``; where a server shows only those
    that are asked for, those of ``{known}``, a query of the column ``label``."""
    session: str
    """Gives what tells this session from all others of the server."""
    room: str | None
    """Lists the limits on the sessions of this role in this database: what limits them, how many it allows, and how
    many there are besides this one; None where there are none."""
    isolation: str | None
    """Has a session's transactions run in the isolation ``{level}``; None where all are serializable."""
    literal: Callable[[str], str]
    """Writes a text so that the server reads the same, whatever its settings."""

    text: str = "text"
    """The type of a text of any length."""
    implicit: ImplicitCommit | None = None
    """None where statements that define data are part of transactions."""
    product: str = "the database"
    """As messages name the server."""
    schemes: tuple[str, ...] = ()
    """Of the URLs whose servers can be asked for their settings."""
    setting: str | None = None
    """Tells what the setting of the ``{name}``, a literal, is; NULL, or nothing, where the server has none."""
    file_url: str | None = None
    """The URL of a database that is the file ``{path}``; None where a server keeps it."""
    shares: Mapping[str, Share] = field(default_factory=dict)
    """What keeps the data of tenants apart within a server: a schema, a database."""


def quoted(first: str, escapes: Mapping[str, str]) -> Callable[[str], str]:
    """Give what writes a text after ``first``, with a quote at its end and what stands for characters within it."""
    return lambda text: f"{first}{''.join(escapes.get(one, one) for one in text)}'"
