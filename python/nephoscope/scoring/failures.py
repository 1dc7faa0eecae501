"""F and R of several failures: formulas only, numbers in and numbers out (METRICS, section 3, "F and R")."""

from __future__ import annotations

import math
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from nephoscope.scoring.definitions import DEFINITIONS
from nephoscope.scoring.formulas import Absent, Score, over_repetitions
from nephoscope.statistics import no_less_than_0

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.scoring.definitions import ScoreName


def recovery(seconds: float, resolution_s: float) -> tuple[float, float]:
    """Return the R of a failure and its largest error, in seconds.

    A recovery below the resolution lies between 0 and the resolution; its middle is taken.
    """
    return (resolution_s / 2, resolution_s / 2) if seconds < resolution_s else (seconds, 0.0)


def over_roles(
    name: ScoreName,
    values: Mapping[str, Sequence[float | Absent]],
    *,
    half_widths: Mapping[str, Sequence[float]] | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Score | Absent:
    """Sum up failures: their mean within each role (`over_repetitions`), then over the roles.

    Each role counts once, however often its nodes failed. The roles' intervals are combined as independent errors: the
    root of the sum of squares, downwards and upwards apart. ``half_widths`` are the largest errors of the values, in
    the score's unit; their mean, within a role and then over roles, is added at both ends. ``detail`` gets the
    ``median`` (within a role, then the mean over roles) and under ``roles`` the mean, the median and the values of
    each.
    """
    parts: dict[str, Score] = {}
    told: dict[str, Any] = {}
    for role, found in values.items():
        part = over_repetitions(name, found)
        if isinstance(part, Absent):
            return Absent(reason=f"{role}: {part.reason}" if len(values) > 1 else part.reason)
        parts[role] = part
        numbers = [value for value in found if not isinstance(value, Absent)]
        told[role] = {"mean": part.value, "median": median(numbers), "values": numbers}
    if not parts:
        return Absent(reason="not measured")
    half = fmean(fmean((half_widths or {}).get(role) or [0.0]) for role in parts)
    value = fmean(part.value for part in parts.values())
    known = [(part.value, part.ci95) for part in parts.values() if part.ci95 is not None]
    # A single failure of a role has no spread; its own largest error is known.
    down = math.hypot(*(mean - ci95[0] for mean, ci95 in known)) / len(parts) + half
    up = math.hypot(*(ci95[1] - mean for mean, ci95 in known)) / len(parts) + half
    return Score(
        value=value,
        unit=DEFINITIONS[name].unit,
        ci95=no_less_than_0((value - down, value + up)) if len(known) == len(parts) or half else None,
        repetitions=min(part.repetitions for part in parts.values()),
        detail={
            **(detail or {}),
            "median": fmean(entry["median"] for entry in told.values()),
            "roles": told,
        },
    )
