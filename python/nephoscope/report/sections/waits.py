"""What the server waited for, over time and by phase, and what a transaction cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.report.kit import scored
from nephoscope.report.kit.charts import CATEGORIES, TimeChart, TimeLine, category
from nephoscope.report.kit.parts import grid
from nephoscope.report.sections.metrics import MetricTable, held, is_wait
from nephoscope.report.view import WaitSection
from nephoscope.store.protocol import WAIT
from nephoscope.tables import observed
from nephoscope.tables.columns import RunFigures
from nephoscope.tables.numbers import duration, number, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from nephoscope.report.kit.buckets import TimeBuckets
    from nephoscope.report.kit.run import Run

    Series = Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]

_REST = "all others"
_UNKNOWN = "What the sessions waited for is not known: the server has no wait events, or did not show them."


def build(run: Run, buckets: TimeBuckets) -> WaitSection | None:
    """Return the section; None where neither waits nor costs were observed."""
    figures = [RunFigures(run.reader.name, run.reader, _without_steps(run))]
    tables = [table for table in (observed.waits(figures), observed.transaction_costs(figures)) if table.rows]
    charts = tuple(_charts(run, buckets))
    if not tables and not charts:
        return None
    return WaitSection(
        charts=charts,
        tables=tuple(grid(table) for table in tables),
        note="" if charts else _UNKNOWN,
    )


def _without_steps(run: Run) -> dict[str, Any]:
    """Leave the steps of searches out of what was observed in each phase: they are many."""
    steps = {phase.number for phase in run.phases if phase.labels.get("search")}
    kept = {
        name: [
            entry
            for entry in scored.sequence(run.scores.get(name))
            if scored.table(entry).get("phase") not in steps
        ]
        for name in ("waits", "transaction_costs")
    }
    return {**run.scores, **kept}


def _charts(run: Run, buckets: TimeBuckets) -> list[TimeChart]:
    """Draw a chart for each server whose sessions were looked at."""
    table = MetricTable(run)
    of_source: dict[str, dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]] = {}
    for key in table.keys:
        source, _, metric = key.partition("\0")
        if is_wait(metric):
            of_source.setdefault(source, {})[metric.removeprefix(WAIT)] = table.series(source, metric)
    return [
        _chart(source, series, buckets, several=len(of_source) > 1) for source, series in of_source.items()
    ]


def _chart(source: str, series: Series, buckets: TimeBuckets, *, several: bool) -> TimeChart:
    """Stack the sessions by event, the most frequent at the bottom; what is rare goes together."""
    order = sorted(series, key=lambda name: -float(series[name][1].sum()))
    shown, rest = order[: CATEGORIES - 1], order[CATEGORIES - 1 :]
    lines = []
    for index, name in enumerate(shown):
        color, dash = category(index)
        lines.append(TimeLine(name=name, color=color, dash=dash, y=_over_time([series[name]], buckets)))
    if rest:
        others = [series[name] for name in rest]
        lines.append(TimeLine(name=_REST, color="muted", y=_over_time(others, buckets)))
    # A message is of the whole run, pauses included: the table has the measured phases.
    total = sum(float(values.sum()) for _, values in series.values())
    most = order[0]
    share = float(series[most][1].sum()) / total if total else 0.0
    samples = max(times.size for times, _ in series.values())
    return TimeChart(
        id=f"time-waits-{source}",
        title="What the sessions at work were in" + (f": {source}" if several else ""),
        unit="sessions, stacked",
        message=f"On average {number(total / max(samples, 1), 3)} sessions; {percent(share)} of their time in {most}.",
        note=f"Means over {duration(buckets.length_s)}." if buckets.merged else "",
        x=tuple(buckets.middles.tolist()),
        lines=tuple(lines),
        style="stack",
        size="medium",
    )


def _over_time(
    series: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]], buckets: TimeBuckets
) -> tuple[float | None, ...]:
    """Add up series over the chart's buckets; a bucket without a sample holds the last one until the next is due."""
    each = [held(buckets.reduce(times, values, largest=False), times, buckets) for times, values in series]
    return tuple(
        None if all(value is None for value in values) else sum(value or 0.0 for value in values)
        for values in zip(*each, strict=True)
    )
