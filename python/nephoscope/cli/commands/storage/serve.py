"""``nephoscope storage serve``: a page store of known costs, until it is ended."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nephoscope.cli.consoles import OUT
from nephoscope.cli.options import JsonOption
from nephoscope.errors import InputError
from nephoscope.interrupts import Interrupted
from nephoscope.settings.units import parse_bytes
from nephoscope.visible import json_text

if TYPE_CHECKING:
    from nephoscope.storage.serving import PageStoreSettings

TURN_S = 0.2
"""How often is looked whether the time is over."""


def serve(
    replicas: Annotated[int, typer.Option(min=1, max=3, help="How many, a port each.")] = 3,
    *,
    host: Annotated[str, typer.Option(help="The IP address that they listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65533, help="The first replica's port; the others follow. 0: any free.")
    ] = 0,
    append: Annotated[str, typer.Option(metavar="TIME", help="Service time of an append.")] = "200us",
    read: Annotated[str, typer.Option(metavar="TIME", help="Service time of a read.")] = "100us",
    per_byte: Annotated[str, typer.Option(metavar="TIME", help="And of each byte: 0.001us is 1 ns.")] = "0s",
    per_record: Annotated[
        str, typer.Option(metavar="TIME", help="And of each record that makes a page of an older image.")
    ] = "1us",
    parallel: Annotated[int, typer.Option(help="Requests that a replica serves at once.")] = 4,
    stall: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[N:]AT+FOR", help="Replica N (1) does nothing, as 2:10s+0.5s. May be repeated."
        ),
    ] = None,
    page_size: Annotated[str, typer.Option(metavar="BYTES", help="The bytes of a page.")] = "8KiB",
    consolidate: Annotated[
        int, typer.Option(help="An image is made of a chain of so many records; 0: never.")
    ] = 32,
    retain: Annotated[int, typer.Option(help="LSNs of a segment that can be read always.")] = 1024,
    memory: Annotated[str, typer.Option(metavar="BYTES", help="The most that a replica holds.")] = "1GiB",
    folder: Annotated[
        Path | None, typer.Option(help="Where logs are kept, a file a replica; in memory alone, if left out.")
    ] = None,
    sync: Annotated[
        bool, typer.Option("--sync", help="A record is durable in its file before it is acknowledged.")
    ] = False,
    seconds: Annotated[float | None, typer.Option(help="Ends by itself then.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Serve a page store, the stand-in for a cloud's storage tier, until Ctrl-C; then show what it counted."""
    from nephoscope.storage.serving import replicas_of  # noqa: PLC0415

    if sync and folder is None:
        raise InputError("--sync: nothing is durable without --folder")
    settings = _settings(
        append=append,
        read=read,
        per_byte=per_byte,
        per_record=per_record,
        parallel=parallel,
        page_size=_bytes("--page-size", page_size),
        consolidate=consolidate,
        retain=retain,
        memory=_bytes("--memory", memory),
        sync=sync,
    )
    described = replicas_of(replicas, host, port, stall or (), folder)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    _serve(settings.engine(described), seconds, as_json=as_json)


def _serve(settings: str, seconds: float | None, *, as_json: bool) -> None:
    from nephoscope import _engine  # noqa: PLC0415
    from nephoscope.storage.serving import table_of  # noqa: PLC0415
    from nephoscope.tables.model import terminal  # noqa: PLC0415

    store = _engine.PageStore(settings)
    sys.stdout.write(f"{store.url}\n")
    sys.stdout.flush()
    interruption = _wait(seconds)
    table = table_of(store)
    store.close()
    if as_json:
        sys.stdout.write(json_text({table.name: list(table.rows)}) + "\n")
    else:
        OUT.print(terminal(table))
    if interruption is not None and seconds is not None:
        raise interruption


def _wait(seconds: float | None) -> Interrupted | None:
    """Wait until the time is over, or for whoever ends it: that is how a service without a time ends."""
    begun = time.monotonic()
    try:
        while seconds is None or time.monotonic() - begun < seconds:
            time.sleep(TURN_S)
    except Interrupted as interruption:
        return interruption
    return None


def _bytes(option: str, text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise InputError(f"{option} {text}: {error}") from None


def _settings(**given: object) -> PageStoreSettings:
    from pydantic import ValidationError  # noqa: PLC0415

    from nephoscope.storage.serving import PageStoreSettings  # noqa: PLC0415

    try:
        return PageStoreSettings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise InputError(f"--{name.replace('_', '-')} {given[name]}: {first['msg']}") from None
