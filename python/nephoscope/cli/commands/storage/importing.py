"""``nephoscope storage import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nephoscope.cli.consoles import OUT
from nephoscope.errors import InputError

if TYPE_CHECKING:
    from nephoscope.storage.importing import Slice


def import_(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Traces, each a run; - is standard input.")
    ],
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="The folder of the corpus to be made.")],
    *,
    trace_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="blkparse, fio, strace, msr, alibaba, tencent, spc, csv or parquet; told by the file where it can be.",
        ),
    ] = None,
    segment: Annotated[str, typer.Option(metavar="SIZE", help="The size of a segment.")] = "16MiB",
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD=COLUMN,...",
            help="For csv and parquet: which column is what, such as time=ts,offset=lba*512,bytes=size,operation=op.",
        ),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An option of the format, such as event=queue."),
    ] = None,
    transactions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The transactions above: a CSV file of run,second,type,count."),
    ] = None,
    start: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Begin so long after a trace's first request.")
    ] = "0s",
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="End so long after a trace's first request, such as 10m."),
    ] = None,
) -> None:
    """Make a corpus of the traces of other tools."""
    from nephoscope.settings.units import parse_bytes  # noqa: PLC0415
    from nephoscope.storage.importing import How, import_traces  # noqa: PLC0415
    from nephoscope.storage.trace_columns import parse_columns  # noqa: PLC0415

    try:
        segment_bytes = parse_bytes(segment)
    except ValueError as error:
        raise InputError(f"--segment {segment}: {error}") from error
    how = How(
        format=trace_format,
        options=[_option(text) for text in options or ()],
        columns=None if columns is None else parse_columns(columns),
        segment_bytes=segment_bytes,
        transactions=transactions,
        part=_part(start, end),
    )
    for run, trace in enumerate(import_traces(files, corpus, how)):
        told = f"run {run}: {trace.path} ({trace.format}): {trace.requests:,} requests in {trace.seconds:,} s"
        OUT.print(told, highlight=False)
        for why, count in trace.left_out.items():
            OUT.print(f"  left out: {count:,} {why}", highlight=False)
    OUT.print(f"{corpus}: segments of {segment}", highlight=False)


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--option {text}: expected NAME=VALUE")
    return name, value


def _part(start: str, end: str | None) -> Slice:
    from nephoscope.storage.importing import Slice  # noqa: PLC0415

    part = Slice(_second("--from", start), None if end is None else _second("--to", end))
    if part.end_s is not None and part.end_s <= part.start_s:
        raise InputError(f"--to {end}: a time behind --from {start}")
    return part


def _second(option: str, text: str) -> int:
    from nephoscope.settings.units import parse_duration  # noqa: PLC0415

    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise InputError(f"{option} {text}: {error}") from error
    if not seconds.is_integer():
        raise InputError(f"{option} {text}: whole seconds alone")
    return int(seconds)
