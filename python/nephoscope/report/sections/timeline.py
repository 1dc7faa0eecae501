"""The time line: throughput, latency and errors over time, with the phases of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.report.kit.charts import (
    Band,
    Moment,
    TimeAxis,
    TimeChart,
    TimeLine,
    category,
    transaction_look,
)
from nephoscope.report.kit.histograms import NS_PER_MS
from nephoscope.report.kit.run import class_name
from nephoscope.report.kit.scored import sequence, table
from nephoscope.report.sections import course
from nephoscope.report.view import TimelineSection
from nephoscope.tables.numbers import count, elapsed, finite, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.report.kit.buckets import TimeBuckets
    from nephoscope.report.kit.charts import Dash
    from nephoscope.report.kit.run import Run

_PERCENTILES = (("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("max", 100.0))


def build(run: Run, buckets: TimeBuckets) -> TimelineSection:
    """Return the charts that share the run's time axis; charts that would be empty are left out."""
    charts = [
        _throughput(run, buckets),
        *course.charts(run),
        _tenants(run, buckets),
        _latency(run, buckets),
        _errors(run, buckets),
    ]
    drawn = [chart for chart in charts if chart is not None]
    if drawn:
        drawn[-1] = drawn[-1].model_copy(update={"slider": True})
    return TimelineSection(axis=axis(run), charts=tuple(drawn), note=resolution(buckets))


def axis(run: Run) -> TimeAxis:
    """Return the phases as bands, and the faults, scalings and gaps as moments."""
    return TimeAxis(
        start_s=0.0,
        end_s=run.end_s,
        bands=tuple(
            Band(
                start_s=phase.start_s,
                end_s=phase.end_s,
                kind=phase.kind,
                name=phase.text,
                group=phase.mix or phase.name,
                load=phase.load,
                color=run.mix_color(phase.mix) if phase.mix in run.mixes else "muted",
            )
            for phase in run.phases
        ),
        moments=tuple(
            Moment(time_s=event.get("time_s"), text=_moment(event))
            for event in (*run.events_of("fault", "scaling", "gap"), *_anomalies(run))
            if finite(event.get("time_s")) is not None
        ),
    )


def _anomalies(run: Run) -> Iterator[Mapping[str, Any]]:
    """Give the first anomaly of each kind in a history, when it was complete."""
    for history in run.events_of("history"):
        seen: set[object] = set()
        for witness in map(table, sequence(history.get("witnesses"))):
            ends = [finite(table(one).get("end_s")) for one in sequence(witness.get("transactions"))]
            known = [end for end in ends if end is not None]
            if known and witness.get("anomaly") not in seen:
                seen.add(witness.get("anomaly"))
                yield {"time_s": max(known), "name": witness.get("anomaly")}


def resolution(buckets: TimeBuckets) -> str:
    """Describe the stretch of time of one point in a chart over time."""
    if not buckets.merged:
        return f"One point per interval of {buckets.length_text}."
    return (
        f"Each point covers {buckets.length_text}: rates are means over it, percentiles come from its merged "
        "histograms, so they are true percentiles and not averages; the maximum is the largest value in it. "
        f"The raw intervals of {number(buckets.interval_s)} s are in the run directory."
    )


def _moment(event: Mapping[str, Any]) -> str:
    """Name an event: evaluators choose the keys of their events."""
    if event.get("event") == "gap":
        return "nephoscope did not run"
    texts = (event.get(key) for key in ("message", "name", "action", "kind", "event"))
    return next((str(text) for text in texts if text), "event").replace("_", " ")


def _series(
    run: Run,
    buckets: TimeBuckets,
    names: Sequence[str],
    of_row: NDArray[np.str_],
    look: Callable[[int], tuple[str, Dash]],
) -> tuple[TimeLine, ...]:
    """Return committed transactions per second by name."""
    committed = run.intervals.counts("committed")
    lines = []
    for index, name in enumerate(names):
        rates = buckets.rate(run.intervals.middle, np.where(of_row == name, committed, 0))
        color, dash = look(index)
        lines.append(TimeLine(name=name, color=color, dash=dash, y=tuple(rates.tolist())))
    return tuple(lines)


def _throughput(run: Run, buckets: TimeBuckets) -> TimeChart | None:
    if not run.intervals.total("committed"):
        return None
    lines = _series(run, buckets, _by_size(run), run.intervals.transactions, transaction_look)
    return TimeChart(
        id="time-tps",
        title="Throughput by transaction",
        unit="committed per second" + (", stacked" if len(lines) > 1 else ""),
        message=_throughput_message(run, buckets),
        x=tuple(buckets.middles.tolist()),
        lines=lines,
        style="stack",
    )


def _by_size(run: Run) -> list[str]:
    """Return the transactions, the most frequent first: at the bottom of a stack its shape can be read."""
    committed = run.intervals.counts("committed")
    sums = {name: int(committed[run.intervals.transactions == name].sum()) for name in run.transactions}
    return sorted(sums, key=lambda name: -sums[name])


def _throughput_message(run: Run, buckets: TimeBuckets) -> str:
    total = buckets.rate(run.intervals.middle, run.intervals.counts("committed"))
    counted = _within_counted(run, buckets)
    if not total[counted].any():
        return "No transaction was committed in the measured phases."
    low, high = float(total[counted].min()), float(total[counted].max())
    peak = float(buckets.middles[counted][int(np.argmax(total[counted]))])
    phase = run.phase_at(peak)
    where = f" ({phase.text})" if phase else ""
    measured = "measured phases" if not run.nothing_measured else "the recorded phases"
    if number(low) == number(high):
        return f"In {measured}: {number(high)} TPS."
    return f"In {measured}: from {number(low)} to {number(high)} TPS, the most at {elapsed(peak)}{where}."


def _within_counted(run: Run, buckets: TimeBuckets) -> NDArray[np.bool_]:
    inside = np.zeros(buckets.starts.size, np.bool_)
    for phase in run.counted:
        inside |= (buckets.middles >= phase.start_s) & (buckets.middles < phase.end_s)
    return inside


def _tenants(run: Run, buckets: TimeBuckets) -> TimeChart | None:
    if len(run.tenants) < 2:  # noqa: PLR2004 - one tenant's throughput is the run's
        return None
    lines = _series(run, buckets, run.tenants, run.intervals.tenants, category)
    means = []
    seconds = sum(phase.end_s - phase.start_s for phase in run.counted)
    rows = run.intervals.among(phase.number for phase in run.counted)
    for tenant in run.tenants:
        committed = run.intervals.total("committed", rows & (run.intervals.tenants == tenant))
        means.append(f"{tenant} {number(committed / seconds if seconds else None)}")
    return TimeChart(
        id="time-tenants",
        title=f"Throughput by {run.part_of_load}",
        unit="committed per second",
        message=f"Mean TPS over the measured phases: {', '.join(means)}.",
        x=tuple(buckets.middles.tolist()),
        lines=lines,
        size="medium",
    )


def _latency(run: Run, buckets: TimeBuckets) -> TimeChart | None:
    found = run.reader.percentiles(buckets.windows, [percentile for _, percentile in _PERCENTILES])
    columns = [[_in_ms(row[i]) for row in found] for i in range(len(_PERCENTILES))]
    if not any(value is not None for column in columns for value in column):
        return None
    return TimeChart(
        id="time-latency",
        title="Latency",
        unit="ms from the intended start, log scale",
        message=_latency_message(run, buckets, columns[2], columns[3]),
        x=tuple(buckets.middles.tolist()),
        lines=tuple(
            TimeLine(
                name=name, color=f"q{i}", dash="dotted" if name == "max" else "solid", y=tuple(columns[i])
            )
            for i, (name, _) in enumerate(_PERCENTILES)
        ),
        log=True,
    )


def _in_ms(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / NS_PER_MS


def _latency_message(
    run: Run, buckets: TimeBuckets, p99: list[float | None], largest: list[float | None]
) -> str:
    counted = _within_counted(run, buckets)
    tails = [value for value, inside in zip(p99, counted, strict=True) if inside and value is not None]
    worst, when = max((value, i) for i, value in enumerate(largest) if value is not None)
    moment = float(buckets.middles[when])
    phase = run.phase_at(moment)
    slowest = f"The slowest transaction took {number(worst, 3)} ms, at {elapsed(moment)}"
    slowest += (
        f" ({phase.text}{'' if phase.measured else ', ' + phase.kind.replace('_', '-')})." if phase else "."
    )
    if not tails:
        return slowest
    least, most = number(min(tails), 3), number(max(tails), 3)
    p99_text = f"p99 is {most} ms." if least == most else f"p99 lies between {least} and {most} ms."
    return f"{p99_text} {slowest}"


def _errors(run: Run, buckets: TimeBuckets) -> TimeChart | None:
    """Errors per second by class; the classes that never occurred are left out."""
    lines = []
    totals = []
    for index, column in enumerate(run.intervals.error_classes):
        counts = run.intervals.counts(column)
        if not counts.any():
            continue
        rates = buckets.rate(run.intervals.middle, counts)
        color, dash = category(index)
        lines.append(TimeLine(name=class_name(column), color=color, dash=dash, y=tuple(rates.tolist())))
        totals.append((int(counts.sum()), class_name(column)))
    dropped = _dropped(run, buckets)
    if dropped is not None:
        lines.append(dropped)
    if not lines:
        return None
    return TimeChart(
        id="time-errors",
        title="Errors and drops" if dropped else "Errors",
        unit="per second, by class, each attempt counted",
        message=_errors_message(run, totals),
        x=tuple(buckets.middles.tolist()),
        lines=tuple(lines),
        style="bars",
        size="medium",
    )


def _errors_message(run: Run, totals: list[tuple[int, str]]) -> str:
    parts = []
    if totals:
        largest, name = max(totals)
        alone = len(totals) == 1
        most = f", all of class {name}" if alone else f"; most are of class {name} ({count(largest)})"
        parts.append(f"{count(sum(total for total, _ in totals))} errors{most}.")
    dropped = sum(finite(event.get("count")) or 0 for event in run.events_of("dropped"))
    if dropped:
        parts.append(f"{count(dropped)} arrivals were dropped.")
    return " ".join(parts)


def _dropped(run: Run, buckets: TimeBuckets) -> TimeLine | None:
    events = [(finite(event.get("time_s")), finite(event.get("count"))) for event in run.events_of("dropped")]
    known = [(time_s, n) for time_s, n in events if time_s is not None and n]
    if not known:
        return None
    times = np.asarray([time_s for time_s, _ in known])
    rates = buckets.rate(times, np.asarray([n for _, n in known], np.int64))
    return TimeLine(name="dropped arrivals", color="muted", y=tuple(rates.tolist()))
