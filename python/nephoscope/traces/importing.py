"""Logs of servers become a trace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nephoscope import __version__, _engine
from nephoscope.errors import InputError
from nephoscope.traces.trace import TraceMeta, as_batch, writing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PIPE = "-"
"""The path that stands for standard input."""
FORMATS: Mapping[str, str] = {name: about for name, about, *_ in _engine.log_formats()}
"""The formats of logs, and what writes them."""


@dataclass(frozen=True)
class ImportedLog:
    """What has come of a log."""

    meta: TraceMeta
    statements: int
    records: int
    """How many records the log has."""


def import_log(
    files: Sequence[str],
    out: Path,
    *,
    log_format: str | None = None,
    mask: bool = False,
    database: str | None = None,
) -> ImportedLog:
    """Write a trace of a log, whose files are given in their order; memory does not grow with it.

    Raises:
        InputError: a record is not as the format has it (with file and line), no statement is in it, or the trace
            cannot be made there.

    """
    name = _format_of(files, log_format)
    _, _, dialect, resolution_us = next(found for found in _engine.log_formats() if found[0] == name)
    paths = ["/dev/stdin" if path == PIPE else path for path in files]
    with writing(out) as draft:
        reader = _engine.SqlTraceReader(name, paths, mask, database)
        first: int | None = None
        while (columns := reader.next()) is not None:
            times: Any = np.frombuffer(columns["time_us"], np.int64)
            first = int(times[0]) if first is None else first
            draft.write(_batch(columns, first))
        if first is None:
            raise InputError(_empty(files, name, reader.left_out))
        draft.meta = meta = TraceMeta(
            format=name,
            dialect=dialect,
            resolution_us=resolution_us,
            epoch_us=first,
            zone=reader.zone,
            masked=mask,
            left_out=reader.left_out,
            nephoscope=__version__,
        )
    return ImportedLog(meta, draft.statements, reader.records)


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


def _empty(files: Sequence[str], name: str, left_out: Mapping[str, int]) -> str:
    found = "; ".join(f"{count:,} {why}" for why, count in left_out.items()) or "nothing at all"
    return f"{', '.join(files)}: no statement is in this log of the format {name}. It has {found}"


def _batch(columns: Mapping[str, Any], first_us: int) -> pa.RecordBatch:
    """Make Arrow's columns of what the engine gives."""
    duration = np.frombuffer(columns["duration_us"], np.int64)
    rows = len(duration)
    given = np.frombuffer(columns["given"], np.uint8)
    made: dict[str, Any] = {
        "time_us": pa.array(np.frombuffer(columns["time_us"], np.int64) - first_us),
        "duration_us": pa.array(duration, mask=duration < 0),
        "rows": pa.nulls(rows, pa.int64()),
        "parameters": pa.ListArray.from_arrays(
            pa.array(_offsets(columns["parameter_ends"])), _texts(columns["parameters"], given)
        ),
    }
    for name, kind in {
        "session": np.uint32,
        "transaction": np.uint64,
        "place": np.uint32,
        "fingerprint": np.uint64,
    }.items():
        made[name] = pa.array(np.frombuffer(columns[name], kind))
    for name in ("statement", "kinds", "error", "database"):
        made[name] = _named(columns[name], empty=name in {"statement", "kinds"})
    return as_batch(made)


def _offsets(ends: bytes) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.concatenate([np.zeros(1, np.int32), np.frombuffer(ends, np.int32)])


def _texts(texts: tuple[bytes, bytes], given: np.ndarray[Any, Any] | None = None) -> Any:  # noqa: ANN401 - an array of texts
    content, ends = texts
    valid = None if given is None else pa.py_buffer(np.packbits(given, bitorder="little").tobytes())
    buffers = [valid, pa.py_buffer(_offsets(ends).tobytes()), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.string(), len(ends) // 4, buffers)


def _named(named: tuple[bytes, tuple[bytes, bytes]], *, empty: bool) -> Any:  # noqa: ANN401 - an array of texts
    """Make a column of which many texts are the same; an empty one is null unless it may be ``empty``."""
    codes = np.frombuffer(named[0], np.int32)
    texts = _texts(named[1])
    absent = (
        None if empty else np.isin(codes, [code for code, text in enumerate(texts.to_pylist()) if not text])
    )
    indices: Any = pa.array(codes, mask=absent)
    return pa.DictionaryArray.from_arrays(indices, texts)
