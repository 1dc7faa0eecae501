"""``nephoscope histories …``: files of what transactions did and saw."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nephoscope.cli.consoles import ERR, OUT
from nephoscope.cli.options import JsonOption
from nephoscope.errors import InputError
from nephoscope.settings.units import describe_count
from nephoscope.visible import json_text, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

app = typer.Typer(
    help="Histories: what transactions did and saw, and the anomalies of isolation in them.",
    no_args_is_help=True,
)
HistoryArgument = Annotated[
    Path,
    typer.Argument(help="A run directory, a file of its histories, or a history of Elle's in EDN or JSON."),
]


@app.callback()
def _group() -> None:
    pass


@app.command()
def check(
    history: HistoryArgument,
    *,
    order: Annotated[
        Literal["none", "session", "real-time"],
        typer.Option("--order", help="What orders transactions besides their dependencies."),
    ] = "real-time",
    window: Annotated[
        float,
        typer.Option(
            "--window",
            metavar="SECONDS",
            min=0.001,
            help="For how long transactions are held, by the history's clock.",
        ),
    ] = 60.0,
    as_json: JsonOption = False,
) -> int:
    """Find anomalies by name, with witnesses, and the strongest isolation level that is not contradicted.

    Exit codes: 0 none, 1 an anomaly was found, 2 bad input.
    """
    from nephoscope.engine.histories import check_file  # noqa: PLC0415

    found = {path: check_file(path, order, window) for path in _files(history)}
    if as_json:
        told = [{"file": str(path), **one} for path, one in found.items()]
        sys.stdout.write(json_text(told) + "\n")
    else:
        for path, one in found.items():
            for line in _lines(path, one):
                OUT.print(visible(line), markup=False, highlight=False, soft_wrap=True)
    return 1 if any(one["anomalies"] for one in found.values()) else 0


def _lines(path: Path, found: Mapping[str, Any]) -> Iterator[str]:
    counts = ", ".join(f"{found[name]:,} {name}" for name in ("committed", "aborted", "unknown"))
    yield f"{path}: {counts}; {found['operations']:,} operations"
    for anomaly in found["anomalies"]:
        order = "" if anomaly["order"] == "none" else f" in {anomaly['order']} order"
        yield f"  {anomaly['anomaly']}{order}: {anomaly['times']:,} ({anomaly['about']})"
        of_it = (anomaly["anomaly"], anomaly["order"])
        for witness in found["witnesses"]:
            if (witness["anomaly"], witness["order"]) == of_it:
                yield f"    {witness['told']}"
    if not found["anomalies"]:
        yield "  no anomaly"
    yield f"  not contradicted: {found['strongest'] or 'no isolation level'}"
    if late := found["late"] + found["forced"] + found["unordered"]:
        yield f"  {late:,} operations came too late, or could not be followed: anomalies may be missing"
    if found["is_cut"]:
        yield "  the file is not the whole history: what seems to be written by nobody may be in its rest"
    if found["skipped"]:
        yield f"  {describe_count(found['skipped'], 'operation')} of no session left out"


@app.command()
def export(
    history: HistoryArgument,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file that is made.")],
    *,
    form: Annotated[
        Literal["edn", "elle-json"], typer.Option("--form", help="How Elle's maps are written.")
    ] = "edn",
    kind: Annotated[
        Literal["list-append", "rw-register"],
        typer.Option("--kind", help="Which operations: Elle's checkers take one kind each."),
    ] = "list-append",
) -> None:
    """Write a history as Elle reads it; the whole of it is held in memory."""
    from nephoscope import _engine  # noqa: PLC0415
    from nephoscope.files import check_named  # noqa: PLC0415

    files = list(_files(history))
    if len(files) > 1:
        raise InputError(f"{history} has {len(files)} histories; name one of them, such as {files[0]}")
    check_named(out)
    transactions, left = _engine.export_history(files[0], out, form, kind)
    rest = f"; {describe_count(left, 'operation')} of other kinds left out" if left else ""
    ERR.print(
        visible(f"{out}: {describe_count(transactions, 'transaction')}{rest}"), markup=False, highlight=False
    )


def _files(path: Path) -> list[Path]:
    """List a run's histories in their order, or the one file that is given. Raises ``InputError``."""
    from nephoscope.files import check_regular  # noqa: PLC0415
    from nephoscope.store.layout import HISTORIES, histories_of  # noqa: PLC0415

    found = [path]
    if path.is_dir():
        found = histories_of(path)
        if not found:
            raise InputError(f"{path} has no {HISTORIES}: none of its transactions told what it saw")
    for file in found:
        try:
            check_regular(file.resolve() if file is path else file)
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
    return found
