"""Whether a system kept up with an open load: arrivals that had not started when their phase ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.tables import figure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nephoscope.evaluators.points import Point

_SHARE, _WAIT_S = 0.01, 1.0
"""More arrivals than this share of a phase's, or than arrive in this time, are no chance of its last moment."""
_FEW, _SHARE_OF_FEW = 32, 0.25
"""Fewer than so many may be one, unless they are this share of all."""


def kept_up(point: Point) -> bool:
    """Tell whether a phase's backlog did not grow, but for what waits at any moment."""
    most = point.arrivals * min(_SHARE, _WAIT_S / point.seconds)
    return point.unstarted <= max(most, min(_FEW, _SHARE_OF_FEW * point.arrivals))


def overload_verdict(
    points: Sequence[Point], names: Callable[[Sequence[Point]], str]
) -> list[dict[str, str]]:
    """Say by how much the backlog grew where the system did not keep up; ``names`` names points briefly."""
    behind = [point for point in points if not kept_up(point)]
    if not behind:
        return []
    # A phase begins without a backlog, so what is left at its end has grown in it.
    growth = max(point.unstarted / point.seconds for point in behind)
    unstarted, arrivals = sum(point.unstarted for point in behind), sum(point.arrivals for point in behind)
    up_to, when = ("", "its phase") if len(behind) == 1 else ("up to ", "their phases")
    detail = (
        f"the backlog grew by {up_to}{figure(growth)}/s in {names(behind)}: {unstarted:,} of {arrivals:,} arrivals had "
        f"not started at the end of {when}; latencies behind ≥ are lower bounds"
    )
    return [{"level": "problem", "verdict": "the system did not keep up", "detail": detail}]
