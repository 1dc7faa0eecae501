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
        return _law(rows, 1.0, constant=False)
    linear, others = np.ones(1), EXPONENTS[EXPONENTS != 1]
    simple, richer = ([(1.0, constant)] for constant in (False, True))
    richest = [(float(exponent), constant) for constant in (False, True) for exponent in others]
    chosen, error = simple[0], np.inf
    for candidates, exponents, constants in (
        (simple, linear, [False]),
        (richer, linear, [True]),
        (richest, others, [False, True]),
    ):
        errors = np.concatenate([_left_out(rows, levels, exponents, constant=of) for of in constants])
        best = int(np.argmin(errors))
        if errors[best] < _BETTER * error:
            chosen, error = candidates[best], float(errors[best])
    return _law(rows, chosen[0], constant=chosen[1])


_LEVELS_FOR_A_LAW = 3


def nonnegative(design: Vector, targets: Vector) -> Vector:
    """Solve min ‖design · w - target‖² with w ≥ 0 for each target: (n, k) and (n, C) give (k, C)."""
    solved, *_ = np.linalg.lstsq(design, targets, rcond=None)
    for column in np.flatnonzero((solved < 0).any(axis=0)):
        solved[:, column], _ = nnls(design, targets[:, column])
    return np.asarray(solved)


def _left_out(rows: MeanRows, levels: NDArray[np.intp], exponents: Vector, *, constant: bool) -> Vector:
    """Give how far off the law with each exponent is, (E,), where one TPS level is left out at a time."""
    errors, scale = [], _scale(rows.means)
    for level in np.unique(levels):
        out = levels == level
        per_type, constants = _fit(rows.only(~out), exponents, constant=constant)
        growth = rows.rates[out].sum(axis=1) ** exponents[:, None]
        foretold = growth * (per_type @ shares(rows.rates[out]).T) + constants[:, None]
        errors.append(np.mean(np.abs(foretold - rows.means[out]) / scale[out], axis=1))
    return np.asarray(np.mean(errors, axis=0))


def _scale(means: Vector) -> Vector:
    return np.maximum(means, max(_LEAST * float(means.max()), np.finfo(float).tiny))


def _law(rows: MeanRows, exponent: float, *, constant: bool) -> MeanLaw:
    per_type, constants = _fit(rows, np.array([exponent]), constant=constant)
    return MeanLaw(exponent, per_type[0], float(constants[0]))


def _fit(rows: MeanRows, exponents: Vector, *, constant: bool) -> tuple[Vector, Vector]:
    """Fit a law with each of E exponents: ``per_type``, (E, T), and the constants, (E,)."""
    rates, means, ridge = rows
    types, number = rates.shape[1], len(exponents)
    if not means.any():  # a stream without requests has no scale
        return np.zeros((number, types)), np.zeros(number)
    scale = _scale(means)
    targets = means / scale
    growth = rates.sum(axis=1) ** exponents[:, None] / scale
    above = growth[:, :, None] * shares(rates)
    if constant:
        above = np.concatenate([above, np.tile(1 / scale[:, None], (number, 1, 1))], axis=2)
    pull = np.sqrt(ridge.sum()) * growth.mean(axis=1, keepdims=True)
    below = np.zeros((number, types, above.shape[2]))
    below[:, :, :types] = pull[:, :, None] * np.eye(types)
    weight = np.ones_like(growth)
    for _ in range(_ROUNDS):
        # All types alike: what a type whose share never changes is drawn to.
        line = growth * weight
        alike = np.sum(line * targets * weight, axis=1, keepdims=True) / np.sum(
            line**2, axis=1, keepdims=True
        )
        left = np.concatenate([weight[:, :, None] * above, below], axis=1)
        right = np.concatenate([weight * targets, np.repeat(pull * alike, types, axis=1)], axis=1)
        found = np.array([nnls(*one)[0] for one in zip(left, right, strict=True)])
        off = np.abs((above @ found[:, :, None])[:, :, 0] - targets)
        usual = _USUAL * np.median(off, axis=1, keepdims=True)
        # Huber's weights: a run with a vacuum that others do not have says little about the rest.
        weight = np.sqrt(np.where(usual > 0, usual / np.maximum(off, np.where(usual > 0, usual, 1)), 1))
    return found[:, :types], found[:, types] if constant else np.zeros(number)


_ROUNDS = 4
_USUAL = 1.345 * 1.4826
"""How many median errors count in full: 1.345 standard deviations, were errors normal."""
