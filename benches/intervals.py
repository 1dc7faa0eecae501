"""What an interval costs: the statistics that every table asks for again and again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from benches.results import Result, at_most, result
from nephoscope.statistics import block_bootstrap_ci, compare, effective_sample_size, mean_ci, steady_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

VALUES, RESAMPLES = 10_000, 1000
TURNS = 5


def intervals(_folder: Path) -> Iterator[Result]:
    """Each function of ten thousand values, or a mean's interval of five hundred, against a plain resampling."""
    random = np.random.default_rng(1)
    series = random.normal(100, 1, VALUES)
    calls: dict[str, Callable[[], object]] = {
        "mean_ci": lambda: mean_ci(series),
        "mean_ci of 500": lambda: mean_ci(series[:500]),
        "block_bootstrap_ci": lambda: block_bootstrap_ci(series),
        "steady_state": lambda: steady_state(series, 1),
        "compare": lambda: compare(
            series[:1], series[:1], higher_is_better=True, baseline_series=series, candidate_series=series
        ),
        "effective_sample_size": lambda: effective_sample_size(series),
    }
    for name, call in calls.items():
        ratios = [seconds(call) / seconds(lambda: plain(series, random)) for _ in range(TURNS)]
        yield result(name, f"{RESAMPLES:,} resamplings by numpy", ratios, at_most(1))


def plain(series: np.ndarray[tuple[int], np.dtype[np.float64]], random: np.random.Generator) -> None:
    """Resample all values as often as an interval of a bootstrap needs at least."""
    for _ in range(RESAMPLES):
        series[random.integers(0, VALUES, VALUES)].mean()


def seconds(call: Callable[[], object]) -> float:
    """Processor time of a call, in seconds."""
    begun = time.thread_time()
    call()
    return time.thread_time() - begun
