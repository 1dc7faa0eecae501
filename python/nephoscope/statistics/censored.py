"""Censored times: lower bounds of times that had not ended when they were last observed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.statistics.indices import wilson_share
from nephoscope.statistics.series import checked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from nephoscope.statistics.series import Values


@dataclass(frozen=True, slots=True)
class Survival:
    """The share of times longer than t, by Kaplan and Meier (JASA 53, 1958).

    A censored time counts up to its bound. Without censored times this is the plain share.
    """

    times: NDArray[np.float64]
    """The uncensored times, at which the share falls: distinct and sorted."""
    shares: NDArray[np.float64]
    """The share of times that are longer, from each of them on."""
    variances: NDArray[np.float64]
    """Greenwood's sum at each: the variance of the share over its square."""
    count: int
    longest: float
    """The longest time, whether it is known or censored."""

    @classmethod
    def of(cls, values: Values, censored: Sequence[bool] | NDArray[np.bool_]) -> Self:
        """Estimate from times, and which of them are lower bounds.

        Raises ``ValueError`` for no times or a non-finite one.
        """
        x, cut = checked(values), np.asarray(censored, bool)
        if len(x) != len(cut):
            raise ValueError(f"{len(x)} times and {len(cut)} marks; allowed: one of each")
        times, ended = np.unique(x[~cut], return_counts=True)
        # A time that is censored at an end had not ended then: it is still at risk.
        at_risk = len(x) - np.searchsorted(np.sort(x), times, side="left")
        over = np.cumsum(ended)
        # Before the first censored time this is the plain share, to the last digit.
        plain = at_risk == len(x) - (over - ended)
        shares: NDArray[np.float64] = np.where(
            plain, (len(x) - over) / len(x), np.cumprod(1 - ended / at_risk)
        )
        with np.errstate(divide="ignore"):
            variances = np.cumsum(ended / (at_risk * (at_risk - ended)))
        return cls(times, shares, variances, len(x), float(x.max()))

    def longer(self, than: float) -> float:
        """Return the share of times that are longer than a time, from 0 to 1."""
        place = int(np.searchsorted(self.times, than, side="right"))
        return float(self.shares[place - 1]) if place else 1.0

    def interval(self, than: float) -> tuple[float, float]:
        """Return the 95 % interval of that share.

        Wilson's interval, for the number of trials that has Greenwood's variance (Rothman, J. Chronic Diseases 31,
        1978). Without earlier censored times that is the number of times.
        """
        share = self.longer(than)
        place = int(np.searchsorted(self.times, than, side="right"))
        variance = float(self.variances[place - 1]) if place else 0.0
        trials = (1 - share) / (share * variance) if 0 < share < 1 and variance > 0 else float(self.count)
        return wilson_share(share, trials)

    def quantile(self, share: float) -> float:
        """Return the time within which a share has ended; the longest time, a lower bound, where it never has."""
        ended = np.flatnonzero(self.shares <= 1 - share + 1e-12)
        return float(self.times[ended[0]]) if len(ended) else self.longest


def expected(values: Values, censored: Sequence[bool] | NDArray[np.bool_]) -> NDArray[np.float64]:
    """Replace each censored time by the mean of the longer times, in the order of the values.

    Their mean is the area below `Survival` (Efron 1967: mass is redistributed to the right). A censored time
    as long as the longest stays: then the mean is a lower bound. Raises as `Survival.of` does.
    """
    x, cut = checked(values).copy(), np.asarray(censored, bool)
    if not cut.any():
        return x
    of = Survival.of(x, cut)
    steps = np.concatenate([[0.0], of.times, [of.longest]])
    heights = np.concatenate([[1.0], of.shares])
    areas = np.concatenate([[0.0], np.cumsum(np.diff(steps) * heights)])
    places = np.searchsorted(of.times, x[cut], side="right")
    left = areas[-1] - areas[places] - (x[cut] - steps[places]) * heights[places]
    x[cut] += np.divide(left, heights[places], out=np.zeros_like(left), where=heights[places] > 0)
    return x


def quantile_rank(share: float, count: int) -> int:
    """Return which of ``count`` samples, from 1, a quantile is: the first that ``share`` (0-1) does not exceed."""
    return min(count, max(1, math.ceil(share * count - 1e-9)))


def is_at_least(
    share: float, ended: int, censored: int, lowest: float, ended_at: Callable[[int], float]
) -> bool:
    """Tell whether a quantile of ``ended`` and ``censored`` samples together is only a lower bound.

    ``lowest`` is the quantile if each censored sample ends at its bound. If none of them ever ends, the quantile is the
    ended sample of the same rank, ``ended_at(rank)``. The quantile is exact if both are equal.
    """
    if not censored:
        return False
    rank = quantile_rank(share, ended + censored)
    return rank > ended or ended_at(rank) > lowest
