"""Traces with named columns: CSV and Parquet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.storage.corpus import OPERATIONS, PROCESSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

COLUMN_FORMATS: Mapping[str, str] = {
    "csv": "CSV with a line of names (--columns)",
    "parquet": "Parquet (--columns)",
}
"""The formats with named columns, and what they are."""
_NEEDED = ("time", "offset", "bytes", "operation")
_FIELDS = (*_NEEDED, "name", "process", "latency")
_NUMBERS = frozenset({"time", "offset", "bytes", "latency"})
_TERM = re.compile(r"([a-z]+)=([^,=*/]+)(?:([*/])([0-9]{1,12}))?")
_WORDS: Mapping[str, str] = {
    **dict(zip(OPERATIONS, OPERATIONS, strict=True)),
    "r": "read",
    "w": "write",
    "s": "sync",
    "fsync": "sync",
    "flush": "sync",
    "d": "discard",
    "trim": "discard",
}
_WHOLE, _NUMBER = r"^[0-9]{1,18}$", r"^[0-9]{1,18}(\.[0-9]*)?$"
_BEYOND = 2.0**63
_PACKED: Any = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_BATCH = 1 << 16
_INEXACT = 1e-3
_EMPTY: Any = pa.scalar("")


@dataclass(frozen=True)
class Term:
    """A column, and what its numbers are multiplied with or divided by."""

    column: str
    times: int = 1
    by: int = 1


Columns = dict[str, Term]
"""What each field is made of: time and latency in µs, offset and bytes in bytes, operation, name, process."""


def parse_columns(text: str) -> Columns:
    """Read ``time=ts/1000,offset=lba*512,bytes=size,operation=op,name=disk,latency=took``.

    Raises:
        InputError: it is not of this form, or a field is missing.

    """
    found: Columns = {}
    for part in text.split(","):
        match = _TERM.fullmatch(part.strip())
        if match is None:
            raise InputError(
                f"--columns {part}: expected FIELD=COLUMN, FIELD=COLUMN*NUMBER or FIELD=COLUMN/NUMBER"
            )
        field, column, sign, number = match.groups()
        if field not in _FIELDS or field in found:
            again = "is there twice" if field in found else f"is no field (allowed: {', '.join(_FIELDS)})"
            raise InputError(f"--columns {part}: {field} {again}")
        if sign and (field not in _NUMBERS or int(number) == 0):
            raise InputError(f"--columns {part}: a number above 0 for {', '.join(sorted(_NUMBERS))} alone")
        found[field] = Term(
            column.strip(), **({} if not sign else {"times" if sign == "*" else "by": int(number)})
        )
    if missing := [field for field in _NEEDED if field not in found]:
        raise InputError(f"--columns {text}: {', '.join(missing)} missing")
    return found


class ColumnReader:
    """Reads a trace with named columns, a batch at a time."""

    def __init__(
        self,
        kind: str,
        path: str,
        columns: Columns | None,
        options: Sequence[tuple[str, str]],
        segments: _engine.StorageSegments,
    ) -> None:
        """Open a trace of a kind (one of :data:`COLUMN_FORMATS`).

        Raises:
            InputError: it cannot be read, or lacks a column.

        """
        if columns is None:
            raise InputError(f"{path}: the format {kind} needs --columns, such as time=ts,offset=lba*512,…")
        if options:
            raise InputError(f"the format {kind} has no option `{options[0][0]}` (allowed: none)")
        self._path, self._columns = path, columns
        self._line, self._first = ("line", 2) if kind == "csv" else ("row", 1)
        self._batches = self._reading(_csv(path, columns) if kind == "csv" else _parquet(path, columns))
        self._intake = _engine.TraceColumns(f"{path}: {self._line}", segments)
        self._name = Path(path).stem
        self.left_out: Mapping[str, int] = {}
        """Nothing: each row is a request."""

    def next(self) -> Mapping[str, bytes] | None:
        """Give the next requests, in the order of their times, or None behind the last.

        Raises:
            InputError: a row is wrong; its number is told, that of its line for CSV.

        """
        for batch in self._batches:
            self._push(batch)
            self._first += batch.num_rows
            if (ready := self._intake.next()) is not None:
                return ready
        self._intake.end()
        return self._intake.next()

    def _reading(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except OSError as error:
            raise InputError(f"{self._path}: {error.strerror or error}") from error
        except (pa.ArrowException, KeyError) as error:
            raise InputError(f"{self._path}: {error}") from error

    def _push(self, batch: pa.RecordBatch) -> None:
        rows = batch.num_rows
        names, codes = self._names(batch)
        latency = np.full(rows, np.nan)
        if "latency" in self._columns:
            latency = self._numbers(batch, "latency", missing=True)
        self._intake.push(
            self._first,
            names,
            codes.astype("=u4").tobytes(),
            np.rint(self._numbers(batch, "time")).astype("=i8").tobytes(),
            self._whole(batch, "offset").tobytes(),
            self._whole(batch, "bytes").tobytes(),
            self._words(batch, "operation", _WORDS, OPERATIONS).tobytes(),
            self._processes(batch).tobytes(),
            latency.astype("=f4").tobytes(),
        )

    def _wrong(self, field: str, bad: NDArray[np.bool_], column: Any, allowed: str) -> None:  # noqa: ANN401 - of any type
        """Raise for the first row that is marked."""
        if bad.any():
            at = int(np.argmax(bad))
            shown = str(column[at].as_py())[:40]
            place = f"{self._path}: {self._line} {self._first + at}"
            name = self._columns[field].column
            raise InputError(f"{place}: {field}, column {name}, is `{shown}` (allowed: {allowed})")

    def _numbers(self, batch: pa.RecordBatch, field: str, *, missing: bool = False) -> NDArray[Any]:
        """Give a field's numbers, integers where the column has integers."""
        term = self._columns[field]
        column: Any = batch.column(batch.schema.get_field_index(term.column))
        allowed = "numbers from 0 to 9.2e18"
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        if pa.types.is_string(column.type):
            column = self._read_text(field, column, missing=missing)
        elif not missing:
            self._wrong(field, column.is_null().to_numpy(zero_copy_only=False), column, allowed)
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise InputError(
                f"{self._path}: {field}, column {term.column}, is of type {column.type}, not a number"
            )
        if column.null_count:
            column = column.cast(pa.float64())
        values = column.to_numpy(zero_copy_only=False)
        scale = term.times / term.by
        fits = np.isnan(values) if missing else np.zeros(len(values), bool)
        fits |= (values >= 0) & (values.astype(float) * max(scale, 1.0) < _BEYOND)
        self._wrong(field, ~fits, column, allowed)
        if field == "latency" or np.issubdtype(values.dtype, np.floating):
            return np.asarray(values * term.times / term.by)
        return np.asarray(values.astype(np.int64) * term.times // term.by)

    def _read_text(self, field: str, column: Any, *, missing: bool) -> Any:  # noqa: ANN401 - a column of any type
        column = pc.utf8_trim_whitespace(column)
        if missing:
            column = pc.if_else(pc.equal(column, _EMPTY), None, column)
        for pattern, kind in ((_WHOLE, pa.int64()), (_NUMBER, pa.float64())):
            fits: Any = pc.fill_null(pc.match_substring_regex(column, pattern), missing)
            if pc.all(fits).as_py() is not False:
                return column.cast(kind)
        self._wrong(field, ~fits.to_numpy(zero_copy_only=False), column, "numbers such as 12 or 12.5")
        raise AssertionError  # one of the rows does not fit

    def _whole(self, batch: pa.RecordBatch, field: str) -> NDArray[np.uint64]:
        values = self._numbers(batch, field)
        name = self._columns[field].column
        column = batch.column(batch.schema.get_field_index(name))
        # What a fraction times a number should be has no exact double.
        self._wrong(field, np.abs(values - np.rint(values)) > _INEXACT, column, "whole numbers of bytes")
        whole: NDArray[np.uint64] = np.rint(values).astype("=u8")
        return whole

    def _words(
        self, batch: pa.RecordBatch, field: str, words: Mapping[str, str], names: Sequence[str]
    ) -> NDArray[np.uint8]:
        """Give the places in ``names`` of what a column of words says; ``words`` are those that are allowed."""
        column = self._text(batch, field)
        found: Any = pc.utf8_lower(pc.utf8_trim_whitespace(column))
        places: Any = pc.index_in(found, pa.array(list(words)))
        self._wrong(field, places.is_null().to_numpy(zero_copy_only=False), column, ", ".join(words))
        numbers = np.array([names.index(name) for name in words.values()], np.uint8)
        chosen: NDArray[np.uint8] = numbers[places.to_numpy(zero_copy_only=False)]
        return chosen

    def _processes(self, batch: pa.RecordBatch) -> NDArray[np.uint8]:
        if "process" not in self._columns:
            return np.full(batch.num_rows, PROCESSES.index("unknown"), np.uint8)
        return self._words(batch, "process", {name: name for name in PROCESSES}, PROCESSES)

    def _names(self, batch: pa.RecordBatch) -> tuple[list[str], NDArray[np.int32]]:
        if "name" not in self._columns:
            return [self._name], np.zeros(batch.num_rows, np.int32)
        column = self._text(batch, "name")
        empty = pc.fill_null(pc.equal(column, _EMPTY), True)  # noqa: FBT003 - as Arrow has it
        self._wrong("name", empty.to_numpy(zero_copy_only=False), column, "any text")
        encoded = column.dictionary_encode()
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()

    def _text(self, batch: pa.RecordBatch, field: str) -> Any:  # noqa: ANN401 - a column of texts
        column: Any = batch.column(batch.schema.get_field_index(self._columns[field].column))
        return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _csv(path: str, columns: Columns) -> Iterator[pa.RecordBatch]:
    names = list(dict.fromkeys(term.column for term in columns.values()))
    # All as text: what is no number is then found with its line.
    convert = pa_csv.ConvertOptions(include_columns=names, column_types=dict.fromkeys(names, pa.string()))
    # A line left out would make the numbers of those behind it wrong.
    parse = pa_csv.ParseOptions(ignore_empty_lines=False)
    # Arrow opens paths itself only where it may seek: a pipe it has to be handed open.
    file: Any
    with (
        Path(path).open("rb") as raw,
        pa.input_stream(raw, compression=_PACKED.get(Path(path).suffix)) as file,
    ):
        read = pa_csv.ReadOptions(use_threads=False)
        yield from pa_csv.open_csv(file, read, parse, convert)


def _parquet(path: str, columns: Columns) -> Iterator[pa.RecordBatch]:
    names = list(dict.fromkeys(term.column for term in columns.values()))
    with pq.ParquetFile(path) as file:
        if absent := set(names) - set(file.schema_arrow.names):
            raise InputError(
                f"{path}: no column {', '.join(sorted(absent))} (there are {', '.join(file.schema_arrow.names)})"
            )
        yield from file.iter_batches(_BATCH, columns=names)
