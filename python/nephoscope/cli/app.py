"""The command line. Exit codes: 0 measured; 1 the measurement failed; 2 bad input; 3 cannot tell (``check``)."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.text import Text

from nephoscope import __version__
from nephoscope.cli.live import make_console, make_view
from nephoscope.errors import InputError, MeasurementError, NephoscopeError, UndecidedError
from nephoscope.files import keep_others_from_writing
from nephoscope.interrupts import Interrupted, catch_signals, ignore_signals, leave
from nephoscope.masking import masked
from nephoscope.settings.units import describe_bytes, describe_count
from nephoscope.visible import VisibleFormatter, json_text, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.measuring.measurement import Outcome
    from nephoscope.study.reading import Study
    from nephoscope.tables.model import Table

app = typer.Typer(
    help="The instrument that measures cloud databases: throughput per dollar, latency without coordinated omission.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_log = logging.getLogger(__name__)
_out = make_console()
_err = make_console(stderr=True)

StudyArgument = Annotated[
    str, typer.Argument(help="A study's file, or the name of one that comes with nephoscope.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a key of the study, such as workload.scale=10."),
]
IoOption = Annotated[
    str | None,
    typer.Option("--io", metavar="auto|uring|epoll", help="How threads wait for sockets: the key load.io."),
]
OutOption = Annotated[Path, typer.Option("--out", help="The folder that run directories are made in.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON for machines.")]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Leave out what a whole run in --out has measured.")
]
RunArgument = Annotated[Path, typer.Argument(help="A run directory, such as runs/latest.")]
FormatOption = Annotated[
    Literal["table", "markdown"],
    typer.Option("--format", help="How to print: for a terminal, or for an issue or a wiki."),
]


def main() -> None:
    """Run the command line; every error becomes one message and its exit code."""
    keep_others_from_writing()
    try:
        catch_signals()
        code = _call()
    except Interrupted as error:
        code = _complain(str(error), MeasurementError.exit_code)
    leave(code)


def _call() -> int:
    """Run the command; gives the exit code."""
    try:
        code = app(standalone_mode=False)
    except NephoscopeError as error:
        return _complain(str(error), error.exit_code)
    except typer.Abort:
        return _complain("interrupted", MeasurementError.exit_code)
    except Exception as error:  # noqa: BLE001 - whatever it is, a user gets one message
        # Wrong options and arguments, as the parser reports them.
        if hasattr(error, "format_message"):
            return _complain(error.format_message(), InputError.exit_code)
        _log.info("an internal error", exc_info=True)
        message = f"{type(error).__name__}: {error} (a defect of nephoscope; --verbose before the command shows where)"
        return _complain(message, MeasurementError.exit_code)
    return code if isinstance(code, int) else 0


def _complain(message: str, code: int) -> int:
    # This is the end: a second Ctrl-C that comes while the first one is told has nothing to add.
    ignore_signals()
    if message:  # none where there was no command: then its help was shown
        _err.print(Text.assemble(("nephoscope:", "bold red"), " ", visible(masked(message))))
    return code


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - as typer calls it
    if wanted:
        _out.print(f"nephoscope {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what is done.")] = False,
    version: Annotated[  # noqa: ARG001 - handled before a command is looked for
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(VisibleFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])


# --- measuring ----------------------------------------------------------------------------------------------------


@app.command()
def run(
    study: StudyArgument,
    settings: SetOption = None,
    out: OutOption = Path("runs"),
    *,
    io: IoOption = None,
    as_json: JsonOption = False,
    resume: ResumeOption = False,
) -> None:
    """Run a study: measure, keep what was measured, write a report; of several scale factors a run of each."""
    from nephoscope.measuring.series import parts, unmeasured  # noqa: PLC0415

    found = parts(_read(study, settings, io))
    for part in unmeasured(found, out, lambda text: _err.print(visible(text))) if resume else found:
        _finish(_measure(part, out, as_json=as_json), as_json=as_json)


@app.command()
def quickstart(out: OutOption = Path("runs"), settings: SetOption = None, *, io: IoOption = None) -> None:
    """Start a replicated PostgreSQL, measure all seven scores and O, and write a report: about five minutes."""
    from nephoscope.cli.printing import kept_data, next_steps, own_name  # noqa: PLC0415 - imports that only measuring needs

    study = _read("quickstart", settings, io)
    outcome = _measure(study, out, as_json=False)
    if outcome.status == "measured":
        _out.print(next_steps(own_name(), kept_data(study)))
    _finish(outcome, as_json=False)


def _read(name: str, settings: list[str] | None, io: str | None = None) -> Study:
    from nephoscope.study.reading import find_study, read_study  # noqa: PLC0415

    return read_study(find_study(name), [*(settings or ()), *([f"load.io={io}"] if io else ())], name)


def _measure(study: Study, out: Path, *, as_json: bool) -> Outcome:
    from nephoscope.cli.printing import summary  # noqa: PLC0415
    from nephoscope.measuring.measurement import run_study  # noqa: PLC0415

    view = make_view(as_json=as_json)
    try:
        outcome = run_study(study, out, view)
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
        _out.print(summary(outcome))
    return outcome


def _finish(outcome: Outcome, *, as_json: bool) -> None:
    if outcome.unwritten is not None:
        raise MeasurementError(outcome.unwritten)
    if outcome.status == "measured" and outcome.lacking is None:
        return
    if not as_json:
        failed = "the run failed: " if outcome.status == "failed" else ""
        _complain(
            f"{failed}{outcome.reason or outcome.lacking or outcome.status}", MeasurementError.exit_code
        )
    raise typer.Exit(MeasurementError.exit_code)


# --- data ---------------------------------------------------------------------------------------------------------


@app.command()
def load(
    study: StudyArgument,
    settings: SetOption = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Load anew what is there already.")] = False,
    threads: Annotated[int, typer.Option(help="Threads that load; 0 is one per core.")] = 0,
) -> None:
    """Load the data that a study's workload runs on."""
    from nephoscope.measuring.preparing import any_url, data_of, prepare, started  # noqa: PLC0415

    chosen = _read(study, settings)
    prepare(chosen, any_url(chosen))
    view = make_view(as_json=False)
    with started(chosen) as (system, workload):
        try:
            outcomes = {
                tenant: data.load(force=force, threads=threads, progress=view.loading)
                for tenant, data in data_of(chosen, system, workload).items()
            }
        finally:
            view.end()
    for tenant, outcome in outcomes.items():
        _out.print(f"{tenant}: {outcome.message}" if len(outcomes) > 1 else outcome.message)


@app.command()
def check(study: StudyArgument, settings: SetOption = None, *, as_json: JsonOption = False) -> None:
    """Check the data: that it is there, and that the workload's invariants hold."""
    from nephoscope.cli.printing import check_table  # noqa: PLC0415
    from nephoscope.measuring.preparing import any_url, data_of, prepare, started  # noqa: PLC0415

    chosen = _read(study, settings)
    prepare(chosen, any_url(chosen))
    with started(chosen) as (system, workload):
        results = {
            tenant: data.check(external=chosen.workload.external)
            for tenant, data in data_of(chosen, system, workload).items()
        }
    if as_json:
        facts = [
            {**vars(result), "tenant": tenant} if len(results) > 1 else vars(result)
            for tenant, found in results.items()
            for result in found
        ]
        sys.stdout.write(json_text(facts) + "\n")
    else:
        for tenant, found in results.items():
            if len(results) > 1:
                _out.print(f"{tenant}:")
            _out.print(check_table(workload.name, found))
    verdicts = [result.verdict for found in results.values() for result in found]
    if "broken" in verdicts:
        raise MeasurementError("the data breaks an invariant")
    if "unknown" in verdicts:
        raise UndecidedError("whether the data keeps every invariant cannot be told")


@app.command()
def clean(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
) -> None:
    """Remove what embedded servers keep in the cache: their data, and copies of their programs."""
    from nephoscope.systems.cache import cached, remove  # noqa: PLC0415
    from nephoscope.systems.machine.folders import cache_folder  # noqa: PLC0415

    removed, left = 0, []
    for one in cached():
        try:
            remove(one, only_look=dry_run)
        except MeasurementError as error:
            left.append(str(error))
            continue
        removed += one.bytes
        _out.print(
            f"{'would remove' if dry_run else 'removed'}: {one.path} ({one.what}, {describe_bytes(one.bytes)})"
        )
    if not removed and not left:
        _out.print(f"nothing to remove in {cache_folder()}")
    if left:
        raise MeasurementError("\n".join(left))


# --- reading ------------------------------------------------------------------------------------------------------


@app.command()
def report(
    run_directories: Annotated[
        list[Path],
        typer.Argument(help="Run directories, such as runs/latest; several are laid side by side."),
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
        made = _report_one(run_directories[0], form, out)
    if tables is not None:
        files = write_tables(made, tables)
        (_err if form == "markdown" else _out).print(
            f"tables: {tables} ({describe_count(len(files), 'file')})"
        )


def _report_one(run_directory: Path, form: str, page: Path | None) -> Sequence[Table]:
    """Score a run and write its report; also of a run that was killed. Gives its tables."""
    from nephoscope.cli.printing import figures_of, run_markdown, summary  # noqa: PLC0415
    from nephoscope.measuring.measurement import report_run  # noqa: PLC0415
    from nephoscope.results.tables import tables_of  # noqa: PLC0415

    outcome = report_run(run_directory, page)
    if form == "markdown":
        sys.stdout.write(run_markdown(figures_of(outcome)))
    else:
        _out.print(summary(outcome))
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
        _out.print(several_summary(found, out))
    return all_tables(found)


@app.command()
def compare(baseline: RunArgument, candidate: RunArgument, *, as_json: JsonOption = False) -> None:
    """Compare two runs: each figure's difference with its interval, and whether it may be called one."""
    from nephoscope.cli.printing import comparison, comparison_json  # noqa: PLC0415
    from nephoscope.results.compare import compare_runs  # noqa: PLC0415
    from nephoscope.store import StoredRun  # noqa: PLC0415

    compared = compare_runs(StoredRun(baseline), StoredRun(candidate))
    if as_json:
        sys.stdout.write(json_text(comparison_json(compared)) + "\n")
        return
    _out.print(comparison(compared))


@app.command()
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
        _out.print(score_tables(found))


@app.command()
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
    """Check the instrument on this machine against planted truths: about five minutes, --short about two."""
    from nephoscope import calibration  # noqa: PLC0415
    from nephoscope.calibration.table import calibration_table  # noqa: PLC0415

    cases = calibration.cases_of(evaluator, short=short)
    tell = (lambda _: None) if as_json else _out.print
    results = calibration.calibrate(cases, tell, short=short)
    if as_json:
        sys.stdout.write(json_text([result.to_json() for result in results]) + "\n")
    else:
        _out.print(calibration_table(results))
    if not all(result.holds for result in results):
        raise MeasurementError(calibration.complaint(results))


# --- lists --------------------------------------------------------------------------------------------------------


@app.command()
def workloads(
    name: Annotated[
        str | None, typer.Argument(help="A workload's name or folder; all of them if left out.")
    ] = None,
    scale: Annotated[float, typer.Option(help="The scale factor, for the numbers of rows.")] = 1.0,
    *,
    as_json: JsonOption = False,
) -> None:
    """List the workloads, or show one: tables, transactions, options, SQL."""
    from nephoscope.cli.printing import describe_workload, list_workloads  # noqa: PLC0415
    from nephoscope.engine.workload import Workload, find_workload, packaged_workloads  # noqa: PLC0415

    any_postgres = "postgresql://reader@localhost/none"
    names = [name] if name is not None else packaged_workloads()
    found = [Workload(find_workload(one), scale, 7, {}, any_postgres) for one in names]
    if as_json:
        sys.stdout.write(json_text([workload.description for workload in found]) + "\n")
    elif name is None:
        _out.print(list_workloads(found))
    else:
        _out.print(describe_workload(found[0]))


@app.command()
def systems() -> None:
    """List what can be measured: providers of systems, drivers by URL, evaluators."""
    from nephoscope.cli.printing import list_systems  # noqa: PLC0415

    _out.print(list_systems())
