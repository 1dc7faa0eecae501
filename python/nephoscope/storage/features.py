"""What models learn from: X, Y and Z of a run (CDSBen section 4.1), as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from nephoscope.storage.corpus import FOREGROUND, OPERATIONS, PROCESSES
from nephoscope.storage.sizes import WriteSizes, in_kb, write_sizes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.corpus import CapturedRun, Corpus, Relations

Stream = Literal["foreground", "background"]
"""Requests that a client waits for, and those of the server's own processes."""
STREAMS: tuple[Stream, ...] = ("foreground", "background")

READ = OPERATIONS.index("read")
WRITE = OPERATIONS.index("write")
_BEHIND_SEGMENT = 2**16


EDGES = (*(n / 16 for n in range(4)), *(n / 8 for n in range(2, 16)), *(n / 2 for n in range(4, 9)))
"""Distances from the end of a relation, in segments, at which bins begin and end; what is farther away is not near."""
BINS = len(EDGES) - 1
NEAR = 2**24
"""Numbers from here on are of no segment: NEAR + relation · BINS + bin is a bin of distances from a relation's end."""
_BEGINNING = 0.1
"""The part of a run in which the end is looked for that a relation had when the run began."""


class Cell(NamedTuple):
    """A cell of Z: a segment, and the size of the buffer in KB, rounded up; 0 is a read."""

    segment: int
    size_kb: int


@dataclass(frozen=True)
class NearEnds:
    """Where a run's requests are, counted from the ends of their relations: N combinations that occur."""

    rows: NDArray[np.int64]
    """Segment, size in KB, and place in ``EDGES`` of the distance, -1 for none: (N, 3)."""
    z: NDArray[np.float64]
    """Requests of each, by stream: (2, N)."""
    ends: Mapping[int, tuple[float, float]]
    """By relation of several segments, where it ended when the run began and when it ended, in segments."""


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
    write_bytes: WriteSizes
    """The sizes of the writes."""
    relations: Relations
    """To which relations segments belong."""
    near: NearEnds | None = None
    """Z by distance from the ends of relations; None where it was not asked for."""


def features(corpus: Corpus, run: CapturedRun, types: Sequence[str]) -> Features:
    """Derive X, Y and Z of a run; requests for durability (sync) and discards are in none of them."""
    requests = corpus.requests(run.run)
    return replace(
        derived(corpus, requests, run, types), near=near_ends(requests, run.seconds, corpus.relations)
    )


def derived(
    corpus: Corpus, requests: Mapping[str, NDArray[Any]], run: CapturedRun, types: Sequence[str]
) -> Features:
    """Derive X, Y and Z of a run from its requests, as ``Corpus.requests`` gives them."""
    columns = _counted(requests, run.seconds)
    place = columns["time_us"] // 1_000_000
    stream = stream_of(columns["process"])
    y = np.zeros((len(STREAMS), run.seconds))
    np.add.at(y, (stream, place), 1)
    cell = cells_of(columns)
    codes, at = np.unique(cell, return_inverse=True)
    z = np.zeros((len(STREAMS), len(codes)))
    np.add.at(z, (stream, at), 1)
    cells = [Cell(int(code) // _BEHIND_SEGMENT, int(code) % _BEHIND_SEGMENT) for code in codes]
    written = columns["operation"] == WRITE
    sizes = write_sizes(columns["segment"][written], columns["bytes"][written], corpus.relations)
    return Features(run, types, transactions(corpus, run, types), y, cells, z, sizes, corpus.relations)


def stream_of(process: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """Give the place in :data:`STREAMS` for each process (a place in ``PROCESSES``)."""
    places = [0 if name in FOREGROUND else 1 for name in PROCESSES]
    return np.take(np.array(places, dtype=np.intp), process)


def cells_of(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Give each request's cell as one number: the segment times 65,536, plus the size in KB."""
    written = np.minimum(in_kb(columns["bytes"]), _BEHIND_SEGMENT - 1)
    sizes = np.where(columns["operation"] == READ, 0, written)
    return columns["segment"].astype(np.int64) * _BEHIND_SEGMENT + sizes


def relations_of(cells: Sequence[Cell], relations: Relations) -> NDArray[np.int64]:
    """Give the number of the relation that each cell is of, (C,), one counted from a relation's end too."""
    segment = np.array([cell.segment for cell in cells], dtype=np.int64)
    near = segment >= NEAR
    return np.where(near, (segment - NEAR) // BINS, relations.number(segment))


def _counted(columns: Mapping[str, NDArray[Any]], seconds: int) -> dict[str, NDArray[Any]]:
    time = columns["time_us"]
    counted = np.isin(columns["operation"], (READ, WRITE)) & (time >= 0) & (time < seconds * 1_000_000)
    return {name: column[counted] for name, column in columns.items()}


def near_ends(requests: Mapping[str, NDArray[Any]], seconds: int, relations: Relations) -> NearEnds:
    """Count a run's requests by their distance from the ends of relations, as far as these have several segments.

    A relation's end is the last place that was accessed by the end of the first tenth of a run, and by the run's end;
    it moves evenly.
    """
    columns = _counted(requests, seconds)
    segment = columns["segment"].astype(np.int64)
    cell, stream = cells_of(columns), stream_of(columns["process"])
    relation, share = relations.number(segment), columns["time_us"] / (seconds * 1e6)
    position = (
        relations.chunk[np.minimum(segment, len(relations.chunk) - 1)]
        + columns["offset"] / relations.segment_bytes
    )
    bins, ends = np.full(len(segment), -1), {}
    for number in relations.several:
        own = np.flatnonzero(relation == number)
        if not len(own):
            continue
        last = float(position[own].max())
        early = own[share[own] < _BEGINNING]
        first = float(position[early].max()) if len(early) else last
        first = max(0.0, first - (last - first) * _BEGINNING / (1 - _BEGINNING))
        ends[number] = (first, last)
        distance = np.maximum(first + (last - first) * share[own] - position[own], 0)
        bins[own] = np.where(distance < EDGES[-1], np.searchsorted(EDGES, distance, side="right") - 1, -1)
    codes, at = np.unique(cell * (BINS + 1) + bins + 1, return_inverse=True)
    z = np.zeros((len(STREAMS), len(codes)))
    np.add.at(z, (stream, at), 1)
    of_cell, bin_of = codes // (BINS + 1), codes % (BINS + 1) - 1
    rows = np.column_stack([of_cell // _BEHIND_SEGMENT, of_cell % _BEHIND_SEGMENT, bin_of])
    return NearEnds(rows, z, ends)


def transactions(corpus: Corpus, run: CapturedRun, types: Sequence[str]) -> NDArray[np.float64]:
    """Read X of a run: the transactions that ended, by type and second, (T, S)."""
    table = corpus.table("transactions", run.run).to_pydict()
    x = np.zeros((len(types), run.seconds))
    number = {name: at for at, name in enumerate(types)}
    for second, name, count in zip(table["second"], table["type"], table["count"], strict=True):
        if 0 <= second < run.seconds:
            x[number[name], second] += count
    return x
