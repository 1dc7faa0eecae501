"""``nephoscope storage run``: executes requests on a target and compares the tails of their latencies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Group
from rich.text import Text

from nephoscope.cli.consoles import ERR, OUT
from nephoscope.cli.options import FormatOption, JsonOption, OutOption
from nephoscope.errors import InputError, MeasurementError
from nephoscope.settings.units import parse_duration
from nephoscope.visible import json_text, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.storage.executing import ExecutionSettings
    from nephoscope.store.reader import StoredRun
    from nephoscope.tables.model import Table


SourcesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE…",
        help="A corpus: FOLDER, or FOLDER:RUN of several; or poisson: the first source at Poisson times.",
    ),
]
TargetOption = Annotated[
    str, typer.Option(metavar="URL", help="Where they are executed: file:///path of a file or block device.")
]
DepthOption = Annotated[int, typer.Option(min=1, max=65536, help="How many may be in flight.")]
WorkersOption = Annotated[int, typer.Option(min=1, max=1024, help="Threads.")]
SyncOption = Annotated[
    str, typer.Option(metavar="captured|never|N", help="Syncs as captured, never, or after every N writes.")
]
SecondsOption = Annotated[
    float | None, typer.Option(metavar="S", help="Of each source, the first so many seconds.")
]
GiveUpOption = Annotated[
    str, typer.Option(metavar="TIME", help="A request that starts later than this is dropped.")
]
DrainOption = Annotated[str, typer.Option(metavar="TIME", help="How long the last requests are waited for.")]
TimeoutOption = Annotated[
    str, typer.Option(metavar="TIME", help="How long a request may take, where the target can tell.")
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Take a file or device whose content is not ours.")
]


def run(
    sources: SourcesArgument,
    target: TargetOption,
    *,
    depth: DepthOption = 64,
    workers: WorkersOption = 1,
    speed: Annotated[float, typer.Option(help="How much faster than captured.")] = 1.0,
    sync: SyncOption = "captured",
    repetitions: Annotated[int, typer.Option(min=1, help="How often each source is executed.")] = 3,
    seconds: SecondsOption = None,
    give_up: GiveUpOption = "10s",
    drain: DrainOption = "10s",
    timeout: TimeoutOption = "30s",
    overwrite: OverwriteOption = False,
    seed: Annotated[int, typer.Option(min=0, help="Of Poisson times.")] = 1,
    io: Annotated[Literal["auto", "uring", "epoll"], typer.Option(help="How threads wait.")] = "auto",
    out: OutOption = Path("runs"),
    form: FormatOption = "table",
    as_json: JsonOption = False,
) -> None:
    """Execute requests on a target at their intended times, and compare the latencies of the sources."""
    from nephoscope import _engine  # noqa: PLC0415
    from nephoscope.storage.executing import execute  # noqa: PLC0415
    from nephoscope.storage.sources import read_sources  # noqa: PLC0415
    from nephoscope.store.layout import check_runs  # noqa: PLC0415
    from nephoscope.store.reader import StoredRun  # noqa: PLC0415

    if seconds is not None and not seconds > 0:
        raise InputError(f"--seconds {seconds:g}: above 0")
    settings = _settings(
        target=target,
        depth=depth,
        workers=workers,
        speed=speed,
        syncs=int(sync) if sync.isdecimal() else sync,
        repetitions=repetitions,
        give_up_s=_seconds("--give-up", give_up),
        drain_s=_seconds("--drain", drain),
        timeout_s=_seconds("--timeout", timeout),
        seed=seed,
        io=io,
    )
    check_runs(out)
    place = _engine.StorageTarget(target, overwrite)
    found = read_sources(sources, seconds, seed)
    quiet = as_json or form == "markdown"
    said = ERR if quiet else OUT
    folder, interruption = execute(
        found, settings, place, out, lambda text: said.print(visible(text), highlight=False)
    )
    stored = StoredRun(folder)
    show(stored, form, as_json=as_json)
    said.print(f"{visible(str(folder))}", highlight=False)
    if interruption is not None:
        raise interruption
    if stored.manifest["status"] == "failed":
        raise MeasurementError(
            f"{stored.manifest['reason']}; what is left of them tells nothing of the target"
        )


def _seconds(option: str, value: str) -> float:
    try:
        return parse_duration(value)
    except ValueError as error:
        raise InputError(f"{option} {value}: {error}") from None


def _settings(**given: object) -> ExecutionSettings:
    from pydantic import ValidationError  # noqa: PLC0415

    from nephoscope.storage.executing import ExecutionSettings  # noqa: PLC0415

    try:
        return ExecutionSettings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).removesuffix("_s").replace("_", "-").replace("syncs", "sync")
        raise InputError(f"--{name} {given[str(first['loc'][0])]}: {first['msg']}") from None


def show(stored: StoredRun, form: str, page: Path | None = None, *, as_json: bool = False) -> Sequence[Table]:
    """Print what a run has measured and write its page, into its directory if no other place is given."""
    from nephoscope.cli.listing import MARKS  # noqa: PLC0415
    from nephoscope.report.page import render_with  # noqa: PLC0415
    from nephoscope.storage.executed import executed  # noqa: PLC0415
    from nephoscope.storage.executed_page import TEMPLATE, build  # noqa: PLC0415
    from nephoscope.storage.executed_tables import notes_of, tables_of  # noqa: PLC0415
    from nephoscope.storage.executed_verdicts import verdicts_of  # noqa: PLC0415
    from nephoscope.store.layout import FILES  # noqa: PLC0415
    from nephoscope.store.writer import write_whole  # noqa: PLC0415
    from nephoscope.tables.model import markdown, terminal  # noqa: PLC0415

    if not stored.phases:
        return []
    found = executed(stored)
    tables, notes, verdicts = tables_of(found), notes_of(found), verdicts_of(found)
    write_whole(page or stored.folder / FILES.report, render_with(TEMPLATE, build(stored, found)))
    if as_json:
        rows = {table.name: list(table.rows) for table in tables}
        told = [one.model_dump(include={"level", "text", "detail"}) for one in verdicts]
        sys.stdout.write(json_text({**rows, "verdicts": told}) + "\n")
    elif form == "markdown":
        said = [f"{one.level}: {one.text} {one.detail}" for one in verdicts]
        sys.stdout.write(markdown(tables, [*said, *notes]))
    else:
        parts = [part for table in tables for part in (terminal(table), Text())]
        for one in verdicts:
            mark, style = MARKS[one.level]
            parts.append(Text(visible(f"{mark} {one.text} {one.detail}"), style=style))
        OUT.print(Group(*parts, *(Text(f"· {note}", style="cyan") for note in notes)))
    return tables
