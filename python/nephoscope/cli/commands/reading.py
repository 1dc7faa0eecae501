"""Commands that read what was measured, or given."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from nephoscope.cli.consoles import ERR, OUT
from nephoscope.cli.options import FormatOption, JsonOption, SummaryOption
from nephoscope.errors import MeasurementError
from nephoscope.settings.units import describe_count
from nephoscope.visible import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.tables.model import Table


def report(
    run_directories: Annotated[
        list[Path],
        typer.Argument(
            help="Run directories, such as runs/latest; several are laid side by side. Or an experiment's folder."
        ),
    ],
    form: FormatOption = "table",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Where to write the page: of several runs side-by-side.html if left out; of one run its directory, "
            "to which nothing is written with --out.",
        ),
    ] = None,
    summary: SummaryOption = "nephoscope",
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables", metavar="DIR", help="Also write every table as CSV and Parquet into this folder."
        ),
    ] = None,
) -> None:
    """Compute a stored run's scores and write its report anew, or lay several runs side by side."""
    from nephoscope.tables.model import check_folder, write_tables  # noqa: PLC0415

    if tables is not None:
        check_folder(tables)
    if len(run_directories) > 1:
        made = _report_several(run_directories, form, out or Path("side-by-side.html"))
    else:
        made = _report_one(run_directories[0], form, out, summary)
    if tables is not None:
        files = write_tables(made, tables)
        (ERR if form == "markdown" else OUT).print(f"tables: {tables} ({describe_count(len(files), 'file')})")


def _report_one(run_directory: Path, form: str, page: Path | None, kind: str) -> Sequence[Table]:
    """Score a run and write its report; also of a run that was killed. Gives its tables."""
    from nephoscope.cli.printing import figures_of, in_form, run_markdown  # noqa: PLC0415
    from nephoscope.experiments.folder import is_experiment  # noqa: PLC0415
    from nephoscope.measuring.measurement import report_run  # noqa: PLC0415
    from nephoscope.results.tables import tables_of  # noqa: PLC0415
    from nephoscope.store.reader import StoredRun  # noqa: PLC0415

    if is_experiment(run_directory):
        from nephoscope.cli.commands.experiment import show as show_experiment  # noqa: PLC0415

        return show_experiment(run_directory, form, page)
    if "storage" in (stored := StoredRun(run_directory)).manifest:
        from nephoscope.cli.commands.storage.run import show  # noqa: PLC0415

        return show(stored, form, page)
    outcome = report_run(run_directory, page)
    if form == "markdown":
        sys.stdout.write(run_markdown(figures_of(outcome)))
    else:
        OUT.print(in_form(outcome, kind))
    if outcome.unwritten is not None:
        raise MeasurementError(f"{outcome.unwritten}; --out FILE writes the report elsewhere")
    return tables_of([figures_of(outcome)])


def _report_several(run_directories: Sequence[Path], form: str, out: Path) -> Sequence[Table]:
    """Lay runs side by side and write their page; the runs are left as they are. Gives their tables."""
    from nephoscope.cli.printing import several_summary  # noqa: PLC0415
    from nephoscope.files import check_named  # noqa: PLC0415
    from nephoscope.results.side_by_side import all_tables, read_runs, write_page  # noqa: PLC0415
    from nephoscope.tables.model import markdown  # noqa: PLC0415

    check_named(out)
    found = read_runs(run_directories)
    write_page(found, out)
    if form == "markdown":
        sys.stdout.write(
            markdown(found.tables, [*(f"warning: {one}" for one in found.warnings), *found.notes])
        )
    else:
        OUT.print(several_summary(found, out))
    return all_tables(found)


def score(
    file: Annotated[Path, typer.Argument(help=escape("A TOML file of figures, one [[system]] or more."))],
    form: FormatOption = "table",
    *,
    as_json: JsonOption = False,
) -> None:
    """Compute the scores of figures that you already have: nothing is measured."""
    from nephoscope.scoring.given import read_figures  # noqa: PLC0415
    from nephoscope.scoring.given_scores import score_systems  # noqa: PLC0415
    from nephoscope.tables.given import score_markdown, score_tables  # noqa: PLC0415

    found = score_systems(*read_figures(file))
    if as_json:
        sys.stdout.write(json_text([system.to_json() for system in found]) + "\n")
    elif form == "markdown":
        sys.stdout.write(score_markdown(found))
    else:
        OUT.print(score_tables(found))
