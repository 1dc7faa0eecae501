"""What models learn from: X, Y and Z of a run (CDSBen section 4.1), as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from nephoscope.storage.corpus import FOREGROUND, OPERATIONS, PROCESSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.corpus import CapturedRun, Corpus

Stream = Literal["foreground", "background"]
"""Requests that a client waits for, and those of the server's own processes."""
STREAMS: tuple[Stream, ...] = ("foreground", "background")

READ = OPERATIONS.index("read")
WRITE = OPERATIONS.index("write")
KB = 1024
_BEHIND_SEGMENT = 2**16


class Cell(NamedTuple):
    """A cell of Z: a segment, and the size of the buffer in KB, rounded up; 0 is a read."""

    segment: int
    size_kb: int


@dataclass(frozen=True)
class Features:
    """A run as models see it: T transaction types, S seconds, two streams, C cells."""

    run: CapturedRun
    types: Sequence[str]
    """The T names."""
    x: NDArray[np.float64]
    """Transactions that ended, by type and second: (T, S)."""
    y: NDArray[np.float64]
    """Requests (reads and writes) a second, by stream: (2, S)."""
    cells: Sequence[Cell]
    """The C cells in which this run has requests, in order."""
    z: NDArray[np.float64]
    """Requests in each cell, by stream, not normalised: (2, C)."""
    write_bytes: Mapping[int, NDArray[np.uint32]]
    """The sizes of the writes in bytes, sorted, by their ``size_kb``; at most 4,096 of each, evenly chosen."""


def features(corpus: Corpus, run: CapturedRun, types: Sequence[str]) -> Features:
    """Derive X, Y and Z of a run; requests for durability (sync) and discards are in none of them."""
    return derived(corpus.requests(run.run), transactions(corpus, run, types), run, types)


def derived(
    requests: Mapping[str, NDArray[Any]], x: NDArray[np.float64], run: CapturedRun, types: Sequence[str]
) -> Features:
    """Derive Y and Z of requests that were read already, as ``Corpus.requests`` gives them; X is given."""
    columns = _counted(requests)
    place = columns["time_us"] // 1_000_000
    inside = (place >= 0) & (place < run.seconds)
    columns, place = {name: column[inside] for name, column in columns.items()}, place[inside]
    stream = stream_of(columns["process"])
    y = np.zeros((len(STREAMS), run.seconds))
    np.add.at(y, (stream, place), 1)
    cell = cells_of(columns)
    codes, at = np.unique(cell, return_inverse=True)
    z = np.zeros((len(STREAMS), len(codes)))
    np.add.at(z, (stream, at), 1)
    cells = [Cell(int(code) // _BEHIND_SEGMENT, int(code) % _BEHIND_SEGMENT) for code in codes]
    return Features(run, types, x, y, cells, z, _write_bytes(columns))


def stream_of(process: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """Give the place in :data:`STREAMS` for each process (a place in ``PROCESSES``)."""
    places = [0 if name in FOREGROUND else 1 for name in PROCESSES]
    return np.take(np.array(places, dtype=np.intp), process)


def cells_of(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Give each request's cell as one number: the segment times 65,536, plus the size in KB."""
    sizes = np.minimum(-(-columns["bytes"].astype(np.int64) // KB), _BEHIND_SEGMENT - 1)
    # A write of no bytes would be taken for a read.
    sizes = np.where(columns["operation"] == READ, 0, np.maximum(sizes, 1))
    return columns["segment"].astype(np.int64) * _BEHIND_SEGMENT + sizes


def _counted(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    counted = np.isin(columns["operation"], (READ, WRITE))
    return {name: column[counted] for name, column in columns.items()}


def transactions(corpus: Corpus, run: CapturedRun, types: Sequence[str]) -> NDArray[np.float64]:
    """Read X of a run: the transactions that ended, by type and second, (T, S)."""
    table = corpus.table("transactions", run.run).to_pydict()
    x = np.zeros((len(types), run.seconds))
    number = {name: at for at, name in enumerate(types)}
    for second, name, count in zip(table["second"], table["type"], table["count"], strict=True):
        if 0 <= second < run.seconds:
            x[number[name], second] += count
    return x


_SIZES_KEPT = 4096


def _write_bytes(columns: Mapping[str, NDArray[Any]]) -> dict[int, NDArray[np.uint32]]:
    written = columns["bytes"][columns["operation"] == WRITE]
    sizes = np.maximum(-(-written.astype(np.int64) // KB), 1)
    found = {}
    for size in np.unique(sizes):
        ordered = np.sort(written[sizes == size])
        kept = min(len(ordered), _SIZES_KEPT)
        found[int(size)] = ordered[(np.arange(kept) * len(ordered)) // kept]
    return found
