"""What a model foretells of a run: how many requests in each second, and where. The generator starts from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from nephoscope.storage.features import Cell
    from nephoscope.storage.sizes import WriteSizes


@dataclass(frozen=True)
class Forecast:
    """Requests of S seconds, by stream (see ``features.STREAMS``), over C cells."""

    counts: NDArray[np.int64]
    """Requests in each second: (2, S)."""
    cells: Sequence[Cell]
    """The C cells."""
    weights: NDArray[np.float64]
    """The probability of each cell, by stream: (2, C), each row adding up to 1, or 0 where a stream has none."""
    write_bytes: WriteSizes
    """The sizes of writes."""
    nearest: int = 0
    """The run whose bursts it has: its place among those that patterns were learned from."""
