"""Cassandra's CQL about the data of workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.dialects.keyed import Ask, Columns, Keyed


class _Cassandra:
    """A table with a partition key of one column, made by CQL in the URL's keyspace."""

    thing = "table"
    _TYPES: Mapping[str, str] = {
        "boolean": "boolean",
        "integer": "bigint",
        "decimal": "decimal",
        "float": "double",
        "bytes": "blob",
        "uuid": "uuid",
        "date": "date",
        "timestamp": "timestamp",
    }
    """By kind; what is not here is kept as text."""

    @staticmethod
    def _literal(text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    def read(self, ask: Ask, book: str, workload: str) -> str | None:
        if not self.exists(ask, book):
            return None
        rows = ask(f"SELECT record FROM {book} WHERE workload = {self._literal(workload)}")
        return rows[0][0] if rows else None

    def write(self, ask: Ask, book: str, workload: str, text: str) -> None:
        ask(f"CREATE TABLE IF NOT EXISTS {book} (workload text PRIMARY KEY, record text)")
        ask(
            f"INSERT INTO {book} (workload, record) VALUES ({self._literal(workload)}, {self._literal(text)})"
        )

    def exists(self, ask: Ask, table: str) -> bool:
        # The keyspace is known to the server alone: it resolves the name as every statement's. A view cannot be told
        # from a table so, and is in the way as much.
        try:
            ask(f"SELECT * FROM {table} LIMIT 1")
        except Exception as error:
            if "does not exist" in str(error) or "unconfigured table" in str(error):
                return False
            raise
        return True

    def make(self, ask: Ask, table: str, columns: Columns) -> None:
        defined = [f"{name} {self._TYPES.get(kind, 'text')}" for name, kind in columns]
        key = columns[0][0]
        ask(f"CREATE TABLE {table} ({', '.join(defined)}, PRIMARY KEY ({key}))")

    def drop(self, ask: Ask, table: str) -> None:
        ask(f"DROP TABLE IF EXISTS {table}")


CASSANDRA: Keyed = _Cassandra()
