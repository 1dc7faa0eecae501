"""The command ``duet``: two systems under one schedule at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nephoscope.cli.commands.deciding import JunitOption, check_junit, decide, margin_of
from nephoscope.cli.consoles import ERR
from nephoscope.cli.options import FormatOption, JsonOption, SetOption, UrlOption
from nephoscope.errors import InputError, MeasurementError
from nephoscope.visible import json_text, visible

if TYPE_CHECKING:
    from nephoscope.measuring.duet import DuetOutcome, DuetPlan
    from nephoscope.results.duets import Duet

WithOption = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="KEY=VALUE",
        help="What the candidate's system has in place of the study's, such as system.version=16.",
    ),
]


def duet(
    study: Annotated[
        str,
        typer.Argument(
            help="The study that is run: its file, or the name of one that comes with nephoscope."
        ),
    ],
    others: WithOption = None,
    settings: SetOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The duet's folder: a new one in duets if left out."),
    ] = None,
    form: FormatOption = "table",
    *,
    margin: Annotated[
        str, typer.Option("--margin", metavar="PERCENT", help="The largest loss that is accepted.")
    ] = "5%",
    runs: Annotated[
        int, typer.Option("--runs", min=1, max=1000, help="How often both are started and measured.")
    ] = 1,
    url: UrlOption = None,
    junit: JunitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure two systems at the same time under the same load, and decide whether the candidate is slower.

    The baseline is the study's system, the candidate has --with over it; without --with it is the same system twice.
    Exit codes: 0 not slower by more than the margin, 4 slower, 3 cannot tell; 1 where a side failed.
    """
    from nephoscope.measuring.duet import plan_duet, run_duet  # noqa: PLC0415
    from nephoscope.study.packaged import find_study  # noqa: PLC0415

    accepted = margin_of(margin)
    check_junit(junit, accepted)
    plan = plan_duet(find_study(study), study, settings or (), others or (), url=url, folder=out)
    plan.keep()
    outcome = run_duet(plan, runs, lambda said: ERR.print(visible(said)))
    found = _compared(plan, outcome)
    if outcome.runs:
        _write(plan, outcome, found, accepted)
    if outcome.fault is not None or found is None:
        raise MeasurementError(outcome.fault or "neither side has begun")
    ERR.print(visible(f"duet: {plan.folder}"))
    decide(found.compared, accepted, plan.study.study.name, form, junit, as_json=as_json)


def _compared(plan: DuetPlan, outcome: DuetOutcome) -> Duet | None:
    """Compare what was measured; None where a duet that is not whole has no point of both."""
    from nephoscope.results.duets import compare_duet  # noqa: PLC0415
    from nephoscope.store import StoredRun  # noqa: PLC0415

    try:
        pairs = [(StoredRun(ours), StoredRun(theirs)) for ours, theirs in outcome.runs]
        return compare_duet(pairs, same=plan.same) if pairs else None
    except InputError:
        if outcome.fault is None:
            raise
        return None


def _write(plan: DuetPlan, outcome: DuetOutcome, found: Duet | None, margin: float) -> None:
    """Write the result, with what a duet that is not whole has measured."""
    from nephoscope.cli.printing import decision_json  # noqa: PLC0415
    from nephoscope.measuring.duet import FILES  # noqa: PLC0415
    from nephoscope.results import answers  # noqa: PLC0415
    from nephoscope.results.duets import series_json  # noqa: PLC0415
    from nephoscope.store.writer import write_whole  # noqa: PLC0415

    facts: dict[str, Any] = {
        "format": 1,
        "reason": outcome.fault,
        "baseline": {"study": plan.study.to_toml(), "runs": [run.name for run, _ in outcome.runs]},
        "candidate": {"study": plan.other.to_toml(), "runs": [run.name for _, run in outcome.runs]},
    }
    if found is not None:
        facts |= {
            **decision_json(answers.decide(found.compared, margin)),
            "series": series_json(found),
        }
    write_whole(plan.folder / FILES.result, json_text(facts) + "\n")
