"""What commands print: tables for a terminal."""

from __future__ import annotations

import contextlib
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from nephoscope.cli.listing import MARKS
from nephoscope.results.answers import answers_table
from nephoscope.results.answers import summary as answer_in_words
from nephoscope.results.compare import comparison_table
from nephoscope.results.sysbench_form import sysbench_form
from nephoscope.results.tables import tables_of
from nephoscope.settings.units import describe_bytes, describe_count
from nephoscope.store import FILES, StoredRun
from nephoscope.systems.cache import bytes_of
from nephoscope.systems.machine.folders import cache_folder
from nephoscope.tables.columns import RunFigures
from nephoscope.tables.given import notes_of_o
from nephoscope.tables.model import markdown, terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from nephoscope.measuring.measurement import Outcome
    from nephoscope.results.answers import Decision
    from nephoscope.results.compare import Compared
    from nephoscope.results.side_by_side import SideBySide
    from nephoscope.study.reading import Study


def in_form(outcome: Outcome, form: str) -> RenderableType:
    """Sum up a run in our own form, or in that of sysbench's output."""
    return Text(sysbench_form(StoredRun(outcome.folder))) if form == "sysbench" else summary(outcome)


def summary(outcome: Outcome) -> RenderableType:
    """Sum up a run: P as in CloudyBench's Table V, verdicts, where the report is."""
    scores = outcome.scores
    tables = {table.name: table for table in tables_of([figures_of(outcome)])}
    parts: list[RenderableType] = [Text()]
    if of_points := [table for table in tables.values() if table.of_points]:
        parts += map(terminal, of_points)
    elif (points := tables.get("points")) and (rows := [row for row in points.rows if not row["slot"]]):
        parts.append(terminal(replace(points, title="", rows=rows)))
    if reason := scores["absent"].get("P") if "P" not in scores["scores"] else None:
        parts.append(Text(f"no P-Score: {reason}", style="yellow"))
    for table in tables.values():
        if table.in_summary:
            parts += [Text(), terminal(table)]
    if len(scores["scores"]) > 1:
        absent = scores["absent"].items()
        parts += [Text(), terminal(tables["scores"])]
        parts += [Text(f"no {name}: {why}", style="yellow") for name, why in absent if name != "P"]
        parts += [Text(note, style="yellow") for note in notes_of_o(_detail_of_o(scores))]
        parts.append(Text())
    for mix, found in scores.get("saturation", {}).items():
        sessions = describe_count(found["concurrency"], "session")
        known = "saturated" if found["saturated"] else "not known to be saturated"
        parts.append(Text(f"{mix}: {known} at {sessions} ({found['why']})"))
    parts.append(Text())
    for verdict in scores["verdicts"]:
        mark, style = MARKS.get(verdict["level"], MARKS["note"])
        parts.append(Text(f"{mark} {verdict['verdict']}: {verdict['detail']}", style=style))
    parts += [Text(f"! {warning}", style="yellow") for warning in scores["warnings"]]
    if outcome.unwritten is None:
        parts += [Text(), Text(f"report: {outcome.page or outcome.folder / FILES.report}", style="bold")]
    return Group(*parts)


def _detail_of_o(scores: Mapping[str, Any]) -> Mapping[str, Any]:
    detail: Mapping[str, Any] = scores.get("scores", {}).get("O", {}).get("detail", {})
    return detail


def figures_of(outcome: Outcome) -> RunFigures:
    """Return what tables are made of."""
    return RunFigures(outcome.folder.name, StoredRun(outcome.folder), outcome.scores)


def run_markdown(figures: RunFigures) -> str:
    """Write the tables of a run and its verdicts as Markdown, for an issue or a wiki."""
    tables = tables_of([figures])
    has_means = any(table.of_points for table in tables)
    shown = [table for table in tables if table.name != "points" or not has_means]
    scores = figures.scores
    notes = [f"no {name}: {reason}" for name, reason in scores["absent"].items()]
    notes += notes_of_o(_detail_of_o(scores))
    notes += [
        f"{verdict['level']}: {verdict['verdict']}: {verdict['detail']}" for verdict in scores["verdicts"]
    ]
    notes += [f"warning: {warning}" for warning in scores["warnings"]]
    return markdown(shown, notes)


def several_summary(found: SideBySide, page: Path) -> RenderableType:
    """Show runs side by side: first the warnings, then CloudyBench's tables."""
    parts: list[RenderableType] = [Text(f"! {warning}", style="bold yellow") for warning in found.warnings]
    for table in found.tables:
        parts += [Text(), terminal(table)]
    parts += [Text(), *(Text(f"· {note}", style="cyan") for note in found.notes)]
    parts += [Text(), Text(f"report: {page}", style="bold")]
    return Group(*parts)


def kept_data(study: Study) -> tuple[Path, int] | None:
    """Return the data folder of a study's embedded server and its size in bytes; None if it is empty."""
    data = getattr(study.system, "data", None)
    folder = Path(data) if data is not None else cache_folder()
    return (folder, size) if (size := bytes_of(folder)) else None


def own_name() -> str:
    """Return how to type this command: its name if that is on the path, else the path of its file."""
    name, called = "nephoscope", Path(sys.argv[0])
    found = shutil.which(name)
    if not called.is_file() or (found is not None and Path(found).samefile(called)):
        return name
    with contextlib.suppress(ValueError):
        called = called.absolute().relative_to(Path.cwd())
    return str(called) if len(called.parts) > 1 else f"./{called}"


def next_steps(name: str, kept: tuple[Path, int] | None) -> RenderableType:
    """Show the next steps for one's own database, and which data stays; ``name`` is this command's."""
    heading = Text("\nNext, your own database", style="bold")
    text = """ (an empty one, or a schema of its own):

  cat > mine.toml <<'END'
  study.name = "mine"
  [system]
  provider = "url"
  rw = "postgresql://user@host/database"   # or ${DATABASE_URL}; passwords from ~/.pgpass or PGPASSWORD
  resources = { vcores = 4, memory_gb = 16, storage_gb = 100, iops = 3000, network_gbps = 10 }
  [workload]
  name = "sales"
  scale = 0.1
  [load]
  interval = "50ms"
  [[measure]]
  evaluator = "throughput"
  mixes = ["RW"]
  concurrency = [4, 16]
  warmup = "500ms"
  duration = "2s"
  repetitions = 4
  END
"""
    heading.append(f"{text}  {name} run mine.toml", style="not bold")
    if kept is not None:
        folder, size = kept
        stays = f"\n\nThe servers' data stays in {folder} ({describe_bytes(size)})"
        ours = folder == cache_folder()
        heading.append(f"{stays}; {name} clean removes it." if ours else f"{stays}.", style="not bold")
    return heading


def comparison(compared: Compared) -> RenderableType:
    """Show two runs side by side, with their warnings and notes."""
    return Group(terminal(comparison_table(compared)), Text(), *_reservations(compared))


def _reservations(compared: Compared) -> list[Text]:
    said = [
        Text(f"{mark} {one.run}: {one.text}", style=style)
        for one in compared.said
        for mark, style in (MARKS[one.level],)
    ]
    return [*said, *(Text(f"· {note}", style="cyan") for note in compared.notes)]


def decision_text(decision: Decision) -> RenderableType:
    """Show a comparison with the answer of each figure, and the answer to all of it."""
    mark, style = MARKS[{"not slower": "ok", "slower": "problem", "cannot tell": "warning"}[decision.answer]]
    return Group(
        terminal(answers_table(decision)),
        Text(),
        *_reservations(decision.compared),
        Text(),
        Text(f"{mark} {answer_in_words(decision)}", style=style),
        *(Text(f"  {reason}") for reason in decision.reasons),
    )


def decision_json(decision: Decision) -> dict[str, Any]:
    """Write a decision for machines."""
    found = comparison_json(decision.compared)
    for figure, answer in zip(found["figures"], decision.answers, strict=True):
        figure["answer"] = answer
    return {
        "answer": decision.answer,
        "margin": decision.margin,
        "reasons": list(decision.reasons),
        **found,
    }


def comparison_json(compared: Compared) -> dict[str, Any]:
    """Write a comparison for machines."""
    return {
        "figures": [
            {
                "name": figure.name,
                "unit": figure.unit,
                "baseline": figure.baseline,
                "candidate": figure.candidate,
                "difference": figure.comparison.difference,
                "ci95": figure.comparison.ci95,
                "relative": figure.comparison.relative,
                "relative_ci95": figure.comparison.relative_ci95,
                "visible": figure.comparison.visible,
                "verdict": figure.comparison.verdict,
                "note": figure.comparison.note,
            }
            for figure in compared.figures
        ],
        "said": [{"run": one.run, "level": one.level, "text": one.text} for one in compared.said],
        "notes": list(compared.notes),
    }
