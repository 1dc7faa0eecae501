"""Several runs side by side: CloudyBench's Tables V to IX, and the differences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nephoscope.errors import InputError
from nephoscope.files import write_named
from nephoscope.report import several
from nephoscope.report.page import render_several
from nephoscope.results.compare import COLUMNS, ONE_RUN_A_SIDE, compare_runs, rows_of
from nephoscope.results.environment import differences
from nephoscope.results.scores import scores_or_why
from nephoscope.results.tables import every_table, tables_of
from nephoscope.scoring.definitions import SCORES
from nephoscope.scoring.formulas import Absent, Score
from nephoscope.scoring.given_scores import SystemScores
from nephoscope.store import StoredRun
from nephoscope.tables import given as score_tables
from nephoscope.tables.columns import RunFigures, resources_text, text
from nephoscope.tables.model import Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nephoscope.scoring.definitions import ScoreName


@dataclass(frozen=True)
class SideBySide:
    """Runs, and what there is to say of all of them."""

    runs: Sequence[RunFigures]
    tables: Sequence[Table]
    """As CloudyBench's Tables V to IX, those that the runs have figures for; then the differences."""
    warnings: Sequence[str]
    """What makes the runs hard to compare."""
    notes: Sequence[str]


def read_runs(folders: Sequence[Path]) -> SideBySide:
    """Read runs and lay them side by side; the runs are left as they are.

    Raises ``InputError`` where a folder is no run, or where a run is named twice.
    """
    stored = [StoredRun(folder) for folder in folders]
    places = [run.folder for run in stored]
    if twice := next((run for place, run in enumerate(stored) if run.folder in places[:place]), None):
        raise InputError(f"{twice.folder} is named twice; allowed: each run once")
    # Folders of one name are told apart by their parents.
    names = [run.name for run in stored]
    names = [
        run.name if names.count(run.name) == 1 else f"{run.folder.parent.name}/{run.name}" for run in stored
    ]
    runs = [RunFigures(name, run, scores_or_why(run)) for name, run in zip(names, stored, strict=True)]
    compared, notes = _differences(runs, stored)
    tables = [*paper_tables(runs), *([compared] if compared.rows else [])]
    return SideBySide(
        runs, tables, _warnings(runs, stored), [*score_tables.notes([_system(run) for run in runs]), *notes]
    )


def all_tables(found: SideBySide) -> list[Table]:
    """Return the tables for files: those of the runs, and the differences."""
    return [*tables_of(found.runs), *(table for table in found.tables if table.name == "differences")]


def documented_tables() -> list[Table]:
    """Return every table for files without rows, to document their columns."""
    return [*every_table([]), Table("differences", "Differences from the first run", _DIFFERENCE_COLUMNS, [])]


def write_page(found: SideBySide, page: Path) -> None:
    """Write the page of the runs: one HTML file. Raises ``MeasurementError`` where it cannot be written."""
    runs = [(run.name, run.reader, run.scores) for run in found.runs]
    html = render_several(several.build(runs, found.tables, found.warnings, found.notes))
    write_named(page, html)


def _system(run: RunFigures) -> SystemScores:
    scores: dict[ScoreName, Score | Absent] = {}
    for name in SCORES:
        found = run.score(name)
        reason = run.scores.get("absent", {}).get(name) or "not measured"
        scores[name] = Score.model_validate(found) if found else Absent(reason=reason)
    return SystemScores(run.name, scores)


def paper_tables(runs: Sequence[RunFigures]) -> list[Table]:
    """Make the tables that CloudyBench has, in the order of their numbers there; those that have rows."""
    of_scores = score_tables.tables([_system(run) for run in runs])
    found = [table for table in (*of_scores, *tables_of(runs)) if table.paper is not None and table.rows]
    return [
        _with_resources(table, runs) if table.name == "P" else table
        for table in sorted(found, key=lambda table: table.paper or 0)
    ]


def _with_resources(table: Table, runs: Sequence[RunFigures]) -> Table:
    """Add the column of resources, as in Table V."""
    said = {run.name: resources_text(run.reader.manifest.get("system", {}).get("resources")) for run in runs}
    rows = [{**row, "resources": said.get(row["system"], "")} for row in table.rows]
    first, *rest = table.columns
    return replace(
        table, columns=[first, text("resources", "What the system has.", "resources"), *rest], rows=rows
    )


def _warnings(runs: Sequence[RunFigures], stored: Sequence[StoredRun]) -> list[str]:
    """List what makes the runs hard to compare: workload, scale, prices, a run cut short."""
    found = []
    first = runs[0]
    for run, kept in zip(runs[1:], stored[1:], strict=True):
        told = [note for note in differences(stored[0], kept) if "workload." in note]
        books = [(one.scores.get("cost") or {}).get("price_book") for one in (first, run)]
        if None not in books and books[0] != books[1]:
            told.append(f"the runs differ in their price books: {books[0]} and {books[1]}")
        found += [
            f"{first.name} and {run.name}: {note}: their figures do not measure the same" for note in told
        ]
    for run in runs:
        if run.reader.manifest["status"] != "measured":
            found.append(f"{run.name} is not whole: its status is {run.reader.manifest['status']}")
        found += [
            f"{run.name}: {entry['verdict']}: {entry['detail']}"
            for entry in run.scores.get("verdicts", [])
            if entry["level"] == "problem"
        ]
    return found


def _differences(runs: Sequence[RunFigures], stored: Sequence[StoredRun]) -> tuple[Table, list[str]]:
    """Compare each run with the first, point by point; return the table, and notes on what it lacks."""
    rows: list[Row] = []
    notes = []
    for run, kept in zip(runs[1:], stored[1:], strict=True):
        try:
            compared = compare_runs(stored[0], kept, (runs[0].scores, run.scores))
        except InputError:
            notes.append(
                f"{runs[0].name} and {run.name} have no measured point in common, so no differences are shown"
            )
            continue
        notes += [
            f"{runs[0].name} (the baseline) and {run.name}: {note}"
            for note in compared.notes
            if "workload." not in note and note != ONE_RUN_A_SIDE
        ]
        rows += [{"run": run.name, **row} for row in rows_of(compared)]
    notes += [ONE_RUN_A_SIDE] if rows else []
    title = f"Differences from {runs[0].name}, with their 95 % intervals"
    return Table("differences", title, _DIFFERENCE_COLUMNS, rows), notes


_DIFFERENCE_COLUMNS = [text("run", "The run that is compared with the first one.", "run"), *COLUMNS]
