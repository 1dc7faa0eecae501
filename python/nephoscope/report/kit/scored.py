"""Reading ``scores.json``: it may be absent or cut short, so nothing here takes a key for granted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from nephoscope.tables.numbers import finite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.report.kit.run import Run, ShownPhase


def table(given: object) -> Mapping[str, Any]:
    """Return the value if it is a table, else an empty one."""
    return given if isinstance(given, dict) else {}


def ci95(given: object) -> tuple[float, float] | None:
    """Return a confidence interval; None where it is absent or not finite."""
    if not isinstance(given, list | tuple) or len(given) != 2:  # noqa: PLR2004 - low and high
        return None
    low, high = finite(given[0]), finite(given[1])
    return None if low is None or high is None else (low, high)


def score(run: Run, key: str) -> Mapping[str, Any]:
    """Return a score such as ``P``; empty if it is absent."""
    return table(table(run.scores.get("scores")).get(key))


def mix_details(run: Run) -> dict[str, Mapping[str, Any]]:
    """Return the entries of P's ``detail`` about mixes."""
    detail = table(score(run, "P").get("detail"))
    mixes = table(detail.get("mixes")) or detail
    return {str(mix): entry for mix, entry in mixes.items() if isinstance(entry, dict) and "tps" in entry}


def saturation(run: Run, mix: str) -> Mapping[str, Any]:
    """Return the result of the search for τ for a mix; empty if there was no search."""
    return table(table(run.scores.get("saturation")).get(mix))


def point_of(run: Run, phase: ShownPhase) -> Mapping[str, Any]:
    """Return the entry of a phase: by its number, or by its labels where the number is not given."""
    points = [table(point) for point in run.scores.get("points") or ()]
    for point in points:
        if point.get("phase") == phase.number:
            return point
    for point in points:
        if point.get("phase") is None and all(
            str(point.get(key)) == str(phase.labels.get(key)) for key in ("mix", "concurrency", "repetition")
        ):
            return point
    return {}


def sequence(given: object) -> Sequence[Any]:
    """Return the value if it is a list, else an empty one."""
    return given if isinstance(given, list | tuple) else ()


def details(run: Run, evaluator: str) -> Mapping[str, Any]:
    """Return an evaluator's details; empty where it has none."""
    return table(table(run.scores.get("details")).get(evaluator))


def entries(run: Run, evaluator: str) -> dict[str, Mapping[str, Any]]:
    """Return the results of an evaluator's ``[[measure]]`` entries, by their indices from 0."""
    return {str(place): table(entry) for place, entry in details(run, evaluator).items()}


def whole(given: object) -> int | None:
    """Return a count; None where it is absent."""
    found = finite(given)
    return None if found is None else round(found)


def mean(given: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are known; None where none is."""
    known = [value for value in given if value is not None]
    return math.fsum(known) / len(known) if known else None
