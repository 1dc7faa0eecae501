"""Corpora of which the truth is known, because it was planted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from synthetic import PAGE, Made, write

from nephoscope.storage.corpus import PROCESSES, CapturedRun
from nephoscope.storage.features import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from nephoscope.storage.corpus import Corpus

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

    def made() -> Iterator[Made]:
        for number, planted in enumerate(runs):
            weights = {"pay": 0.3, "read": 0.7}
            run = CapturedRun(
                run=number, seconds=planted.seconds, mix="RW", weights=weights, target_tps=planted.tps
            )
            drawn = requests(planted, random)
            counts = {
                name: random.poisson(share * planted.tps, planted.seconds) for name, share in weights.items()
            }
            yield Made(run, drawn, counts)

    segments = range(max(planted.segments for planted in runs))
    relations = [f"{names}_{at // 4}" for at in segments]
    chunks = [at % 4 for at in segments]
    return write(folder, made(), relations, chunks, view=view, segment_bytes=SEGMENT_BYTES)


def requests(planted: Planted, random: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Draw the requests of a run."""
    counts = random.poisson(rates(planted, random))
    total = int(counts.sum())
    time_us = np.repeat(np.arange(planted.seconds), counts) * 1_000_000 + random.integers(0, 1_000_000, total)
    is_read = random.random(total) < planted.read_share
    likely = 0.5 ** np.arange(len(planted.sizes))
    sizes = random.choice(np.array(planted.sizes), total, p=likely / likely.sum())
    is_background = ~is_read & (random.random(total) < planted.background)
    return {
        "time_us": np.sort(time_us),
        "segment": zipf(planted.segments, planted.skew, total, random),
        "offset": zipf(SEGMENT_BYTES // PAGE, 0.8, total, random) * PAGE,
        "bytes": np.where(is_read, PAGE, sizes),
        "operation": np.where(is_read, READ, WRITE),
        "process": np.where(is_background, PROCESSES.index("checkpointer"), PROCESSES.index("backend")),
        "latency_us": random.lognormal(np.where(is_read, 5.0, 4.0), 0.6, total),
    }


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
