"""Percentiles, bins and tails from the buckets of a histogram (highest value in ns, count)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.report.kit.parts import Percentiles
from nephoscope.statistics import is_at_least, quantile_rank
from nephoscope.tables.numbers import FEW_BEYOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NS_PER_MS = 1e6
BINS_PER_DECADE = 20
_PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p999": 99.9, "max": 100}


class Buckets:
    """The non-empty buckets of a merged histogram, ascending."""

    def __init__(self, buckets: Sequence[tuple[int, int]]) -> None:
        """Take the buckets as ``RunReader.histogram`` gives them."""
        self.values_ms: NDArray[np.float64] = np.asarray([bucket[0] for bucket in buckets], float) / NS_PER_MS
        self.counts: NDArray[np.int64] = np.asarray([bucket[1] for bucket in buckets], np.int64)
        self.running: NDArray[np.int64] = np.cumsum(self.counts)
        self.total = int(self.counts.sum())

    def at(self, percentile: float) -> float | None:
        """Return the value in ms that this share (0 to 100) of the samples does not exceed."""
        if not self.total:
            return None
        return self.of_rank(quantile_rank(percentile / 100, self.total))

    @property
    def mean(self) -> float | None:
        """The mean of the buckets' highest values in ms: at most 0.1 % above that of the samples."""
        return float((self.values_ms * self.counts).sum() / self.total) if self.total else None

    def of_rank(self, rank: int) -> float:
        """Return the value in ms of a sample by its rank, from 1 to all."""
        return float(self.values_ms[np.searchsorted(self.running, rank)])

    def joined(self, other: Buckets) -> Buckets:
        """Return the samples of both."""
        counts: dict[float, int] = {}
        for buckets in (self, other):
            for value, count in zip(buckets.values_ms.tolist(), buckets.counts.tolist(), strict=True):
                counts[value] = counts.get(value, 0) + count
        return Buckets([(round(value * NS_PER_MS), counts[value]) for value in sorted(counts)])

    def with_censored(self, censored: Buckets) -> Percentiles:
        """Return the usual percentiles of these samples and of others that are so long at least."""
        if not censored.total:
            return self.percentiles()
        both = self.joined(censored)
        bounds = [
            name
            for name, percentile in _PERCENTILES.items()
            if is_at_least(
                percentile / 100, self.total, censored.total, both.at(percentile) or 0.0, self.of_rank
            )
        ]
        return both.percentiles().model_copy(update={"at_least": ("mean", *bounds)})

    def percentiles(self, mean: float | None = None, most: float | None = None) -> Percentiles:
        """Return the usual percentiles; the mean and the maximum are exact where the caller knows them."""
        return Percentiles(
            mean=self.mean if mean is None else mean,
            p50=self.at(50),
            p90=self.at(90),
            p95=self.at(95),
            p99=self.at(99),
            p999=self.at(99.9),
            max=self.at(100) if most is None else most,
            count=self.total,
        )

    def bins(self) -> list[tuple[float, float]]:
        """Return the samples in bins of equal width on a log axis: (middle in ms, share in per cent).

        An empty bin stands on either side, so that the outline comes down to the axis.
        """
        if not self.total:
            return []
        index = np.floor(np.log10(np.maximum(self.values_ms, 1e-6)) * BINS_PER_DECADE).astype(int)
        low, high = int(index[0]) - 1, int(index[-1]) + 1
        shares = np.bincount(index - low, weights=self.counts, minlength=high - low + 1) * 100 / self.total
        return [
            (10 ** ((low + i + 0.5) / BINS_PER_DECADE), float(share))
            for i, share in enumerate(shares.tolist())
        ]

    def tail(self, per_decade: int = 16) -> list[tuple[float, float]]:
        """Return the tail as (1 / (1 - p), latency in ms), from the median to the largest sample."""
        if not self.total:
            return []
        steps = 10 ** np.arange(math.log10(2), math.log10(max(2, self.total)), 1 / per_decade)
        curve = [(float(x), self.at(100 * (1 - 1 / x)) or 0.0) for x in steps if x < self.total]
        return [*curve, (float(max(2, self.total)), self.at(100) or 0.0)]


def few_beyond(percentile: float, samples: int) -> bool:
    """Whether too few samples lie beyond a percentile for it to say much."""
    return samples * (1 - percentile / 100) < FEW_BEYOND
