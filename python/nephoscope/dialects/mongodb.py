"""MongoDB's commands about the data of workloads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nephoscope.dialects.keyed import Ask, Columns, Keyed

_MAJORITY = {"writeConcern": {"w": "majority"}}
"""What is recorded is there whichever member is primary next."""


class _MongoDb:
    """A collection whose documents have the key as their ``_id``; the records are documents of a collection."""

    thing = "collection"

    def read(self, ask: Ask, book: str, workload: str) -> str | None:
        found = ask(json.dumps({"find": book, "filter": {"_id": workload}, "limit": 1}))
        return str(json.loads(found[0][0] or "{}")["record"]) if found else None

    def write(self, ask: Ask, book: str, workload: str, text: str) -> None:
        change = {"q": {"_id": workload}, "u": {"$set": {"record": text}}, "upsert": True}
        ask(json.dumps({"update": book, "updates": [change], **_MAJORITY}))

    def exists(self, ask: Ask, table: str) -> bool:
        return bool(ask(json.dumps({"listCollections": 1, "filter": {"name": table}, "nameOnly": True})))

    def make(self, ask: Ask, table: str, columns: Columns) -> None:
        del columns
        ask(json.dumps({"create": table, **_MAJORITY}))

    def drop(self, ask: Ask, table: str) -> None:
        if self.exists(ask, table):
            ask(json.dumps({"drop": table, **_MAJORITY}))


MONGODB: Keyed = _MongoDb()
