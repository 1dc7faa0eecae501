"""What YCSB's knobs can say of a run: Poisson requests at its mean, its read share, Zipf's law over segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nephoscope.storage.models.base import Placement, expect, shares
from nephoscope.storage.models.constant import ConstantIntensity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nephoscope.storage.models.base import State, Training, Vector

ZIPF = 0.99
"""The exponent of YCSB's Zipfian distribution."""


class PoissonIntensity(ConstantIntensity):
    """Poisson requests at a constant mean, which it is told."""

    informed = True

    def sample(self, rates: Vector, seconds: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Draw the requests of S seconds by stream, (2, S), at transactions a second by type, (T,)."""
        return random.poisson(np.repeat(self.mean(rates)[:, None], seconds, axis=1))


class ZipfPlacement(Placement):
    """Zipf's law over segments, any page of them alike, sizes that do not depend on the segment, and the read share.

    It is told sizes and the read share. YCSB's ranks are arbitrary; here the hottest segment has rank 1, which is the
    best that a user could do.
    """

    informed = True
    any_page = True

    def __init__(self) -> None:
        """Know nothing yet."""
        self.law: Vector = np.zeros((2, 0))
        """Each cell's share, by stream: (2, C)."""

    def fit(self, data: Training) -> None:
        """Learn."""
        counted = data.z.sum(axis=0)
        segment, size = np.array(data.cells).T
        segments, of_segment = np.unique(segment, return_inverse=True)
        sizes, of_size = np.unique(size, return_inverse=True)
        by_segment = _sums(counted, of_segment, len(segments))
        by_size = _sums(counted, of_size, len(sizes))
        rank = np.argsort(np.argsort(-by_segment, axis=1), axis=1)
        popularity: Vector = np.power(rank + 1.0, -ZIPF, dtype=np.float64)
        joint = shares(by_size)[:, of_size] * shares(popularity)[:, of_segment]
        # Cells that nobody has seen would take their part of each size: it goes to the others of the same size.
        kept = _sums(joint, of_size, len(sizes))
        lost = np.divide(shares(by_size), kept, out=np.zeros_like(kept), where=kept > 0)
        self.law = shares(joint * lost[:, of_size])

    def weights(self, rates: Vector) -> Vector:  # noqa: ARG002 - the same at any rates
        """Give each cell's share by stream: (2, C)."""
        return self.law

    def state(self) -> State:
        """Give all that was learned."""
        return {"law": self.law}

    def restore(self, state: State) -> None:
        """Take it back."""
        self.law = expect(state, "law", (2, None))


def _sums(rows: Vector, of: NDArray[np.intp], groups: int) -> Vector:
    """Add up the columns of each group: (n, C) and the group of each column give (n, groups)."""
    sums = np.zeros((len(rows), groups))
    for row, summed in zip(rows, sums, strict=True):
        np.add.at(summed, of, row)
    return sums
