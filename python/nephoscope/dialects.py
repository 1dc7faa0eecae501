"""What each dialect of SQL says in its own way about the data of workloads: catalogue, transactions, sessions.

Each database that stores data has an entry in ``DIALECTS``; all that follows from it is the same for every database.
"""

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
    transaction: str
    """Gives a number that no other transaction has."""
    relations: str
    """Finds all that has one of the ``{names}`` wherever statements of this session look for tables, be it readable or
    not: kind, id, qualified name, name, columns as a list in JSON. What statements would take comes first."""
    objects: str
    """Lists all objects of the database that users have made and that stand alone: kind, id, qualified name."""
    label: str
    """Gives this session a ``{label}`` that all sessions of the server can see; at most 63 bytes of ASCII."""
    labels: str
    """Lists the labels of all sessions of the server that begin with ``{prefix}``."""
    quotes: tuple[str, str]
    """What begins and ends a text."""
    escapes: Mapping[str, str]
    """What stands for a character within a text."""

    def literal(self, text: str) -> str:
        """Write a text so that the server reads the same, whatever its settings."""
        first, last = self.quotes
        return f"{first}{''.join(self.escapes.get(one, one) for one in text)}{last}"


_KINDS = """CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table'
    WHEN 'S' THEN 'sequence' WHEN 'c' THEN 'type' WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' ELSE 'table' END"""
_NAME = "pg_catalog.format('%I.%I', n.nspname, c.relname)"

_POSTGRES = Dialect(
    begin="BEGIN ISOLATION LEVEL REPEATABLE READ",
    lock="LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE",
    transaction="SELECT pg_catalog.txid_current()",
    # information_schema hides what the role may not touch.
    relations=f"""SELECT {_KINDS}, c.oid, {_NAME}, c.relname,
  (SELECT coalesce(pg_catalog.json_agg(a.attname), '[]') FROM pg_catalog.pg_attribute a
   WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname IN ({{names}}) AND n.nspname = ANY (pg_catalog.current_schemas(true))
ORDER BY pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)""",
    # From 16384 on an id is no part of the system. A sequence of a column goes with its table.
    objects=f"""SELECT {_KINDS}, c.oid, {_NAME}
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid >= 16384 AND c.relpersistence <> 't' AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c')
  AND NOT (c.relkind = 'S' AND EXISTS (SELECT FROM pg_catalog.pg_depend d
    WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i')))
UNION ALL SELECT 'function', oid, oid::pg_catalog.regprocedure::text FROM pg_catalog.pg_proc WHERE oid >= 16384
UNION ALL SELECT 'schema', oid, pg_catalog.quote_ident(nspname) FROM pg_catalog.pg_namespace WHERE oid >= 16384
UNION ALL SELECT 'type', oid, pg_catalog.format_type(oid, NULL) FROM pg_catalog.pg_type
WHERE oid >= 16384 AND typtype IN ('d', 'e', 'r')""",
    label="SET application_name = {label}",
    # A role sees the names of others' sessions, too, if nothing else of them.
    labels="SELECT DISTINCT application_name FROM pg_catalog.pg_stat_activity"
    " WHERE application_name LIKE {prefix} || '%'",
    # In E'' a backslash means the same whatever standard_conforming_strings says.
    quotes=("E'", "'"),
    escapes={"'": "''", "\\": "\\\\"},
)

DIALECTS: Mapping[str, Dialect] = {"postgres": _POSTGRES}
"""By the name that the engine gives a dialect; ``none`` is that of drivers behind which there is no database."""
