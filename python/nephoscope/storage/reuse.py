"""The miss-ratio curve of an LRU cache under the requests of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope import _engine
from nephoscope.storage.corpus import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

PAGE_BYTES = 8192
"""The size of a page of the cache, if none is named: PostgreSQL's."""
COUNTED_WHOLE = 5_000_000
"""So many requests give an exact curve; of more, as many as make about this number are sampled."""
_LEAST_RATE = 0.001


@dataclass(frozen=True)
class MissRatioCurve:
    """The miss ratios of an LRU cache of pages, by the cache's size; a page's first access is a miss."""

    page_bytes: int
    cache_bytes: NDArray[np.int64]
    """The sizes in bytes, ascending: four to a factor of two, from a page (of a sample: 1 / rate pages)."""
    miss_ratio: NDArray[np.float64]
    """Misses per access to a page, at each size; beyond the last size it stays the last."""
    standard_error: NDArray[np.float64]
    """What the sampling of pages adds, at each size; 0 where the curve is exact."""
    rate: float
    """The share of the pages that were counted."""
    accesses: int
    """Accesses to pages; a request of several pages has as many."""
    pages: float
    """The number of different pages; of a sample, an estimate."""

    @property
    def is_exact(self) -> bool:
        """Whether every page was counted."""
        return self.rate >= 1


def cached_operations(view: str) -> tuple[str, ...]:
    """Name the operations that go through the cache: the writes of the view ``log`` are redo, and of no page."""
    return ("read",) if view == "log" else ("read", "write")


def is_cached(view: str, operation: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Tell of each request, by its operation (a place in ``OPERATIONS``), whether it goes through the cache."""
    return np.isin(operation, [OPERATIONS.index(name) for name in cached_operations(view)])


def miss_ratio_curve(
    columns: Mapping[str, NDArray[Any]], page_bytes: int = PAGE_BYTES, rate: float | None = None
) -> MissRatioCurve:
    """Compute the curve of requests in the order of time, given as columns by name; those without bytes count for none.

    ``rate`` is the share of pages that are counted (SHARDS): 1 if left out, or less for more than
    :data:`COUNTED_WHOLE` requests. Without an access the curve has no sizes.
    """
    requests = len(columns["segment"])
    if rate is None:
        rate = max(_LEAST_RATE, min(1.0, COUNTED_WHOLE / max(requests, 1)))
    points, accesses, _, pages = _engine.storage_miss_ratios(
        columns["segment"].astype(np.uint32).tobytes(),
        columns["offset"].astype(np.uint64).tobytes(),
        columns["bytes"].astype(np.uint32).tobytes(),
        page_bytes,
        rate,
    )
    found = np.array(points, dtype=float).reshape(-1, 3)
    return MissRatioCurve(
        page_bytes, found[:, 0].astype(np.int64), found[:, 1], found[:, 2], rate, accesses, pages
    )
