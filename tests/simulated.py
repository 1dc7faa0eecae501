"""Series and samples for simulations: seeded, so that every simulated rate is a constant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.signal import lfilter

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNLIKELY = 1e-6
"""A chance below which a test takes what happened for no chance."""


def generator() -> np.random.Generator:
    return np.random.default_rng(20241120)


def ar1(rng: np.random.Generator, runs: int, n: int, phi: float) -> NDArray[np.float64]:
    """Stationary series of mean 0 and variance 1, one a row."""
    noise = rng.standard_normal((runs, n + 100))
    series: NDArray[np.float64] = np.asarray(lfilter([1], [1, -phi], noise, axis=1))[:, 100:]
    return series * math.sqrt(1 - phi * phi)


def allowance(rate: float, runs: int) -> float:
    """Three standard errors of a rate that is simulated by so many runs."""
    return 3 * math.sqrt(rate * (1 - rate) / runs)
