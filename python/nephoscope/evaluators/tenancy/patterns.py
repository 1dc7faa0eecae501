"""Patterns of load on several tenants: CloudyBench, section II-D, and the numbers of its section III-D.

A pattern says how many sessions each tenant has in each slot. The paper gives numbers for three tenants: in the high
patterns they are shares of 330 sessions, in the low ones of 100. For another number of tenants the shares are repeated,
and in a contention scaled so that their sum stays what it is with three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Sequence

PatternName = Literal["high_contention", "low_contention", "staggered_high", "staggered_low"]
PATTERNS: tuple[PatternName, ...] = get_args(PatternName)
_SLOTS = 3


@dataclass(frozen=True)
class _Law:
    shares: tuple[float, ...]
    """Of the saturation, by tenant."""
    saturation: int
    """The paper's own."""
    is_staggered: bool
    """Whether one tenant runs at a time."""


_LAWS: dict[PatternName, _Law] = {
    "high_contention": _Law((0.8, 0.3, 0.1), 330, is_staggered=False),
    "low_contention": _Law((0.4, 0.3, 0.1), 100, is_staggered=False),
    "staggered_high": _Law((1.1, 1.3, 1.2), 330, is_staggered=True),
    "staggered_low": _Law((0.1, 0.2, 0.3), 100, is_staggered=True),
}


def pattern_of(name: PatternName, tenants: int, saturation: int | None = None) -> list[list[int]]:
    """Return how many sessions each tenant (outer list) has in each slot (inner list).

    ``saturation`` is τ, the concurrency at which the system reaches its limit; the paper's own where it is None.
    A contention has three slots, a staggered pattern one for each tenant. Who has a share has one session at least.
    """
    law = _LAWS[name]
    shares = [law.shares[place % len(law.shares)] for place in range(tenants)]
    if not law.is_staggered:
        whole = sum(law.shares) / sum(shares)
        shares = [share * whole for share in shares]
    tau = law.saturation if saturation is None else saturation
    levels = [max(1, round(share * tau)) for share in shares]
    if law.is_staggered:
        return [
            [level if slot == tenant else 0 for slot in range(tenants)] for tenant, level in enumerate(levels)
        ]
    return [[level] * _SLOTS for level in levels]


def contended(pattern: Sequence[Sequence[int]]) -> list[int]:
    """Return the slots, counted from 0, in which more than one tenant runs."""
    slots = len(pattern[0])
    return [slot for slot in range(slots) if sum(tenant[slot] > 0 for tenant in pattern) > 1]
