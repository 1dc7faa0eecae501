"""The file of a trace: its columns, and how they are written and read a piece at a time."""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nephoscope.errors import InputError, MeasurementError
from nephoscope.files import check_named, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_KEY = b"nephoscope.trace"
_VERSION = 1
_ODD = np.uint64(0x9E37_79B9_7F4A_7C15)
_NAMES = pa.dictionary(pa.int32(), pa.string())

SCHEMA = pa.schema(
    [
        pa.field("time_us", pa.int64(), nullable=False),
        pa.field("duration_us", pa.int64()),
        pa.field("session", pa.uint32(), nullable=False),
        pa.field("transaction", pa.uint64(), nullable=False),
        pa.field("place", pa.uint32(), nullable=False),
        pa.field("fingerprint", pa.uint64(), nullable=False),
        pa.field("statement", _NAMES, nullable=False),
        pa.field("parameters", pa.list_(pa.string()), nullable=False),
        pa.field("kinds", _NAMES, nullable=False),
        pa.field("rows", pa.int64()),
        pa.field("error", _NAMES),
        pa.field("database", _NAMES),
    ]
)
"""The columns. What they mean is in docs/traces.md."""

_PIECE = 1 << 16


@dataclass(frozen=True)
class TraceMeta:
    """What a trace says of itself."""

    format: str
    """The format of the log that it was made of."""
    dialect: str
    """The dialect of its statements."""
    resolution_us: int
    """How fine its times are."""
    epoch_us: int = 0
    """Time 0 in microseconds since 1970, by the clock of the zone."""
    zone: str = ""
    """The zone of the log's clock: UTC, an abbreviation as the log has it, or nothing where the log does not say."""
    masked: bool = False
    """Whether the values are replacements."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What of the log is not in the trace: why, and how often."""
    nephoscope: str = ""
    """The version that made it."""


@contextmanager
def writing(path: Path) -> Iterator[TraceDraft]:
    """Write a trace; the file is whole, or it is not made.

    Raises:
        InputError: the file cannot be made there.
        MeasurementError: the disk is full, or does not take it.

    """
    check_named(path)
    target = path.resolve() if path.is_symlink() else path
    try:
        with tempfile.TemporaryFile(dir=target.parent) as draft, closing(TraceDraft(draft)) as made:
            yield made
            made.finish()
            with replacing(target) as file:
                made.copy(file)
    except OSError as error:
        raise MeasurementError(f"{path} cannot be written: {error.strerror or error}") from None


class TraceDraft:
    """A trace that is being written; :attr:`meta` has to be set before its end."""

    def __init__(self, file: Any) -> None:  # noqa: ANN401 - a file without a name
        """Begin a draft in a file that has no name."""
        self._file = file
        self._writer = _writer(file)
        self.meta = TraceMeta(format="", dialect="", resolution_us=1)
        self.statements = 0
        self.earliest_us: int | None = None
        """The earliest time so far."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Add statements, in the order of their times as far as that is known."""
        self._writer.write_batch(batch)
        self.statements += batch.num_rows
        lowest: Any = pc.min(batch.column("time_us"))
        if lowest.is_valid:
            known = self.earliest_us
            self.earliest_us = lowest.as_py() if known is None else min(known, lowest.as_py())

    def finish(self) -> None:
        """End the draft."""
        _end(self._writer, self.meta)

    def close(self) -> None:
        """Give up a draft that is not finished. Once its file is closed, the writer's destructor would fail."""
        with suppress(OSError, pa.ArrowException):
            self._writer.close()

    def copy(self, out: BinaryIO) -> None:
        """Copy the draft, with times that count from the earliest: a later record may tell of an earlier statement."""
        if not self.earliest_us:
            self._file.seek(0)
            shutil.copyfileobj(self._file, out, 1 << 20)
            return
        first: Any = pa.scalar(self.earliest_us, pa.int64())
        with pq.ParquetFile(self._file) as draft, _writer(out) as writer:
            for batch in draft.iter_batches(_PIECE):
                times: Any = pc.subtract(batch.column("time_us"), first)
                writer.write_batch(as_batch({**_columns(batch), "time_us": times}))
            epoch_us = self.meta.epoch_us + self.earliest_us
            _end(writer, TraceMeta(**{**asdict(self.meta), "epoch_us": epoch_us}))


def as_batch(columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Make statements of columns, in the order and with the types of :data:`SCHEMA`."""
    return pa.RecordBatch.from_arrays(
        [columns[name].cast(SCHEMA.field(name).type) for name in SCHEMA.names], schema=SCHEMA
    )


def starts(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell where any of some columns has another value than before."""
    found = np.ones(len(columns[0]), np.bool_)
    found[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return found


def shapes(
    transaction: NDArray[Any], fingerprint: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Tell apart transactions by their sequences of statements; ``transaction`` has each in one piece.

    Returns where each transaction starts, how many statements it has, and the number of its shape: the most frequent
    is 0.
    """
    begins = np.flatnonzero(starts(transaction))
    sizes = np.diff(np.append(begins, len(transaction)))
    # A polynomial of the fingerprints, modulo 2^64: sequences that differ have different ones, but for chance.
    inner = np.arange(len(transaction)) - np.repeat(begins, sizes)
    powers = np.multiply.accumulate(np.full(int(sizes.max()), _ODD))
    hashes = np.add.reduceat(fingerprint * powers[inner], begins)
    _, first, of, counts = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    numbers = np.empty(len(first), np.int64)
    numbers[np.lexsort((first, -counts))] = np.arange(len(first))
    return begins, sizes, numbers[of]


def _columns(batch: pa.RecordBatch) -> dict[str, Any]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _writer(file: Any) -> Any:  # noqa: ANN401 - the stubs lack what is used of it
    return pq.ParquetWriter(file, SCHEMA, compression="zstd", store_schema=True)


def _end(writer: Any, meta: TraceMeta) -> None:  # noqa: ANN401 - as above
    writer.add_key_value_metadata({_KEY: json.dumps({"version": _VERSION, **asdict(meta)}).encode()})
    writer.close()


class StoredTrace:
    """A trace that is there."""

    def __init__(self, path: Path) -> None:
        """Open a trace.

        Raises:
            InputError: it is none, or cannot be read.

        """
        self.path = path
        with self._reading():
            self._file = pq.ParquetFile(path)
            said = (self._file.metadata.metadata or {}).get(_KEY)
            names, types = self._file.schema_arrow.names, self._file.schema_arrow.types
        if said is None or names != SCHEMA.names or types != SCHEMA.types:
            raise InputError(
                f"{path} is no trace of SQL (allowed: a file that `nephoscope trace import` has made)"
            )
        self.meta = self._meta(said)
        self.statements: int = self._file.metadata.num_rows

    def _meta(self, said: bytes) -> TraceMeta:
        try:
            read = json.loads(said)
            version = read.pop("version")
            meta = TraceMeta(**read)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InputError(f"{self.path}: what the trace says of itself cannot be read") from None
        if version != _VERSION:
            raise InputError(f"{self.path} is a trace of version {version} (allowed: {_VERSION})")
        return meta

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}") from None
        except pa.ArrowException as error:
            raise InputError(f"{self.path} is no trace of SQL: {error}") from None

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read it a piece at a time. Raises ``InputError``."""
        with self._reading():
            yield from self._file.iter_batches(_PIECE, columns=None if columns is None else list(columns))

    def column(self, name: str) -> Any:  # noqa: ANN401 - numpy's, of any type
        """Read a column of numbers as one array. Raises ``InputError``."""
        with self._reading():
            return self._file.read([name]).column(0).to_numpy()

    def changed(self, change: Callable[[pa.RecordBatch], pa.RecordBatch], draft: TraceDraft) -> None:
        """Write what becomes of each piece of it."""
        for batch in self.batches():
            draft.write(as_batch(_columns(change(batch))))

    def close(self) -> None:
        """Close the file."""
        self._file.close()
