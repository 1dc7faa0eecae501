"""The course of the load, where it moves: what was asked and what was achieved, stretch by stretch."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.settings.courses import LoadCourse, load_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from nephoscope.settings.loads import Load
    from nephoscope.store import StoredRun

STRETCHES = 120
"""A run is shown in about so many stretches of a whole number of intervals; none reaches across the end of a phase."""


def course_of(run: StoredRun) -> list[dict[str, Any]]:
    """Compare what was asked of the first tenant with what it achieved: a row for each stretch.

    Empty where no level, mix or access moved within a phase: then the phases say all of it. What is asked is that of
    the middle of the stretch.
    """
    each = run.manifest.get("system", {}).get("tenants", {}).get("each") or [{}]
    name = str(each[0].get("name", ""))
    course, steered = _asked(run, name)
    if not (course.moves or steered) or not run.phases:
        return []
    table = run.intervals
    tenants = np.asarray(table.column("tenant").to_pylist(), object)
    rows = table.filter(tenants == name)
    starts = rows.column("start_s").to_numpy()
    transactions = np.asarray(rows.column("transaction").to_pylist(), object)
    counts = {kind: rows.column(kind).to_numpy() for kind in ("committed", "aborted", "failed")}
    found = []
    for phase, start_s, end_s in _stretches(run):
        inside = (starts >= start_s - 1e-9) & (starts < end_s - 1e-9)
        ended = sum((counts[kind][inside] for kind in counts), np.zeros(int(inside.sum())))
        found.append(
            {
                "phase": phase,
                "start_s": start_s,
                "end_s": end_s,
                **_row(course.at((start_s + end_s) / 2)),
                "tps": float(counts["committed"][inside].sum()) / (end_s - start_s),
                "mix": _shares(transactions[inside], ended),
                "steered": any(start_s <= at < end_s for at in steered),
            }
        )
    return found


def _asked(run: StoredRun, name: str) -> tuple[LoadCourse, list[float]]:
    """Read what was asked of a tenant, and when it was steered by hand."""
    course, steered = LoadCourse(), []
    for event in run.events:
        if event["event"] == "phase":
            loads = event.get("loads", {})
            for known in ("*", name):
                if known in loads:
                    course.add(event["time_s"], load_of(loads[known]))
        elif event["event"] == "steered" and event["tenant"] == name:
            course.add(event["time_s"], load_of(event["load"]))
            steered.append(float(event["time_s"]))
    return course, steered


def _stretches(run: StoredRun) -> Iterator[tuple[str, float, float]]:
    interval_s = float(run.manifest.get("load", {}).get("interval_s", 1.0)) or 1.0
    total = sum(phase.end_s - phase.start_s for phase in run.phases)
    length = max(round(total / STRETCHES / interval_s), 1) * interval_s
    for phase in run.phases:
        if phase.end_s <= phase.start_s:
            continue
        # A sliver at its end joins its neighbour.
        inner = np.arange(phase.start_s + length, phase.end_s - length / 2, length).tolist()
        for start, end in pairwise([phase.start_s, *inner, phase.end_s]):
            yield phase.name, start, end


def _row(asked: Load) -> dict[str, Any]:
    total = sum(asked.mix.values()) if asked.mix else 0.0
    return {
        "concurrency": asked.concurrency,
        "rate": asked.rate,
        "mix_asked": {name: share / total for name, share in asked.mix.items()}
        if asked.mix and total
        else {},
        "access": None if asked.access is None else asked.access.model_dump(),
    }


def _shares(names: NDArray[np.object_], counts: NDArray[np.float64]) -> Mapping[str, float]:
    total = counts.sum()
    return (
        {str(name): float(counts[names == name].sum() / total) for name in np.unique(names)} if total else {}
    )
