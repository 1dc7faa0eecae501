"""Requests a transaction and their places, pooled over all runs: what needs no model at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nephoscope.storage.models.base import Intensity, Placement, expect, in_whole, shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nephoscope.storage.models.base import State, Training, Vector


class ConstantIntensity(Intensity):
    """As many requests a transaction as all runs had together, evenly."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self.per_transaction: Vector = np.zeros(2)
        """Requests a transaction, by stream: (2,)."""

    def fit(self, data: Training) -> None:
        """Learn."""
        transactions = sum(float(x.sum()) for x in data.x)
        self.per_transaction = np.asarray(data.z.sum(axis=(0, 2)) / transactions)

    def mean(self, rates: Vector) -> Vector:
        """Foretell the mean requests a second by stream, (2,), at transactions a second by type, (T,)."""
        return np.asarray(self.per_transaction * rates.sum())

    def sample(self, rates: Vector, seconds: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Draw the requests of S seconds by stream, (2, S), at transactions a second by type, (T,)."""
        return in_whole(np.repeat(self.mean(rates)[:, None], seconds, axis=1), random)

    def state(self) -> State:
        """Give all that was learned."""
        return {"per_transaction": self.per_transaction}

    def restore(self, state: State) -> None:
        """Take it back."""
        self.per_transaction = expect(state, "per_transaction", (2,))


class ConstantPlacement(Placement):
    """The places of all runs' requests together."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self.pooled: Vector = np.zeros((2, 0))
        """Each cell's share, by stream: (2, C)."""

    def fit(self, data: Training) -> None:
        """Learn."""
        self.pooled = shares(data.z.sum(axis=0))

    def weights(self, rates: Vector) -> Vector:  # noqa: ARG002 - the same at any rates
        """Give each cell's share by stream: (2, C)."""
        return self.pooled

    def state(self) -> State:
        """Give all that was learned."""
        return {"pooled": self.pooled}

    def restore(self, state: State) -> None:
        """Take it back."""
        self.pooled = expect(state, "pooled", (2, None))
