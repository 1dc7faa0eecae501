"""Corpora whose law is known: requests a transaction, cells by type, a bursty rate, checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nephoscope.storage.corpus import (
    PROCESSES,
    TABLES,
    CapturedRun,
    Corpus,
    CorpusMeta,
    CorpusWriter,
    native_columns,
)
from nephoscope.storage.features import READ, WRITE, Cell
from nephoscope.storage.generating import CoursePart, batches, captured, compose, plan
from nephoscope.storage.sizes import KB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

SEGMENT_BYTES = 16 * 2**20
PAGE = 8192
NUMBERS = ("time_us", "segment", "offset", "bytes", "latency_us")
"""Columns of requests that hold no names."""
SEGMENT_PAGES = SEGMENT_BYTES // PAGE
TYPES = ("browse", "order", "pay")
MIXES: Mapping[str, tuple[float, ...]] = {
    "reading": (0.7, 0.15, 0.15),
    "even": (0.3, 0.25, 0.45),
    "writing": (0.15, 0.65, 0.2),
}
"""Shares of browse, order, pay."""


@dataclass(frozen=True)
class Law:
    """What a synthetic corpus is drawn from: three types, C cells."""

    segments: int = 24
    sizes: int = 8
    """Writes have 1 … ``sizes`` KB; a segment's cell of 0 is its reads."""
    per_transaction: Sequence[float] = (4.0, 6.0, 3.0)
    """Foreground requests a transaction, by type."""
    reads: Sequence[float] = (0.95, 0.4, 0.2)
    """The share of reads among them."""
    exponent: float = 1.0
    """Foreground requests grow as TPS to this power; at ``level`` a transaction has ``per_transaction``."""
    level: float = 100.0
    burst: float = 0.15
    """The standard deviation of the logarithm of the rate's modulation, an autoregression of first order …"""
    phi: float = 0.7
    """… with this coefficient."""
    every: int = 15
    """Seconds between checkpoints."""
    lasts: int = 3
    """Seconds that a checkpoint lasts."""
    dirty: float = 0.8
    """Background writes a transaction, all in checkpoints."""
    steady: float = 5.0
    """Background writes a second besides."""
    seed: int = 7
    cells: Sequence[Cell] = field(init=False)
    z: NDArray[np.float64] = field(init=False)
    """The law of cells by type: (3, C)."""
    background: NDArray[np.float64] = field(init=False)
    """The law of cells of the background: (C,)."""

    def __post_init__(self) -> None:
        random = np.random.default_rng(self.seed)
        cells = [Cell(segment, size) for segment in range(self.segments) for size in range(self.sizes + 1)]
        is_read = np.array([cell.size_kb == 0 for cell in cells])
        z = np.zeros((len(TYPES), len(cells)))
        for kind, share in enumerate(self.reads):
            z[kind, is_read] = share * random.dirichlet(np.full(is_read.sum(), 0.5))
            z[kind, ~is_read] = (1 - share) * random.dirichlet(np.full((~is_read).sum(), 0.3))
        background = np.where([cell.size_kb == self.sizes for cell in cells], 1.0, 0.0)
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "z", z)
        object.__setattr__(self, "background", background / background.sum())

    def means(self, rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the mean requests a second by stream, (2,), at transactions a second by type, (3,)."""
        total = rates.sum()
        growth = (total / self.level) ** (self.exponent - 1)
        foreground = growth * float(rates @ np.array(self.per_transaction))
        return np.array([foreground, self.steady + self.dirty * total])

    def weights(self, rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the law of cells by stream, (2, C)."""
        parts = rates * np.array(self.per_transaction)
        return np.stack([parts @ self.z / parts.sum(), self.background])

    def course(
        self, rates: NDArray[np.float64], seconds: int, random: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw transactions, (3, S), and requests by stream, (2, S)."""
        noise = random.normal(0, self.burst * np.sqrt(1 - self.phi**2), seconds + 50)
        for at in range(1, len(noise)):
            noise[at] += self.phi * noise[at - 1]
        modulation = np.exp(noise[50:] - self.burst**2 / 2)
        x = random.poisson(rates[:, None] * modulation)
        growth = (rates.sum() / self.level) ** (self.exponent - 1)
        foreground = random.poisson(growth * np.array(self.per_transaction) @ x)
        phase = (np.arange(seconds) + random.integers(self.every)) % self.every < self.lasts
        level = self.dirty * rates.sum() * self.every / self.lasts
        return x, np.stack([foreground, random.poisson(self.steady + level * phase)])


@dataclass(frozen=True)
class Made:
    """A run of a corpus that is made."""

    run: CapturedRun
    requests: Mapping[str, NDArray[Any]]
    """Columns as ``Corpus.requests`` gives them; those that are left out are of backends' reads of a page each."""
    transactions: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """For each type those that ended in each second."""


def write(
    folder: Path,
    runs: Iterable[Made],
    names: Sequence[str],
    chunks: Sequence[int],
    *,
    view: Literal["page", "log"] = "log",
    segment_bytes: int = SEGMENT_BYTES,
    source: str = "synthetic",
) -> Corpus:
    """Write a corpus; the segments' relations and chunks are given in the order of their numbers."""
    told = []
    with CorpusWriter(folder) as writer:
        for made in runs:
            writer.requests(made.run.run, _whole(made.requests))
            for name, count in made.transactions.items():
                seconds = range(len(count))
                rows = {"run": [made.run.run] * len(count), "second": seconds, "type": [name] * len(count)}
                writer.write("transactions", {**rows, "count": count})
            told.append(made.run)
        writer.write("segments", {"segment": range(len(names)), "name": names, "chunk": chunks})
        meta = CorpusMeta(view=view, segment_bytes=segment_bytes, source={"product": source}, runs=told)
        writer.finish(meta)
    return Corpus(folder)


def _whole(columns: Mapping[str, NDArray[Any]]) -> dict[str, bytes]:
    count = len(columns["time_us"])
    usual = {
        "segment": 0,
        "offset": 0,
        "bytes": PAGE,
        "operation": READ,
        "process": PROCESSES.index("backend"),
        "latency_us": 1,
    }
    whole = {**{name: np.full(count, value) for name, value in usual.items()}, **columns}
    kinds = {name: np.dtype(TABLES["requests"].field(name).type.to_pandas_dtype()) for name in NUMBERS}
    return {name: column.astype(kinds.get(name, np.uint8)).tobytes() for name, column in whole.items()}


def write_corpus(
    folder: Path,
    law: Law | None = None,
    *,
    levels: Sequence[float] = (20, 40, 80, 120, 160),
    mixes: Mapping[str, Sequence[float]] = MIXES,
    replicates: int = 3,
    seconds: int = 60,
    seed: int = 1,
    types: Sequence[str] = TYPES,
    pages: Callable[[float], int] = lambda _tps: SEGMENT_PAGES,
) -> Corpus:
    """Write a corpus of every level, mix and replicate; ``types`` are other names of browse, order and pay.

    ``pages`` says to how many pages of a segment the requests go at a TPS, each as likely as any other.
    """
    law = law or Law()
    settings = [(tps, mix, again) for tps in levels for mix in mixes for again in range(1, replicates + 1)]

    def made() -> Iterator[Made]:
        for number, (tps, mix, again) in enumerate(settings):
            random = np.random.default_rng((seed, number))
            shares = np.array(mixes[mix])
            x, y = law.course(tps * shares, seconds, random)
            weights = dict(zip(types, map(float, shares), strict=True))
            run = CapturedRun(
                run=number, seconds=seconds, mix=mix, weights=weights, target_tps=tps, replicate=again
            )
            requests = _requests(law, tps * shares, y, random, pages(tps))
            yield Made(run, requests, dict(zip(types, x, strict=True)))

    segments = range(law.segments)
    return write(folder, made(), [f"table{at // 4}" for at in segments], [at % 4 for at in segments])


def write_run(folder: Path, seconds: int, segment_bytes: int, **columns: NDArray[Any]) -> Corpus:
    """Write a corpus of one run of a table, of the columns that are given."""
    chunks = range(int(np.max(columns.get("segment", 0))) + 1)
    made = Made(CapturedRun(run=0, seconds=seconds), columns)
    return write(folder, [made], ["table"] * len(chunks), chunks, view="page", segment_bytes=segment_bytes)


def drawn_anew(corpus: Corpus, seed: int = 3, **words: Any) -> Mapping[str, NDArray[Any]]:
    """Generate the requests of the one run of a corpus; ``words`` are further arguments of ``plan``."""
    origin = captured(corpus, [CoursePart()])
    forecasts, _ = compose(origin, [CoursePart()], seed)
    found = [native_columns(columns) for columns in batches(plan(origin, forecasts, seed, **words))]
    return {name: np.concatenate([columns[name] for columns in found]) for name in found[0]}


def _requests(
    law: Law, rates: NDArray[np.float64], y: NDArray[np.int64], random: np.random.Generator, pages: int
) -> dict[str, NDArray[Any]]:
    weights = law.weights(rates)
    numbers, seconds = [], []
    for of_stream, law_of_cells in zip(y, weights, strict=True):
        seconds.append(np.repeat(np.arange(y.shape[1]), of_stream))
        numbers.append(random.choice(len(law.cells), of_stream.sum(), p=law_of_cells))
    second, cell = np.concatenate(seconds), np.concatenate(numbers)
    stream = np.repeat([0, 1], [len(part) for part in numbers])
    time = second * 1_000_000 + random.integers(1_000_000, size=len(second))
    order = np.argsort(time, kind="stable")
    segment, size = np.array(law.cells)[cell[order]].T
    written = size * KB - random.integers(KB, size=len(size))
    processes = np.array([PROCESSES.index("backend"), PROCESSES.index("checkpointer")])
    return {
        "time_us": time[order],
        "segment": segment,
        "offset": random.integers(pages, size=len(size)) * PAGE,
        "bytes": np.where(size == 0, PAGE, written),
        "operation": np.where(size == 0, READ, WRITE),
        "process": processes[stream[order]],
        "latency_us": random.exponential(100, len(size)),
    }
