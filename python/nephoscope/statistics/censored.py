"""Quantiles of times of which some are known to be so long at least: right-censored samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def quantile_rank(share: float, count: int) -> int:
    """Return which of ``count`` samples, from 1, a quantile is: the first that ``share`` (0-1) does not exceed."""
    return min(count, max(1, math.ceil(share * count - 1e-9)))


def is_at_least(
    share: float, ended: int, censored: int, lowest: float, ended_at: Callable[[int], float]
) -> bool:
    """Tell whether a quantile of ``ended`` and ``censored`` samples together is no more than a lower bound.

    ``lowest`` is the quantile where each censored sample ends at its bound. Where none of them ever ended, it would be
    the sample of the same rank among those that have ended, ``ended_at(rank)``: if that is the same, so is the truth.
    """
    if not censored:
        return False
    rank = quantile_rank(share, ended + censored)
    return rank > ended or ended_at(rank) > lowest
