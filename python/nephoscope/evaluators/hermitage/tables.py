"""The table of Hermitage's cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.tables.columns import entries_of, place_of, text
from nephoscope.tables.model import Row, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.tables.columns import RunFigures

MARKS: Mapping[str, str] = {"prevented": "✓", "allowed": "—", "prevented for readers": "R/O"}
"""As Hermitage marks them."""


def cell(found: Mapping[str, Any]) -> str:
    """Write what became of an anomaly, and by what it was prevented."""
    mark, ways = MARKS[found["outcome"]], found["prevented_by"]
    return mark if found["outcome"] == "allowed" else f"{mark} {', '.join(ways)}"


def hermitage(runs: Sequence[RunFigures]) -> Table:
    """Make the table of levels and anomalies: prevented (✓) and how, allowed (—), or prevented for readers alone."""
    rows: list[Row] = [
        {"run": run.name, "measure": place, "isolation": level["isolation"]}
        | {name: cell(found) for name, found in level["anomalies"].items()}
        for run in runs
        for place, entry in entries_of(run, "hermitage")
        for level in entry["levels"]
    ]
    names = dict.fromkeys(name for row in rows for name in row if name not in ("run", "measure", "isolation"))
    columns = [
        place_of(rows),
        text("isolation", "The isolation level.", "isolation"),
        *(text(name, f"{name}: ✓ prevented, and by what; — allowed.", name) for name in names),
    ]
    return Table("hermitage", "Hermitage: what each isolation level allows", columns, rows)


PLACE = 76
TABLES = (hermitage,)
