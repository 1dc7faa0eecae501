"""Traces of other tools become a corpus: each file a run."""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.storage.corpus import CapturedRun, CorpusMeta, CorpusWriter, native_columns
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
_SECOND_US = 1_000_000


@dataclass(frozen=True)
class Slice:
    """Which seconds of a trace are taken, counted from its first request."""

    start_s: int = 0
    """The first."""
    end_s: int | None = None
    """The one at which it ends, not taken itself; None for the end of the trace."""

    @property
    def whole(self) -> bool:
        """Whether it is all of a trace."""
        return self == Slice()

    def of(self, columns: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Give the requests in it, in the order of their times, which count from its beginning."""
        if self.whole:
            return columns
        found = native_columns(columns)
        start_us = self.start_s * _SECOND_US
        first = np.searchsorted(found["time_us"], start_us)
        last = None if self.end_s is None else np.searchsorted(found["time_us"], self.end_s * _SECOND_US)
        found["time_us"] = found["time_us"] - start_us
        return {name: column[first:last].tobytes() for name, column in found.items()}


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
    part: Slice = Slice()
    """What is taken of each trace, and of the transactions."""


@dataclass(frozen=True)
class ImportedTrace:
    """What has come of a file."""

    path: str
    format: str
    requests: int
    seconds: int
    """The last one may be a part only."""
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
            requests, seconds = _write(run, path, reader, how.part, writer)
            traces.append(ImportedTrace(path, name, requests, seconds, reader.left_out))
        if how.transactions is not None:
            for rows in _transactions(how.transactions, len(files), how.part):
                writer.write("transactions", dict(zip(_TRANSACTIONS, rows, strict=True)))
        writer.segments(segments)
        runs = [CapturedRun(run=run, seconds=trace.seconds) for run, trace in enumerate(traces)]
        source = {"traces": [_source(trace) for trace in traces], "options": dict(how.options)}
        if not how.part.whole:
            source["part"] = asdict(how.part)
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


def _write(run: int, path: str, reader: _Reader, part: Slice, writer: CorpusWriter) -> tuple[int, int]:
    """Write a run's requests; gives how many there are, and in how many seconds.

    A trace does not say when it ended: its last second is that of its last request, and may be a part only.
    """
    requests, seconds, reached_us = 0, 0, -1
    while (columns := reader.next()) is not None:
        reached_us = int(np.frombuffer(columns["time_us"], np.int64)[-1])
        taken = part.of(columns)
        if len(times := np.frombuffer(taken["time_us"], np.int64)):
            requests, seconds = requests + len(times), int(times[-1]) // _SECOND_US + 1
            writer.requests(run, taken)
        if part.end_s is not None and reached_us >= part.end_s * _SECOND_US:
            seconds = part.end_s - part.start_s
            break
    if requests == 0:
        where = "it" if part.whole else f"this part of it; it lasts {(reached_us + 1) / _SECOND_US:,.6g} s"
        raise InputError(f"{path}: no request is in {where}")
    return requests, seconds


def _transactions(path: Path, runs: int, part: Slice) -> Iterator[list[list[object]]]:
    """Read the transactions of a part in pieces, as columns."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file, strict=True)
            if next(lines, None) != _TRANSACTIONS:
                raise InputError(f"{path}: line 1: the columns are not {','.join(_TRANSACTIONS)}")
            rows: list[list[object]] = []
            for row in lines:
                run, second, name, count = _transaction(path, lines.line_num, row, runs)
                if second >= part.start_s and (part.end_s is None or second < part.end_s):
                    rows.append([run, second - part.start_s, name, count])
                if len(rows) == 1 << 16:
                    yield [list(column) for column in zip(*rows, strict=True)]
                    rows = []
            if rows:
                yield [list(column) for column in zip(*rows, strict=True)]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from error


def _transaction(path: Path, line: int, row: list[str], runs: int) -> tuple[int, int, str, int]:
    def number(text: str, what: str, most: int) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < most):  # noqa: PLR2004
            raise InputError(
                f"{path}: line {line}: the {what} is `{text}` (allowed: whole numbers below {most})"
            )
        return int(text)

    if len(row) != len(_TRANSACTIONS) or not row[2]:
        raise InputError(f"{path}: line {line}: expected {','.join(_TRANSACTIONS)}")
    run, second, name, count = row
    return number(run, "run", runs), number(second, "second", _MOST), name, number(count, "count", 2**63)
