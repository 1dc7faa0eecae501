"""Commands that follow a figure over runs and versions: ``history``, ``bisect``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.markup import escape
from rich.text import Text

from nephoscope.cli.consoles import ERR, OUT
from nephoscope.cli.live import make_view
from nephoscope.cli.options import FormatOption, JsonOption, SetOption
from nephoscope.errors import InputError, MeasurementError, UndecidedError
from nephoscope.settings.units import describe_count
from nephoscope.visible import json_text, visible

if TYPE_CHECKING:
    from nephoscope.experiments.bisection.progress import Progress
    from nephoscope.experiments.bisection.versions import BisectVersion
    from nephoscope.study.reading import Study


def history(
    places: Annotated[
        list[Path],
        typer.Argument(metavar="RUNS…", help="Folders of runs, such as runs, and run directories."),
    ],
    study: Annotated[
        str | None,
        typer.Option("--study", metavar="NAME", help="The study, where there are runs of several."),
    ] = None,
    figures: Annotated[
        list[str] | None,
        typer.Option(
            "--figure",
            help="A figure to follow, once for each: TPS, p50, p95, p99, client CPU, or a score such as O.",
        ),
    ] = None,
    form: FormatOption = "table",
    tables: Annotated[
        Path | None, typer.Option("--tables", metavar="DIR", help="Also write the tables as CSV and Parquet.")
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show many runs of one study over time: each figure, and where it changed, by how much, how surely."""
    from nephoscope.measuring.series import runs_in  # noqa: PLC0415
    from nephoscope.results.figures import FIGURES  # noqa: PLC0415
    from nephoscope.results.history import FOLLOWED, read_history, tables_of  # noqa: PLC0415
    from nephoscope.scoring.definitions import SCORES  # noqa: PLC0415
    from nephoscope.tables.model import check_folder, markdown, terminal, write_tables  # noqa: PLC0415

    if tables is not None:
        check_folder(tables)
    known = {name.casefold(): name for name in (*FIGURES, *SCORES)}
    if unknown := next((name for name in figures or () if name.casefold() not in known), None):
        raise InputError(
            f"--figure {unknown}: there is no such figure; figures are {', '.join(known.values())}"
        )
    named = [known[name.casefold()] for name in figures] if figures else FOLLOWED
    runs = {run.folder: run for place in places for run in runs_in(place)}
    found = read_history(list(runs.values()), study, named)
    made = tables_of(found)
    if tables is not None:
        write_tables(made, tables)
    shown = [table for table in made if table.rows and table.name != "values"]
    notes = list(found.notes)
    if not any(course.changes for course in found.courses):
        notes.insert(0, "no change was found")
    if as_json:
        sys.stdout.write(json_text({**{table.name: table.rows for table in made}, "notes": notes}) + "\n")
    elif form == "markdown":
        sys.stdout.write(markdown(shown, notes))
    else:
        parts = [part for table in shown for part in (Text(), terminal(table))]
        OUT.print(Group(*parts, Text(), *(Text(f"· {note}", style="cyan") for note in notes)))


GoodOption = Annotated[
    str | None, typer.Option("--good", metavar="COMMIT", help="A commit from before the change.")
]
BadOption = Annotated[
    str | None, typer.Option("--bad", metavar="COMMIT", help="A commit from after the change.")
]
CommandOption = Annotated[
    str | None,
    typer.Option(
        "--command",
        metavar="COMMAND",
        help="Makes the system ready at $NEPHOSCOPE_VERSION; a URL on its last line is the system's.",
    ),
]
RepositoryOption = Annotated[
    Path, typer.Option("--repository", metavar="DIR", help="The git repository of the commits.")
]
VersionsOption = Annotated[
    Path | None,
    typer.Option(
        "--versions",
        metavar="FILE",
        help="In place of commits: versions, one a line, the good one first; images, or URLs.",
    ),
]
ResponseOption = Annotated[
    str, typer.Option("--response", help=escape("The figure: tps, p95_ms@RW, O: a response of experiments."))
]
LeastOption = Annotated[
    str, typer.Option("--least", metavar="PERCENT", help="The smallest change that is looked for.")
]
MostOption = Annotated[int, typer.Option("--most", min=4, max=100_000, help="The most runs.")]
TimeoutOption = Annotated[
    str, typer.Option("--timeout", metavar="TIME", help="How long the command may take.")
]
FolderOption = Annotated[
    Path | None,
    typer.Option("--out", help="The bisection's folder: bisections/NAME if left out. It is resumed."),
]


def bisect(
    study: Annotated[
        str,
        typer.Argument(
            help="The study that is run: its file, or the name of one that comes with nephoscope."
        ),
    ],
    *,
    good: GoodOption = None,
    bad: BadOption = None,
    command: CommandOption = None,
    repository: RepositoryOption = Path(),
    versions: VersionsOption = None,
    response: ResponseOption = "tps",
    least: LeastOption = "2%",
    most: MostOption = 60,
    timeout: TimeoutOption = "30m",
    settings: SetOption = None,
    out: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the version that changed a figure: runs are repeated until it is 95 % sure, and no longer.

    Exit codes: 0 found, 3 no such change or not found within --most runs; the same command goes on.
    """
    from nephoscope.experiments.bisection.folder import FILES, resume  # noqa: PLC0415
    from nephoscope.experiments.bisection.measuring import VersionRunner, go_on  # noqa: PLC0415
    from nephoscope.experiments.bisection.progress import answer, to_json  # noqa: PLC0415
    from nephoscope.settings.units import parse_duration, parse_percent  # noqa: PLC0415
    from nephoscope.store.layout import check_runs  # noqa: PLC0415
    from nephoscope.store.writer import write_whole  # noqa: PLC0415
    from nephoscope.study.packaged import find_study  # noqa: PLC0415

    chosen = _versions(good, bad, repository, versions, command)
    try:
        smallest = parse_percent(least)
        limit = parse_duration(timeout)
    except ValueError as error:
        raise InputError(f"--least {least}, --timeout {timeout}: {error}") from None
    if not 0 < smallest < 1 or limit <= 0:
        raise InputError(f"--least {least}, --timeout {timeout}: allowed: above 0 %, below 100 %; above 0")
    measured = VersionRunner((find_study(study), settings or (), study), chosen, command, limit)
    plan = measured.plan(response, smallest)
    folder = Path("bisections") / plan.name if out is None else out
    plan = resume(plan, folder)
    check_runs(folder / FILES.runs)
    found = go_on(
        plan,
        folder,
        measured,
        lambda part, runs: _run(part, runs, as_json=as_json),
        most=most,
        say=lambda said: ERR.print(visible(said)),
    )
    result = json_text(to_json(found)) + "\n"
    write_whole(folder / FILES.results, result)
    if as_json:
        sys.stdout.write(result)
    else:
        OUT.print(_shown(found, answer(found)))
    if found.changed is None:
        raise UndecidedError(answer(found))


def _versions(
    good: str | None, bad: str | None, repository: Path, versions: Path | None, command: str | None
) -> list[BisectVersion]:
    from nephoscope.experiments.bisection.versions import of_file, of_git  # noqa: PLC0415

    if versions is not None:
        if good is not None or bad is not None:
            raise InputError(
                "--versions and --good, --bad exclude each other: the file's first line is the good one"
            )
        return of_file(versions)
    if good is None or bad is None:
        raise InputError(
            "which versions? --good COMMIT and --bad COMMIT of a git repository, or --versions FILE"
        )
    if command is None:
        raise InputError("--command is missing: it makes the system ready at the commit $NEPHOSCOPE_VERSION")
    return of_git(good, bad, repository)


def _run(study: Study, runs: Path, *, as_json: bool) -> None:
    """Measure once. Raises ``MeasurementError`` where the run is not whole."""
    from nephoscope.measuring.measurement import run_study  # noqa: PLC0415

    view = make_view(as_json=as_json)
    try:
        outcome = run_study(study, runs, view)
    finally:
        view.end()
    if outcome.status != "measured" or outcome.unwritten is not None or outcome.lacking is not None:
        reason = outcome.unwritten or outcome.reason or outcome.lacking or outcome.status
        raise MeasurementError(f"{outcome.folder}: {reason}; the same command goes on with this run")


def _shown(found: Progress, said: str) -> Group:
    from nephoscope.cli.listing import MARKS  # noqa: PLC0415
    from nephoscope.experiments.bisection.progress import table_of  # noqa: PLC0415
    from nephoscope.tables.model import terminal  # noqa: PLC0415

    mark, style = MARKS["ok" if found.changed is not None else "warning"]
    runs = describe_count(len(found.observed), "run")
    return Group(Text(), terminal(table_of(found)), Text(), Text(f"{mark} {said} ({runs})", style=style))
