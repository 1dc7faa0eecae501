"""Verdicts on a run's measured phases: connected sessions, overload, steadiness."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nephoscope.settings.units import describe_seconds
from nephoscope.statistics.trend import LEAST_INTERVALS, STEADY_WITHIN
from nephoscope.tables.model import figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nephoscope.evaluators.connected import Shortfall
    from nephoscope.evaluators.points import Point

FEW = 3
"""So many of several are named."""
_SHARE, _WAIT_S = 0.01, 1.0
"""A larger share of a phase's arrivals, or more than arrive in this time, are not left by chance at its end."""
_FEW_ARRIVALS, _SHARE_OF_FEW = 32, 0.25
"""Fewer than so many may be chance, unless they are this share of all."""


def verdict(level: str, said: str, detail: str) -> dict[str, str]:
    """Make an entry of the verdicts in ``scores.json``."""
    return {"level": level, "verdict": said, "detail": detail}


def names(points: Sequence[Point]) -> str:
    """Name points briefly: three of them, and how many more there are."""
    return listed(list(dict.fromkeys(_name(point) for point in points)))


def listed(texts: Sequence[str], between: str = ", ") -> str:
    """List texts briefly: three of them, and how many more there are."""
    return between.join(texts[:FEW]) + (f" and {len(texts) - FEW} more" if len(texts) > FEW else "")


def _name(point: Point) -> str:
    level = f" c={point.concurrency:g}" if point.concurrency is not None else ""
    level = f" at {point.rate:g}/s" if point.rate is not None else level
    return f"{point.mix or 'the load'}{level}"


def connected(shortfalls: Sequence[Shortfall]) -> list[dict[str, str]]:
    """Return the verdict on phases that do not count because the load lacked connections."""
    found = []
    for is_step, said in (
        (False, "sessions were not connected"),
        (True, "a search ended where sessions were not connected"),
    ):
        if texts := list(dict.fromkeys(str(one) for one in shortfalls if one.is_step == is_step)):
            found.append(verdict("problem", said, f"{listed(texts, '; ')}; this does not count"))
    return found


def kept_up(point: Point) -> bool:
    """Tell whether a phase's backlog stayed within what waits at any moment."""
    most = point.arrivals * min(_SHARE, _WAIT_S / point.seconds)
    return point.unstarted <= max(most, min(_FEW_ARRIVALS, _SHARE_OF_FEW * point.arrivals))


def overloaded(points: Sequence[Point]) -> list[dict[str, str]]:
    """Return the verdict on open loads that the system did not keep up with: the backlog's growth."""
    behind = [point for point in points if not kept_up(point)]
    if not behind:
        return []
    # A phase begins without a backlog, so the one at its end has grown in it.
    growth = max(point.unstarted / point.seconds for point in behind)
    unstarted, arrivals = sum(point.unstarted for point in behind), sum(point.arrivals for point in behind)
    up_to, when = ("", "its phase") if len(behind) == 1 else ("up to ", "their phases")
    detail = (
        f"the backlog grew by {up_to}{figure(growth)}/s in {names(behind)}: {unstarted:,} of {arrivals:,} arrivals had "
        f"not started at the end of {when}; latencies behind ≥ are lower bounds"
    )
    return [verdict("problem", "the system did not keep up", detail)]


def steady(points: Sequence[Point]) -> list[dict[str, str]]:
    """Return the verdict on steadiness: phases that drifted, and those of which it is not known.

    Slots of patterns are left out: a system that scales is not to be steady.
    """
    points = [point for point in points if point.slot is None]
    drifting = [point for point in points if point.steady is False]
    unknown = [point for point in points if point.steady is None]
    found = []
    if drifting:
        worst = max(drifting, key=lambda point: abs(_within(point, point.drift_per_minute)))
        ends = " … ".join(f"{_within(worst, end):+.1%}" for end in worst.drift_ci95 or ())
        size = f"up to {_within(worst, worst.drift_per_minute):+.1%} of its mean within the phase"
        detail = f"TPS has a trend in {names(drifting)}: {size}" + (f" ({ends})" if ends else "")
        found.append(verdict("warning", "not every phase was steady", detail))
    if unknown:
        which = f"{len(unknown)} of {len(points)}" if len(unknown) < len(points) else "the"
        detail = "; ".join(_not_known(unknown))
        found.append(verdict("note", f"whether {which} measured phases were steady is not known", detail))
    if points and not found:
        detail = (
            f"no trend of TPS at 95 %, and none of {STEADY_WITHIN:.0%} of its mean could have stayed unseen"
        )
        found.append(verdict("ok", "the measured phases were steady", detail))
    return found


def _within(point: Point, per_minute: float | None) -> float:
    """Turn a slope into how much TPS moved within a phase, as a share of its mean."""
    return (per_minute or 0.0) * point.seconds / 60


def _not_known(unknown: Sequence[Point]) -> Iterator[str]:
    """Say why it is not known whether phases were steady, and how long they would have to be."""
    few = [point for point in unknown if point.drift_ci95 is None]
    noisy = [point for point in unknown if point.drift_ci95 is not None]
    if few:
        yield (
            f"{names(few)} had fewer than {LEAST_INTERVALS} intervals, and would have to last {_known_after(few)}"
            " at least, or load.interval be shorter"
        )
    if noisy:
        yield (
            f"the noise of {names(noisy)} could hide a trend of {STEADY_WITHIN:.0%} of the mean:"
            f" phases would have to last about {_known_after(noisy)}"
        )


def _known_after(points: Sequence[Point]) -> str:
    return describe_seconds(math.ceil(max(point.known_after_s or 0.0 for point in points)))
