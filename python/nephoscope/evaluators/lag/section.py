"""Replication lag: its distribution, how likely a read is stale, and its course over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.evaluators.lag.samples import LagSamples
from nephoscope.report.kit import method, scored
from nephoscope.report.kit.charts import Axis, Line, Span, XYChart, category
from nephoscope.report.kit.parts import Estimate
from nephoscope.tables.numbers import count, duration, number, percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.report.kit.run import Run


from nephoscope.report.kit.parts import Method, Number, Part

PLACE, ANCHOR, LABEL = 40, "lag", "Lag"
NO_MIX = {"load"}


class LagRow(Part):
    """The lags of a kind beside a load, in ms; ``mean`` over repetitions, percentiles over all markers."""

    load: str
    kind: str
    node: str = ""
    count: int
    unseen: int
    mean: Estimate
    p50: Number = None
    p95: Number = None
    p99: Number = None
    max: Number = None
    half_width: Number = None


class StaleRow(Part):
    """How likely a read is stale beside a load, for each of the times that the table has; shares are 0 to 1."""

    load: str
    shares: tuple[Estimate, ...]


class LagSection(Part):
    """The time from a commit to its visibility on the read-only endpoints."""

    statement: str
    charts: tuple[XYChart, ...]
    timeline: tuple[XYChart, ...] = ()
    rows: tuple[LagRow, ...]
    after_ms: tuple[float, ...]
    stale: tuple[StaleRow, ...]
    score: Estimate
    note: str = ""
    method: tuple[Method, ...] = ()


_FINEST_MS = 0.01
"""Shorter lags are drawn here: a logarithmic axis has no zero."""
_FLOORED = "Lags below 10 µs are drawn at 10 µs."
_REPLICA = "replica:"
_STEPS = 160
_MOST_POINTS = 2000


def build(run: Run) -> LagSection | None:
    """Return the section; None where no marker was looked for beside a load."""
    samples = LagSamples.of(run)
    if not len(samples):
        return None
    found = scored.score(run, "C")
    times = samples.times_ms()
    return LagSection(
        statement=_statement(run, samples),
        charts=(_stale_curve(samples), *(_distribution(samples, kind) for kind in samples.kinds)),
        timeline=(_course(run, samples), *_servers_view(run, samples)),
        rows=tuple(lag_rows(samples)),
        after_ms=times,
        stale=tuple(
            StaleRow(load=load, shares=tuple(samples.beside(load).stale(after) for after in times))
            for load in samples.loads
        ),
        score=Estimate(value=found.get("value"), ci95=scored.ci95(found.get("ci95"))),
        note=_note(samples),
        method=method.of(run, "lag"),
    )


def counted(run: Run, samples: LagSamples) -> tuple[str, ...]:
    """Return the loads that count for C, as the score says; all of them where it is absent."""
    named = scored.sequence(scored.table(scored.score(run, "C").get("detail")).get("counted"))
    return tuple(load for load in samples.loads if load in named) or samples.loads


def _statement(run: Run, samples: LagSamples) -> str:
    """Say in a sentence how long it takes, and beside which load it takes longest."""
    loads = counted(run, samples)
    of = samples.where(np.isin(samples.load, loads))
    slowest = max(loads, key=lambda load: samples.beside(load).quantile(0.5) or 0.0)
    where = (
        "the read-only endpoint" if len(samples.nodes) == 1 else f"{len(samples.nodes)} read-only endpoints"
    )
    said = f"Half of the commits were seen on {where} within {_ms(of.quantile(0.5))}"
    said += f", and 99 % within {_ms(of.quantile(0.99))}"
    if len(loads) > 1:
        said += f"; it took longest beside {slowest} (median {_ms(samples.beside(slowest).quantile(0.5))})"
    middle = _middle_time(of)
    if middle is not None:
        stale = of.stale(middle)
        low, high = stale.ci95 or (0.0, 1.0)
        said += (
            f". A read {_ms(middle)} after a write is stale in {percent(stale.value)} of cases "
            f"(95 %: {percent(low)} to {percent(high)})"
        )
    return f"{said}."


def _middle_time(samples: LagSamples) -> float | None:
    """Return the time of the table that lies nearest above the median."""
    median = samples.quantile(0.5) or 0.0
    return next((after for after in samples.times_ms() if after >= median), None)


def _ms(value: float | None) -> str:
    return duration(None if value is None else value / 1000)


def _note(samples: LagSamples) -> str:
    unseen = int(np.count_nonzero(samples.unseen))
    said = (
        f"{count(len(samples))} markers; each lag lies between two looks, and its middle counts: "
        f"half the distance is {_ms(samples.half_width)} in the median, so times are as fine as that."
    )
    if unseen:
        said += (
            f" {count(unseen)} markers were not seen within the limit, or before the end: each lags by at least the "
            "time that it was looked for, and counts as stale for as long. Means and percentiles are at least that."
        )
    return said


def _color(samples: LagSamples, load: str) -> str:
    return category(samples.loads.index(load))[0]


def _grid(samples: LagSamples) -> list[float]:
    """Return times on a logarithmic axis, over all lags."""
    shown = np.maximum(samples.lag_ms, _FINEST_MS)
    low, high = float(shown.min()) * 0.9, float(shown.max()) * 1.1
    grid: list[float] = np.geomspace(low, high, _STEPS).tolist()
    return grid


def _stale_curve(samples: LagSamples) -> XYChart:
    grid = _grid(samples)
    lines = []
    for load in samples.loads:
        of = samples.beside(load)
        curve = tuple((after, 100 * (of.stale(after).value or 0.0)) for after in grid)
        lines.append(Line(name=load, color=_color(samples, load), style="steps", data=curve))
    fresh = [f"{load} {_ms(samples.beside(load).quantile(0.99))}" for load in samples.loads]
    replica = "" if len(samples.nodes) == 1 else " on a replica that is drawn by lot"
    return XYChart(
        id="lag-stale",
        title="Stale reads",
        unit="% of reads, by the time since the write",
        message=f"One read in a hundred is stale after: {', '.join(fresh)}.",
        note=f"P(stale read | t after the write{replica}): the share of markers of all kinds with a lag longer than t; "
        "one that was not seen counts for as long as it was looked for (Kaplan and Meier).",
        x=Axis(title="Time since the write", unit="ms", scale="log10"),
        y=Axis(title="Stale", unit="%", high=100.0),
        lines=tuple(lines),
    )


def _distribution(samples: LagSamples, kind: str) -> XYChart:
    of_kind = samples.where(samples.kind == kind)
    lines = []
    medians = []
    for load in samples.loads:
        of = of_kind.beside(load)
        if of.unseen.all():
            continue
        lags = of.survival.times
        # As many points as a reader can tell apart; each is a true point of the distribution.
        places = np.unique(np.linspace(0, len(lags) - 1, min(len(lags), _STEPS)).astype(int))
        seen = 100 * (1 - of.survival.shares)
        data = tuple((max(float(lags[n]), _FINEST_MS), float(seen[n])) for n in places.tolist())
        lines.append(Line(name=load, color=_color(samples, load), style="steps", data=data))
        medians.append(f"{load} {_ms(of_kind.beside(load).quantile(0.5))}")
    return XYChart(
        id=f"lag-{kind}",
        title=f"Lag of {kind}s",
        unit="% of markers seen by then",
        message=f"Half are seen after: {', '.join(medians)}.",
        note=f"Cumulative; the half-width of a sample is {_ms(of_kind.half_width)} in the median.",
        x=Axis(title="Lag", unit="ms", scale="log10"),
        y=Axis(title="Seen", unit="%", high=100.0),
        lines=tuple(lines),
    )


def lag_rows(samples: LagSamples) -> list[LagRow]:
    """Return a row for each load and kind; of several replicas one for each."""
    nodes = samples.nodes if len(samples.nodes) > 1 else ("",)
    rows = []
    for load in samples.loads:
        for kind in samples.kinds:
            for node in nodes:
                of = samples.where(
                    (samples.load == load) & (samples.kind == kind) & ((samples.node == node) | (node == ""))
                )
                if len(of):
                    rows.append(_row(load, kind, node, of))
    return rows


def _row(load: str, kind: str, node: str, of: LagSamples) -> LagRow:
    return LagRow(
        load=load,
        kind=kind,
        node=node,
        count=len(of),
        unseen=int(np.count_nonzero(of.unseen)),
        mean=of.mean(),
        p50=of.quantile(0.5),
        p95=of.quantile(0.95),
        p99=of.quantile(0.99),
        max=of.quantile(1.0),
        half_width=of.half_width,
    )


# --- over time --------------------------------------------------------------------------------------------------


def _stretches(run: Run) -> tuple[Span, ...]:
    """Name the loads beside which the lag was measured."""
    return tuple(
        Span(start=phase.start_s, end=phase.end_s, label=str(phase.labels["load"]), color="surface")
        for phase in run.phases
        if phase.measured and "load" in phase.labels
    )


def _x_axis(samples: LagSamples) -> Axis:
    low, high = float(samples.time_s.min()), float(samples.time_s.max())
    return Axis(title="Time since the start of the load", unit="s", low=low, high=max(high, low + 1e-3))


def _course(run: Run, samples: LagSamples) -> XYChart:
    thinned, note = _thinned(samples)
    lines = []
    for load in samples.loads:
        of = thinned.beside(load)
        shown = np.maximum(of.lag_ms, _FINEST_MS)
        data = tuple(zip(of.time_s.tolist(), shown.tolist(), strict=True))
        lines.append(Line(name=load, color=_color(samples, load), style="points", data=data))
    worst = int(np.argmax(samples.lag_ms))
    return XYChart(
        id="lag-course",
        title="Lag over time",
        unit="ms, log scale",
        message=f"The longest lag was {_ms(float(samples.lag_ms[worst]))}, of {_article(samples.kind[worst])} beside "
        f"{samples.load[worst]}, {number(samples.time_s[worst])} s after the start of the load.",
        note=note,
        x=_x_axis(samples),
        y=Axis(title="Lag", unit="ms", scale="log10"),
        lines=tuple(lines),
        spans=_stretches(run),
    )


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _thinned(samples: LagSamples) -> tuple[LagSamples, str]:
    """Keep no more markers than can be drawn: the longest lag of each slice of time."""
    if len(samples) <= _MOST_POINTS:
        return samples, f"Each point is a marker. {_FLOORED}"
    low, high = float(samples.time_s.min()), float(samples.time_s.max())
    slices = np.minimum((samples.time_s - low) / (high - low) * _MOST_POINTS, _MOST_POINTS - 1).astype(int)
    longest: dict[int, int] = {}
    for row, of in enumerate(slices.tolist()):
        if of not in longest or samples.lag_ms[row] > samples.lag_ms[longest[of]]:
            longest[of] = row
    kept = np.zeros(len(samples), bool)
    kept[list(longest.values())] = True
    width = duration((high - low) / _MOST_POINTS)
    return samples.where(kept), f"Each point is the longest lag within {width}. {_FLOORED}"


_TOLD = {
    "replay_lag_ms": ("Lag by the primary's own account", "ms"),
    "bytes_behind": ("Log not yet replayed, by the primary's own account", "bytes"),
}
"""A primary's metrics of its replicas (sources ``replica:``), as titles and units."""


def _servers_view(run: Run, samples: LagSamples) -> list[XYChart]:
    """Draw the primary's own metrics of its replicas, on the same clock; nothing where the run has none."""
    axis = _x_axis(samples)
    low, high = axis.low or 0.0, axis.high or 0.0
    series: dict[str, dict[str, list[tuple[float, float]]]] = {}
    names = ("time_s", "source", "metric", "value")
    columns = (run.reader.system_metrics.column(name).to_pylist() for name in names)
    for time_s, source, metric, value in zip(*columns, strict=True):
        if metric in _TOLD and str(source).startswith(_REPLICA) and low <= time_s <= high:
            of_metric = series.setdefault(metric, {})
            of_metric.setdefault(str(source).removeprefix(_REPLICA), []).append((time_s, value))
    return [_told(metric, series[metric], axis, _stretches(run)) for metric in _TOLD if metric in series]


def _told(
    metric: str, series: Mapping[str, list[tuple[float, float]]], axis: Axis, spans: tuple[Span, ...]
) -> XYChart:
    title, unit = _TOLD[metric]
    lines = []
    for place, (name, data) in enumerate(sorted(series.items())):
        color, dash = category(place)
        lines.append(Line(name=name, color=color, dash=dash, data=tuple(data)))
    most = [f"{name} {number(max(value for _, value in data))}" for name, data in sorted(series.items())]
    return XYChart(
        id=f"lag-{metric.replace('_', '-')}",
        title=title,
        unit=f"{unit}, of each replica",
        message=f"At most: {', '.join(most)} {unit}.",
        note="Once a second, on the same clock: a cross-check of the markers.",
        x=axis,
        y=Axis(title="Behind", unit=unit),
        lines=tuple(lines),
        spans=spans,
    )


def _how(run: Run, detail: Mapping[str, Any]) -> str:
    """Say how the score was measured."""
    del run
    replicas = count(detail.get("replicas"))
    loads = ", ".join(str(load) for load in scored.sequence(detail.get("counted")))
    return f"insert + update + delete beside {loads}; replicas: {replicas}" if loads else ""


HOW = {"C": _how}
