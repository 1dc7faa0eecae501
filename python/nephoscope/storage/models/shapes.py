"""The shape of Y about its mean: blocks of what the training runs did, brought to the deviation of another level."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls

from nephoscope.storage.distances import rhythm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.distances import Rhythm
    from nephoscope.storage.models.base import Vector

BLOCKS = (5, 20, 10**6)
"""Lengths of blocks in seconds that are tried; the last is whole runs, turned to begin anywhere."""
SCALES = ("as it was", "noise", "power")
"""How the relative variance v depends on the mean m: not at all; v = a + b / m; v = a · m^b."""
DONORS = ("all", "nearest")
"""Which runs blocks come from: all, or those of the nearest TPS level."""
_DRAWS = 6
_STEEPEST = 1.0


@dataclass(frozen=True)
class Choice:
    """One way to draw shapes: places in ``BLOCKS``, ``SCALES`` and ``DONORS``."""

    block: int
    scale: int
    donors: int


CHOICES = [Choice(*one) for one in itertools.product(*(range(len(of)) for of in (BLOCKS, SCALES, DONORS)))]


@dataclass(frozen=True)
class Shapes:
    """What R runs did about their means, by stream."""

    deviations: Sequence[Vector]
    """For each run y / mean - 1 (or what is left of it), by stream and second: (2, S)."""
    means: Vector
    """The mean requests a second, by run and stream: (R, 2)."""
    tps: Vector
    """(R,)."""
    levels: NDArray[np.intp]
    """(R,)."""

    def only(self, kept: NDArray[np.bool_]) -> Shapes:
        """Leave out runs."""
        deviations = [one for one, stays in zip(self.deviations, kept, strict=True) if stays]
        return Shapes(deviations, self.means[kept], self.tps[kept], self.levels[kept])

    def draw(
        self, choice: Choice, mean: Vector, tps: float, seconds: int, random: np.random.Generator
    ) -> Vector:
        """Draw y / mean by stream, (2, S), no less than 0, for requests a second of the given mean, (2,)."""
        return self.draw_from(self.scaled(choice.scale, mean), choice, tps, seconds, random)

    def draw_from(
        self, scaled: Sequence[Vector], choice: Choice, tps: float, seconds: int, random: np.random.Generator
    ) -> Vector:
        """Draw as ``draw`` does, from what ``scaled`` gives for its mean."""
        donors = self._donors(choice, tps)
        drawn, length = [], 0
        while length < seconds:
            shape = scaled[int(donors[random.integers(len(donors))])]
            block = min(BLOCKS[choice.block], shape.shape[1], seconds - length)
            places = (random.integers(shape.shape[1]) + np.arange(block)) % shape.shape[1]
            drawn.append(shape[:, places])
            length += block
        return np.concatenate(drawn, axis=1)

    def scaled(self, scale: int, mean: Vector) -> list[Vector]:
        """Give y / mean of each run, (2, S), no less than 0, as it would be at another mean, (2,)."""
        scaled = []
        for factor, deviation in zip(self._factors(scale, mean), self.deviations, strict=True):
            shape = np.maximum(1 + factor[:, None] * deviation, 0)
            # What was cut off at 0 must not raise the mean.
            level = shape.mean(axis=1, keepdims=True)
            scaled.append(np.divide(shape, level, out=np.ones_like(shape), where=level > 0))
        return scaled

    def _donors(self, choice: Choice, tps: float) -> NDArray[np.intp]:
        if DONORS[choice.donors] == "all":
            return np.arange(len(self.tps))
        apart = np.abs(np.log(np.maximum(self.tps, 1e-9) / max(tps, 1e-9)))
        return np.flatnonzero(self.levels == self.levels[np.argmin(apart)])

    def _factors(self, scale: int, mean: Vector) -> Vector:
        """Give what each run's deviations are multiplied by at another mean, (2,): (R, 2)."""
        factors = np.ones_like(self.means)
        if SCALES[scale] == "as it was":
            return factors
        law = _noise if SCALES[scale] == "noise" else _power
        variances = np.array([one.var(axis=1) for one in self.deviations])
        for stream in range(self.means.shape[1]):
            known = (variances[:, stream] > 0) & (self.means[:, stream] > 0)
            if known.any() and mean[stream] > 0:
                v = law(self.means[known, stream], variances[known, stream], float(mean[stream]))
                factors[known, stream] = np.sqrt(v)
        return factors


def _noise(means: Vector, variances: Vector, mean: float) -> Vector:
    """Variances at ``mean`` over those at each run's own: v = a + b / m, fitted to relative errors, (R,)."""
    design = np.column_stack([1 / variances, 1 / (means * variances)])
    (a, b), _ = nnls(design, np.ones(len(means)))
    return np.asarray((a + b / mean) / (a + b / means))


def _power(means: Vector, variances: Vector, mean: float) -> Vector:
    """Variances at ``mean`` over those at each run's own: v = a · m^b, |b| ≤ 1, (R,)."""
    log = np.log(means)
    spread = float(np.var(log))
    slope = float(np.mean((log - log.mean()) * np.log(variances)) / spread) if spread > _SAME else 0.0
    return np.asarray((mean / means) ** np.clip(slope, -_STEEPEST, _STEEPEST))


_SAME = 1e-4


def choose(shapes: Shapes, y: Sequence[Vector], seed: int) -> Choice:
    """Choose how to draw shapes by leaving one TPS level out: by the deviation and the autocorrelation foretold."""
    levels = np.unique(shapes.levels)
    if len(levels) < _LEVELS:
        return Choice(len(BLOCKS) - 1, 0, 0)
    errors = np.zeros(len(CHOICES))
    for level in levels:
        out = shapes.levels == level
        kept = shapes.only(~out)
        for run in map(int, np.flatnonzero(out)):
            truth = rhythm(y[run].sum(axis=0))
            mean, tps, seconds = shapes.means[run], float(shapes.tps[run]), y[run].shape[1]
            scaled = [kept.scaled(scale, mean) for scale in range(len(SCALES))]
            for number, choice in enumerate(CHOICES):
                random = np.random.default_rng((seed, run))
                of = scaled[choice.scale]
                drawn = [kept.draw_from(of, choice, tps, seconds, random) for _ in range(_DRAWS)]
                errors[number] += _error(truth, [rhythm(mean @ one) for one in drawn])
    return CHOICES[int(np.argmin(errors))]


_LEVELS = 2


def _error(truth: Rhythm, found: Sequence[Rhythm]) -> float:
    deviation = float(np.mean([one.deviation for one in found]))
    lag1 = float(np.mean([one.lag1 for one in found]))
    return abs(math.log(max(deviation, _TINY) / max(truth.deviation, _TINY))) + abs(lag1 - truth.lag1)


_TINY = 1e-9
