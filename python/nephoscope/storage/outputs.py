"""Where generated requests go: a corpus, a CSV file, an iolog of fio."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import csv

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.files import replacing
from nephoscope.storage.corpus import (
    OPERATIONS,
    PROCESSES,
    TABLES,
    CapturedRun,
    CorpusMeta,
    CorpusWriter,
    native_columns,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from nephoscope.storage.generating import Origin


def write(
    out: Path,
    origin: Origin,
    found: Iterator[dict[str, bytes]],
    *,
    seconds: int,
    made: dict[str, Any],
    file: str,
) -> int:
    """Write requests of so many seconds as the name of ``out`` asks: ``.csv``, ``.iolog``, or a folder for a corpus.

    ``made`` says how they were made, ``file`` where those of an iolog go. Gives the number of requests.

    Raises:
        InputError: there is a corpus already, or what is wanted does not fit into an iolog.
        MeasurementError: it cannot be written.

    """
    if out.suffix == ".csv":
        return write_csv(out, found)
    if out.suffix == ".iolog":
        return write_iolog(
            out, found, np.array(origin.segments["segment"], dtype=np.uint32), origin.segment_bytes, file
        )
    return write_generated(out, origin, found, seconds, made)


def write_generated(
    folder: Path, origin: Origin, found: Iterator[dict[str, bytes]], seconds: int, made: dict[str, Any]
) -> int:
    """Write a corpus of one run, of the view and with the segments of its origin; it has no transactions."""
    count = 0
    with CorpusWriter(folder) as writer:
        for columns in found:
            writer.requests(0, columns)
            count += len(columns["operation"])
        writer.write("segments", origin.segments)
        writer.finish(
            CorpusMeta(
                view=origin.view,
                segment_bytes=origin.segment_bytes,
                source={**origin.source, "generated": made},
                runs=[CapturedRun(run=0, seconds=seconds)],
            )
        )
    return count


@contextmanager
def _writing(path: Path) -> Iterator[BinaryIO]:
    try:
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise MeasurementError(f"{path} cannot be written: {error.strerror or error}") from error


def write_csv(path: Path, found: Iterator[dict[str, bytes]]) -> int:
    """Write a CSV file with a header: the columns of a corpus's requests, without run and latency."""
    count = 0
    numbers = ("time_us", "segment", "offset", "bytes")
    schema = pa.schema(
        [TABLES["requests"].field(name) for name in numbers]
        + [pa.field(name, pa.string()) for name in ("operation", "process")]
    )
    with _writing(path) as file, csv.CSVWriter(file, schema) as writer:
        for columns in found:
            native = native_columns(columns)
            arrays = [pa.array(native[name]) for name in numbers]
            arrays += [
                pa.array(words).take(pa.array(native[name]))
                for name, words in (("operation", OPERATIONS), ("process", PROCESSES))
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(native["operation"])
    return count


def write_iolog(
    path: Path, found: Iterator[dict[str, bytes]], segments: NDArray[np.uint32], segment_bytes: int, file: str
) -> int:
    """Write an iolog of fio, version 3 (times in microseconds), whose requests all go to one file or device.

    The segments lie in it one after another, in the order of ``segments``.

    Raises:
        InputError: the segments are more than 64 bits address, or the file's name has a space.

    """
    ordered = np.sort(segments)
    if len(ordered) * segment_bytes >= 2**63:
        raise InputError(f"{len(ordered)} segments of {segment_bytes} bytes are too large for one file")
    if not file or any(sign.isspace() for sign in file):
        raise InputError(f"{file!r} cannot stand in an iolog: a name without spaces is needed")
    count = 0
    with _writing(path) as out:
        out.write(_engine.storage_iolog_head(file).encode())
        for columns in found:
            native = native_columns(columns)
            places = np.searchsorted(ordered, native["segment"]).astype(np.uint64)
            offset = (places * np.uint64(segment_bytes) + native["offset"]).tobytes()
            told = (columns["time_us"], offset, columns["bytes"], columns["operation"])
            out.write(_engine.storage_iolog(file, *told))
            count += len(places)
    return count
