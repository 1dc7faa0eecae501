"""What systems without SQL say about the data of workloads: their tables of rows by key, and the record of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Rows = list[list[str | None]]
    Ask = Callable[[str], Rows]
    """Runs one command or statement on the system and gives the rows of its answer."""
    Columns = Sequence[tuple[str, str]]
    """The stored columns of a table, its key first: the name, and the kind of value as the engine has it."""


class Keyed(Protocol):
    """The words of one system. ``book`` is where the records of workloads are kept."""

    thing: str
    """What a table is there, as messages name it."""

    def read(self, ask: Ask, book: str, workload: str) -> str | None:
        """Read the record of a workload; None where there is none."""

    def write(self, ask: Ask, book: str, workload: str, text: str) -> None:
        """Write the record of a workload."""

    def exists(self, ask: Ask, table: str) -> bool:
        """Tell whether something has the name of a table."""

    def make(self, ask: Ask, table: str, columns: Columns) -> None:
        """Make a table, which does not exist."""

    def drop(self, ask: Ask, table: str) -> None:
        """Remove a table with its rows, where it is."""
