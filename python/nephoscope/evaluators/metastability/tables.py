"""The tables of metastability: a row for each policy, and one for each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.tables.columns import entries_of, number, place_of, seconds, text
from nephoscope.tables.model import ABSENT, Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nephoscope.tables.columns import RunFigures

_OF_STEP = ("rate", "outcome", "before", "during", "after", "returned_s", "attempts_before", "attempts_after")


def _policies(runs: Sequence[RunFigures]) -> Iterator[tuple[Row, Mapping[str, Any], Mapping[str, Any]]]:
    for run in runs:
        for place, entry in entries_of(run, "metastability"):
            for policy, found in entry["policies"].items():
                yield {"run": run.name, "measure": place, "policy": policy}, entry, found


def metastability(runs: Sequence[RunFigures]) -> Table:
    """Make the table of the highest rate at which goodput returns under each policy."""
    figures = ("rate", "returned_s", "beyond", "beyond_outcome")
    rows = [
        {
            **head,
            "limit_ms": entry["limit_ms"],
            "trigger": entry["trigger"]["kind"],
            **{name: found[name] for name in figures},
        }
        for head, entry, found in _policies(runs)
    ]
    columns = [
        place_of(rows),
        text("policy", "The retry policy.", "retries"),
        number("limit_ms", "How long a client waits, in ms.", "limit", "g", " ms"),
        text("trigger", "What went wrong: a surge, or a fault.", "trigger"),
        number(
            "rate",
            "The highest rate at which goodput returned after the trigger, in arrivals per second.",
            "returns up to",
        ),
        _returned("At that rate: how long it took to return, in s, at the most."),
        number("beyond", "The lowest rate above it at which it did not.", "not at"),
        text("beyond_outcome", "What it was there: see `metastability_steps`.", "there"),
    ]
    return Table("metastability", "Whether goodput returns after a trigger", columns, rows)


def metastability_steps(runs: Sequence[RunFigures]) -> Table:
    """Make the table of all rates that were tried, in their order."""
    rows = [
        {
            **head,
            "purpose": "confirm" if step["confirms"] else "search",
            **{name: step[name] for name in _OF_STEP},
        }
        for head, _, found in _policies(runs)
        for step in found["steps"]
    ]
    columns = [
        place_of(rows),
        text("policy", "The retry policy.", "retries"),
        number("rate", "The arrivals per second that were asked for.", "rate"),
        text("purpose", "Whether it searched for the rate, or confirmed it.", "to"),
        _share("before", "Goodput before the trigger, as a share of the arrivals.", "goodput before"),
        _share("during", "Goodput during the trigger.", "during"),
        _share("after", "Goodput in the last half of the time after the trigger.", "after"),
        _returned("How long after the trigger goodput was back, in s."),
        number("attempts_before", "Attempts per transaction before the trigger.", "attempts before", ".2f"),
        number("attempts_after", "The same in the last half of the time after it.", "after", ".2f"),
        text(
            "outcome",
            "`returned`, `stayed down`, `too much before` (goodput was not there before the trigger either), or "
            "`not known` (the client was late).",
            "outcome",
        ),
    ]
    title = "Rates with a trigger, and what became of goodput"
    return Table("metastability_steps", title, columns, rows, in_summary=False)


def _share(name: str, meaning: str, heading: str) -> Column:
    def show(row: Row) -> str:
        return ABSENT if row[name] is None else f"{100 * row[name]:.1f} %"

    return Column(name, "number", meaning, heading, show)


def _returned(meaning: str) -> Column:
    def show(row: Row) -> str:
        return ABSENT if row["returned_s"] is None else seconds(row["returned_s"])

    return Column("returned_s", "number", meaning, "returned after", show)


PLACE = 33
TABLES = (metastability, metastability_steps)
