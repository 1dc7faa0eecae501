"""The section of Hermitage's cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.report.kit import method, scored
from nephoscope.report.kit.parts import Method, Part
from nephoscope.tables.numbers import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.report.kit.run import Run

PLACE, ANCHOR, LABEL = 73, "hermitage", "Hermitage"

_MARKS = {"prevented": "✓", "allowed": "—", "prevented for readers": "R/O"}


class CaseCell(Part):
    """What became of an anomaly at a level."""

    mark: str
    how: str
    title: str


class CaseRow(Part):
    """A level."""

    isolation: str
    cells: tuple[CaseCell, ...]


class HermitageSection(Part):
    """Which anomalies each isolation level allows."""

    method: tuple[Method, ...]
    statement: str
    names: tuple[str, ...]
    rows: tuple[CaseRow, ...]


def build(run: Run) -> HermitageSection | None:
    """Return the section; None where no case was run."""
    entries = scored.entries(run, "hermitage").values()
    levels = [scored.table(one) for entry in entries for one in scored.sequence(entry.get("levels"))]
    if not levels:
        return None
    of_levels = [scored.table(level.get("anomalies")) for level in levels]
    names = tuple(dict.fromkeys(str(name) for anomalies in of_levels for name in anomalies))
    rows = tuple(
        CaseRow(
            isolation=str(level.get("isolation")),
            cells=tuple(_cell(scored.table(anomalies.get(name))) for name in names),
        )
        for level, anomalies in zip(levels, of_levels, strict=True)
    )
    return HermitageSection(
        method=method.of(run, "hermitage"), statement=_statement(rows), names=names, rows=rows
    )


def _cell(found: Mapping[str, Any]) -> CaseCell:
    outcome = str(found.get("outcome"))
    how = ", ".join(map(str, scored.sequence(found.get("prevented_by"))))
    told = [*map(str, scored.sequence(found.get("about"))), *map(str, scored.sequence(found.get("errors")))]
    return CaseCell(
        mark=_MARKS.get(outcome, "?"), how="" if outcome == "allowed" else how, title="; ".join(told)
    )


def _statement(rows: tuple[CaseRow, ...]) -> str:
    told = [
        f"{row.isolation} prevents {count(sum(cell.mark == '✓' for cell in row.cells))} of {count(len(row.cells))}"
        for row in rows
    ]
    return f"{'; '.join(told)} anomalies."
