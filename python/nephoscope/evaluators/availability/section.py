"""Availability in the report: the course of offered and committed requests with the times down, and the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.evaluators.availability.tables import (
    availability,
    done,
    endpoints,
    predicted,
    share_text,
    yields,
)
from nephoscope.evaluators.client_metrics import ClientMetrics
from nephoscope.evaluators.outages import LATE_S
from nephoscope.report.kit import failing, method, scored
from nephoscope.report.kit.charts import Axis, Line, Rule, Span, XYChart
from nephoscope.report.kit.parts import Grid, Method, Part, grid
from nephoscope.settings.units import describe_count
from nephoscope.tables.columns import RunFigures
from nephoscope.tables.numbers import count, duration, finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nephoscope.report.kit.run import Run, ShownPhase

PLACE, ANCHOR, LABEL = 32, "availability", "Availability"
NO_MIX = {"failures"}
MOST_DRAWN = 6
"""More repetitions than this are in the tables only."""
_MOST_RULES = 12
"""More failures than this have no labels."""
_SOURCES = {"script": "a script", "laws": "laws of MTTF and MTTR"}


class AvailabilitySection(Part):
    """What failures and repairs on a schedule left of the service."""

    statement: str
    note: str
    charts: tuple[XYChart, ...]
    grids: tuple[Grid, ...]
    method: tuple[Method, ...] = ()


def build(run: Run) -> AvailabilitySection | None:
    """Return the section; None where nothing was measured."""
    entries = [entry for entry in scored.entries(run, "availability").values() if entry.get("roles")]
    if not entries:
        return None
    figures = RunFigures("", run.reader, run.scores)
    drawn = [
        chart
        for entry in entries
        for one in scored.sequence(entry.get("repetitions"))
        if (chart := _chart(run, entry, scored.table(one))) is not None
    ]
    made = [make([figures]) for make in (availability, yields, predicted, endpoints, done)]
    return AvailabilitySection(
        statement=" ".join(_statement(entry) for entry in entries),
        note=_note(len(drawn)),
        charts=tuple(drawn[:MOST_DRAWN]),
        grids=tuple(grid(table) for table in made if table.rows),
        method=method.of(run, "availability"),
    )


def _statement(entry: Mapping[str, Any]) -> str:
    """Say in a sentence or two how much of the service was left."""
    repetitions = [scored.table(one) for one in scored.sequence(entry.get("repetitions"))]
    failures = sum(
        scored.table(told).get("what") == "failure"
        for one in repetitions
        for told in scored.sequence(one.get("done"))
    )
    source = _SOURCES.get(str(entry.get("failures")))
    said = f"{describe_count(failures, 'failure')} by {source}: " if source else "Without failures of ours: "
    parts = []
    for role in map(scored.table, scored.sequence(entry.get("roles"))):
        shown = share_text(finite(role.get("availability")), scored.ci95(role.get("availability_ci95")))
        repair = finite(role.get("mttr_s"))
        times = describe_count(scored.whole(role.get("interruptions")) or 0, "interruption")
        lasted = "" if repair is None else f" ({times} of {duration(repair)} on average)"
        parts.append(f"{role.get('role')} was available for {shown} of the time{lasted}")
    of = scored.table(entry.get("yield"))
    answered, good = (share_text(finite(of.get(name))) for name in ("share", "good_share"))
    within = duration(finite(of.get("slo_s")) or 0.0)
    parts.append(f"{answered} of {count(of.get('offered'))} requests were answered, {good} within {within}")
    foretold = next(map(scored.table, scored.sequence(entry.get("predicted"))), {})
    if (node := finite(foretold.get("node"))) is not None:
        parts.append(f"foretold for a node: {share_text(node)}")
    return said + "; ".join(parts) + "."


def _note(drawn: int) -> str:
    said = (
        "A role is down while none of its endpoints is served, as probes see it. A closed load asks for less while the "
        "system is away: its yield is of what was asked."
    )
    if drawn > MOST_DRAWN:
        said += f" {count(drawn - MOST_DRAWN)} more repetitions are in the tables only."
    return said


# --- the time line ----------------------------------------------------------------------------------------------


def _chart(run: Run, entry: Mapping[str, Any], one: Mapping[str, Any]) -> XYChart | None:
    """Draw what was offered and committed in a repetition, with the times down; None without its phase."""
    start = finite(one.get("start_s"))
    phase = None if start is None else run.phase_at(start)
    if start is None or phase is None:
        return None
    down = {str(role): _spans(spans) for role, spans in scored.table(one.get("down")).items()}
    role = next(iter(down), "rw")
    offered = _offered(run, phase) if entry.get("load") == "open" else ()
    lines = (
        [Line(name="offered", color="muted", dash="dotted", style="steps", data=offered)] if offered else []
    )
    late_s = finite(entry.get("late_s")) or LATE_S
    return XYChart(
        id=f"availability-{phase.number}",
        title=f"Availability, repetition {count(one.get('repetition'))}",
        unit="requests per second",
        message=_message(down, phase),
        x=Axis(title="Time since the measurement began", unit="s", low=0.0, high=phase.end_s - start),
        y=Axis(title="per second"),
        lines=(
            *lines,
            Line(name="committed", color="c0", style="steps", data=failing.throughput(run, phase, start)),
            *failing.rugs(run, role, phase, zero_s=start, late_s=late_s),
        ),
        rules=tuple(_rules(one, start)),
        spans=tuple(_down(down, start)),
    )


def _spans(given: object) -> list[tuple[float, float]]:
    pairs = [scored.ci95(pair) for pair in scored.sequence(given)]
    return [pair for pair in pairs if pair is not None]


def _message(down: Mapping[str, Sequence[tuple[float, float]]], phase: ShownPhase) -> str:
    seconds = phase.end_s - phase.start_s
    said = []
    for role, spans in down.items():
        away = duration(sum(end - start for start, end in spans))
        times = describe_count(len(spans), "time")
        said.append(
            f"{role} was down {times}, {away} of {duration(seconds)}" if spans else f"{role} was not down"
        )
    return f"{'; '.join(said)}." if said else "No probes."


def _down(down: Mapping[str, Sequence[tuple[float, float]]], zero_s: float) -> Iterator[Span]:
    """Shade the times down of each role, each role in a colour of its own."""
    for (role, spans), color in zip(down.items(), ("problem-wash", "warning-wash"), strict=False):
        for start, end in spans:
            yield Span(start=start - zero_s, end=end - zero_s, label=f"{role} down", color=color)


def _rules(one: Mapping[str, Any], zero_s: float) -> Iterator[Rule]:
    """Mark failures and the ends of repairs."""
    told = [scored.table(entry) for entry in scored.sequence(one.get("done"))]
    failures = sum(entry.get("what") == "failure" for entry in told)
    for entry in told:
        at, took = finite(entry.get("at_s")), finite(entry.get("took_s")) or 0.0
        if at is None:
            continue
        is_failure = entry.get("what") == "failure"
        label = f"{entry.get('action')} of {entry.get('target')}" if failures <= _MOST_RULES else ""
        yield Rule(
            x=at - zero_s if is_failure else at + took - zero_s,
            label=label if is_failure else f"{entry.get('action')} done" if label else "",
            color="problem" if is_failure else "ok",
            dash="dashed" if is_failure else "dotted",
        )


def _offered(run: Run, phase: ShownPhase) -> tuple[tuple[float, float], ...]:
    """Return the arrivals per second of each interval of a phase; empty where the run does not say."""
    ends, counts = ClientMetrics(run.reader).during("arrivals", phase.start_s, phase.end_s)
    if not len(ends):
        return ()
    starts = np.concatenate([[phase.start_s], ends[:-1]])
    rates = counts / np.maximum(ends - starts, 1e-9)
    steps = zip((starts - phase.start_s).tolist(), rates.tolist(), strict=True)
    return (*steps, (float(ends[-1]) - phase.start_s, float(rates[-1])))
