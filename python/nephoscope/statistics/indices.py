"""Small figures of a set of numbers: fairness, geometric mean, and the interval of a proportion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.statistics.distributions import normal_quantile
from nephoscope.statistics.series import checked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nephoscope.statistics.series import Values


def geometric_mean(values: Values) -> float:
    """Take the n-th root of the product of n values, in their unit; 0 if any is 0.

    Raises ``ValueError`` for no values, a negative or a non-finite one.
    """
    x = checked(values)
    if x.min() < 0:
        raise ValueError(f"a geometric mean of {x.min()}; allowed: values of 0 and above")
    if x.min() == 0:
        return 0.0
    # The mean of logarithms neither overflows nor underflows, as a product of many values would.
    return math.exp(math.fsum(math.log(value) for value in x) / len(x))


def jain_index(values: Values) -> float:
    """Jain's fairness index (Σx)² / (n Σx²): 1 where all are equal, 1/n where one has everything.

    Without unit. Where every value is 0, all are equal, and the index is 1. Raises ``ValueError`` for no
    values, a negative or a non-finite one. Source: Jain, Chiu, Hawe, DEC-TR-301, 1984.
    """
    x = checked(values)
    if x.min() < 0:
        raise ValueError(f"a share of {x.min()}; allowed: values of 0 and above")
    if x.max() == 0:
        return 1.0
    x = x / x.max()  # The squares of very small or very large rates stay representable.
    return float(x.sum() ** 2 / (len(x) * (x @ x)))


def r_squared(x: Values, y: Values) -> float | None:
    """Return the share of y's variance that a straight line over x explains, from 0 to 1 (R², least squares).

    How linear y is in x (METRICS, section 4). ``None`` where that means nothing: for fewer than three values, or where
    one of both is the same throughout. Raises ``ValueError`` for different numbers of values or a non-finite one.
    """
    at, of = checked(x), checked(y)
    if len(at) != len(of):
        raise ValueError(f"{len(at)} x and {len(of)} y; allowed: one of each")
    at, of = at - at.mean(), of - of.mean()
    spread = float(at @ at) * float(of @ of)
    if len(at) < 3 or spread == 0:  # noqa: PLR2004 - a line goes through any two
        return None
    return min(float(at @ of) ** 2 / spread, 1.0)


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion: of violations per check, of successes per request.

    It stays inside 0 … 1 and keeps its coverage near the ends, where the usual interval shrinks to nothing:
    no violation in 100 checks gives 0 … 3.7 %. Without trials nothing is known, and the interval is 0 … 1.
    Raises ``ValueError`` for counts that are not 0 ≤ successes ≤ trials. Source: Wilson, JASA 22, 1927.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials; allowed: 0 ≤ successes ≤ trials")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence}; allowed: between 0 and 1")
    return wilson_share(successes / trials, trials, confidence) if trials else (0.0, 1.0)


def clustered_interval(
    hits: NDArray[np.int64], trials: NDArray[np.int64], *, whole_clusters: bool = False
) -> tuple[float, float]:
    """Wilson's 95 % interval of a share whose trials come in clusters, of which each is alike: reads after one write.

    ``hits`` of ``trials``, by cluster. The interval is that of as many independent trials as have the variance of the
    ratio of sums over clusters (Kish, Survey Sampling, 1965: the design effect); never more than there are. Where all
    or none hit there is no variance to be seen; then every trial counts, or with ``whole_clusters`` every cluster, as
    if its trials were one. Without trials it is 0 … 1.
    """
    total, hit = int(trials.sum()), int(hits.sum())
    if not total:
        return 0.0, 1.0
    share, clusters = hit / total, int(np.count_nonzero(trials))
    independent = float(total)
    if 0 < share < 1 and clusters > 1:
        residuals = hits - share * trials
        variance = float(residuals @ residuals) / total**2 * clusters / (clusters - 1)
        independent = share * (1 - share) / variance if variance > 0 else independent
    elif whole_clusters:
        independent = total**2 / float(trials @ trials)
    return wilson_share(share, min(max(independent, 1.0), total))


def wilson_share(share: float, trials: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share from 0 to 1, of so many trials above 0: they may be no whole number."""
    z = normal_quantile(0.5 + confidence / 2)
    denominator = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / denominator
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / denominator
    # At the two ends the interval touches 0 and 1 exactly; rounding would miss them.
    low = 0.0 if share == 0 else centre - half
    high = 1.0 if share == 1 else centre + half
    return low, high
