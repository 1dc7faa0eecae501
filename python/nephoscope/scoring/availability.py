"""Availability foretold from failure data: formulas only, numbers in and numbers out (METRICS, section 4).

Runtime quality framework, III-C: availability is MTTF / (MTTF + MTTR).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def steady_availability(mttf_s: float, mttr_s: float) -> float:
    """Return MTTF / (MTTF + MTTR), 0 to 1: the long-run share of time in which a node is up.

    ``mttf_s`` is the mean time to failure, ``mttr_s`` the mean time to repair, in s. Raises ``ValueError`` where either
    is negative, or both are 0.
    """
    if min(mttf_s, mttr_s) < 0 or mttf_s + mttr_s == 0:
        raise ValueError(f"an MTTF of {mttf_s} s and an MTTR of {mttr_s} s; allowed: 0 and above, not both 0")
    return mttf_s / (mttf_s + mttr_s) if math.isfinite(mttf_s) else 1.0


def in_series(availabilities: Sequence[float]) -> float:
    """Return the availability of a service that needs all of these nodes, which fail independently: the product."""
    return math.prod(availabilities)


def in_parallel(availabilities: Sequence[float]) -> float:
    """Return the availability of a service that needs one of these nodes, which fail independently: 1 - Π(1 - A)."""
    return 1 - math.prod(1 - availability for availability in availabilities)
