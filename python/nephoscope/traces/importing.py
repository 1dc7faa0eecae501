"""Logs of servers become a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.traces.making import MadeTrace, TraceInMaking, TraceKind
from nephoscope.traces.trace import writing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PIPE = "-"
"""The path that stands for standard input."""
FORMATS: Mapping[str, str] = {name: about for name, about, *_ in _engine.log_formats()}
"""The formats of logs, and what writes them."""


def import_log(
    files: Sequence[str],
    out: Path,
    *,
    log_format: str | None = None,
    mask: bool = False,
    database: str | None = None,
) -> MadeTrace:
    """Write a trace of a log, whose files are given in their order; memory does not grow with it.

    Raises:
        InputError: a record is not as the format has it (with file and line), no statement is in it, or the trace
            cannot be made there.

    """
    name = _format_of(files, log_format)
    _, _, dialect, resolution_us = next(found for found in _engine.log_formats() if found[0] == name)
    paths = ["/dev/stdin" if path == PIPE else path for path in files]
    with writing(out) as draft:
        making = TraceInMaking(draft, _engine.SqlTraceReader(name, paths, mask, database))
        while making.take():
            pass
        empty = f"{', '.join(files)}: no statement is in this log of the format {name}"
        return making.finish(TraceKind(name, dialect, resolution_us, masked=mask), empty)


def _format_of(files: Sequence[str], given: str | None) -> str:
    allowed = ", ".join(FORMATS)
    if given is not None:
        if given not in FORMATS:
            raise InputError(f"--format {given}: no such format of logs (allowed: {allowed})")
        return given
    guessed = None if files[0] == PIPE or not Path(files[0]).is_file() else _engine.guess_log_format(files[0])
    if guessed is None:
        raise InputError(f"{files[0]}: its format is not certain: name it by --format ({allowed})")
    return guessed
