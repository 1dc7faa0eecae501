"""The models of which the parts of the page are made."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from nephoscope.tables.numbers import finite

Number = Annotated[float | None, BeforeValidator(finite)]
"""A figure, or None where it is absent."""

Level = Literal["ok", "note", "warning", "problem"]
"""How serious a verdict is; the page shows it as an icon, a word and a colour."""


class Part(BaseModel):
    """A part of the page: it does not change once it is built, and a misspelt field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


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
