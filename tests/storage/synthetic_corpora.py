"""Corpora of which the truth is known, because it was planted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nephoscope.storage.corpus import OPERATIONS, PROCESSES, CapturedRun, Corpus, CorpusMeta, CorpusWriter

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

PAGE = 8192
SEGMENT_BYTES = 2**20


@dataclass(frozen=True)
class Planted:
    """What a run is made of. The requests of a second are Poisson about ``rate``, which ``modulation`` moves."""

    rate: float = 500.0
    seconds: int = 120
    modulation: float = 0.0
    """The relative deviation of the rate from second to second; 0 for Poisson arrivals."""
    memory: float = 0.0
    """How much of the modulation a second takes over from the one before, 0 to 1."""
    read_share: float = 0.9
    segments: int = 8
    skew: float = 1.2
    """The exponent of Zipf's law over the segments; 0 is uniform."""
    sizes: tuple[int, ...] = (1024, 4096, 8192, 12288)
    """The bytes of writes, each half as likely as the one before."""
    background: float = 0.2
    """The share of the writes that the checkpointer makes."""
    tps: float = 100.0


def write_corpus(
    folder: Path, *runs: Planted, seed: int = 7, names: str = "orders", view: Literal["page", "log"] = "page"
) -> Corpus:
    """Write a corpus of these runs."""
    random = np.random.default_rng(seed)
    most = max(planted.segments for planted in runs)
    with CorpusWriter(folder) as writer:
        for number, planted in enumerate(runs):
            writer.requests(number, requests(planted, random))
            _write_transactions(writer, number, planted, random)
        segments = np.arange(most, dtype=np.uint32)
        writer.write(
            "segments",
            {"segment": segments, "name": [f"{names}_{n // 4}" for n in range(most)], "chunk": segments % 4},
        )
        told = [
            CapturedRun(
                run=n, seconds=one.seconds, mix="RW", weights={"pay": 0.3, "read": 0.7}, target_tps=one.tps
            )
            for n, one in enumerate(runs)
        ]
        writer.finish(
            CorpusMeta(view=view, segment_bytes=SEGMENT_BYTES, runs=told, source={"product": "synthetic"})
        )
    return Corpus(folder)


def requests(planted: Planted, random: np.random.Generator) -> dict[str, bytes]:
    """Draw the requests of a run, as the engine gives them."""
    counts = random.poisson(rates(planted, random))
    total = int(counts.sum())
    time_us = np.repeat(np.arange(planted.seconds), counts) * 1_000_000 + random.integers(0, 1_000_000, total)
    is_read = random.random(total) < planted.read_share
    likely = 0.5 ** np.arange(len(planted.sizes))
    sizes = random.choice(np.array(planted.sizes), total, p=likely / likely.sum())
    is_background = ~is_read & (random.random(total) < planted.background)
    columns: dict[str, NDArray[Any]] = {
        "time_us": np.sort(time_us).astype("i8"),
        "segment": zipf(planted.segments, planted.skew, total, random).astype("u4"),
        "offset": (zipf(SEGMENT_BYTES // PAGE, 0.8, total, random) * PAGE).astype("u8"),
        "bytes": np.where(is_read, PAGE, sizes).astype("u4"),
        "operation": np.where(is_read, OPERATIONS.index("read"), OPERATIONS.index("write")).astype("u1"),
        "process": np.where(
            is_background, PROCESSES.index("checkpointer"), PROCESSES.index("backend")
        ).astype("u1"),
        "latency_us": random.lognormal(np.where(is_read, 5.0, 4.0), 0.6, total).astype("f4"),
    }
    return {name: column.tobytes() for name, column in columns.items()}


def rates(planted: Planted, random: np.random.Generator) -> NDArray[np.float64]:
    """Draw the rate of each second: a gamma variable, so that it is never negative, with a memory of the last."""
    if not planted.modulation:
        return np.full(planted.seconds, planted.rate)
    shape = planted.modulation**-2
    steps = random.standard_normal(planted.seconds)
    for at in range(1, len(steps)):
        steps[at] = planted.memory * steps[at - 1] + np.sqrt(1 - planted.memory**2) * steps[at]
    # Wilson and Hilferty: the cube of a normal variable is nearly gamma.
    drawn = shape * (1 - 1 / (9 * shape) + steps / (3 * np.sqrt(shape))) ** 3
    return np.asarray(planted.rate * np.maximum(drawn, 0) / shape)


def zipf(count: int, exponent: float, total: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Draw places from 0 to ``count`` - 1 by Zipf's law."""
    likely = np.arange(1, count + 1) ** -exponent
    return random.choice(count, total, p=likely / likely.sum())


def _write_transactions(
    writer: CorpusWriter, number: int, planted: Planted, random: np.random.Generator
) -> None:
    for name, share in (("pay", 0.3), ("read", 0.7)):
        writer.write(
            "transactions",
            {
                "run": np.full(planted.seconds, number, np.int32),
                "second": np.arange(planted.seconds, dtype=np.int32),
                "type": [name] * planted.seconds,
                "count": random.poisson(share * planted.tps, planted.seconds),
            },
        )
