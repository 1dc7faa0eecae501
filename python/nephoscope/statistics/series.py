"""Series of equal intervals: how much each value says about the next, and how many values they are worth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Values: TypeAlias = Sequence[float] | NDArray[np.float64]
    """What every function here takes: a list or a vector of numbers."""

_LEAST_PHI, _GREATEST_PHI = 0.0, 0.97
_LEAST_TO_BLOCK = 4


def checked(values: Values) -> NDArray[np.float64]:
    """Return values as a vector of floats. Raises ``ValueError`` if there is none, or one is not finite."""
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"values of shape {x.shape}; allowed: a list of at least one number")
    if not np.isfinite(x).all():
        raise ValueError("a value is not a finite number; allowed: finite numbers")
    return x


def is_constant(x: NDArray[np.float64]) -> bool:
    """Tell whether values differ by no more than rounding: nothing can then be said about their spread."""
    return float(np.ptp(x)) <= 1e-13 * float(np.abs(x).max())


def autocorrelation(series: Values, max_lag: int | None = None) -> NDArray[np.float64]:
    """Autocorrelation at the lags 0 … ``max_lag`` (default: all), the biased estimator, without unit.

    A constant series has no autocorrelation; 0 stands at every lag but the first, as for independent values.
    Raises ``ValueError`` for no values or a non-finite one.
    """
    x = checked(series)
    n = len(x)
    lags = n if max_lag is None else min(max_lag + 1, n)
    covariance = _autocovariance(x)[:lags]
    # The squares of the smallest numbers there are round to 0.
    if is_constant(x) or covariance[0] <= 0:
        rho = np.zeros(lags)
        rho[0] = 1.0
        return rho
    covariance /= covariance[0]
    return covariance


def effective_sample_size(series: Values) -> float:
    """How many independent values the mean of an autocorrelated series is worth, between 1 and n.

    n / (1 + 2 Σρ), summed by Geyer's initial positive sequence (Statistical Science 7, 1992). Negative
    autocorrelation could make a series worth more than n; that bonus is never claimed.
    """
    rho = autocorrelation(series)
    n = len(rho)
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    positive = pairs[: ends[0]] if len(ends) else pairs
    time = max(1.0, 2 * float(positive.sum()) - 1)
    return max(1.0, n / time)


def block_length(series: Values) -> float:
    """Choose the block length of a circular block bootstrap of the mean, in intervals, at least 1.

    Politis and White, Econometric Reviews 23, 2004, with the correction of Patton, Politis and White, 28,
    2009.
    """
    x = checked(series)
    n = len(x)
    if n < _LEAST_TO_BLOCK or is_constant(x):
        return 1.0
    covariance = _autocovariance(x)
    consecutive = max(5, math.ceil(math.sqrt(math.log10(n))))
    furthest = min(math.ceil(math.sqrt(n)) + consecutive, n - 1)
    significant = np.abs(covariance[1 : furthest + 1] / covariance[0]) > 2 * math.sqrt(math.log10(n) / n)
    last = _last_before_silence(significant, consecutive)
    bandwidth = min(max(2 * last, 1), furthest)
    lags = np.arange(-bandwidth, bandwidth + 1)
    weighted = np.clip(2 * (1 - np.abs(lags) / bandwidth), 0, 1) * covariance[np.abs(lags)]
    spectrum = float(weighted.sum())
    if spectrum <= 0:
        return 1.0
    slope = float((np.abs(lags) * weighted).sum())
    return max(1.0, math.cbrt(1.5 * n * (slope / spectrum) ** 2))


def prewhitening_phi(centred: NDArray[np.float64], fitted: int, caution: float = 0.0) -> float:
    """Estimate the first-order autoregression to take out of a series before its spread is judged.

    The least-squares estimate is too small in short series by about (1 + 3φ) / n after a mean was fitted and
    (2 + 4φ) / n after a line was (``fitted`` = 1 or 2 parameters), which is corrected; ``caution`` adds so
    many standard errors. Held to 0 … 0.97: below, prewhitening would only narrow intervals; above, it would
    divide by nearly nothing.
    """
    n = len(centred)
    power = float(centred @ centred)
    if power <= 0:
        return 0.0
    phi = float(centred[1:] @ centred[:-1]) / power
    phi = (phi + fitted / n) / (1 - (fitted + 2) / n)
    phi += caution * math.sqrt(max(0.0, 1 - phi * phi) / n)
    return min(max(phi, _LEAST_PHI), _GREATEST_PHI)


def _last_before_silence(significant: NDArray[np.bool_], consecutive: int) -> int:
    """Find the lag after which ``consecutive`` autocorrelations in a row are insignificant."""
    silent = 0
    for lag, loud in enumerate(significant, start=1):
        silent = 0 if loud else silent + 1
        if silent == consecutive:
            return lag - consecutive
    return int(np.flatnonzero(significant)[-1]) + 1 if significant.any() else 1


def _autocovariance(x: NDArray[np.float64]) -> NDArray[np.float64]:
    n = len(x)
    from scipy.fft import irfft, next_fast_len, rfft  # noqa: PLC0415 - most commands need no scipy

    size = next_fast_len(2 * n - 1, real=True)
    spectrum = rfft(x - x.mean(), size)
    covariance: NDArray[np.float64] = irfft(np.abs(spectrum) ** 2, size)[:n] / n
    return covariance
