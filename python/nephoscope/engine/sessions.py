"""Whether the sessions of a phase had their connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_SHARE = 0.01
"""Above this share of the sessions' time without a connection a phase is not at the level that it is named by."""
_FEWEST = 2
"""Intervals: at the end of one a session may just be making a connection anew."""


def is_short(
    sessions: Sequence[float] | Floats, disconnected: Sequence[float] | Floats, failures: int
) -> bool:
    """Tell whether a phase lacked sessions, by how many were wanted and without a connection as each interval ended.

    ``failures`` is how many connections broke or could not be made. Sessions lacked if one of them did for more than
    half of the phase, or, with such failures, if more than 1 % of their time was without a connection. Sessions that
    only take a moment to connect when the phase begins are none of these.
    """
    if not sum(sessions):
        return False
    if np.median(disconnected) >= 1:
        return True
    share = sum(disconnected) / sum(sessions)
    return bool(failures and share > _SHARE and np.count_nonzero(disconnected) >= _FEWEST)
