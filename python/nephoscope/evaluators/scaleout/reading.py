"""Nodes as they came: TPS with each number of them in a stored run, and the E2-Score of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.evaluators.base import Measurements
from nephoscope.evaluators.connected import absent_for
from nephoscope.evaluators.points import latency_of, read_points, summed_up
from nephoscope.scoring.formulas import Absent, Score, e2_score, over_repetitions
from nephoscope.settings.actions import Action
from nephoscope.statistics import r_squared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.evaluators.points import Point
    from nephoscope.evaluators.stored import Stored

SERVED = "the first transaction of the load that was committed at the new endpoint"
"""The event that ends the time until a new node serves."""

Steps = dict[int, list["Point"]]
"""The points of a mix by the number of read-only nodes, each in the order of repetitions."""


def read_scaleout(stored: Stored, added: int, delta: float) -> Measurements:
    """Read the results of an entry of ``[[measure]]`` that adds so many nodes."""
    read = read_points(stored, None)
    labels = {phase.number: phase.labels for phase in stored.run.phases}
    by_mix: dict[str, Steps] = {}
    for point in read.points:
        of = labels[point.phase]
        by_mix.setdefault(str(of["of_mix"]), {}).setdefault(int(of["nodes"]), []).append(point)
    detail: dict[str, Any] = {
        "delta": delta,
        "from_nodes": min((min(steps) for steps in by_mix.values()), default=None),
        # Nodes that take writes are all of a ring; else it is read-only ones that came.
        "adds": next((str(labels[point.phase].get("adds", "ro")) for point in read.points), "ro"),
        "served_by": SERVED,
        # Before they could be spread, reads left the node that takes writes for the first that came.
        "reads": next((str(labels[point.phase].get("reads", "ro")) for point in read.points), None),
        "mixes": {mix: _mix(stored, steps, added, delta) for mix, steps in by_mix.items()},
        "added": _acted(stored, Action.ADD_NODE),
        "removed": _acted(stored, Action.REMOVE_NODE),
    }
    score = absent_for(read.shortfalls) or _score(by_mix, added, delta, detail)
    if isinstance(score, Absent) and (reason := stored.why_not()):
        score = Absent(reason=reason)
    details = {"scaleout": {str(stored.index): detail}} if by_mix else {}
    return Measurements(
        scores={"E2": score},
        points=read.points,
        warnings=read.warnings,
        shortfalls=read.shortfalls,
        details=details,
    )


def _score(by_mix: Mapping[str, Steps], added: int, delta: float, detail: dict[str, Any]) -> Score | Absent:
    """E2 of a repetition is the mean over its mixes; only repetitions with all nodes count."""
    columns = [_scores(steps, added, delta) for steps in by_mix.values()]
    whole = min((len(values) for values in columns), default=0)
    if not whole:
        return Absent(reason="no repetition was measured to its end")
    values = [math.fsum(column[place] for column in columns) / len(columns) for place in range(whole)]
    within = [_within(steps, delta) for steps in by_mix.values()] if whole == 1 else []
    ci95 = None
    if within and all(ends is not None for ends in within):
        below, above = (math.hypot(*(ends[side] for ends in within if ends)) / len(within) for side in (0, 1))
        ci95 = (values[0] - below, values[0] + above)
    return over_repetitions("E2", values, within=ci95, detail=detail)


def _scores(steps: Steps, added: int, delta: float) -> list[float]:
    """Return the E2 of each repetition that has gone through all numbers of nodes."""
    course = sorted(steps)
    if len(course) <= added:
        return []
    by_repetition = zip(*([point.tps for point in steps[nodes]] for nodes in course), strict=False)
    scores = (e2_score(tps, delta) for tps in by_repetition)
    return [score for score in scores if not isinstance(score, Absent)]


def _within(steps: Steps, delta: float) -> tuple[float, float] | None:
    """How far the E2 of a single repetition reaches down and up: only its first and last step count."""
    course = sorted(steps)
    first, last = steps[course[0]][0], steps[course[-1]][0]
    if first.ci95 is None or last.ci95 is None:
        return None
    unit = (len(course) - 1) * delta
    below = math.hypot(last.tps - last.ci95[0], first.ci95[1] - first.tps) / unit
    above = math.hypot(last.ci95[1] - last.tps, first.tps - first.ci95[0]) / unit
    return below, above


def _mix(stored: Stored, steps: Steps, added: int, delta: float) -> dict[str, Any]:
    """Describe a mix: its steps, and the growth of its TPS with the nodes."""
    entries: list[dict[str, Any]] = []
    for nodes in sorted(steps):
        points = steps[nodes]
        entry = {"nodes": nodes, "concurrency": points[0].concurrency, **summed_up(stored, points)}
        entry["gain_tps"] = entry["tps"] - entries[-1]["tps"] if entries else None
        entries.append(entry)
    numbers, tps = [entry["nodes"] for entry in entries], [entry["tps"] for entry in entries]
    scores = _scores(steps, added, delta)
    return {
        "steps": entries,
        "e2": math.fsum(scores) / len(scores) if scores else None,
        "r_squared": r_squared(numbers, tps),
        "scale_up": tps[-1] / tps[0] if tps[0] > 0 and len(tps) > 1 else None,
    }


def _acted(stored: Stored, action: Action) -> list[dict[str, Any]]:
    """List the nodes that came or went, each with its times; ``at_s`` is that of the call."""
    keys = ("repetition", "nodes", "node", "took_s", "routed_s", "reached_s", "serve_s", "moved_bytes")
    return [
        {
            "at_s": event["time_s"],
            **{key: event.get(key) for key in keys},
            "clients": _seen(stored, float(event["time_s"])),
        }
        for event in stored.run.events
        if event.get("event") == "scaling"
        and event.get("measure") == stored.index
        and event.get("action", Action.ADD_NODE) == action
    ]


def _seen(stored: Stored, at_s: float) -> dict[str, Any] | None:
    """Tell what clients saw in the phase in which something was done: between the measured ones beside it."""
    phase = next((one for one in stored.run.phases if one.start_s <= at_s < one.end_s), None)
    if phase is None or phase.end_s <= phase.start_s:
        return None
    rows = [row for row in stored.run.intervals.to_pylist() if row["phase"] == phase.number]
    errors = {name: count for name in _engine.error_classes() if (count := sum(row[name] for row in rows))}
    latency = latency_of(stored, frozenset({phase.number}))
    return {
        "seconds": phase.end_s - phase.start_s,
        "tps": sum(row["committed"] for row in rows) / (phase.end_s - phase.start_s),
        "failed": sum(row["failed"] for row in rows),
        "errors": errors,
        "latency_ms": latency.model_dump() if latency is not None else None,
    }
