"""What changes while a database is captured: tables grow and are written at their ends, caches fill.

A model of the mix alone says what all runs together have. What runs near in time had more or less of than that model
says, a run between them has, too: a locally weighted correction, as wide as foretells left-out runs best. How the
writes are divided among relations is left to the mix: there, what other runs have more of is chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.storage.distances import divergence
from nephoscope.storage.features import relations_of
from nephoscope.storage.models.base import expect, scaled, shares

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nephoscope.storage.models.base import State, Training, Vector

WIDTHS = (0.0, 16.0, 8.0, 4.0, 2.0, 1.0)
"""How many runs away another counts a third as much; 0 for no correction."""
_LEAST_RUNS = 6
_BETTER = 0.95
"""A correction must err less than this part of what none does."""
_PRIOR = 0.05
"""How much of a run's requests speak for no correction."""
_TINY = 1e-12


@dataclass(frozen=True)
class Drift:
    """Corrections of a model as of a time: runs are numbered in the order of their capture."""

    order: Vector
    """The number of each run: (R,)."""
    means: Vector
    """Captured / foretold mean requests a second, by run and stream: (R, 2)."""
    captured: Vector
    """Captured shares of the cells, by run and stream: (R, 2, C)."""
    foretold: Vector
    """Foretold shares, likewise."""
    widths: NDArray[np.int64]
    """Places in ``WIDTHS``: of the mean and of the shares, by stream: (2, 2)."""
    writes: NDArray[np.int64]
    """To which relation a cell writes; -1 for a read: (C,)."""

    def mean(self, at: float | None) -> Vector:
        """Give what foretold means are to be multiplied by, by stream, (2,), at a run's number; None for the last."""
        near = [self._near(int(width), at) for width in self.widths[0]]
        return np.array(
            [
                1.0 if one is None else _geometric(one, self.means[:, stream])
                for stream, one in enumerate(near)
            ]
        )

    def weights(self, foretold: Vector, at: float | None, without: float | None = None) -> Vector:
        """Correct foretold shares, (2, C), as of a run's number; None for the last.

        ``without`` is the number of a run that must not be known.
        """
        rows = []
        for stream, width in enumerate(self.widths[1]):
            near = self._near(int(width), at)
            if near is not None and without is not None:
                near = near * (self.order != without)
            own = (self.captured[:, stream], self.foretold[:, stream])
            row = foretold[stream]
            rows.append(row if near is None else _corrected(row, _ratio(near, *own), self.writes))
        return shares(np.array(rows))

    def _near(self, width: int, at: float | None) -> Vector | None:
        if not WIDTHS[width]:
            return None
        return _kernel(self.order, float(self.order.max()) if at is None else at, WIDTHS[width])

    def state(self) -> State:
        """Give all that was learned, as arrays of numbers."""
        return {
            "order": self.order,
            "means": self.means,
            "captured": self.captured,
            "foretold": self.foretold,
            "widths": self.widths,
            "writes": self.writes,
        }

    @classmethod
    def restored(cls, state: State, cells: int) -> Drift:
        """Take back what ``state`` gave. Raises ``ValueError`` or ``KeyError`` where it is not as it should be."""
        order = expect(state, "order", (None,))
        widths = expect(state, "widths", (2, 2), "i")
        if not len(order) or (widths < 0).any() or (widths >= len(WIDTHS)).any():
            raise ValueError("drift has no runs, or other widths than there are")
        captured, foretold = (
            expect(state, name, (len(order), 2, cells)) for name in ("captured", "foretold")
        )
        means = expect(state, "means", (len(order), 2))
        if (means <= 0).any() or (captured < 0).any() or (foretold < 0).any():
            raise ValueError("drift has means that are 0 or less, or shares less than 0")
        writes = expect(state, "writes", (cells,), "i")
        if (writes < -1).any():
            raise ValueError("drift has relations less than 0")
        return cls(order, means, captured, foretold, widths, writes)


def fit_drift(
    data: Training, mean: Callable[[Vector], Vector], weights: Callable[[Vector], Vector]
) -> Drift | None:
    """Learn how runs near in time differ from what both halves of a model say; None where that foretells nothing.

    Args:
        data: The runs that the halves were trained on.
        mean: Foretells the mean requests a second by stream, (2,), at transactions a second by type, (T,).
        weights: Foretells the shares of cells by stream, (2, C), likewise.

    """
    if len(data.order) < _LEAST_RUNS:
        return None
    foretold = np.array([weights(rates) for rates in data.rates])
    expected = np.array([mean(rates) for rates in data.rates])
    captured = shares(data.z)
    known = (data.means > 0) & (expected > 0)
    means = np.divide(data.means, expected, out=np.ones_like(expected), where=known)
    widths = np.zeros((2, 2), dtype=np.int64)
    writes = np.where(data.size_kb > 0, relations_of(data.cells, data.relations), -1)
    for stream in range(2):
        widths[0, stream] = _chosen(data.order, partial(_off, means[:, stream]))
        own = (captured[:, stream], foretold[:, stream])
        widths[1, stream] = _chosen(data.order, partial(_apart, *own, writes))
    return Drift(data.order, means, captured, foretold, widths, writes) if widths.any() else None


def _chosen(order: Vector, error: Callable[[Vector | None, int], float]) -> int:
    """Choose the width that foretells each run best from the others."""
    errors = []
    for width in WIDTHS:
        found = []
        for run, at in enumerate(order):
            near = None
            if width:
                near = _kernel(order, float(at), width)
                near[run] = 0
            found.append(error(near, run))
        errors.append(float(np.mean(found)))
    best = int(np.argmin(errors))
    return best if errors[best] < _BETTER * errors[0] else 0


def _off(means: Vector, near: Vector | None, run: int) -> float:
    factor = 1.0 if near is None else _geometric(near, means)
    return abs(float(np.log(means[run] / factor)))


def _apart(
    captured: Vector, foretold: Vector, writes: NDArray[np.int64], near: Vector | None, run: int
) -> float:
    if not captured[run].sum():
        return 0.0
    found = foretold[run]
    if near is not None:
        found = _corrected(found, _ratio(near, captured, foretold), writes)
    return divergence(captured[run], found)


def _corrected(foretold: Vector, ratio: Vector, writes: NDArray[np.int64]) -> Vector:
    """Correct shares, (C,); all writes get what the ratios say, and each relation the part of them that it had."""
    found = foretold * ratio
    written = writes >= 0
    before, after = foretold[written], found[written]
    if before.sum():
        found[written] = scaled(after, np.bincount(writes[written], before), writes[written])
        found[written] *= after.sum() / found[written].sum()
    return found


def _kernel(order: Vector, at: float, width: float) -> Vector:
    return np.asarray(np.exp(-np.abs(order - at) / width))


def _geometric(near: Vector, means: Vector) -> float:
    return float(np.exp(near @ np.log(means) / max(float(near.sum()), _TINY)))


def _ratio(near: Vector, captured: Vector, foretold: Vector) -> Vector:
    """Give what runs near have of each cell over what is foretold of them, (C,)."""
    usual = _PRIOR * foretold.mean(axis=0)
    return np.asarray((near @ captured + usual + _TINY) / (near @ foretold + usual + _TINY))
