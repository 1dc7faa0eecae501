"""A corpus: the I/O of a storage tier and the transactions above it, run by run, as a folder of Parquet files."""

from __future__ import annotations

import errno
import json
import os
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import Field, ValidationError, field_validator

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.files import (
    USER_FILE_BYTES,
    is_file,
    make_folders,
    packaged_folder,
    packaged_folders,
    read_regular,
    replacing,
)
from nephoscope.settings.base import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

OPERATIONS: tuple[str, ...] = tuple(_engine.storage_operations())
"""What requests ask for; a column of numbers holds places in this list."""
PROCESSES: tuple[str, ...] = tuple(_engine.storage_processes())
"""The kinds of processes that make requests; likewise."""
FOREGROUND: frozenset[str] = frozenset({"unknown", "backend"})
"""Processes that work for a client who waits; all others are the background."""


def _schema(**kinds: pa.DataType) -> pa.Schema:
    return pa.schema(kinds)


_NAME = pa.dictionary(pa.int8(), pa.string())
TABLES: Mapping[str, pa.Schema] = {
    "requests": _schema(
        run=pa.int32(),
        time_us=pa.int64(),
        segment=pa.uint32(),
        offset=pa.uint64(),
        bytes=pa.uint32(),
        operation=_NAME,
        process=_NAME,
        latency_us=pa.float32(),
    ),
    "transactions": _schema(run=pa.int32(), second=pa.int32(), type=pa.string(), count=pa.int64()),
    "segments": _schema(segment=pa.uint32(), name=pa.string(), chunk=pa.uint32()),
}
"""The tables of a corpus. Times count from the beginning of their run; a request's latency may be null.

A segment is a chunk of ``segment_bytes`` of the relation, file or device that ``name`` says. ``transactions`` holds
those that ended in a second of a run, committed or aborted as their workload wants it.
"""


_ENCODINGS: Mapping[str, str] = {"time_us": "DELTA_BINARY_PACKED", "latency_us": "BYTE_STREAM_SPLIT"}
"""How columns without repetitions are kept: a quarter less than with dictionaries."""


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    found = {name: _ENCODINGS[name] for name in schema.names if name in _ENCODINGS}
    if not found:
        return {}
    return {"column_encoding": found, "use_dictionary": [name for name in schema.names if name not in found]}


_META = "corpus.json"
_PACKAGED = "corpora"
_NATIVE: Mapping[str, str] = {
    "time_us": "=i8",
    "segment": "=u4",
    "offset": "=u8",
    "bytes": "=u4",
    "operation": "=u1",
    "process": "=u1",
    "latency_us": "=f4",
}


@dataclass(frozen=True)
class Relations:
    """To which relation, file or device each segment belongs; a relation's number is its lowest segment's."""

    of: NDArray[np.int64]
    """The relation's number, by the number of the segment: (M,)."""
    chunk: NDArray[np.int64]
    """Which piece of it the segment is, likewise."""
    segment_bytes: int

    def number(self, segment: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Give the relation's number of segments, (N,); a segment that is in no table is a relation of its own."""
        known = segment < len(self.of)
        return np.where(known, self.of[np.where(known, segment, 0)], segment)

    @cached_property
    def several(self) -> list[int]:
        """The relations of several segments."""
        numbers, counts = np.unique(self.of, return_counts=True)
        return [int(number) for number in numbers[counts > 1]]

    def segments_of(self, relations: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the segment of each chunk of relations, -1 where there is none: (G,) gives (G, K)."""
        found = np.full((len(relations), int(self.chunk.max(initial=0)) + 1), -1, dtype=np.int64)
        for place, relation in enumerate(relations):
            own = np.flatnonzero(self.of == relation)
            found[place, self.chunk[own]] = own
        return found


def native_columns(columns: Mapping[str, bytes]) -> dict[str, NDArray[Any]]:
    """Give columns of requests as the engine gives them, native numbers as bytes, as arrays by their names."""
    return {name: np.frombuffer(columns[name], kind) for name, kind in _NATIVE.items()}


class CapturedRun(Settings):
    """A run of a corpus: what was asked for, and what was reached."""

    run: Annotated[int, Field(ge=0)]
    """Its number in the tables."""
    seconds: Annotated[int, Field(ge=1, le=366 * 86_400)]
    """How long it was captured, in whole seconds; what came before and after is not in the corpus."""
    mix: str = ""
    """The name of its mix; empty where the trace has none."""
    weights: dict[str, float] = Field(default_factory=dict)
    """The shares of the transactions that were asked for, adding up to 1; empty where that is not known."""
    target_tps: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """The transactions a second that were asked for; None for a closed load or an imported trace."""
    replicate: Annotated[int, Field(ge=1)] = 1
    """Which of several runs of one setting it is."""


class CorpusMeta(Settings):
    """What ``corpus.json`` holds."""

    format: Literal[1] = 1
    """The version of the layout."""
    view: Literal["page", "log", "trace"]
    """``page``: every read and write; ``log``: reads, and redo per log flush and segment; ``trace``: imported."""
    segment_bytes: Annotated[int, Field(ge=4096)]
    """The size of a segment."""
    source: dict[str, Any] = Field(default_factory=dict)
    """Where it comes from: product, version, workload, scale, settings, the run directory or the file's name."""
    runs: list[CapturedRun]

    @field_validator("runs")
    @classmethod
    def _numbered_once(cls, runs: list[CapturedRun]) -> list[CapturedRun]:
        numbers = [run.run for run in runs]
        if len(set(numbers)) < len(numbers):
            raise ValueError("two runs have the same number")
        return runs


def find_corpus(place: Path) -> Path:
    """Find the folder of a corpus that comes with nephoscope by its name; any other place is as it is."""
    if os.path.exists(place):  # noqa: PTH110 - pathlib's raises for some names
        return place
    return packaged_folder(_PACKAGED, str(place), _META) or place


class Corpus:
    """A corpus that stands on disk; tables are read when asked for."""

    def __init__(self, place: Path) -> None:
        """Open a corpus: a folder, or the name of one that comes with nephoscope.

        Raises:
            InputError: there is none, or it is not as it should be.

        """
        self.name = str(place)
        """What the user calls it."""
        self.folder = find_corpus(place)
        file = self.folder / _META
        try:
            self.meta = CorpusMeta.model_validate_json(read_regular(file, USER_FILE_BYTES))
        except OSError as error:
            known = ", ".join(packaged_folders(_PACKAGED, _META))
            raise InputError(
                f"{place}: no corpus: {_META}: {error.strerror or error}; a corpus is a folder, as storage capture "
                f"makes it, or one that comes with nephoscope: {known}"
            ) from error
        except ValidationError as error:
            raise InputError(f"{file}: {_said(error)}") from error

    @property
    def runs(self) -> list[CapturedRun]:
        """The runs, in the order of their numbers."""
        return sorted(self.meta.runs, key=lambda run: run.run)

    @property
    def types(self) -> list[str]:
        """The names of the transactions, in alphabetical order; empty for a trace without."""
        return sorted({str(name) for name in self.table("transactions")["type"].to_pylist()})

    @cached_property
    def relations(self) -> Relations:
        """To which relations segments belong."""
        table = self.table("segments")
        segment = table["segment"].to_numpy().astype(np.int64)
        size = int(segment.max(initial=0)) + 1
        of, chunk = np.arange(size), np.zeros(size, dtype=np.int64)
        codes = pc.rank(table["name"], tiebreaker="dense").to_numpy().astype(np.int64)
        first = np.full(int(codes.max(initial=0)) + 1, size, dtype=np.int64)
        np.minimum.at(first, codes, segment)
        of[segment], chunk[segment] = first[codes], table["chunk"].to_numpy()
        return Relations(of, chunk, self.meta.segment_bytes)

    def table(self, name: str, run: int | None = None) -> pa.Table:
        """Read a table, of one run if it has runs and one is given.

        Raises:
            InputError: the file is damaged, or lacks a column.

        """
        path = self.folder / f"{name}.parquet"
        filters = None if run is None else pc.field("run") == run
        try:
            if not is_file(path):
                raise FileNotFoundError(errno.ENOENT, "there is no such file")
            found = pq.read_table(path, filters=filters).select(TABLES[name].names).cast(TABLES[name])
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from error
        except (pa.ArrowException, KeyError) as error:
            raise InputError(f"{path}: {error}") from error
        for column in found.column_names:
            if column != "latency_us" and found[column].null_count:
                raise InputError(f"{path}: the column {column} has an empty value")
        return found

    def requests(self, run: int) -> Mapping[str, NDArray[Any]]:
        """Give the requests of a run as numpy columns by name, in the order of their times.

        ``operation`` and ``process`` are places in :data:`OPERATIONS` and :data:`PROCESSES`; a latency that is not
        known is NaN.
        """
        table = self.table("requests", run).sort_by("time_us")
        columns = {name: table[name].to_numpy() for name in table.column_names if name != "run"}
        for name, words in (("operation", OPERATIONS), ("process", PROCESSES)):
            places = pc.index_in(table[name].cast(pa.string()), pa.array(words))
            if places.null_count:
                raise InputError(
                    f"{self.folder / 'requests.parquet'}: the column {name} has an unknown value; allowed: "
                    f"{', '.join(words)}"
                )
            columns[name] = places.to_numpy().astype(np.uint8)
        return columns


def _said(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]


class CorpusWriter:
    """Writes a corpus; it stands under its name when it is whole, and not before."""

    def __init__(self, folder: Path) -> None:
        """Begin a corpus in a folder that is not there yet, or empty.

        Raises:
            InputError: there is something already.
            MeasurementError: it cannot be written.

        """
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder} is there already, and not empty")
        make_folders(folder)
        self._folder = folder
        self._stack = ExitStack()
        self._writers: dict[str, pq.ParquetWriter] = {}
        for name, schema in TABLES.items():
            file = self._stack.enter_context(replacing(folder / f"{name}.parquet"))
            writer = pq.ParquetWriter(file, schema, compression="zstd", **_encodings(schema))
            self._writers[name] = self._stack.enter_context(writer)

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Leave nothing half written where it did not come to :meth:`finish`."""
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        """Append rows, given as columns by name: arrays of Arrow or numpy, or lists."""
        self._writers[table].write_table(pa.table(dict(columns), schema=TABLES[table]))

    def requests(self, run: int, columns: Mapping[str, bytes]) -> None:
        """Append requests of a run as the engine gives them: native numbers as bytes, by the names of the columns."""
        found = native_columns(columns)
        arrays: dict[str, Any] = {name: pa.array(column) for name, column in found.items()}
        arrays["latency_us"] = pa.array(found["latency_us"], mask=np.isnan(found["latency_us"]))
        for name, words in (("operation", OPERATIONS), ("process", PROCESSES)):
            arrays[name] = pa.DictionaryArray.from_arrays(found[name].astype(np.int8), pa.array(words))
        rows = len(found["time_us"])
        self.write("requests", {"run": pa.array(np.full(rows, run, np.int32)), **arrays})

    def segments(self, segments: _engine.StorageSegments) -> None:
        """Append the segments that the engine has numbered."""
        names, chunks = segments.table()
        numbers = np.arange(len(names), dtype=np.uint32)
        self.write("segments", {"segment": numbers, "name": names, "chunk": np.array(chunks, np.uint32)})

    def finish(self, meta: CorpusMeta) -> None:
        """Write what the corpus is; with this it is whole."""
        with replacing(self._folder / _META) as file:
            file.write(json.dumps(meta.model_dump(mode="json"), indent=1).encode() + b"\n")
