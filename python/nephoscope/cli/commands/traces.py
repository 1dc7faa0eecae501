"""``nephoscope trace …``: the statements of a log or of a recording as a trace, and a trace sent to a server again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nephoscope.cli.consoles import OUT
from nephoscope.cli.options import JsonOption
from nephoscope.settings.units import describe_count
from nephoscope.visible import json_text, visible

if TYPE_CHECKING:
    from nephoscope.traces.making import MadeTrace

app = typer.Typer(
    help="Traces: the statements that a server was sent, their sessions, transactions and fingerprints.",
    no_args_is_help=True,
)
TraceArgument = Annotated[
    Path, typer.Argument(metavar="TRACE", help="A trace that was imported or recorded.")
]
ToOption = Annotated[
    str, typer.Option("--to", metavar="URL", help="The server that the statements are sent to.")
]
SpeedOption = Annotated[
    str,
    typer.Option(
        "--speed",
        metavar="0.1…10|max",
        help="How many times as fast as it was recorded; max waits for nothing but the replies.",
    ),
]
OrderOption = Annotated[
    str,
    typer.Option(
        "--order",
        metavar="sessions|commits",
        help="Keep the order within each session, or also that of commits that touched the same rows.",
    ),
]
PartialOption = Annotated[
    bool, typer.Option("--partial", help="Replay transactions of which the trace has a part only, too.")
]
TimeoutOption = Annotated[
    str,
    typer.Option(
        "--answer-timeout",
        metavar="TIME",
        help="The longest that a statement may take.",
    ),
]
StatementsOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Keep each statement's times in a Parquet file.")
]
DatabaseOption = Annotated[
    str | None,
    typer.Option("--database", metavar="NAME", help="Take the statements of this database alone."),
]
OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="The trace that is made.")]
MaskOption = Annotated[
    bool,
    typer.Option("--mask", help="Replace every value by another of the same form, before it is written."),
]


@app.command("import")
def import_(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="The log's files in their order; - is standard input."),
    ],
    out: OutOption,
    *,
    log_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="The log's format; told by the file where it can be. A wrong name lists them all.",
        ),
    ] = None,
    mask: MaskOption = False,
    database: DatabaseOption = None,
) -> None:
    """Make a trace of a server's log."""
    from nephoscope.traces.importing import import_log  # noqa: PLC0415

    _say_made(out, import_log(files, out, log_format=log_format, mask=mask, database=database), "record")


@app.command()
def record(
    server: Annotated[
        str,
        typer.Option(
            "--from", metavar="URL", help="The server whose clients connect here instead, with its port."
        ),
    ],
    out: OutOption,
    *,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen", metavar="HOST:PORT", help="Where clients connect to; else a free port of 127.0.0.1."
        ),
    ] = None,
    mask: MaskOption = False,
    database: DatabaseOption = None,
    length: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="How long to record; until Ctrl-C if left out."),
    ] = None,
) -> None:
    """Make a trace of what clients ask PostgreSQL, MariaDB or MySQL through a proxy, until Ctrl-C."""
    from nephoscope.traces.recording import record_trace  # noqa: PLC0415

    def listening(connect: str) -> None:
        _say(f"recording; connect by: {connect}")

    seconds = None if length is None else _seconds("--for", length, "length")
    made = record_trace(
        server, out, listening=listening, listen=listen, mask=mask, database=database, seconds=seconds
    )
    _say_made(out, made, "connection")


@app.command()
def describe(trace: TraceArgument, *, as_json: JsonOption = False) -> None:
    """Say what is in a trace: its statements, the mix of its transactions, how they arrive."""
    from nephoscope.tables.model import terminal  # noqa: PLC0415
    from nephoscope.traces.describing import describe_trace  # noqa: PLC0415
    from nephoscope.traces.tables import lines_of, tables_of  # noqa: PLC0415

    described = describe_trace(trace)
    if as_json:
        sys.stdout.write(json_text(described.as_json()) + "\n")
        return
    for line in lines_of(described):
        _say(line)
    for table in tables_of(described):
        OUT.print()
        OUT.print(terminal(table))


@app.command()
def mask(trace: TraceArgument, out: OutOption) -> None:
    """Make a trace with other values of the same form: digits for digits, letters for letters."""
    from nephoscope.traces.masking import mask_trace  # noqa: PLC0415

    _say(f"{out}: {describe_count(mask_trace(trace, out), 'statement')}, masked")


@app.command()
def replay(
    trace: TraceArgument,
    to: ToOption,
    *,
    speed: SpeedOption = "1",
    order: OrderOption = "sessions",
    partial: PartialOption = False,
    database: DatabaseOption = None,
    answer_timeout: TimeoutOption = "60s",
    out: StatementsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a trace to a server again; say who was late, and what ended otherwise."""
    from nephoscope.errors import MeasurementError  # noqa: PLC0415
    from nephoscope.tables.model import terminal  # noqa: PLC0415
    from nephoscope.traces.replaying import (  # noqa: PLC0415
        ReplayOptions,
        parse_order,
        parse_speed,
        replay_trace,
    )
    from nephoscope.traces.tables import replay_lines, replay_tables  # noqa: PLC0415

    options = ReplayOptions(
        speed=parse_speed(speed),
        order=parse_order(order),
        partial=partial,
        database=database,
        answer_timeout_s=_seconds("--answer-timeout", answer_timeout, "limit", "24h"),
    )
    replayed = replay_trace(trace, to, options, out)
    if as_json:
        sys.stdout.write(json_text(replayed.as_json()) + "\n")
    else:
        for line in replay_lines(replayed):
            _say(line)
        for table in replay_tables(replayed):
            OUT.print()
            OUT.print(terminal(table))
    if replayed.interrupted is not None:
        raise MeasurementError(replayed.interrupted)


@app.command()
def workload(
    trace: TraceArgument,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="The new folder.")],
    *,
    examples: Annotated[
        int, typer.Option("--examples", metavar="N", help="The most transactions of each shape, with values.")
    ] = 100,
    slot: Annotated[
        str | None,
        typer.Option(
            "--slot", metavar="TIME", help="The length of a phase; by default there are 120 at most."
        ),
    ] = None,
) -> None:
    """Make a workload of a trace's transactions, and a study with its mix and its arrivals."""
    from nephoscope.traces.workload import make_workload  # noqa: PLC0415

    slot_s = None if slot is None else _seconds("--slot", slot, "length")
    made = make_workload(trace, out, examples=examples, slot_s=slot_s)
    _say(
        f"{out}: {describe_count(made.transactions, 'transaction')} of {describe_count(made.shapes, 'shape')}, "
        f"{describe_count(made.examples, 'example')}; {describe_count(made.slots, 'slot')} of {made.slot_s:g} s"
    )
    for why, count in made.left_out.items():
        _say(f"  left out: {count:,} {why}")


def _seconds(option: str, text: str, what: str, most: str | None = None) -> float:
    """Read a length of time. Raises ``InputError``."""
    from nephoscope.errors import InputError  # noqa: PLC0415
    from nephoscope.settings.units import parse_duration  # noqa: PLC0415

    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise InputError(f"{option} {text}: {error}") from None
    if seconds <= 0 or (most is not None and seconds > parse_duration(most)):
        limit = "" if most is None else f", up to {most}"
        raise InputError(f"{option} {text}: no such {what} (allowed: more than 0{limit})")
    return seconds


def _say_made(out: Path, made: MadeTrace, of: str) -> None:
    told = f"{out}: {describe_count(made.statements, 'statement')} of {describe_count(made.records, of)}"
    _say(f"{told} ({made.meta.format}{', masked' if made.meta.masked else ''})")
    for why, count in made.meta.left_out.items():
        _say(f"  left out: {count:,} {why}")


def _say(line: str) -> None:
    OUT.print(visible(line), markup=False, highlight=False, soft_wrap=True)
