"""The command ``experiment``, and the report of an experiment's folder."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.markup import escape
from rich.text import Text

from nephoscope.cli.consoles import ERR, OUT
from nephoscope.cli.live import make_view
from nephoscope.cli.options import JsonOption, SetOption
from nephoscope.errors import MeasurementError
from nephoscope.settings.units import describe_seconds
from nephoscope.visible import json_text, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.experiments.kept import Kept
    from nephoscope.measuring.measurement import Outcome
    from nephoscope.study.reading import Study
    from nephoscope.tables.model import Table


def experiment(
    study: Annotated[
        str,
        typer.Argument(
            help=escape("A study with [[factor]]: its file, or the name of one that comes with nephoscope.")
        ),
    ],
    settings: SetOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The experiment's folder: experiments/NAME if left out. What it has is not run again.",
        ),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Run a designed experiment: each combination of the factors' levels, in random order; then the effects.

    The same command goes on with what is missing.
    """
    from nephoscope.experiments.folder import FILES, keep  # noqa: PLC0415
    from nephoscope.experiments.kept import Kept  # noqa: PLC0415
    from nephoscope.experiments.planning import plan_of  # noqa: PLC0415
    from nephoscope.measuring.series import unmeasured  # noqa: PLC0415
    from nephoscope.store.layout import check_runs  # noqa: PLC0415
    from nephoscope.study.packaged import find_study  # noqa: PLC0415

    plan, studies = plan_of(find_study(study), settings or (), study)
    folder = Path("experiments") / plan.name if out is None else out
    keep(plan, folder)
    runs = folder / FILES.runs
    check_runs(runs)
    numbers = {part.study.name: number for number, part in enumerate(studies)}
    failed: list[str] = []
    began = time.monotonic()
    with Kept() as kept:
        for done, part in enumerate(unmeasured(studies, runs, lambda text: ERR.print(visible(text)))):
            number = numbers[part.study.name]
            label = plan.label(plan.runs[number].treatment)
            left = _left(time.monotonic() - began, done, len(studies) - number)
            ERR.print(visible(f"run {number + 1} of {len(studies)}: {label}{left}"))
            try:
                outcome = _measured(
                    part, runs, kept if plan.experiment.keep_system else None, as_json=as_json
                )
            except MeasurementError as error:  # a system that does not start with one level may with another
                kept.end()
                _tell(failed, f"run {number + 1} ({label}): {error}")
                continue
            if outcome.status == "interrupted":
                raise MeasurementError(
                    f"{outcome.reason or 'interrupted'}; the same command goes on with run {number + 1}"
                )
            if outcome.status != "measured" or outcome.unwritten is not None:
                kept.end()
                why = outcome.unwritten or outcome.reason or outcome.status
                _tell(failed, f"run {number + 1} ({label}): {why}")
    if len(failed) < len(studies):
        show(folder, "table", None, as_json=as_json)
    if failed:
        raise MeasurementError("\n".join([*failed, "the same command runs again what is missing"]))


def _tell(failed: list[str], said: str) -> None:
    """Say that a run has failed, now and at the end."""
    failed.append(said)
    ERR.print(visible(said))


def _left(seconds: float, done: int, to_come: int) -> str:
    """Say how long the runs to come will take, by those that this command has done; nothing before the first."""
    return f"; about {describe_seconds(seconds / done * to_come)} left" if done else ""


def _measured(study: Study, runs: Path, kept: Kept | None, *, as_json: bool) -> Outcome:
    from nephoscope.measuring.measurement import run_study  # noqa: PLC0415

    view = make_view(as_json=as_json)
    try:
        return run_study(study, runs, view, wrap=kept.around(study) if kept is not None else None)
    finally:
        view.end()


def show(folder: Path, form: str, page: Path | None, *, as_json: bool = False) -> Sequence[Table]:
    """Compute the result of an experiment's folder, write it with its page, and print it; gives its tables."""
    from nephoscope.experiments.folder import FILES  # noqa: PLC0415
    from nephoscope.experiments.page import TEMPLATE, build  # noqa: PLC0415
    from nephoscope.experiments.results import read_results  # noqa: PLC0415
    from nephoscope.experiments.tables import tables_of  # noqa: PLC0415
    from nephoscope.files import check_named, write_named  # noqa: PLC0415
    from nephoscope.report.page import render_with  # noqa: PLC0415
    from nephoscope.store.writer import write_whole  # noqa: PLC0415
    from nephoscope.tables.model import markdown, terminal  # noqa: PLC0415

    if page is not None:
        check_named(page)
    found = read_results(folder)
    tables = tables_of(found)
    html = render_with(TEMPLATE, build(found))
    result = json_text({**{table.name: table.rows for table in tables}, "notes": list(found.notes)}) + "\n"
    if page is None:
        write_whole(folder / FILES.results, result)
        write_whole(folder / FILES.report, html)
    else:
        write_named(page, html)
    shown = [table for table in tables if table.shown]
    if as_json:
        sys.stdout.write(result)
    elif form == "markdown":
        sys.stdout.write(markdown(shown, found.notes))
    else:
        parts = [part for table in shown for part in (Text(), terminal(table))]
        notes = [Text(f"· {note}", style="cyan") for note in found.notes]
        OUT.print(
            Group(*parts, Text(), *notes, Text(f"report: {page or folder / FILES.report}", style="bold"))
        )
    return tables
