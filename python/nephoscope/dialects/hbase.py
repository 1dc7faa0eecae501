"""The requests of HBase's REST gateway about the data of workloads."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from nephoscope.dialects.keyed import Ask, Columns, Keyed

_FAMILY = "f"
"""The one column family of a table, as the driver has it."""
_COLUMN = f"{_FAMILY}:record"


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class _HBase:
    """A table with one column family; the records are a table of their own."""

    thing = "table"

    def read(self, ask: Ask, book: str, workload: str) -> str | None:
        found = ask(f"GET {book}/{quote(workload, safe='')}/{_COLUMN}")
        if not found:
            return None
        (row,) = json.loads(found[0][0] or "{}")["Row"]
        return base64.b64decode(row["Cell"][0]["$"]).decode()

    def write(self, ask: Ask, book: str, workload: str, text: str) -> None:
        if not self.exists(ask, book):
            self.make(ask, book, [])
        cell = {"column": _coded(_COLUMN), "$": _coded(text)}
        body = {"Row": [{"key": _coded(workload), "Cell": [cell]}]}
        ask(f"PUT {book}/fakerow {json.dumps(body)}")

    def exists(self, ask: Ask, table: str) -> bool:
        return bool(ask(f"GET {table}/schema"))

    def make(self, ask: Ask, table: str, columns: Columns) -> None:
        del columns
        ask(f"PUT {table}/schema {json.dumps({'ColumnSchema': [{'name': _FAMILY}]})}")

    def drop(self, ask: Ask, table: str) -> None:
        if self.exists(ask, table):
            ask(f"DELETE {table}/schema")


HBASE: Keyed = _HBase()
