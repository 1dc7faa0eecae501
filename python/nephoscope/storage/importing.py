"""Traces of other tools become a corpus: each file a run."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.storage.corpus import CapturedRun, CorpusMeta, CorpusWriter
from nephoscope.storage.trace_columns import COLUMN_FORMATS, ColumnReader, Columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PIPE = "-"
"""The path that stands for standard input."""
LINE_FORMATS: Mapping[str, str] = {name: about for name, about, _ in _engine.trace_formats()}
"""The formats that are read line by line, and what they are."""
FORMATS: Mapping[str, str] = {**LINE_FORMATS, **COLUMN_FORMATS}
"""All formats, and what they are."""
_TRANSACTIONS = ["run", "second", "type", "count"]
_MOST = 2**31


@dataclass(frozen=True)
class How:
    """How traces are read."""

    format: str | None = None
    """One of :data:`FORMATS`; None to go by the file."""
    options: Sequence[tuple[str, str]] = ()
    """Options of the format, as names and values."""
    columns: Columns | None = None
    """For the formats with named columns: which column is what."""
    segment_bytes: int = 16 * 2**20
    """The size of a segment."""
    transactions: Path | None = None
    """A CSV file of the transactions above: run, second, type, count."""


@dataclass(frozen=True)
class ImportedTrace:
    """What has come of a file."""

    path: str
    format: str
    requests: int
    seconds: int
    """Whole seconds, at least one."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What of it is no request: why, and how often."""


class _Reader(Protocol):
    def next(self) -> Mapping[str, bytes] | None: ...

    @property
    def left_out(self) -> Mapping[str, int]: ...


def import_traces(files: Sequence[str], folder: Path, how: How) -> list[ImportedTrace]:
    """Write a corpus of the view ``trace``; memory does not grow with the files.

    Raises:
        InputError: a file is not as its format has it (with the number of the line), or the corpus is there already.

    """
    formats = [_format_of(path, how) for path in files]
    segments = _engine.StorageSegments(how.segment_bytes)
    with CorpusWriter(folder) as writer:
        traces = []
        for run, (path, name) in enumerate(zip(files, formats, strict=True)):
            reader = _reader(path, name, how, segments)
            requests, seconds = _write(run, path, reader, writer)
            traces.append(ImportedTrace(path, name, requests, seconds, reader.left_out))
        if how.transactions is not None:
            for rows in _transactions(how.transactions, len(files)):
                writer.write("transactions", dict(zip(_TRANSACTIONS, rows, strict=True)))
        writer.segments(segments)
        runs = [CapturedRun(run=run, seconds=trace.seconds) for run, trace in enumerate(traces)]
        source = {"traces": [_source(trace) for trace in traces], "options": dict(how.options)}
        writer.finish(CorpusMeta(view="trace", segment_bytes=how.segment_bytes, source=source, runs=runs))
    return traces


def _source(trace: ImportedTrace) -> dict[str, object]:
    return {"file": Path(trace.path).name, "format": trace.format, "left_out": dict(trace.left_out)}


def _format_of(path: str, how: How) -> str:
    if how.format is not None:
        if how.format not in FORMATS:
            raise InputError(f"no trace format `{how.format}` (allowed: {', '.join(FORMATS)})")
        return how.format
    if path != PIPE:
        suffix = Path(path).suffix.removeprefix(".").lower()
        if suffix in COLUMN_FORMATS and how.columns is not None:
            return suffix
        if suffix != "parquet" and (guessed := _engine.guess_trace_format(path)) is not None:
            return guessed
    raise InputError(f"{path}: its format is not certain: name it by --format ({', '.join(FORMATS)})")


def _reader(path: str, name: str, how: How, segments: _engine.StorageSegments) -> _Reader:
    place = "/dev/stdin" if path == PIPE else path
    if name in COLUMN_FORMATS:
        return ColumnReader(name, place, how.columns, how.options, segments)
    if how.columns is not None:
        raise InputError(f"{path}: the format {name} has no named columns (--columns)")
    return _engine.TraceReader(name, place, list(how.options), segments)


def _write(run: int, path: str, reader: _Reader, writer: CorpusWriter) -> tuple[int, int]:
    """Write a run's requests; gives how many there are, and how many whole seconds they last, at least one."""
    requests, last_us = 0, 0
    while (columns := reader.next()) is not None:
        times = np.frombuffer(columns["time_us"], np.int64)
        requests, last_us = requests + len(times), int(times[-1])
        writer.requests(run, columns)
    if requests == 0:
        raise InputError(f"{path}: no request is in it")
    return requests, max(1, last_us // 1_000_000)


def _transactions(path: Path, runs: int) -> Iterator[list[list[object]]]:
    """Read the transactions in pieces, as columns."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file, strict=True)
            if next(lines, None) != _TRANSACTIONS:
                raise InputError(f"{path}: line 1: the columns are not {','.join(_TRANSACTIONS)}")
            rows: list[list[object]] = []
            for row in lines:
                rows.append(_transaction(path, lines.line_num, row, runs))
                if len(rows) == 1 << 16:
                    yield [list(column) for column in zip(*rows, strict=True)]
                    rows = []
            if rows:
                yield [list(column) for column in zip(*rows, strict=True)]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from error


def _transaction(path: Path, line: int, row: list[str], runs: int) -> list[object]:
    def number(text: str, what: str, most: int) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < most):  # noqa: PLR2004
            raise InputError(
                f"{path}: line {line}: the {what} is `{text}` (allowed: whole numbers below {most})"
            )
        return int(text)

    if len(row) != len(_TRANSACTIONS) or not row[2]:
        raise InputError(f"{path}: line {line}: expected {','.join(_TRANSACTIONS)}")
    run, second, name, count = row
    return [number(run, "run", runs), number(second, "second", _MOST), name, number(count, "count", 2**63)]
