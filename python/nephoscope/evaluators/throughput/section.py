"""Throughput and tail latency over the load, with τ marked and why the search for it stopped."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from nephoscope.report.kit import scored
from nephoscope.report.kit.charts import Axis, Line, Mark, XYChart
from nephoscope.report.kit.parts import Estimate
from nephoscope.report.kit.points import committed_per_second, exact_latency, figures_of
from nephoscope.tables.numbers import count, dollars, finite, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.report.kit.parts import Percentiles
    from nephoscope.report.kit.run import Run, ShownPhase, ShownPoint


from nephoscope.report.kit.parts import Number, Part, Percentiles

PLACE, ANCHOR, LABEL = 10, "sweep", "Sweep"


class Saturation(Part):
    """Where a mix saturates (τ), and why the search stopped."""

    mix: str
    concurrency: Number = None
    tps: Number = None
    why: str = ""
    is_known: bool = True
    """Whether it was seen; else the highest load that was tried was too low to tell."""
    color: str = "c0"

    @property
    def sign(self) -> str:
        """What marks its place in a chart."""
        return f"τ {count(self.concurrency)}" if self.is_known else f"τ ≥ {count(self.concurrency)}"

    def said(self) -> str:
        """Say it in a chart's line."""
        if self.is_known:
            return f"{self.mix} saturates at τ = {count(self.concurrency)} with {number(self.tps)} TPS"
        return f"{self.mix} is not known to saturate at {count(self.concurrency)} with {number(self.tps)} TPS"


class PointRow(Part):
    """One measured point: a mix at one load, one repetition."""

    mix: str
    load: str
    repetition: int | None = None
    tps: Estimate
    goodput: Number = None
    latency: Percentiles
    failed: int | None = None
    steady: bool | None = None
    saturated: bool = False


class SweepSection(Part):
    """Throughput and tail latency over the load."""

    charts: tuple[XYChart, ...] = ()
    saturation: tuple[Saturation, ...] = ()
    points: tuple[PointRow, ...] = ()


# Repetitions at one concurrency stand side by side, or their whiskers would hide each other.
_DODGE = 1.045


def build(run: Run) -> SweepSection | None:
    """Return the section; None where fewer than two loads of a mix were measured and no τ was sought."""
    mixes = [mix for mix in run.mixes if len(_curve(run, mix)) > 1 or scored.saturation(run, mix)]
    if not mixes:
        return None
    saturation = tuple(_saturation(run, mix) for mix in mixes if scored.saturation(run, mix))
    return SweepSection(
        charts=(_throughput(run, mixes, saturation), _tail(run, mixes, saturation)),
        saturation=saturation,
        points=tuple(
            _row(run, point, phase)
            for mix in run.mixes
            for point in (*_steps(run, mix), *_measured(run, mix))
            for phase in point.phases
        ),
    )


def _curve(run: Run, mix: str) -> list[ShownPoint]:
    """Return the points that a mix's line joins, by ascending load: a search's steps, or else what was measured."""
    return _steps(run, mix) or _measured(run, mix)


def _steps(run: Run, mix: str) -> list[ShownPoint]:
    return _ascending(run.points_of(mix, steps=True))


def _measured(run: Run, mix: str) -> list[ShownPoint]:
    """Return the points whose repetitions are drawn, by ascending load."""
    return _ascending(run.points_of(mix))


def _ascending(points: list[ShownPoint]) -> list[ShownPoint]:
    drawn = (point for point in points if point.offered and point.is_of_mix)
    return sorted(drawn, key=lambda point: point.offered or 0)


def _lines_join(run: Run, mixes: list[str], measured: str) -> str:
    searched = any(point.is_step for mix in mixes for point in _curve(run, mix))
    return "Lines join the steps of the search" if searched else f"Lines join {measured}"


def _x_axis(run: Run) -> Axis:
    if any(point.concurrency is not None for point in run.points):
        return Axis(title="Concurrency", unit="sessions", scale="log2")
    return Axis(title="Offered load", unit="arrivals per second", scale="log2")


def _saturation(run: Run, mix: str) -> Saturation:
    found = scored.saturation(run, mix)
    return Saturation(
        mix=mix,
        concurrency=found.get("concurrency"),
        tps=found.get("tps"),
        why=str(found.get("why") or ""),
        is_known=found.get("saturated") is not False,
        color=run.mix_color(mix),
    )


def _tps(run: Run, phase: ShownPhase) -> float | None:
    given = finite(scored.point_of(run, phase).get("tps"))
    return committed_per_second(run, [phase]) if given is None else given


def _p99(run: Run, phases: frozenset[int]) -> float | None:
    return exact_latency(run, phases).p99


def _dodged(point: ShownPoint, index: int) -> float:
    aside = index - (len(point.phases) - 1) / 2
    return (point.offered or 1.0) * math.pow(_DODGE, aside)


def _throughput(run: Run, mixes: list[str], saturation: tuple[Saturation, ...]) -> XYChart:
    lines: list[Line] = []
    for mix in mixes:
        curve = _curve(run, mix)
        means = tuple((point.offered, figures_of(run, point).tps.value) for point in curve)
        lines.append(Line(name=mix, color=run.mix_color(mix), data=means))
        lines += _repetitions(run, mix, _measured(run, mix))
    # The legend names the mixes first, and what a cross means last.
    lines.sort(key=lambda line: line.style == "crosses")
    said = [entry.said() for entry in saturation if finite(entry.concurrency) is not None]
    return XYChart(
        id="sweep-tps",
        title="Throughput",
        unit="transactions per second",
        message="; ".join(said) + "." if said else "Throughput over the load; no τ was found.",
        note=f"{_lines_join(run, mixes, 'the means')}; each point is one repetition with its 95 % interval.",
        x=_x_axis(run),
        y=Axis(title="TPS"),
        lines=tuple(lines),
        marks=tuple(
            Mark(x=entry.concurrency, y=entry.tps, label=entry.sign, color=entry.color)
            for entry in saturation
        ),
    )


def _repetitions(run: Run, mix: str, curve: list[ShownPoint]) -> list[Line]:
    """Return the single repetitions: points with whiskers, and crosses for those that were not steady."""
    steady: list[tuple[float | None, float | None]] = []
    unsteady: list[tuple[float | None, float | None]] = []
    whiskers = []
    for point in curve:
        for index, phase in enumerate(point.phases):
            said = scored.point_of(run, phase)
            x = _dodged(point, index)
            (unsteady if said.get("steady") is False else steady).append((x, _tps(run, phase)))
            interval = scored.ci95(said.get("ci95"))
            if interval:
                whiskers.append((x, *interval))
    color = run.mix_color(mix)
    lines = [
        Line(
            name=mix, color=color, style="points", data=tuple(steady), whiskers=tuple(whiskers), legend=False
        )
    ]
    if unsteady:
        lines.append(Line(name="not steady", color=color, style="crosses", data=tuple(unsteady)))
    return lines


def _tail(run: Run, mixes: list[str], saturation: tuple[Saturation, ...]) -> XYChart:
    lines: list[Line] = []
    marks: list[Mark] = []
    ranges = []
    for mix in mixes:
        curve = _curve(run, mix)
        merged = [(point.offered, _p99(run, point.numbers)) for point in curve]
        each = [
            (_dodged(point, index), _p99(run, frozenset({phase.number})))
            for point in _measured(run, mix)
            for index, phase in enumerate(point.phases)
        ]
        color = run.mix_color(mix)
        lines.append(Line(name=mix, color=color, data=tuple(merged)))
        lines.append(Line(name=mix, color=color, style="points", data=tuple(each), legend=False))
        found = next((entry for entry in saturation if entry.mix == mix and entry.concurrency), None)
        if found:
            marks += [
                Mark(x=x, y=y, label=found.sign, color=color) for x, y in merged if x == found.concurrency
            ]
        seen = [y for _, y in merged if y is not None]
        if seen:
            ranges.append(f"{mix} from {number(seen[0], 3)} to {number(seen[-1], 3)} ms")
    return XYChart(
        id="sweep-p99",
        title="Latency p99",
        unit="ms, log scale",
        message=f"p99 from the lowest to the highest load: {'; '.join(ranges)}."
        if ranges
        else "No latencies.",
        note=f"{_lines_join(run, mixes, 'the percentiles of all repetitions together')}; "
        "each point is one repetition.",
        x=_x_axis(run),
        y=Axis(title="p99", unit="ms", scale="log10"),
        lines=tuple(lines),
        marks=tuple(marks),
    )


def _row(run: Run, point: ShownPoint, phase: ShownPhase) -> PointRow:
    said = scored.point_of(run, phase)
    failed = finite(said.get("failed"))
    rows = run.intervals.among({phase.number})
    steady = said.get("steady")
    return PointRow(
        mix=point.name,
        load=point.load,
        repetition=phase.repetition,
        tps=Estimate(value=_tps(run, phase), ci95=scored.ci95(said.get("ci95"))),
        goodput=said.get("goodput"),
        latency=_latency(run, phase),
        failed=run.intervals.total("failed", rows) if failed is None else round(failed),
        steady=steady if isinstance(steady, bool) else None,
        saturated=point.concurrency is not None
        and point.concurrency == finite(scored.saturation(run, point.name).get("concurrency")),
    )


def _latency(run: Run, phase: ShownPhase) -> Percentiles:
    return exact_latency(run, frozenset({phase.number}))


def _how(run: Run, detail: Mapping[str, Any]) -> str:
    """Say how the score was measured."""
    mixes = ", ".join(scored.mix_details(run)) or "all mixes"
    of = {"peak": "the highest mean TPS", "mean": "the mean TPS over the sweep"}.get(
        str(detail.get("tps_of")), "TPS"
    )
    cost = finite(detail.get("cost_per_minute"))
    return f"{of} of {mixes}" + (f", at {dollars(cost)} a minute" if cost is not None else "")


HOW = {"P": _how}
