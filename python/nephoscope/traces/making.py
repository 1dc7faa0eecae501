"""Statements become a trace as they come, batch by batch: of a log that is imported, or of a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from nephoscope import __version__
from nephoscope.errors import InputError
from nephoscope.traces.trace import TraceMeta, as_batch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.traces.trace import TraceDraft


class StatementSource(Protocol):
    """Where statements come from."""

    def next(self) -> dict[str, Any] | None:
        """Give the next statements as columns; nothing behind the last."""

    @property
    def records(self) -> int:
        """How many records, or connections, there were."""

    @property
    def zone(self) -> str:
        """The time zone of its clock."""

    @property
    def left_out(self) -> dict[str, int]:
        """What does not become part of the trace: why, and how often."""


@dataclass(frozen=True)
class TraceKind:
    """What is known of a trace before its first statement."""

    format: str
    dialect: str
    resolution_us: int
    masked: bool


@dataclass(frozen=True)
class MadeTrace:
    """What has come of a source."""

    meta: TraceMeta
    statements: int
    records: int
    """How many records, or connections, the source has."""


class TraceInMaking:
    """A trace, up to its end."""

    def __init__(self, draft: TraceDraft, source: StatementSource) -> None:
        """Begin with nothing."""
        self._draft = draft
        self._source = source
        self._first_us: int | None = None

    def take(self) -> bool:
        """Write the next statements; tells whether there were any."""
        columns = self._source.next()
        if columns is None:
            return False
        if self._first_us is None:
            self._first_us = int(np.frombuffer(columns["time_us"], np.int64)[0])
        self._draft.write(_batch(columns, self._first_us))
        return True

    def finish(self, kind: TraceKind, empty: str) -> MadeTrace:
        """End the trace.

        Raises:
            InputError: there is no statement; the message begins with ``empty``.

        """
        source, left_out = self._source, self._source.left_out
        if self._first_us is None:
            found = "; ".join(f"{count:,} {why}" for why, count in left_out.items()) or "nothing at all"
            raise InputError(f"{empty}. It has {found}")
        meta = TraceMeta(
            format=kind.format,
            dialect=kind.dialect,
            resolution_us=kind.resolution_us,
            epoch_us=self._first_us,
            zone=source.zone,
            masked=kind.masked,
            left_out=left_out,
            nephoscope=__version__,
        )
        self._draft.meta = meta
        return MadeTrace(meta, self._draft.statements, source.records)


def _batch(columns: Mapping[str, Any], first_us: int) -> pa.RecordBatch:
    """Make Arrow's columns of what the engine gives."""
    duration = np.frombuffer(columns["duration_us"], np.int64)
    rows = np.frombuffer(columns["rows"], np.int64)
    given = np.frombuffer(columns["given"], np.uint8)
    made: dict[str, Any] = {
        "time_us": pa.array(np.frombuffer(columns["time_us"], np.int64) - first_us),
        "duration_us": pa.array(duration, mask=duration < 0),
        "rows": pa.array(rows, mask=rows < 0),
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
