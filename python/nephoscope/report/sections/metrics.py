"""Small charts: the instrument's own cost, and what host and server were doing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.report.kit.charts import TimeChart, TimeLine, category
from nephoscope.report.kit.run import in_order
from nephoscope.report.view import MetricRow, Metrics
from nephoscope.store.protocol import WAIT
from nephoscope.tables.numbers import duration, number, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from nephoscope.report.kit.buckets import TimeBuckets
    from nephoscope.report.kit.charts import Dash
    from nephoscope.report.kit.run import Run

CLIENT = "client"

MOST_CHARTS = 24
"""More small charts than this would bury the others; the table has every metric."""


@dataclass(frozen=True)
class _Panel:
    """A small chart of one or more of the client's metrics."""

    id: str
    title: str
    unit: str
    metrics: tuple[tuple[str, str], ...]
    ramp: bool = False
    log: bool = False
    percent: bool = False
    largest: bool = False


_CLIENT_PANELS = (
    _Panel(
        "client-cpu", "CPU of the busiest load thread", "% of a core", (("cpu_busy", "CPU"),), percent=True
    ),
    _Panel("client-cost", "CPU per transaction", "µs", (("cpu_us_per_transaction", "CPU"),)),
    _Panel(
        "client-lag",
        "Schedule lag",
        "µs, log scale",
        (("lag_p50_us", "p50"), ("lag_p99_us", "p99"), ("lag_max_us", "max")),
        ramp=True,
        log=True,
        largest=True,
    ),
    _Panel(
        "client-backlog",
        "Backlog and drops",
        "arrivals",
        (("backlog", "waiting"), ("dropped", "dropped")),
        largest=True,
    ),
    _Panel("client-sessions", "Sessions", "", (("sessions", "at work"), ("connected", "connected"))),
    _Panel("client-memory", "Memory of the client", "MB", (("rss_mb", "resident"),)),
)


class MetricTable:
    """``system.parquet`` by source and metric."""

    def __init__(self, run: Run) -> None:
        """Read it from a run."""
        table = run.reader.system_metrics
        self._times = np.asarray(table.column("time_s").to_numpy(zero_copy_only=False), np.float64)
        self._values = np.asarray(table.column("value").to_numpy(zero_copy_only=False), np.float64)
        self._sources = np.asarray([str(value) for value in table.column("source").to_pylist()], np.str_)
        self._metrics = np.asarray([str(value) for value in table.column("metric").to_pylist()], np.str_)
        self.keys = in_order(f"{s}\0{m}" for s, m in zip(self._sources, self._metrics, strict=True))

    def series(self, source: str, metric: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the times and the finite values of one metric."""
        where = (self._sources == source) & (self._metrics == metric) & np.isfinite(self._values)
        return self._times[where], self._values[where]


def build_client(run: Run, buckets: TimeBuckets) -> Metrics:
    """Return the client's own cost: whether the instrument itself was the limit."""
    table = MetricTable(run)
    known = [metric for source, metric in _pairs(table) if source == CLIENT]
    panels = [panel for panel in _CLIENT_PANELS if not _idle(table, panel)]
    charts = [_client_chart(table, panel, buckets) for panel in panels]
    idle = [panel.title.lower() for panel in _CLIENT_PANELS if _idle(table, panel)]
    return Metrics(
        charts=tuple(chart for chart in charts if chart is not None),
        rows=tuple(_row(run, table, CLIENT, metric) for metric in known),
        note=_client_note(known, idle),
    )


def _client_note(known: list[str], idle: list[str]) -> str:
    if not known:
        return "The run holds no metrics of the client."
    return f"Zero throughout, and so not drawn: {', '.join(idle)}." if idle else ""


def _idle(table: MetricTable, panel: _Panel) -> bool:
    """Whether all of a panel's metrics were zero throughout."""
    series = [table.series(CLIENT, metric)[1] for metric, _ in panel.metrics]
    return any(values.size for values in series) and not any(values.any() for values in series)


def build_system(run: Run, buckets: TimeBuckets) -> Metrics:
    """Host and server: one small chart a metric, a line a source."""
    table = MetricTable(run)
    pairs = [(source, metric) for source, metric in _pairs(table) if source != CLIENT and not is_wait(metric)]
    kinds: dict[tuple[str, str], list[str]] = {}
    for source, metric in pairs:
        kinds.setdefault((source.partition(":")[0], metric), []).append(source)
    charts = [_chart(table, metric, sources, buckets) for (_, metric), sources in kinds.items()]
    drawn = [chart for chart in charts if chart is not None][:MOST_CHARTS]
    left = len(kinds) - len(drawn)
    return Metrics(
        charts=tuple(drawn),
        rows=tuple(_row(run, table, source, metric) for source, metric in pairs),
        note=f"{left} more metrics are in the table only." if left > 0 and drawn else "",
    )


def _pairs(table: MetricTable) -> list[tuple[str, str]]:
    return [(source, metric) for source, _, metric in (key.partition("\0") for key in table.keys)]


def _client_chart(table: MetricTable, panel: _Panel, buckets: TimeBuckets) -> TimeChart | None:
    lines = []
    seen = []
    for index, (metric, name) in enumerate(panel.metrics):
        times, values = table.series(CLIENT, metric)
        if not values.size or (name == "dropped" and not values.any()):
            continue
        color, dash = _look(panel, index)
        reduced = buckets.reduce(times, values * (100 if panel.percent else 1), largest=panel.largest)
        lines.append(TimeLine(name=name, color=color, dash=dash, y=_log_safe(reduced, panel.log)))
        seen.append((name, float(values.mean()), float(values.max())))
    if not lines:
        return None
    return TimeChart(
        id=panel.id,
        title=panel.title,
        unit=panel.unit,
        message=_message(seen, panel.unit.partition(",")[0], shares=panel.percent),
        note=_note(buckets, largest=panel.largest),
        x=tuple(buckets.middles.tolist()),
        lines=tuple(lines),
        log=panel.log,
        percent=panel.percent,
        size="small",
    )


def _look(panel: _Panel, index: int) -> tuple[str, Dash]:
    if not panel.ramp:
        return category(index)[0], "dashed" if index else "solid"
    # Of the ramp p50, p95, p99, max: a metric without p95 leaves its place out.
    return (("q0", "solid"), ("q2", "solid"), ("q3", "dotted"))[index]


def _message(seen: Sequence[tuple[str, float, float]], unit: str, *, shares: bool = False) -> str:
    """Return the means of the series, and the most that any of them reached."""
    show: Callable[[float], str] = percent if shares else lambda value: number(value, 3)
    names = [name if len(seen) > 1 else "" for name, _, _ in seen]
    means = ", ".join(f"{name} {show(mean)}".strip() for name, (_, mean, _) in zip(names, seen, strict=True))
    most = show(max(most for _, _, most in seen))
    return f"Mean {means}; at most {most}{'' if shares or not unit else f' {unit}'}."


def _note(buckets: TimeBuckets, *, largest: bool) -> str:
    if not buckets.merged:
        return ""
    return f"{'Largest value' if largest else 'Means'} over {duration(buckets.length_s)}."


def is_wait(metric: str) -> bool:
    """Tell whether a metric is of sessions in a wait event: they have a section of their own."""
    return metric.startswith(WAIT)


def held(
    values: Sequence[float | None], times: NDArray[np.float64], buckets: TimeBuckets
) -> tuple[float | None, ...]:
    """Hold each value until the next sample is due: samples may be further apart than the chart's buckets."""
    period = float(np.median(np.diff(times))) if times.size > 1 else 0.0
    reach = round(1.5 * period / buckets.length_s)
    held: list[float | None] = []
    last, age = None, 0
    for value in values:
        last, age = (last, age + 1) if value is None else (value, 0)
        held.append(last if age <= reach else None)
    return tuple(held)


def _log_safe(values: Sequence[float | None], log: bool) -> tuple[float | None, ...]:  # noqa: FBT001 - a flag of the chart
    """Leave zeros out where the axis is logarithmic: it has no place for them."""
    return tuple(None if log and value is not None and value <= 0 else value for value in values)


def _chart(table: MetricTable, metric: str, sources: Sequence[str], buckets: TimeBuckets) -> TimeChart | None:
    lines = []
    seen = []
    for index, source in enumerate(sources):
        times, values = table.series(source, metric)
        if not values.size:
            continue
        color, dash = category(index)
        reduced = buckets.reduce(times, values, largest=False)
        lines.append(TimeLine(name=source, color=color, dash=dash, y=held(reduced, times, buckets)))
        seen.append((source, float(values.mean()), float(values.max())))
    if not lines:
        return None
    title, unit = _words_and_unit(metric)
    return TimeChart(
        id=f"metric-{'-'.join(sources)}-{metric}",
        title=title,
        unit=", ".join(part for part in (unit, sources[0] if len(sources) == 1 else "") if part),
        message=_message(seen, unit),
        note=_note(buckets, largest=False),
        x=tuple(buckets.middles.tolist()),
        lines=tuple(lines),
        size="small",
    )


# How a metric's name says its unit, and the words of such names that are not written as they are.
_UNITS = {
    "mb": "MB",
    "gb": "GB",
    "kb": "kB",
    "bytes": "bytes",
    "us": "µs",
    "ms": "ms",
    "s": "s",
    "percent": "%",
}
_WORDS = {word.lower(): word for word in ("CPU", "WAL", "I/O", "IOPS", "TPS", "RAM", "LSN", "TCP")}


def _words_and_unit(metric: str) -> tuple[str, str]:
    """``wal_mb_per_s`` is "WAL", in "MB per s"."""
    stem = metric.removesuffix("_per_s")
    rate = "per s" if stem != metric else ""
    head, _, last = stem.rpartition("_")
    unit = _UNITS.get(last, "") if head else ""
    words = [_WORDS.get(word, word) for word in (head if unit else stem).split("_") if word]
    title = " ".join(words) or metric
    return title[0].upper() + title[1:], " ".join(part for part in (unit, rate) if part)


_PERCENTILE = re.compile(r"_p\d+_")


def _row(run: Run, table: MetricTable, source: str, metric: str) -> MetricRow:
    """Over the measured phases, because a mean over warm-up too would be of nothing in particular."""
    times, values = table.series(source, metric)
    inside = np.zeros(times.shape, np.bool_)
    for phase in run.counted:
        inside |= (times > phase.start_s) & (times <= phase.end_s)
    seen = values[inside]
    if not seen.size:
        return MetricRow(source=source, metric=metric)
    # A mean of the intervals' percentiles would be a percentile of nothing.
    mean = None if _PERCENTILE.search(metric) else float(seen.mean())
    return MetricRow(source=source, metric=metric, mean=mean, low=float(seen.min()), high=float(seen.max()))
