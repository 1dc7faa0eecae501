"""How far apart two runs are, by what a storage tier sees of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nephoscope.statistics.series import autocorrelation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.features import Cell
    from nephoscope.storage.reuse import MissRatioCurve
    from nephoscope.storage.sizes import WriteSizes

SMOOTHING = 1e-3
"""The part of a foretold Z that is spread evenly over all cells before the K-L divergence is taken."""


class Rhythm(NamedTuple):
    """What is compared of requests a second."""

    mean: float
    """Requests a second."""
    deviation: float
    """Their standard deviation, requests a second."""
    dispersion: float
    """The index of dispersion: variance / mean, 1 for a Poisson process."""
    lag1: float
    """The autocorrelation from one second to the next."""


def rhythm(y: NDArray[np.floating] | NDArray[np.integer]) -> Rhythm:
    """Sum up the requests of S seconds, (S,)."""
    series = np.asarray(y, dtype=float)
    mean, deviation = float(series.mean()), float(series.std(ddof=1)) if len(series) > 1 else 0.0
    lags = autocorrelation(series, 1)
    return Rhythm(
        mean, deviation, deviation**2 / mean if mean else 0.0, float(lags[1]) if len(lags) > 1 else 0.0
    )


def relative_error(found: float, truth: float) -> float | None:
    """Return the amount of found / truth - 1, without unit; None where the truth is 0."""
    return abs(found / truth - 1) if truth else None


def log_distance(found: float, truth: float) -> float | None:
    """Return the amount of ln(found / truth): infinite where only one is 0, None where the truth is 0."""
    if not truth:
        return None
    return abs(math.log(found / truth)) if found > 0 else math.inf


def divergence(truth: NDArray[np.float64], found: NDArray[np.float64], smoothing: float = SMOOTHING) -> float:
    """Return the Kullback-Leibler divergence of ``found`` from ``truth``, in nats: Σ p ln(p / q).

    Both are non-negative weights over the same C cells, which are every cell that either of them knows; they need not
    add up to 1. q is (1 - smoothing) of ``found`` and ``smoothing`` spread evenly over the C cells: a cell that was
    never seen has a probability of smoothing / C.
    """
    p = truth / truth.sum()
    total = found.sum()
    q = (
        (1 - smoothing) * found / total + smoothing / len(found)
        if total
        else np.full(len(found), 1 / len(found))
    )
    seen = p > 0
    return float(np.sum(p[seen] * np.log(p[seen] / q[seen])))


def cell_divergence(
    truth: tuple[Sequence[Cell], NDArray[np.float64]], found: tuple[Sequence[Cell], NDArray[np.float64]]
) -> float:
    """Return the divergence of weighted cells, over every cell that either of both has."""
    place = {cell: at for at, cell in enumerate(sorted({*truth[0], *found[0]}))}
    spread = np.zeros((2, len(place)))
    for row, (cells, weights) in zip(spread, (truth, found), strict=True):
        row[[place[cell] for cell in cells]] = weights
    return divergence(*spread)


def named_cells(
    cells: Sequence[Cell], weights: NDArray[np.float64], names: Mapping[int, str]
) -> dict[tuple[str, int], float]:
    """Add up weighted cells, (C,), by the name of the segment and the size in KB; those of weight 0 are left out."""
    found: dict[tuple[str, int], float] = {}
    for cell, weight in zip(cells, weights.tolist(), strict=True):
        if weight:
            key = (names.get(cell.segment, f"segment {cell.segment}"), cell.size_kb)
            found[key] = found.get(key, 0.0) + weight
    return found


def named_divergence(
    truth: Mapping[tuple[str, int], float], found: Mapping[tuple[str, int], float]
) -> float | None:
    """Return the divergence of cells that are the same where they are called the same; None without a true one."""
    both = sorted({*truth, *found})
    p, q = (np.array([weights.get(key, 0.0) for key in both]) for weights in (truth, found))
    return divergence(p, q) if truth else None


def read_share(cells: Sequence[Cell], weights: NDArray[np.float64]) -> float:
    """Return the share of reads among weighted cells, (C,)."""
    reads = np.array([cell.size_kb == 0 for cell in cells])
    return float(weights[reads].sum() / weights.sum())


def mean_write_bytes(cells: Sequence[Cell], weights: NDArray[np.float64], sizes: WriteSizes) -> float | None:
    """Return the mean size of the writes among weighted cells, (C,), in bytes; None where there is none."""
    writes = np.array([cell.size_kb > 0 for cell in cells]) * weights
    return float(writes @ sizes.means(cells) / writes.sum()) if writes.sum() else None


def reuse(curve: MissRatioCurve) -> float:
    """Return how far a curve is from that of a stream whose pages never come again: the most that it can tell."""
    return curve_distance(curve, replace(curve, miss_ratio=np.ones_like(curve.miss_ratio)))


def curve_distance(one: MissRatioCurve, other: MissRatioCurve) -> float:
    """Return the mean absolute difference of two miss ratios over the logarithm of the cache's size: 0 to 1.

    The mean is over the sizes from the smallest that both curves know to the one at which the longer of them ends:
    a larger cache gains nothing in either. Between two sizes a curve is linear in the logarithm.

    Raises:
        ValueError: the pages differ in size, or a curve is empty.

    """
    if one.page_bytes != other.page_bytes:
        raise ValueError(f"pages of {one.page_bytes} and of {other.page_bytes} bytes cannot be compared")
    if not len(one.cache_bytes) or not len(other.cache_bytes):
        raise ValueError("a curve without an access has no distance")
    low = max(one.cache_bytes[0], other.cache_bytes[0])
    sizes = np.union1d(one.cache_bytes, other.cache_bytes)
    at = np.log2(sizes[sizes >= low].astype(float))
    # Steps too fine for two curves to cross unseen between them.
    at = np.unique(np.concatenate([at, np.linspace(at[0], at[-1], _STEPS)]))
    ratios = [np.interp(at, np.log2(curve.cache_bytes), curve.miss_ratio) for curve in (one, other)]
    apart = np.abs(ratios[0] - ratios[1])
    if at[-1] == at[0]:
        return float(apart[0])
    return float(np.trapezoid(apart, at) / (at[-1] - at[0]))


_STEPS = 2000
