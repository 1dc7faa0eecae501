"""Runs whose figures scatter as planted around their levels."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from nephoscope.store import StoredRun
from sample_studies import Tables, sim_study, throughput
from stored_runs import Step, write_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LEVELS = (2, 8)


def study(repetitions: int) -> Tables:
    return sim_study(throughput(concurrency=list(LEVELS), duration="4s", repetitions=repetitions))


def run(
    folder: Path,
    *,
    tps: float = 1000,
    latency_ms: float = 2.0,
    noise: float = 0.02,
    repetitions: int = 5,
    levels: tuple[int, ...] = LEVELS,
    manifest: Mapping[str, Any] | None = None,
) -> StoredRun:
    """Plant a run whose TPS and latency scatter around their levels, from repetition to repetition and within."""
    chance = random.Random(f"{folder.name} {repetitions}")  # noqa: S311 - no secret is drawn
    steps = []
    for repetition in range(1, repetitions + 1):
        for level in levels:
            shift = chance.gauss(1, noise)
            counts = [round(tps * level / 10 * shift * chance.gauss(1, noise)) for _ in range(40)]
            latencies = [latency_ms * shift * chance.gauss(1, noise) for _ in range(40)]
            labels = {"mix": "SELECT", "concurrency": level, "repetition": repetition}
            steps.append(Step(labels, counts, latencies))
    return StoredRun(write_run(folder, study(repetitions), steps, manifest))
