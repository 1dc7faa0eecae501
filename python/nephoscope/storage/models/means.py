"""The mean requests a second of a stream: linear in the mix, a power of the TPS, and a constant besides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import nnls

from nephoscope.storage.models.base import shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nephoscope.storage.models.base import Training, Vector

EXPONENTS = np.round(np.arange(0.3, 1.31, 0.02), 2)
"""Exponents of the TPS that are tried."""
RIDGE = 1e-3
"""The least with which a type's requests are drawn to those of all types together, where the mixes do not tell."""
CHANCE = 4.0
"""How many times the variance by chance a direction of the mix must vary by to be told from all types together."""
_BETTER = 0.9
"""A law with more parameters must err less than this part of what the simpler one does."""
_LEAST = 0.01
"""Errors are relative to the mean, or to this part of the stream's greatest mean where that is more."""


@dataclass(frozen=True)
class MeanLaw:
    """y = TPS^exponent · Σ per_type · share + constant, requests a second."""

    exponent: float
    per_type: Vector
    """(T,)."""
    constant: float

    def __call__(self, rates: Vector) -> Vector:
        """Give the mean requests a second, (…,), at transactions a second by type, (…, T)."""
        tps = rates.sum(axis=-1)
        return np.asarray(tps**self.exponent * (shares(rates) @ self.per_type) + self.constant)


class MeanRows(NamedTuple):
    """What a law is fitted to: R runs of T types."""

    rates: Vector
    """Transactions a second by type: (R, T)."""
    means: Vector
    """Requests a second: (R,)."""
    ridge: Vector
    """How strongly each run draws its types to all types together: (R,)."""

    def only(self, kept: NDArray[np.bool_]) -> MeanRows:
        """Leave out runs."""
        return MeanRows(*(column[kept] for column in self))


def by_chance(rates: Vector, seconds: Vector) -> Vector:
    """Give the variance that a type's share has by chance in each run, (R,): rates (R, T), lengths in seconds (R,).

    Shares of runs of one mix differ by that much, which says nothing about the types.
    """
    types = max(1, rates.shape[1])
    return np.asarray((1 - 1 / types) / types / np.maximum(rates.sum(axis=1) * seconds, 1))


def fit_mean(data: Training, stream: int) -> MeanLaw:
    """Choose and fit the law of a stream by leaving one TPS level out at a time."""
    ridge = RIDGE + CHANCE * by_chance(data.rates, data.seconds)
    rows, levels = MeanRows(data.rates, data.means[:, stream], ridge), data.levels
    if len(np.unique(levels)) < _LEVELS_FOR_A_LAW:
        return _fit(rows, 1.0, constant=False)
    simple = [(1.0, False)]
    richer = [(1.0, True)]
    richest = [(float(b), c) for b in EXPONENTS for c in (False, True) if b != 1.0]
    chosen, error = simple[0], np.inf
    for candidates in (simple, richer, richest):
        errors = [_left_out(rows, levels, b, constant=c) for b, c in candidates]
        best = int(np.argmin(errors))
        if errors[best] < _BETTER * error:
            chosen, error = candidates[best], errors[best]
    return _fit(rows, chosen[0], constant=chosen[1])


_LEVELS_FOR_A_LAW = 3


def nonnegative(design: Vector, targets: Vector) -> Vector:
    """Solve min ‖design · w - target‖² with w ≥ 0 for each target: (n, k) and (n, C) give (k, C)."""
    solved, *_ = np.linalg.lstsq(design, targets, rcond=None)
    for column in np.flatnonzero((solved < 0).any(axis=0)):
        solved[:, column], _ = nnls(design, targets[:, column])
    return np.asarray(solved)


def _left_out(rows: MeanRows, levels: NDArray[np.intp], exponent: float, *, constant: bool) -> float:
    errors, scale = [], _scale(rows.means)
    for level in np.unique(levels):
        out = levels == level
        law = _fit(rows.only(~out), exponent, constant=constant)
        errors.append(float(np.mean(np.abs(law(rows.rates[out]) - rows.means[out]) / scale[out])))
    return float(np.mean(errors))


def _scale(means: Vector) -> Vector:
    return np.maximum(means, max(_LEAST * float(means.max()), np.finfo(float).tiny))


def _fit(rows: MeanRows, exponent: float, *, constant: bool) -> MeanLaw:
    rates, means, ridge = rows
    types = rates.shape[1]
    if not means.any():  # a stream without requests has no scale
        return MeanLaw(exponent, np.zeros(types), 0.0)
    growth = rates.sum(axis=1) ** exponent
    scale = _scale(means)
    design = growth[:, None] * shares(rates) / scale[:, None]
    above = np.column_stack([design, 1 / scale]) if constant else design
    weight = np.ones(len(means))
    for _ in range(_ROUNDS):
        # All types alike: what a type whose share never changes is drawn to.
        line = growth / scale * weight
        alike = float(line @ (means / scale * weight) / np.sum(line**2))
        pull = np.sqrt(ridge.sum()) * float(np.mean(growth / scale))
        below = np.zeros((types, above.shape[1]))
        below[:, :types] = pull * np.eye(types)
        targets = np.concatenate([weight * means / scale, np.full(types, pull * alike)])
        found = nonnegative(np.concatenate([weight[:, None] * above, below]), targets[:, None])[:, 0]
        off = np.abs(above @ found - means / scale)
        usual = _USUAL * float(np.median(off))
        # Huber's weights: a run with a vacuum that others do not have says little about the rest.
        weight = np.sqrt(np.minimum(1, usual / np.maximum(off, usual or 1)) if usual else np.ones(len(off)))
    return MeanLaw(exponent, found[:types], float(found[types]) if constant else 0.0)


_ROUNDS = 4
_USUAL = 1.345 * 1.4826
"""How many median errors count in full: 1.345 standard deviations, were errors normal."""
