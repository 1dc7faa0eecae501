"""The S3 driver's commands about the data of workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nephoscope.dialects.keyed import Ask, Columns, Keyed


class _S3:
    """A table is the objects below its name; nothing has to be made."""

    thing = "folder"

    def read(self, ask: Ask, book: str, workload: str) -> str | None:
        found = ask(f"GET {book}/{workload}")
        return found[0][0] if found else None

    def write(self, ask: Ask, book: str, workload: str, text: str) -> None:
        ask(f"PUT {book}/{workload} {text}")

    def exists(self, ask: Ask, table: str) -> bool:
        return bool(ask(f"LIST {table}/"))

    def make(self, ask: Ask, table: str, columns: Columns) -> None:
        del ask, table, columns

    def drop(self, ask: Ask, table: str) -> None:
        while keys := ask(f"LIST {table}/"):
            for (key,) in keys:
                ask(f"DELETE {key}")


S3: Keyed = _S3()
