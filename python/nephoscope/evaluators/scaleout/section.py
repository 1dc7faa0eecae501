"""Nodes that were added one by one under load: the gain and the start-up time of each."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from nephoscope.report.kit import method, scored
from nephoscope.report.kit.charts import Axis, Line, XYChart, category, course
from nephoscope.report.kit.parts import Estimate
from nephoscope.settings.loads import READS
from nephoscope.tables.numbers import count, duration, finite, number, percent, spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nephoscope.report.kit.run import Run

from nephoscope.report.kit.parts import Method, Number, Part

PLACE, ANCHOR, LABEL = 50, "scaleout", "Scale-out"
NO_MIX, HIDDEN = {"nodes"}, {"of_mix"}


class StepRow(Part):
    """A mix with so many read-only nodes; ``of_first`` is its gain as a share of the first step's, 0 to 1."""

    mix: str
    color: str
    nodes: int
    tps: Estimate
    gain: Number = None
    of_first: Number = None
    p50_ms: Number = None
    p99_ms: Number = None
    serve_s: Number = None
    failed: int | None = None
    repetitions: int | None = None


class ScaledMix(Part):
    """How the throughput of a mix grows with the nodes; ``scale_up`` is its last TPS / its first."""

    mix: str
    color: str
    e2: Number = None
    r_squared: Number = None
    scale_up: Number = None


class ChangeRow(Part):
    """A node that came or went, and what clients saw in the phase in which it did."""

    change: str
    node: str
    nodes: int | None = None
    took_s: Number = None
    moved_mb: Number = None
    tps: Number = None
    failed: int | None = None
    p99_ms: Number = None
    max_ms: Number = None


class ScaleOutEntry(Part):
    """The results of an entry of ``[[measure]]`` that adds nodes; ``kind`` is what one is called."""

    name: str
    kind: str
    statement: str
    chart: XYChart
    rows: tuple[StepRow, ...]
    mixes: tuple[ScaledMix, ...]
    changes: tuple[ChangeRow, ...] = ()


class ScaleOutSection(Part):
    """Nodes that were added one by one, with the gain of each."""

    entries: tuple[ScaleOutEntry, ...]
    score: Estimate
    note: str
    method: tuple[Method, ...] = ()


_ORDINALS = ("first", "second", "third")
_MOST_TOLD = len(_ORDINALS)
"""With more gains than this the sentence has those of the second and of the last node."""
_OF_A_RING = "node"
"""What a node is called of a system whose nodes all take writes."""
_MARGIN = 0.4
"""How far the axis goes on beyond the first and the last number of nodes."""


def build(run: Run) -> ScaleOutSection | None:
    """Return the section; None where no read-only node was added."""
    told = scored.entries(run, "scaleout")
    entries = [
        _entry(place, found, several=len(told) > 1)
        for place, found in told.items()
        if any(_steps(mix) for mix in scored.table(found.get("mixes")).values())
    ]
    if not entries:
        return None
    score = scored.score(run, "E2")
    return ScaleOutSection(
        entries=tuple(entries),
        score=Estimate(value=score.get("value"), ci95=scored.ci95(score.get("ci95"))),
        note=_note(run, score),
        method=method.of(run, "scaleout"),
    )


def _note(run: Run, score: Mapping[str, Any]) -> str:
    """Describe E2, or the reason of its absence."""
    value = finite(score.get("value"))
    if value is None:
        why = scored.table(run.scores.get("absent")).get("E2") or "this run's scores do not tell it"
        return f"E2 is absent: {why}."
    delta = finite(scored.table(score.get("detail")).get("delta"))
    unit = "" if delta is None else f", in {number(delta)} TPS per node"
    detail = scored.table(score.get("detail"))
    reads = READS.get(str(detail.get("reads"))) if _kind(detail) != _OF_A_RING else None
    unit += f"; {reads}" if reads else ""
    interval = spread(value, scored.ci95(score.get("ci95")))
    return f"E2 is {number(value)}{f' {interval}' if interval else ''}{unit}."


def _steps(mix: object) -> list[Mapping[str, Any]]:
    """Return the steps of a mix that have a throughput, by ascending number of nodes."""
    steps = [scored.table(step) for step in scored.sequence(scored.table(mix).get("steps"))]
    known = [step for step in steps if finite(step.get("nodes")) is not None and _tps(step) is not None]
    return sorted(known, key=lambda step: step["nodes"])


def _tps(step: Mapping[str, Any]) -> float | None:
    return finite(step.get("tps"))


def _gains(steps: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the gain of each step over the one before it; the first has none."""
    rates = [_tps(step) or 0.0 for step in steps]
    return [after - before for before, after in itertools.pairwise(rates)]


def _kind(found: Mapping[str, Any]) -> str:
    """Call a node by its name."""
    return _OF_A_RING if found.get("adds") == "rw" else "read-only node"


def _entry(place: str, found: Mapping[str, Any], *, several: bool) -> ScaleOutEntry:
    mixes = {mix: steps for mix, told in scored.table(found.get("mixes")).items() if (steps := _steps(told))}
    name = f"entry {place} of [[measure]]" if several else ""
    kind = _kind(found)
    return ScaleOutEntry(
        name=name,
        kind=kind,
        statement=_statement(mixes, found),
        chart=_chart(place, name, kind, mixes),
        rows=tuple(
            row
            for index, (mix, steps) in enumerate(mixes.items())
            for row in _rows(mix, category(index)[0], steps, found)
        ),
        mixes=tuple(
            _mix(mix, category(index)[0], scored.table(scored.table(found.get("mixes")).get(mix)))
            for index, mix in enumerate(mixes)
        ),
        changes=tuple(_changes(found)),
    )


def _changes(found: Mapping[str, Any]) -> Iterator[ChangeRow]:
    """Give a row for each node that came or went, where it is known what clients saw."""
    for change in ("added", "removed"):
        for one in map(scored.table, scored.sequence(found.get(change))):
            if not (clients := scored.table(one.get("clients"))):
                continue
            latency, moved = scored.table(clients.get("latency_ms")), finite(one.get("moved_bytes"))
            yield ChangeRow(
                change=change,
                node=str(one.get("node") or ""),
                nodes=scored.whole(one.get("nodes")),
                took_s=finite(one.get("took_s")),
                moved_mb=None if moved is None else moved / 1e6,
                tps=finite(clients.get("tps")),
                failed=scored.whole(clients.get("failed")),
                p99_ms=finite(latency.get("p99")),
                max_ms=finite(latency.get("max")),
            )


# --- words ------------------------------------------------------------------------------------------------------


def _statement(mixes: Mapping[str, Sequence[Mapping[str, Any]]], found: Mapping[str, Any]) -> str:
    """Write sentences on a node's gain in each mix and on the nodes' start-up times."""
    kind = _kind(found)
    said = [
        f"in {mix} {_brought(steps, kind)}" if len(mixes) > 1 else _brought(steps, kind)
        for mix, steps in mixes.items()
    ]
    waits = [
        wait
        for one in scored.sequence(found.get("added"))
        if (wait := finite(scored.table(one).get("serve_s"))) is not None
    ]
    sentences = [f"{text[:1].upper()}{text[1:]}." for text in said]
    if waits:
        low, high = duration(min(waits)), duration(max(waits))
        between = low if low == high else f"between {low} and {high}"
        sentences.append(f"A node served {between} after the call for it.")
    return " ".join(sentences)


def _brought(steps: Sequence[Mapping[str, Any]], kind: str) -> str:
    gains = _gains(steps)
    if not gains:
        [only] = steps
        nodes = f"{count(only['nodes'])} {kind}{'' if only['nodes'] == 1 else 's'}"
        return f"nothing was measured beyond {nodes}: {number(_tps(only))} TPS"
    mean = math.fsum(gains) / len(gains)
    if len(gains) == 1:
        return f"the one {kind} that came {_added(mean)}"
    said = f"each {kind} {'that came ' if kind == _OF_A_RING else ''}{_added(mean)} on average"
    first = gains[0]
    if first <= 0:
        return f"{said}; the first {_added(first)}, the last {_added(gains[-1])}"
    places = range(1, len(gains)) if len(gains) <= _MOST_TOLD else (1, len(gains) - 1)
    return f"{said}; " + ", ".join(_share(gains, place) for place in places)


def _added(tps: float) -> str:
    return f"added {number(tps)} TPS" if tps >= 0 else f"took {number(-tps)} TPS away"


def _share(gains: Sequence[float], place: int) -> str:
    """Describe a node's gain beside the first node's, which is above 0."""
    name = "the last" if place >= _MOST_TOLD else f"the {_ORDINALS[place]}"
    gain = gains[place]
    if gain < 0:
        return f"{name} {_added(gain)}"
    of = " of what the first did" if place == 1 else ""
    share = gain / gains[0]
    return f"{name} brought {percent(share, 2 if share < 1 else 3)}{of}"


# --- the chart and the tables -----------------------------------------------------------------------------------


def _chart(place: str, name: str, kind: str, mixes: Mapping[str, Sequence[Mapping[str, Any]]]) -> XYChart:
    nodes = sorted({int(step["nodes"]) for steps in mixes.values() for step in steps})
    lines: list[Line] = []
    ideals: list[Line] = []
    for index, (mix, steps) in enumerate(mixes.items()):
        lines += course(
            mix,
            category(index),
            [(step["nodes"], step["tps"], scored.ci95(step.get("ci95"))) for step in steps],
        )
        ideals += _ideal(category(index)[0], steps)
    ranges = [
        f"{mix} from {number(_tps(steps[0]))} to {number(_tps(steps[-1]))} TPS"
        for mix, steps in mixes.items()
    ]
    said = "Dashed: as if every node brought what the first did. " if ideals else ""
    return XYChart(
        id=f"scaleout-{place}",
        title=f"Throughput over {kind}s" + (f", {name}" if name else ""),
        unit="transactions per second",
        message=f"{'; '.join(ranges)}.",
        note=f"{said}Means of the repetitions with their 95 % intervals.",
        x=Axis(
            title=f"{kind.capitalize()}s",
            low=nodes[0] - _MARGIN,
            high=nodes[-1] + _MARGIN,
            ticks=tuple((float(number_of), count(number_of)) for number_of in nodes),
        ),
        y=Axis(title="TPS"),
        lines=(*lines, *ideals),
    )


def _ideal(color: str, steps: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Draw the first step on to the last number of nodes; a line that is no step longer, or falls, is left out."""
    gains = _gains(steps)
    if len(gains) < 2 or gains[0] <= 0:  # noqa: PLR2004 - from two gains on there is something to compare
        return []
    start, second, last = (float(steps[at]["nodes"]) for at in (0, 1, -1))
    tps = _tps(steps[0]) or 0.0
    end = tps + gains[0] * (last - start) / (second - start)
    return [Line(name="ideal", color=color, dash="dashed", data=((start, tps), (last, end)), legend=False)]


def _rows(
    mix: str, color: str, steps: Sequence[Mapping[str, Any]], found: Mapping[str, Any]
) -> list[StepRow]:
    gains: list[float | None] = [None, *_gains(steps)]
    first = gains[1] if len(gains) > 1 else None
    rows = []
    for step, gain in zip(steps, gains, strict=True):
        latency = scored.table(step.get("latency_ms"))
        row = StepRow(
            mix=mix,
            color=color,
            nodes=int(step["nodes"]),
            tps=Estimate(value=step["tps"], ci95=scored.ci95(step.get("ci95"))),
            gain=gain,
            of_first=gain / first if gain is not None and first is not None and first > 0 else None,
            p50_ms=latency.get("p50"),
            p99_ms=latency.get("p99"),
            serve_s=_serve_s(found, step["nodes"]),
            failed=scored.whole(step.get("failed")),
            repetitions=scored.whole(step.get("repetitions")),
        )
        rows.append(row)
    return rows


def _serve_s(found: Mapping[str, Any], nodes: object) -> float | None:
    """Return how long the node took to serve that made it so many: the mean over repetitions."""
    added = [scored.table(one) for one in scored.sequence(found.get("added"))]
    waits = [finite(one.get("serve_s")) for one in added if one.get("nodes") == nodes]
    return scored.mean(waits)


def _mix(mix: str, color: str, told: Mapping[str, Any]) -> ScaledMix:
    keys = ("e2", "r_squared", "scale_up")
    return ScaledMix.model_validate({"mix": mix, "color": color, **{key: told.get(key) for key in keys}})


def _how(run: Run, detail: Mapping[str, Any]) -> str:
    """Say how the score was measured."""
    del run
    mixes = scored.table(detail.get("mixes"))
    steps = max((len(scored.sequence(scored.table(mix).get("steps"))) for mix in mixes.values()), default=0)
    if steps < 2:  # noqa: PLR2004 - before and after
        return ""
    before = count(detail.get("from_nodes"))
    return f"{', '.join(mixes)}; {_kind(detail)}s: {before} and {count(steps - 1)} more"


HOW = {"E2": _how}
