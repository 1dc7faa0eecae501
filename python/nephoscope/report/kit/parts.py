"""The models of which the parts of the page are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from nephoscope.tables.numbers import finite

if TYPE_CHECKING:
    from nephoscope.tables.model import Table

Number = Annotated[float | None, BeforeValidator(finite)]
"""A figure, or None where it is absent."""

Level = Literal["ok", "note", "warning", "problem"]
"""How serious a verdict is; the page shows it as an icon, a word and a colour."""


class Part(BaseModel):
    """A part of the page: it does not change once it is built, and a misspelt field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Verdict(Part):
    """What the instrument says of its own figures."""

    level: Level
    text: str
    detail: str = ""
    time_s: Number = None


class Fact(Part):
    """A label and its value."""

    label: str
    value: str


class FactTable(Part):
    """Facts under a heading of their own."""

    heading: str
    facts: tuple[Fact, ...]


class Estimate(Part):
    """A figure with its 95 % confidence interval."""

    value: Number = None
    ci95: tuple[float, float] | None = None
    by_ends: bool = False
    """Whether the interval is always written by both ends."""


class Method(Part):
    """How an entry of ``[[measure]]`` was measured: its settings as resolved."""

    evaluator: str
    settings: tuple[Fact, ...]


class Percentiles(Part):
    """Latencies in ms, of committed transactions, from the intended start; of what had not ended, its wait."""

    mean: Number = None
    p50: Number = None
    p90: Number = None
    p95: Number = None
    p99: Number = None
    p999: Number = None
    max: Number = None
    count: int = 0
    at_least: tuple[str, ...] = ()
    """Which of these are lower bounds."""


class Grid(Part):
    """A table as texts; ``texts`` says which columns are not numbers."""

    id: str
    title: str
    headings: tuple[str, ...]
    texts: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]


def grid(table: Table) -> Grid:
    """Return what is shown of a table."""
    return Grid(
        id=f"table-{table.name}".lower(),
        title=table.title,
        headings=tuple(table.headings),
        texts=tuple(column.kind == "text" for column in table.shown),
        rows=tuple(tuple(row) for row in table.cells),
    )
