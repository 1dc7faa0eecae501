"""Corpora whose law is known: requests a transaction, cells by type, a bursty rate, checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.storage.corpus import (
    OPERATIONS,
    PROCESSES,
    TABLES,
    CapturedRun,
    Corpus,
    CorpusMeta,
    CorpusWriter,
    native_columns,
)
from nephoscope.storage.features import KB, READ, Cell
from nephoscope.storage.generating import CoursePart, batches, captured, compose, plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
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
    runs = []
    with CorpusWriter(folder) as writer:
        for number, (tps, mix, again) in enumerate(settings):
            random = np.random.default_rng((seed, number))
            shares = np.array(mixes[mix])
            x, y = law.course(tps * shares, seconds, random)
            writer.requests(number, _requests(law, tps * shares, y, random, pages(tps)))
            _transactions(writer, number, x, types)
            weights = dict(zip(types, map(float, shares), strict=True))
            runs.append(
                CapturedRun(
                    run=number, seconds=seconds, mix=mix, weights=weights, target_tps=tps, replicate=again
                )
            )
        names = [f"table{segment // 4}" for segment in range(law.segments)]
        chunks = [segment % 4 for segment in range(law.segments)]
        writer.write("segments", {"segment": range(law.segments), "name": names, "chunk": chunks})
        writer.finish(
            CorpusMeta(view="log", segment_bytes=SEGMENT_BYTES, source={"name": "synthetic"}, runs=runs)
        )
    return Corpus(folder)


def write_run(folder: Path, seconds: int, segment_bytes: int, **columns: NDArray[Any]) -> Corpus:
    """Write a corpus of one run of a table: backends' reads of a page each, but for the columns that are given."""
    count = len(columns["time_us"])
    whole: dict[str, NDArray[Any]] = {
        "segment": np.zeros(count),
        "offset": np.zeros(count),
        "bytes": np.full(count, PAGE),
        "operation": np.full(count, READ),
        "process": np.full(count, PROCESSES.index("backend")),
        "latency_us": np.ones(count),
        **columns,
    }
    kinds = {name: np.dtype(TABLES["requests"].field(name).type.to_pandas_dtype()) for name in NUMBERS}
    with CorpusWriter(folder) as writer:
        writer.requests(
            0, {name: column.astype(kinds.get(name, np.uint8)).tobytes() for name, column in whole.items()}
        )
        segments = np.unique(whole["segment"]).astype(np.uint32)
        writer.write("segments", {"segment": segments, "name": ["table"] * len(segments), "chunk": segments})
        run = CapturedRun(run=0, seconds=seconds)
        writer.finish(CorpusMeta(view="page", segment_bytes=segment_bytes, runs=[run]))
    return Corpus(folder)


def drawn_anew(corpus: Corpus, seed: int = 3, **words: Any) -> Mapping[str, NDArray[Any]]:
    """Generate the requests of the one run of a corpus; ``words`` are further arguments of ``plan``."""
    origin = captured(corpus, [CoursePart()])
    forecasts, _ = compose(origin, [CoursePart()], seed)
    found = [native_columns(columns) for columns in batches(plan(origin, forecasts, seed, **words))]
    return {name: np.concatenate([columns[name] for columns in found]) for name in found[0]}


def _transactions(writer: CorpusWriter, run: int, x: NDArray[np.int64], types: Sequence[str]) -> None:
    seconds = x.shape[1]
    writer.write(
        "transactions",
        {
            "run": [run] * x.size,
            "second": [*range(seconds)] * len(types),
            "type": [name for name in types for _ in range(seconds)],
            "count": x.ravel(),
        },
    )


def _requests(
    law: Law, rates: NDArray[np.float64], y: NDArray[np.int64], random: np.random.Generator, pages: int
) -> dict[str, bytes]:
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
    write = OPERATIONS.index("write")
    return {
        "time_us": time[order].astype("i8").tobytes(),
        "segment": segment.astype("u4").tobytes(),
        "offset": (random.integers(pages, size=len(size)) * PAGE).astype("u8").tobytes(),
        "bytes": np.where(size == 0, PAGE, written).astype("u4").tobytes(),
        "operation": np.where(size == 0, READ, write).astype("u1").tobytes(),
        "process": processes[stream[order]].astype("u1").tobytes(),
        "latency_us": random.exponential(100, len(size)).astype("f4").tobytes(),
    }
