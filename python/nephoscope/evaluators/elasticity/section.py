"""Patterns of load: demand, throughput and allocation over one time axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.report.kit import method, scored
from nephoscope.report.kit.buckets import TimeBuckets
from nephoscope.report.kit.charts import TimeChart, TimeLine
from nephoscope.report.kit.parts import Estimate
from nephoscope.tables.numbers import dollars, duration, finite, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.report.kit.run import Run, ShownPhase


from nephoscope.report.kit.parts import Method, Number, Part

PLACE, ANCHOR, LABEL = 20, "elasticity", "Elasticity"
NO_MIX, HIDDEN = {"pattern"}, {"tau"}


class PatternRow(Part):
    """A pattern of load that was played; ``sessions`` and ``by_slot`` are those of its slots."""

    pattern: str
    repetition: int | None = None
    sessions: str
    by_slot: str
    tps: Estimate
    cost: str
    vcores: Number = None
    e1: Estimate


class TransitionRow(Part):
    """A change of the load, and the system's reaction; shares are 0 to 1."""

    pattern: str
    load: str
    vcores: str
    scaling_s: Number = None
    scaling_low_s: Number = None
    scaling_high_s: Number = None
    scaling_cost: str
    under_time: Number = None
    over_time: Number = None
    under_area: Number = None
    over_area: Number = None
    oscillations: int | None = None
    slo_broken: int | None = None
    wake_up_s: Number = None


class ElasticitySection(Part):
    """Patterns of load, their throughput, and the system's allocation."""

    charts: tuple[TimeChart, ...] = ()
    patterns: tuple[PatternRow, ...]
    transitions: tuple[TransitionRow, ...]
    note: str = ""
    method: tuple[Method, ...] = ()


Steps = list[tuple[float, float]]
"""Times and the value from each on."""


def build(run: Run) -> ElasticitySection | None:
    """Return the section; None where no pattern was played to its end."""
    detail = scored.table(scored.score(run, "E1").get("detail"))
    patterns = [scored.table(entry) for entry in detail.get("patterns") or ()]
    if not patterns:
        return None
    return ElasticitySection(
        charts=_charts(run, patterns),
        patterns=tuple(_pattern(entry) for entry in patterns),
        transitions=tuple(_transition(entry, change) for entry in patterns for change in _changes(entry)),
        note=_note(detail),
        method=method.of(run, "elasticity"),
    )


def _note(detail: Mapping[str, Any]) -> str:
    told = str(detail.get("allocation") or "")
    parts = [f"The allocation: {told}." if told else "", str(detail.get("assumed") or "")]
    return " ".join(f"{part[:1].upper()}{part[1:].rstrip('.')}." for part in parts if part)


def _changes(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [scored.table(change) for change in entry.get("transitions") or ()]


def _charts(run: Run, patterns: Sequence[Mapping[str, Any]]) -> tuple[TimeChart, ...]:
    """Draw the patterns' own stretch of the run: from the first rest before one to the last after one."""
    played = [place for place, phase in enumerate(run.phases) if _is_played(phase)]
    if not played:
        return ()
    stretch = run.phases[played[0] : played[-1] + 1]
    buckets = TimeBuckets.of(run, phases=stretch)
    inside = np.zeros(buckets.starts.size, np.bool_)
    for phase in filter(_is_played, stretch):
        inside |= (buckets.middles >= phase.start_s) & (buckets.middles < phase.end_s)
    ends = {"start_s": stretch[0].start_s, "end_s": stretch[-1].end_s}
    charts = (
        _load(run, buckets, inside),
        _throughput(run, buckets, inside, patterns),
        _allocation(run, buckets, inside, patterns),
    )
    return tuple(chart.model_copy(update=ends) for chart in charts if chart is not None)


def _is_played(phase: ShownPhase) -> bool:
    """Tell whether a phase is a slot of a pattern, or the rest before or after one; those of tenancy have no τ."""
    return "pattern" in phase.labels and "tau" in phase.labels


def _line(
    name: str, color: str, values: NDArray[np.float64], inside: NDArray[np.bool_], *, dashed: bool = False
) -> TimeLine:
    shown = tuple(float(value) if within else None for value, within in zip(values, inside, strict=True))
    return TimeLine(name=name, color=color, dash="dashed" if dashed else "solid", y=shown)


def _stepped(steps: Steps, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the value of a step function at each time; the first holds before it as well."""
    at = np.asarray([time_s for time_s, _ in steps])
    values = np.asarray([value for _, value in steps])
    return values[np.maximum(np.searchsorted(at, times, side="right") - 1, 0)]


def _load(run: Run, buckets: TimeBuckets, inside: NDArray[np.bool_]) -> TimeChart:
    steps = [(phase.start_s, finite(phase.labels.get("sessions")) or 0.0) for phase in run.phases]
    most = max(value for _, value in steps)
    return TimeChart(
        id="elasticity-load",
        title="Load",
        unit="sessions that are wanted",
        message=f"From 0 to {number(most)} sessions at a time.",
        x=tuple(buckets.middles.tolist()),
        lines=(_line("sessions", "c0", _stepped(steps, buckets.middles), inside),),
        size="medium",
    )


def _throughput(
    run: Run, buckets: TimeBuckets, inside: NDArray[np.bool_], patterns: Sequence[Mapping[str, Any]]
) -> TimeChart:
    rows = run.intervals.among(phase.number for phase in run.phases if _is_played(phase))
    rates = buckets.rate(run.intervals.middle, np.where(rows, run.intervals.counts("committed"), 0))
    means = ", ".join(f"{entry.get('pattern')} {number(entry.get('mean_tps'))}" for entry in patterns[:4])
    return TimeChart(
        id="elasticity-tps",
        title="Throughput",
        unit="committed per second",
        message=f"Mean TPS over the slots: {means}.",
        x=tuple(buckets.middles.tolist()),
        lines=(_line("TPS", "c1", rates, inside),),
        size="medium",
    )


def _allocation(
    run: Run, buckets: TimeBuckets, inside: NDArray[np.bool_], patterns: Sequence[Mapping[str, Any]]
) -> TimeChart | None:
    """Draw the allocated vCores, and those of a system that follows its load exactly."""
    events = [
        (event.get("time_s"), scored.table(event.get("resources"))) for event in run.events_of("allocation")
    ]
    events = events or [(0.0, run.table("system", "resources"))]
    had: Steps = [
        (at, vcores * (finite(resources.get("nodes")) or 1.0))
        for given, resources in events
        if (at := finite(given)) is not None and (vcores := finite(resources.get("vcores"))) is not None
    ]
    if not had:
        return None
    wanted: Steps = [(0.0, 0.0)]
    for change in (change for entry in patterns for change in _changes(entry)):
        at, vcores = finite(change.get("at_s")), finite(change.get("demand_vcores"))
        if at is not None and vcores is not None:
            wanted.append((at, vcores))
    least, most = min(value for _, value in had), max(value for _, value in had)
    spread = f"{number(least)} to {number(most)}" if least < most else f"{number(most)} throughout"
    return TimeChart(
        id="elasticity-vcores",
        title="Allocation",
        unit="vCores, all nodes together",
        message=f"What the system had: {spread}.",
        note="In proportion to the load: the sessions' share of τ, of the most vCores that there were.",
        x=tuple(buckets.middles.tolist()),
        lines=(
            _line("allocated", "c2", _stepped(sorted(had), buckets.middles), inside),
            _line("in proportion", "muted", _stepped(sorted(wanted), buckets.middles), inside, dashed=True),
        ),
        size="medium",
    )


def _pattern(entry: Mapping[str, Any]) -> PatternRow:
    slots = [scored.table(slot) for slot in entry.get("slots") or ()]
    return PatternRow(
        pattern=str(entry.get("pattern")),
        repetition=entry.get("repetition"),
        sessions=", ".join(number(slot.get("sessions")) for slot in slots),
        tps=Estimate(value=entry.get("mean_tps"), ci95=scored.ci95(entry.get("ci95"))),
        by_slot=", ".join(number(slot.get("tps"), 3) for slot in slots),
        cost=dollars(entry.get("cost")),
        vcores=entry.get("mean_vcores"),
        e1=Estimate(value=entry.get("e1"), ci95=scored.ci95(entry.get("e1_ci95"))),
    )


def _transition(entry: Mapping[str, Any], change: Mapping[str, Any]) -> TransitionRow:
    return TransitionRow.model_validate(
        {
            "pattern": str(entry.get("pattern")),
            "load": f"{number(change.get('from_sessions'))} → {number(change.get('to_sessions'))}",
            "vcores": f"{number(change.get('from_vcores'))} → {number(change.get('to_vcores'))}",
            "scaling_cost": dollars(change.get("scaling_cost")),
            **{
                key: change.get(key)
                for key in (
                    "scaling_s",
                    "scaling_low_s",
                    "scaling_high_s",
                    "under_time",
                    "over_time",
                    "under_area",
                    "over_area",
                    "oscillations",
                    "slo_broken",
                    "wake_up_s",
                )
            },
        }
    )


def _how(run: Run, detail: Mapping[str, Any]) -> str:
    """Say how the score was measured."""
    del run
    patterns = [scored.table(entry) for entry in scored.sequence(detail.get("patterns"))]
    names = dict.fromkeys(str(entry.get("pattern")) for entry in patterns)
    windows = {duration(entry.get("window_s")) for entry in patterns}
    return f"{', '.join(names)}; cost over {', '.join(sorted(windows))}" if patterns else ""


HOW = {"E1": _how}
