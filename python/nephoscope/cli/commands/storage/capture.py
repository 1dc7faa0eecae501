"""``nephoscope storage capture``: a designed grid of loads, and the I/O of the server beneath it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nephoscope.cli.consoles import ERR, OUT, complain
from nephoscope.cli.live import make_view
from nephoscope.cli.options import SetOption, study_of
from nephoscope.errors import InputError, MeasurementError
from nephoscope.settings.units import describe_count, parse_bytes
from nephoscope.visible import visible

if TYPE_CHECKING:
    from nephoscope.measuring.measurement import Outcome
    from nephoscope.storage.capturing import Captured
    from nephoscope.study.reading import Study

_EVALUATOR = "capture"
_LEAST_SEGMENT = 4096
_EXACT = 1e-9
_KEPT = "capture-"
"""How the name of a server's folder in the cache begins, which a capture removes again."""


def capture(
    study: Annotated[
        str,
        typer.Argument(help="A study with the evaluator capture: a file, or capture-tpcc, capture-small."),
    ],
    settings: SetOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The corpus: a new folder, by default corpora/STUDY.")
    ] = None,
    runs: Annotated[Path, typer.Option("--runs", help="The folder that run directories are made in.")] = Path(
        "runs"
    ),
    *,
    view: Annotated[
        Literal["log", "page"],
        typer.Option(
            help="log: reads, and redo per flush of the log and segment; page: every read, write and sync."
        ),
    ] = "log",
    segment: Annotated[
        str, typer.Option(metavar="SIZE", help="The size of a segment, such as 16MiB.")
    ] = "16MiB",
) -> None:
    """Run a study with the server's I/O recorded, and make a corpus of both."""
    segment_bytes = _segment_bytes(segment)
    chosen, place, data = _prepared(study, settings, out, view)
    try:
        outcome = _measure(chosen, runs)
        captured = _corpus(chosen, outcome, place, view, segment_bytes)
    finally:
        if data is not None:
            shutil.rmtree(data, ignore_errors=True)
    OUT.print(visible(_told(captured, outcome)))
    for warning in captured.warnings:
        ERR.print(visible(f"warning: {warning}"))
    if outcome.status != "measured":
        complain(outcome.reason or outcome.status, MeasurementError.exit_code)
        raise typer.Exit(MeasurementError.exit_code)


def _segment_bytes(text: str) -> int:
    try:
        size = parse_bytes(text)
    except ValueError as error:
        raise InputError(f"--segment {text}: {error}") from None
    if size < _LEAST_SEGMENT:
        raise InputError(f"--segment {text}: a segment has {_LEAST_SEGMENT} bytes at the least")
    return size


def _prepared(
    name: str, settings: list[str] | None, out: Path | None, view: str
) -> tuple[Study, Path, Path | None]:
    """Give the study with what recording needs, the folder of the corpus, and a folder to be removed."""
    from nephoscope.systems.machine.folders import cache_folder  # noqa: PLC0415

    given = study_of(name, settings)
    times = [entry.evaluator for entry in given.measure].count(_EVALUATOR)
    if times != 1:
        raise InputError(
            f'the study {given.study.name} has the evaluator "{_EVALUATOR}" {times} times, and a capture needs '
            "it once: see the study capture-small"
        )
    if not hasattr(given.system, "record_io"):
        raise InputError(
            f"the I/O of a system of the provider {given.system.provider} cannot be recorded, but that of an embedded "
            "cluster, as the study capture-small has one"
        )
    parts = 1 / given.load.interval
    if round(parts) < 1 or abs(parts - round(parts)) > _EXACT:
        raise InputError("a corpus counts by the second: load.interval has to be 1s, or to divide it")
    place = out or Path("corpora") / given.study.name
    if place.exists() and any(place.iterdir()):
        raise InputError(f"{place} is there already, and not empty: --out can name another folder")
    needed = ["system.record_io=true", f"system.keep_log={'true' if view == 'log' else 'false'}"]
    data = None
    if getattr(given.system, "data", None) is None:
        # What a server without images of pages has left is not for other studies.
        data = cache_folder() / f"{_KEPT}{given.study.name}"
        needed.append(f"system.data={data}")
    return study_of(name, [*(settings or ()), *needed]), place, data


def _measure(study: Study, runs: Path) -> Outcome:
    from nephoscope.measuring.measurement import run_study  # noqa: PLC0415

    view = make_view(as_json=False)
    try:
        return run_study(study, runs, view)
    finally:
        view.end()


def _corpus(study: Study, outcome: Outcome, place: Path, view: Literal["log", "page"], size: int) -> Captured:
    """Make the corpus of what was measured to its end, also of a run that was broken off."""
    from nephoscope.evaluators.points import measured_phases  # noqa: PLC0415
    from nephoscope.storage.capturing import Recorded, write_corpus  # noqa: PLC0415
    from nephoscope.store import StoredRun  # noqa: PLC0415

    run = StoredRun(outcome.folder)
    index = next(at for at, entry in enumerate(study.measure) if entry.evaluator == _EVALUATOR)
    phases, _ = measured_phases(run, index)
    settings = run.manifest.get("system", {}).get("facts", {}).get("settings", {})
    recorded = Recorded.of(run)
    return write_corpus(place, run, phases, recorded, view=view, segment_bytes=size, settings=settings)


def _told(captured: Captured, outcome: Outcome) -> str:
    flushes = "" if captured.flushes is None else f"; {captured.flushes:,} flushes of the log"
    return (
        f"{captured.folder}: {describe_count(captured.runs, 'run')} with "
        f"{describe_count(captured.transactions, 'transaction')} and "
        f"{describe_count(captured.requests, 'request')}, "
        f"{captured.reads / max(captured.requests, 1):.1%} of them reads, "
        f"in {describe_count(captured.segments, 'segment')}{flushes}\n"
        f"the run: {outcome.folder}"
    )
