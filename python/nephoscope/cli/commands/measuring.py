"""Commands that measure."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nephoscope import __version__
from nephoscope.cli.consoles import ERR, OUT, complain
from nephoscope.cli.live import make_view
from nephoscope.cli.options import (
    IoOption,
    JsonOption,
    OtlpOption,
    OutOption,
    PgbenchOption,
    PrometheusOption,
    ResumeOption,
    SetOption,
    SqlOption,
    StudyArgument,
    SummaryOption,
    SysbenchOption,
    UrlOption,
    YcsbOption,
    given_by,
    study_of,
)
from nephoscope.errors import MeasurementError
from nephoscope.visible import json_text, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from nephoscope.measuring.measurement import Outcome
    from nephoscope.publishing.figures import LiveFigures
    from nephoscope.study.reading import Study


def run(
    context: typer.Context,
    study: StudyArgument = None,
    settings: SetOption = None,
    out: OutOption = Path("runs"),
    *,
    url: UrlOption = None,
    pgbench: PgbenchOption = None,
    sql: SqlOption = None,
    sysbench: SysbenchOption = None,
    ycsb: YcsbOption = None,
    io: IoOption = None,
    as_json: JsonOption = False,
    resume: ResumeOption = False,
    form: SummaryOption = "nephoscope",
    prometheus: PrometheusOption = None,
    otlp: OtlpOption = None,
) -> None:
    """Run a study, or another tool's file: measure, keep what was measured, write a report.

    Of several scale factors a run of each.
    """
    from nephoscope.measuring.scripts import run_command  # noqa: PLC0415
    from nephoscope.measuring.series import parts, unmeasured  # noqa: PLC0415
    from nephoscope.study.borrowed import command_of  # noqa: PLC0415

    given = given_by(context, study, url, pgbench=pgbench, sql=sql, sysbench=sysbench, ycsb=ycsb)
    chosen = study_of(study, settings, io, given)
    if command_of(chosen) is not None:
        view = make_view(as_json=as_json)
        try:
            run_command(chosen, view)
        finally:
            view.end()
        return
    found = parts(chosen)
    with _published(chosen, prometheus, otlp) as figures:
        for part in unmeasured(found, out, lambda text: ERR.print(visible(text))) if resume else found:
            finish(measure(part, out, as_json=as_json, form=form, figures=figures), as_json=as_json)


def quickstart(
    out: OutOption = Path("runs"),
    settings: SetOption = None,
    *,
    system: Annotated[
        Literal["postgres", "mariadb", "sqlite"],
        typer.Option(
            help="The database: mariadb gives the same scores; sqlite needs no server and gives P, in a minute."
        ),
    ] = "postgres",
    io: IoOption = None,
) -> None:
    """Start a replicated database, measure all seven scores and O, and write a report: about five minutes."""
    from nephoscope.cli.printing import kept_data, next_steps, own_name  # noqa: PLC0415 - imports that only measuring needs

    study = study_of("quickstart" if system == "postgres" else f"quickstart-{system}", settings, io)
    outcome = measure(study, out, as_json=False)
    if outcome.status == "measured":
        OUT.print(next_steps(own_name(), kept_data(study)))
    finish(outcome, as_json=False)


@contextmanager
def _published(study: Study, prometheus: str | None, otlp: str | None) -> Iterator[LiveFigures | None]:
    """Publish a command's figures while it goes on, where that is asked for."""
    if prometheus is None and otlp is None:
        yield None
        return
    from nephoscope.publishing import published  # noqa: PLC0415 - few runs are
    from nephoscope.publishing.figures import LiveFigures  # noqa: PLC0415

    figures = LiveFigures(study.study.name, __version__)
    with published(figures, lambda text: ERR.print(visible(text)), prometheus=prometheus, otlp=otlp):
        yield figures


def measure(
    study: Study,
    out: Path,
    *,
    as_json: bool,
    form: str = "nephoscope",
    to: Console = OUT,
    figures: LiveFigures | None = None,
) -> Outcome:
    """Measure a study, and print what came of it."""
    from nephoscope.cli.printing import in_form  # noqa: PLC0415
    from nephoscope.measuring.measurement import run_study  # noqa: PLC0415

    view = make_view(as_json=as_json)
    try:
        outcome = run_study(study, out, view, beside=figures)
    finally:
        view.end()  # it may have ended while it was loading
    if as_json:
        facts: dict[str, Any] = {
            "run": str(outcome.folder),
            "status": outcome.status,
            "reason": outcome.reason or outcome.lacking,
        }
        sys.stdout.write(json_text({"event": "end", **facts, "scores": outcome.scores["scores"]}) + "\n")
    else:
        to.print(in_form(outcome, form))
    return outcome


def finish(outcome: Outcome, *, as_json: bool) -> None:
    """End the command with the exit code of what was not measured."""
    if outcome.unwritten is not None:
        raise MeasurementError(outcome.unwritten)
    if outcome.status == "measured" and outcome.lacking is None:
        return
    if not as_json:
        failed = "the run failed: " if outcome.status == "failed" else ""
        complain(f"{failed}{outcome.reason or outcome.lacking or outcome.status}", MeasurementError.exit_code)
    raise typer.Exit(MeasurementError.exit_code)


def calibrate(
    evaluator: Annotated[
        str | None, typer.Argument(help="The evaluator whose cases are run; all if left out.")
    ] = None,
    *,
    short: Annotated[
        bool, typer.Option("--short", help="Let each case take as little time as it can.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check the instrument on this machine against planted truths: about six minutes, --short about two."""
    from nephoscope import calibration  # noqa: PLC0415
    from nephoscope.cli.calibration_table import calibration_table  # noqa: PLC0415

    cases = calibration.cases_of(evaluator, short=short)
    tell = (lambda _: None) if as_json else OUT.print
    results = calibration.calibrate(cases, tell, short=short)
    if as_json:
        sys.stdout.write(json_text([result.to_json() for result in results]) + "\n")
    else:
        OUT.print(calibration_table(results))
    if not all(result.holds for result in results):
        raise MeasurementError(calibration.complaint(results))
