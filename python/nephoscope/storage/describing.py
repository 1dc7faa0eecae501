"""What a storage tier sees in a run, in figures: CDSBen's Table 1 and Figures 3 to 5 for any corpus."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from nephoscope.errors import InputError
from nephoscope.storage.corpus import OPERATIONS, PROCESSES
from nephoscope.storage.distances import rhythm
from nephoscope.storage.features import STREAMS, WRITE, derived, stream_of
from nephoscope.storage.reuse import PAGE_BYTES, is_cached, miss_ratio_curve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.corpus import CapturedRun, Corpus
    from nephoscope.storage.features import Features
    from nephoscope.storage.reuse import MissRatioCurve

HOT_SHARE = 0.8
"""Hot segments: the fewest that take this share of the reads and writes. All others are cold.

CDSBen gives the ratio without a definition; by this one its veDB_OSS (two of eight segments) has the printed 1:3.
"""
MEDIUM_BURSTINESS = 0.1
HIGH_BURSTINESS = 0.3
"""Excess variations from which burstiness is called medium and high; CDSBen's workloads have 0.36 and 0.06."""

SECOND_US = 1_000_000
BOTH = "both"
"""Foreground and background together, as the name of a stream."""


class Burst(NamedTuple):
    """How a count a second goes up and down."""

    mean: float
    deviation: float
    low: float
    high: float
    dispersion: float | None
    """The index of dispersion: variance over mean, 1 for Poisson arrivals; None without any."""
    autocorrelation: float | None
    """At a lag of one second; None for fewer than three seconds, or for a constant."""
    excess: float | None
    """The excess variation: sqrt(variance - mean) / mean, the relative deviation beyond that of Poisson arrivals."""

    @property
    def word(self) -> Literal["low", "medium", "high"] | None:
        """How bursty it is called."""
        if self.excess is None:
            return None
        if self.excess < MEDIUM_BURSTINESS:
            return "low"
        return "medium" if self.excess < HIGH_BURSTINESS else "high"


class Taken(NamedTuple):
    """Requests of one kind of process and one operation."""

    process: str
    operation: str
    requests: int
    bytes: int
    latency_us: NDArray[np.float32]
    """The latencies that are known, sorted."""


@dataclass(frozen=True)
class DescribedRun:
    """A run of a corpus, and what its tables and pictures are made of."""

    corpus: str
    """The corpus as the user called it."""
    view: str
    features: Features
    counts: NDArray[np.int64]
    """Requests by stream, operation (a place in ``OPERATIONS``) and second: (2, 4, S)."""
    names: Mapping[int, str]
    """What each segment is called: its relation, file or device, and the number of the chunk."""
    taken: Sequence[Taken]
    """Those that there are, by process and operation."""
    largest_write: tuple[int, int]
    """The most bytes of a write, by stream; 0 without one."""
    curves: Mapping[str, MissRatioCurve]
    """Miss-ratio curves by stream and of :data:`BOTH`; those with an access. See ``reuse.cached_operations``."""

    @property
    def run(self) -> CapturedRun:
        """The run."""
        return self.features.run

    @property
    def whole_curve(self) -> MissRatioCurve | None:
        """The miss-ratio curve of all reads and writes; None without any."""
        return self.curves.get(BOTH) or next(iter(self.curves.values()), None)


def describe_run(
    corpus: Corpus, run: CapturedRun, page_bytes: int = PAGE_BYTES, rate: float | None = None
) -> DescribedRun:
    """Read a run and count what it has; ``page_bytes`` and ``rate`` are those of :func:`miss_ratio_curve`.

    Raises:
        InputError: a file of the corpus is damaged.

    """
    columns = corpus.requests(run.run)
    second = columns["time_us"] // SECOND_US
    inside = (second >= 0) & (second < run.seconds)
    columns, second = {name: column[inside] for name, column in columns.items()}, second[inside]
    stream = stream_of(columns["process"])
    types = corpus.types
    return DescribedRun(
        corpus=corpus.name,
        view=corpus.meta.view,
        features=derived(corpus, columns, run, types),
        counts=_counts(stream, columns["operation"], second, run.seconds),
        names=segment_names(corpus),
        taken=_taken(columns),
        largest_write=_largest_write(columns, stream),
        curves=_curves(columns, stream, corpus.meta.view, page_bytes, rate),
    )


def chosen_run(corpus: Corpus, number: int) -> CapturedRun:
    """Return a run by its number. Raises ``InputError`` where there is none."""
    for run in corpus.runs:
        if run.run == number:
            return run
    known = ", ".join(str(run.run) for run in corpus.runs) or "none"
    raise InputError(f"{corpus.folder}: there is no run {number}; its runs are {known}")


def burst_of(counts: NDArray[Any]) -> Burst:
    """Describe a count by second; the deviation is that of a sample."""
    values = np.asarray(counts, float)
    found = rhythm(values)
    has_lag = len(values) > 2 and found.deviation > 0  # noqa: PLR2004 - two pairs at least
    beyond = math.sqrt(max(found.deviation**2 - found.mean, 0.0))
    return Burst(
        found.mean,
        found.deviation,
        float(values.min()),
        float(values.max()),
        found.dispersion if found.mean else None,
        found.lag1 if has_lag else None,
        beyond / found.mean if found.mean else None,
    )


def hot_and_cold(counts: NDArray[Any], share: float = HOT_SHARE) -> tuple[int, int]:
    """Return the numbers of hot and of cold segments among those with requests, given the requests of each."""
    ordered = np.sort(counts[counts > 0])[::-1]
    if not len(ordered):
        return 0, 0
    running = np.cumsum(ordered)
    # A share that is met exactly must not miss by rounding.
    hot = int(np.searchsorted(running, share * running[-1] * (1 - 1e-12))) + 1
    return hot, len(ordered) - hot


def of_stream(values: NDArray[Any], stream: str) -> NDArray[Any]:
    """Return what belongs to a stream, or the sum of both, of an array whose first dimension is the stream."""
    found: NDArray[Any] = values.sum(axis=0) if stream == BOTH else values[STREAMS.index(stream)]
    return found


def streams_of(run: DescribedRun) -> list[str]:
    """Name the streams that have reads or writes, then both together where there are two."""
    found: list[str] = [name for name, y in zip(STREAMS, run.features.y, strict=True) if y.any()]
    return [*found, BOTH] if len(found) > 1 else found


def by_segment(run: DescribedRun, stream: str) -> dict[int, NDArray[np.float64]]:
    """Return reads and writes of each segment."""
    found: dict[int, NDArray[np.float64]] = {}
    for cell, requests in zip(run.features.cells, of_stream(run.features.z, stream), strict=True):
        found.setdefault(cell.segment, np.zeros(2))[int(cell.size_kb > 0)] += requests
    return {segment: both for segment, both in found.items() if both.any()}


def by_size(run: DescribedRun, stream: str) -> dict[int, float]:
    """Return the requests of each size in KB, rounded up; 0 are the reads."""
    found: dict[int, float] = {}
    for cell, requests in zip(run.features.cells, of_stream(run.features.z, stream), strict=True):
        if requests:
            found[cell.size_kb] = found.get(cell.size_kb, 0.0) + float(requests)
    return dict(sorted(found.items()))


def segment_names(corpus: Corpus) -> dict[int, str]:
    """Name the segments; one that is the only of its relation needs no number."""
    rows = corpus.table("segments").to_pylist()
    chunks: dict[str, int] = {}
    for row in rows:
        chunks[row["name"]] = chunks.get(row["name"], 0) + 1
    return {
        row["segment"]: row["name"] if chunks[row["name"]] == 1 else f"{row['name']} {row['chunk']}"
        for row in rows
    }


def _counts(
    stream: NDArray[np.intp], operation: NDArray[np.uint8], second: NDArray[np.int64], seconds: int
) -> NDArray[np.int64]:
    shape = (len(STREAMS), len(OPERATIONS), seconds)
    places = (stream * shape[1] + operation) * seconds + second
    return np.bincount(places, minlength=math.prod(shape)).reshape(shape)


def _taken(columns: Mapping[str, NDArray[Any]]) -> list[Taken]:
    kind = columns["process"].astype(np.int64) * len(OPERATIONS) + columns["operation"]
    found = []
    for code in np.unique(kind):
        here = kind == code
        latency = columns["latency_us"][here]
        found.append(
            Taken(
                PROCESSES[code // len(OPERATIONS)],
                OPERATIONS[code % len(OPERATIONS)],
                int(here.sum()),
                int(columns["bytes"][here].sum(dtype=np.int64)),
                np.sort(latency[~np.isnan(latency)]),
            )
        )
    return found


def _largest_write(columns: Mapping[str, NDArray[Any]], stream: NDArray[np.intp]) -> tuple[int, int]:
    writes = columns["operation"] == WRITE
    largest = [
        int(columns["bytes"][writes & (stream == place)].max(initial=0)) for place in range(len(STREAMS))
    ]
    return largest[0], largest[1]


def _curves(
    columns: Mapping[str, NDArray[Any]],
    stream: NDArray[np.intp],
    view: str,
    page_bytes: int,
    rate: float | None,
) -> dict[str, MissRatioCurve]:
    cached = is_cached(view, columns["operation"])
    within: dict[str, NDArray[np.bool_]] = {
        name: cached & (stream == place) for place, name in enumerate(STREAMS)
    }
    if all(here.any() for here in within.values()):
        within[BOTH] = cached
    curves = {}
    for name, here in within.items():
        needed = {column: columns[column][here] for column in ("segment", "offset", "bytes")}
        curve = miss_ratio_curve(needed, page_bytes, rate)
        if len(curve.cache_bytes):
            curves[name] = curve
    return curves
