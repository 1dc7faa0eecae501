"""Consistency in the report: the curve of stale reads, when writes are to be seen, and violations of guarantees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.evaluators.consistency.tables import NAMES, behind, guarantees, visibility
from nephoscope.report.kit import method, scored
from nephoscope.report.kit.charts import Axis, Line, XYChart, category
from nephoscope.report.kit.parts import Grid, Method, Part, grid
from nephoscope.tables.columns import RunFigures
from nephoscope.tables.numbers import count, duration, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.report.kit.run import Run

PLACE, ANCHOR, LABEL = 45, "consistency", "Consistency"
NO_MIX = {"load", "level"}
_OF_FAILURES = ("fault", "targets", "script", "seed", "action_limit")
"""Keys that mean nothing where no node was to fail."""
_FINEST_MS = 0.01
"""A logarithmic axis has no zero: what is shorter is drawn here."""
_BIN = 10 ** (1 / 16)
"""From the beginning of a bin to its middle."""


class ConsistencySection(Part):
    """What sessions saw of each other's writes, and of their own."""

    statement: str
    note: str
    charts: tuple[XYChart, ...]
    grids: tuple[Grid, ...]
    method: tuple[Method, ...] = ()


def build(run: Run) -> ConsistencySection | None:
    """Return the section; None where nothing was measured."""
    situations = [
        scored.table(situation)
        for entry in scored.entries(run, "consistency").values()
        for situation in scored.sequence(entry.get("situations"))
    ]
    if not situations:
        return None
    figures = RunFigures("", run.reader, run.scores)
    return ConsistencySection(
        statement=_statement(situations),
        note=_note(situations),
        charts=tuple(chart for chart in (_curve(situations), _visibility(situations)) if chart.lines),
        grids=tuple(
            grid(table) for make in (guarantees, visibility, behind) if (table := make([figures])).rows
        ),
        method=method.of(
            run, "consistency", () if any(one.get("when") for one in situations) else _OF_FAILURES
        ),
    )


def _name(situation: Mapping[str, Any], situations: Sequence[Mapping[str, Any]]) -> str:
    """Name a situation by what tells it from the others."""
    several = {key: len({str(other.get(key)) for other in situations}) > 1 for key in ("load", "level")}
    named = [str(situation.get(key)) for key, differs in several.items() if differs]
    named += [f"{situation['when']} failures"] if situation.get("when") else []
    return ", ".join(named) or str(situation.get("load"))


def _statement(situations: Sequence[Mapping[str, Any]]) -> str:
    """Say in a sentence how many reads were stale, and which guarantees were broken."""
    said = []
    for situation in situations:
        stale, of = scored.table(situation.get("stale")), scored.table(situation.get("guarantees"))
        broken = [
            f"{NAMES.get(str(name), str(name))} ({count(found.get('violations'))} of {count(found.get('checks'))})"
            for name, found in of.items()
            if scored.table(found).get("violations")
        ]
        checks = sum(scored.whole(scored.table(found).get("checks")) or 0 for found in of.values())
        held = f"violated: {', '.join(broken)}" if broken else f"no violation in {count(checks)} checks"
        name = f"{_name(situation, situations)}: " if len(situations) > 1 else ""
        said.append(
            f"{name}{percent(stale.get('share'))} of {count(stale.get('trials'))} reads were stale; {held}."
        )
    return " ".join(said)


def _note(situations: Sequence[Mapping[str, Any]]) -> str:
    reads = [scored.table(situation.get("reads")) for situation in situations]
    due, answered, missed, failed = (
        sum(scored.whole(of.get(name)) or 0 for of in reads)
        for name in ("due", "answered", "missed", "failed")
    )
    given_up = sum(scored.whole(situation.get("registers_given_up")) or 0 for situation in situations)
    said = (
        f"Of {count(due)} reads that were due {count(answered)} were answered, {count(missed)} could not be sent "
        f"before the next one was due, and {count(failed)} failed. A read is stale if it does not show a write that "
        "was acknowledged before the read was sent. All sessions run in one process, by one clock."
    )
    if given_up:
        said += (
            f" {count(given_up)} registers were given up because the outcome of a write is not known: "
            "what they showed afterwards is no violation."
        )
    return said


def _curve(situations: Sequence[Mapping[str, Any]]) -> XYChart:
    """Draw P(stale | t) of each situation."""
    lines, last_of = [], {}
    for place, situation in enumerate(situations):
        curve = [scored.table(point) for point in scored.sequence(situation.get("curve"))]
        known = [(point, _middle(point)) for point in curve if point.get("share") is not None]
        data = tuple((middle, 100 * float(point["share"])) for point, middle in known)
        ends = [(middle, scored.ci95(point.get("ci95"))) for point, middle in known]
        whiskers = tuple((middle, 100 * of[0], 100 * of[1]) for middle, of in ends if of)
        name = _name(situation, situations)
        color, dash = category(place)
        if data:
            lines.append(Line(name=name, color=color, dash=dash, data=data, whiskers=whiskers))
            last = max((float(point["after_ms"]) for point, _ in known if point["stale"]), default=None)
            last_of[name] = None if last is None else duration(last / 1000 * _BIN**2)
    return XYChart(
        id="consistency-stale",
        title="Stale reads",
        unit="% of reads, by the time since the write",
        message=_said_of_last(last_of),
        note="P(stale read | t since the acknowledgement), of reads that were sent then and answered; whiskers are "
        "95 % intervals, for which the reads of half a second count as one cluster.",
        x=Axis(title="Time since the write", unit="ms", scale="log10"),
        y=Axis(title="Stale", unit="%", high=100.0),
        lines=tuple(lines),
    )


def _said_of_last(last_of: Mapping[str, str | None]) -> str:
    """Say until when after a write there were stale reads."""
    stale = [f"{name} {last}" for name, last in last_of.items() if last is not None]
    if not stale:
        return "No read was stale."
    none = [name for name, last in last_of.items() if last is None]
    others = f" No stale read: {', '.join(none)}." if none else ""
    return f"The last stale read was sent, after the acknowledgement, within: {', '.join(stale)}.{others}"


def _middle(point: Mapping[str, Any]) -> float:
    after = float(point["after_ms"])
    return after * _BIN if after > 0 else _FINEST_MS / _BIN


def _visibility(situations: Sequence[Mapping[str, Any]]) -> XYChart:
    """Draw the distribution of t-visibility of each situation, on all nodes together."""
    lines, medians = [], []
    for place, situation in enumerate(situations):
        visible = scored.sequence(situation.get("visible"))
        found = next((of for of in map(scored.table, visible) if of.get("node") is None), {})
        data = tuple(
            (max(float(time), _FINEST_MS), 100 * float(share))
            for time, share in scored.sequence(found.get("seen"))
        )
        name = _name(situation, situations)
        color, dash = category(place)
        if data:
            lines.append(Line(name=name, color=color, dash=dash, style="steps", data=data))
            medians.append(f"{name} {duration(float(found['p50_ms']) / 1000)}")
    return XYChart(
        id="consistency-visible",
        title="Time until a write is visible",
        unit="% of writes that are seen by then",
        message=f"Half are seen after: {', '.join(medians)}.",
        note="From the acknowledgement to the first read after the last one that did not show the write; the middle of "
        "both counts. Shorter times are drawn at 10 µs.",
        x=Axis(title="Time since the write", unit="ms", scale="log10"),
        y=Axis(title="Seen", unit="%", high=100.0),
        lines=tuple(lines),
    )
