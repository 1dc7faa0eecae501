"""Commands that compare runs, and decide by them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nephoscope.cli.commands.measuring import finish, measure
from nephoscope.cli.consoles import ERR, OUT
from nephoscope.cli.options import FormatOption, JsonOption, OutOption, SetOption, UrlOption, study_of
from nephoscope.errors import InputError
from nephoscope.visible import json_text, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.results.compare import Compared
    from nephoscope.store import StoredRun

RunsArgument = Annotated[
    Path,
    typer.Argument(
        help="A run directory, such as runs/latest, or a folder of runs of one study: a set of runs."
    ),
]
FigureOption = Annotated[
    list[str] | None,
    typer.Option("--figure", help="A figure to compare, once for each: TPS, p50, p95, p99, client CPU."),
]
MarginOption = Annotated[
    str | None,
    typer.Option(
        "--margin", metavar="PERCENT", help="Decide: the largest loss that is accepted, such as 5%."
    ),
]
JunitOption = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write the answers as JUnit's XML, too.")
]


def compare(
    baseline: RunsArgument,
    candidate: RunsArgument,
    margin: MarginOption = None,
    figures: FigureOption = None,
    form: FormatOption = "table",
    *,
    junit: JunitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs or sets of runs: each figure's difference with its interval, and whether it may be called one.

    With --margin the exit code is an answer: 0 not slower by more than that, 4 slower, 3 cannot tell.
    """
    from nephoscope.cli.printing import comparison, comparison_json  # noqa: PLC0415
    from nephoscope.measuring.series import runs_at  # noqa: PLC0415
    from nephoscope.results.answers import DECIDING  # noqa: PLC0415
    from nephoscope.results.compare import comparison_table  # noqa: PLC0415
    from nephoscope.results.figures import FIGURES  # noqa: PLC0415
    from nephoscope.tables.model import markdown  # noqa: PLC0415

    accepted = None if margin is None else margin_of(margin)
    check_junit(junit, accepted)
    names = _figures(figures, FIGURES if accepted is None else DECIDING)
    compared = _compared(runs_at(baseline), runs_at(candidate), names)
    if accepted is not None:
        decide(compared, accepted, f"{baseline} and {candidate}", form, junit, as_json=as_json)
    elif as_json:
        sys.stdout.write(json_text(comparison_json(compared)) + "\n")
    elif form == "markdown":
        notes = [f"{one.level}: {one.run}: {one.text}" for one in compared.said]
        sys.stdout.write(markdown([comparison_table(compared)], [*notes, *compared.notes]))
    else:
        OUT.print(comparison(compared))


def gate(
    study: Annotated[
        str,
        typer.Argument(
            help="The study that is run: its file, or the name of one that comes with nephoscope."
        ),
    ],
    baseline: Annotated[
        Path, typer.Option("--baseline", help="What it must not be slower than: a run, or a folder of runs.")
    ],
    settings: SetOption = None,
    out: OutOption = Path("runs"),
    form: FormatOption = "table",
    *,
    margin: Annotated[
        str, typer.Option("--margin", metavar="PERCENT", help="The largest loss that is accepted.")
    ] = "5%",
    figures: FigureOption = None,
    runs: Annotated[int, typer.Option("--runs", min=1, max=1000, help="How often the study is run.")] = 1,
    url: UrlOption = None,
    junit: JunitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a study and decide whether it is slower than a baseline: for CI.

    Exit codes: 0 not slower by more than the margin, 4 slower, 3 cannot tell; 1 where a run failed.
    """
    from nephoscope.measuring.series import runs_at  # noqa: PLC0415
    from nephoscope.results.answers import DECIDING  # noqa: PLC0415
    from nephoscope.store import StoredRun  # noqa: PLC0415
    from nephoscope.study.borrowed import Given  # noqa: PLC0415

    accepted = margin_of(margin)
    names = _figures(figures, DECIDING)
    check_junit(junit, accepted)
    chosen = study_of(study, settings, given=Given(url))
    if chosen.workload.scales is not None:
        raise InputError(
            f"{study}: workload.scales: a gate measures one scale factor; allowed: workload.scale"
        )
    before = runs_at(baseline)
    found = []
    for number in range(1, runs + 1):
        if runs > 1:
            ERR.print(visible(f"run {number} of {runs}"))
        outcome = measure(chosen, out, as_json=as_json, to=ERR)
        finish(outcome, as_json=as_json)
        found.append(StoredRun(outcome.folder))
    decide(_compared(before, found, names), accepted, chosen.study.name, form, junit, as_json=as_json)


def margin_of(text: str) -> float:
    """Read the largest loss that is accepted, as a share. Raises ``InputError``."""
    from nephoscope.settings.units import parse_percent  # noqa: PLC0415

    try:
        return parse_percent(text)
    except ValueError as error:
        raise InputError(f"--margin {text}: {error}") from None


def _figures(named: Sequence[str] | None, default: Sequence[str]) -> Sequence[str]:
    from nephoscope.results.figures import FIGURES  # noqa: PLC0415

    by_name = {name.casefold(): name for name in FIGURES}
    if unknown := next((name for name in named or () if name.casefold() not in by_name), None):
        raise InputError(f"--figure {unknown}: there is no such figure; figures are {', '.join(FIGURES)}")
    return [by_name[name.casefold()] for name in named] if named else default


def check_junit(junit: Path | None, accepted: float | None) -> None:
    """Check that answers can be written there, before anything is measured. Raises ``InputError``."""
    from nephoscope.files import check_named  # noqa: PLC0415

    if junit is not None and accepted is None:
        raise InputError("--junit writes answers: it needs --margin")
    if junit is not None:
        check_named(junit)


def _compared(
    baselines: Sequence[StoredRun], candidates: Sequence[StoredRun], figures: Sequence[str]
) -> Compared:
    from nephoscope.results.compare import compare_sets  # noqa: PLC0415

    return compare_sets(baselines, candidates, figures)


def decide(
    compared: Compared, margin: float, name: str, form: str, junit: Path | None, *, as_json: bool
) -> None:
    """Print the answer, write it where it is asked for, and end with its exit code."""
    from nephoscope.cli.printing import decision_json, decision_text  # noqa: PLC0415
    from nephoscope.files import write_named  # noqa: PLC0415
    from nephoscope.results import answers  # noqa: PLC0415
    from nephoscope.tables.model import markdown  # noqa: PLC0415

    decision = answers.decide(compared, margin)
    if junit is not None:
        write_named(junit, answers.junit(decision, name))
    if as_json:
        sys.stdout.write(json_text(decision_json(decision)) + "\n")
    elif form == "markdown":
        notes = [f"{one.level}: {one.run}: {one.text}" for one in compared.said]
        reasons = [answers.summary(decision), *decision.reasons]
        sys.stdout.write(markdown([answers.answers_table(decision)], [*reasons, *notes, *compared.notes]))
    else:
        OUT.print(decision_text(decision))
    if decision.exit_code:
        raise typer.Exit(decision.exit_code)
