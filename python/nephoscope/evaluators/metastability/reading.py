"""The highest rate at which goodput returns after a trigger, read from a stored run, policy by policy."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from nephoscope.evaluators.client_metrics import ClientMetrics
from nephoscope.evaluators.metastability.goodput import EPSILON_S, PARTS, Interval, Part, Step, judged
from nephoscope.evaluators.points import measured_phases
from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.evaluators.metastability.settings import MetastabilitySettings
    from nephoscope.evaluators.stored import Stored
    from nephoscope.store import Phase, StoredRun


@dataclass(frozen=True)
class _Told:
    """A step that was measured as a whole."""

    phases: Mapping[Part, Phase]
    courses: Mapping[Part, Sequence[Interval]]
    over_s: float
    """When the trigger was over."""
    step: Step

    @property
    def labels(self) -> Mapping[str, Any]:
        return self.phases["before"].labels

    @property
    def rate(self) -> float:
        return float(self.labels["rate"])


def read_policies(
    stored: Stored, settings: MetastabilitySettings
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Read each policy: its rate, the lowest one at which goodput stayed down, its steps; and warnings."""
    phases, warnings = measured_phases(stored.run, stored.index)
    steps: dict[int, dict[Part, Phase]] = defaultdict(dict)
    for phase in phases:
        if (part := phase.labels.get("metastability")) in PARTS:
            steps[int(phase.labels["step"])][cast("Part", part)] = phase
    whole = [parts for _, parts in sorted(steps.items()) if len(parts) == len(PARTS)]
    counted = _intervals(stored.run, [parts[part] for parts in whole for part in PARTS], settings.limit)
    policies: dict[str, list[_Told]] = {}
    for parts in whole:
        over_s = _over_s(stored.run, parts)
        courses = {part: counted[phase.number] for part, phase in parts.items()}
        told = _Told(parts, courses, over_s, judged(courses, over_s, settings))
        policies.setdefault(str(told.labels["policy"]), []).append(told)
    return {name: _policy(told, settings) for name, told in policies.items()}, warnings


def _over_s(run: StoredRun, parts: Mapping[Part, Phase]) -> float:
    """Return when the trigger was over: its phase, and the last action of its fault."""
    step = parts["before"].labels["step"]
    ends = [
        float(event["time_s"]) + float(event.get("took_s", 0.0))
        for event in run.events
        if event["event"] in ("fault", "action") and event.get("step") == step
    ]
    return max([parts["trigger"].end_s, *ends])


def _policy(steps: Sequence[_Told], settings: MetastabilitySettings) -> dict[str, Any]:
    confirmed = [rate for rate in {told.rate for told in steps} if _is_confirmed(rate, steps, settings)]
    rate = max(confirmed, default=None)
    above = [told for told in steps if told.step.outcome != "returned" and told.rate > (rate or 0.0)]
    # Of several steps at a rate the one that shows something.
    beyond = min(above, key=lambda told: (told.rate, told.step.outcome != "stayed down"), default=None)
    return {
        "rate": rate,
        "beyond": beyond.rate if beyond else None,
        "beyond_outcome": beyond.step.outcome if beyond else None,
        "returned_s": max(
            (
                told.step.returned_s
                for told in steps
                if told.rate == rate and told.step.returned_s is not None
            ),
            default=None,
        ),
        "courses": {
            name: _course(told, settings.hold)
            for name, told in (("rate", _last(steps, rate)), ("beyond", beyond))
            if told is not None
        },
        "steps": [_entry(told) for told in steps],
    }


def _last(steps: Sequence[_Told], rate: float | None) -> _Told | None:
    return next((told for told in reversed(steps) if told.rate == rate), None)


def _course(told: _Told, bin_s: float) -> dict[str, Any]:
    """Give goodput per second in stretches of ``bin_s``, by the time since the trigger's end, with its beginning."""
    every = [one for part in PARTS for one in told.courses[part]]
    places = np.array([math.floor((one.start_s - told.over_s + EPSILON_S) / bin_s) for one in every])
    first = int(places.min())
    good, lengths = (
        np.bincount(places - first, weights=weights)
        for weights in ([one.good for one in every], [one.end_s - one.start_s for one in every])
    )
    return {
        "begun_s": told.phases["trigger"].start_s - told.over_s,
        "time_s": [round((first + place) * bin_s, 3) for place in range(len(good))],
        "goodput": [round(float(one), 2) for one in good / np.maximum(lengths, EPSILON_S)],
    }


def _is_confirmed(rate: float, steps: Sequence[_Told], settings: MetastabilitySettings) -> bool:
    """Tell whether goodput returned at a rate as often as it should; a step that shows nothing was made again."""
    outcomes = [told.step.outcome for told in steps if told.rate == rate and told.labels["confirms"]]
    return outcomes.count("returned") >= settings.repetitions and "stayed down" not in outcomes


def _entry(told: _Told) -> dict[str, Any]:
    return {
        "rate": told.rate,
        "confirms": bool(told.labels["confirms"]),
        "phases": [told.phases[part].number for part in PARTS],
        **asdict(told.step),
    }


def _intervals(run: StoredRun, phases: Sequence[Phase], limit_s: float) -> dict[int, list[Interval]]:
    """Read the intervals of phases, in one pass over the run's histograms; one in which nothing ended is 0."""
    client = ClientMetrics(run)
    ordered = sorted(phases, key=lambda phase: phase.start_s)
    windows = {phase.number: client.intervals(phase.start_s, phase.end_s) for phase in ordered}
    every = [window for phase in ordered for window in windows[phase.number]]
    latencies = iter(run.merged_by_window(every, Selection()))
    counts = {
        name: run.intervals.column(name).to_numpy() for name in ("committed", "aborted", "failed", "retries")
    }
    starts, of_phase = (run.intervals.column(name).to_numpy() for name in ("start_s", "phase"))
    found: dict[int, list[Interval]] = {}
    for phase in ordered:
        spans = windows[phase.number]
        rows = of_phase == phase.number
        places = np.searchsorted([end for _, end in spans], starts[rows] + EPSILON_S, side="right")
        sums = {
            name: np.bincount(places, values[rows], len(spans) + 1).astype(int)
            for name, values in counts.items()
        }
        told = {
            name: dict(zip(*client.during(name, phase.start_s, phase.end_s), strict=True))
            for name in ("lag_max_us", "arrivals")
        }
        found[phase.number] = []
        for place, (start_s, end_s) in enumerate(spans):
            latency = next(latencies)
            found[phase.number].append(
                Interval(
                    start_s,
                    end_s,
                    arrivals=int(told["arrivals"].get(end_s, 0)),
                    good=latency.count_up_to(round(limit_s * 1e9)) if latency is not None else 0,
                    ended=sum(int(sums[name][place]) for name in ("committed", "aborted", "failed")),
                    retries=int(sums["retries"][place]),
                    lag_s=told["lag_max_us"].get(end_s, 0.0) / 1e6,
                )
            )
    return found
