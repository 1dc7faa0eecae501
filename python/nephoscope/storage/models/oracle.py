"""The run that is to be foretold, drawn anew: as near as a sampler can come."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.statistics.series import block_length
from nephoscope.storage.models.base import Intensity, expect
from nephoscope.storage.models.constant import ConstantPlacement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nephoscope.storage.models.base import State, Training, Vector

_LEAST_BLOCK = 5


class OracleIntensity(Intensity):
    """A bootstrap of the run's own seconds, in blocks as long as its autocorrelation asks for."""

    informed = True

    def __init__(self) -> None:
        """Know nothing yet."""
        self.y: Vector = np.zeros((2, 1))
        """The requests of all seconds it was told, by stream: (2, S)."""

    def fit(self, data: Training) -> None:
        """Learn."""
        self.y = np.concatenate(data.y, axis=1)

    def mean(self, rates: Vector) -> Vector:  # noqa: ARG002 - it is told
        """Give the mean requests a second by stream: (2,)."""
        return np.asarray(self.y.mean(axis=1))

    def sample(self, rates: Vector, seconds: int, random: np.random.Generator) -> NDArray[np.int64]:  # noqa: ARG002
        """Draw the requests of S seconds by stream: (2, S)."""
        length = self.y.shape[1]
        block = min(max(_LEAST_BLOCK, math.ceil(block_length(self.y.sum(axis=0)))), length)
        starts = random.integers(length, size=math.ceil(seconds / block))
        places = (starts[:, None] + np.arange(block)).ravel()[:seconds] % length
        return self.y[:, places].astype(np.int64)

    def state(self) -> State:
        """Give all that was learned."""
        return {"y": self.y}

    def restore(self, state: State) -> None:
        """Take it back."""
        self.y = expect(state, "y", (2, None))


class OraclePlacement(ConstantPlacement):
    """As many requests as the run has, drawn from the run's own places: what sampling alone costs."""

    informed = True

    def fit(self, data: Training) -> None:
        """Learn."""
        super().fit(data)
        random = np.random.default_rng(_SEED)
        for stream, counted in enumerate(data.z.sum(axis=(0, 2))):
            if counted:
                drawn = random.multinomial(int(counted), self.pooled[stream])
                self.pooled[stream] = drawn / counted


_SEED = 20
