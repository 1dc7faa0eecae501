"""Points: throughput and latency of one measured phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from nephoscope import _engine
from nephoscope.evaluators.client_metrics import ClientMetrics
from nephoscope.evaluators.connected import Connections, Shortfall
from nephoscope.statistics import (
    block_bootstrap_ci,
    is_at_least,
    mean_ci,
    moving_mean_ci,
    no_less_than_0,
    steady_state,
)
from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.evaluators.stored import Stored
    from nephoscope.store import Phase, StoredRun

_WHOLE = 0.98
"""An interval of less than this share of the usual length was cut by a phase's border."""


class Latency(BaseModel):
    """Latency of committed transactions from the intended start, in milliseconds.

    Transactions that had not ended with their phase are included, with their wait as a lower bound.
    """

    model_config = ConfigDict(frozen=True)

    mean: float
    p50: float
    p95: float
    p99: float
    max: float
    at_least: tuple[str, ...] = ()
    """Which of these are lower bounds, because unfinished transactions could raise them."""


class Point(BaseModel):
    """A measured phase."""

    model_config = ConfigDict(frozen=True)

    measure: int
    mix: str | None = None
    """The mix; of a slot of a pattern the pattern, and which slot."""
    slot: int | None = None
    """Which slot of a pattern it is."""
    concurrency: float | None = None
    rate: float | None = None
    repetition: int = 1
    phase: int
    seconds: float
    tps: float
    ci95: tuple[float, float] | None
    """The interval of this phase's mean, from its intervals of time."""
    goodput: float | None = None
    """TPS of the transactions within the latency bound (SLO), where the study sets one."""
    latency_ms: Latency | None
    failed_latency_ms: Latency | None = None
    """Latency of failed transactions, which are not in ``latency_ms``."""
    committed: int
    aborted: int
    failed: int
    retried: int
    dropped: int
    arrivals: int = 0
    """Arrivals of an open load."""
    unstarted: int = 0
    """Of these, the ones that had not started when the phase ended; dropped ones are among them."""
    steady: bool | None
    """False if the TPS drifts; None if not known, and for a slot: a system that scales need not be steady."""
    drift_per_minute: float | None
    """The trend's slope as a share of the mean."""
    drift_ci95: tuple[float, float] | None = None
    """The interval of that slope; None where there are too few intervals."""
    known_after_s: float | None = None
    """If it is not known whether it is steady: about how long the phase would have to be, in s."""
    cpu_busy: float | None
    """Mean share of a core that the busiest load thread used."""
    cpu_wait: float | None = None
    """Mean share of time in which a load thread was ready to run and had no processor."""
    cpu_us: float | None
    """Client CPU per committed transaction, in microseconds."""
    lag_p99_us: float | None
    """The largest of the intervals' p99 of the schedule lag but for the worst one in a hundred."""


def measured_phases(run: StoredRun, index: int) -> tuple[list[Phase], list[str]]:
    """List the phases that an entry of ``[[measure]]`` has measured, and warnings about those that do not count.

    These were cut short, or their load was steered by ``nephoscope ctl``: it is not the one that the study asks for.
    """
    whole, warnings = [], []
    steered = [float(event["time_s"]) for event in run.events if event["event"] == "steered"]
    for phase in run.phases:
        if phase.kind != "measure" or phase.labels.get("measure") != index:
            continue
        planned = float(phase.labels.get("planned_s", 0.0))
        lasted = phase.end_s - phase.start_s
        if lasted < _WHOLE * planned:
            warnings.append(
                f"{phase.name} was cut short after {lasted:.1f} of {planned:.1f} s and does not count"
            )
        elif at := next((at for at in steered if phase.start_s <= at < phase.end_s), None):
            warnings.append(
                f"{phase.name} does not count: its load was steered by nephoscope ctl at {at:.1f} s"
            )
        else:
            whole.append(phase)
    return whole, warnings


@dataclass(frozen=True)
class MeasuredPoints:
    """The points of an entry of ``[[measure]]``, and its phases that are none."""

    points: list[Point]
    warnings: list[str]
    """About phases that were cut short."""
    shortfalls: list[Shortfall]
    """Phases in which sessions had no connection."""


def read_points(stored: Stored, slo_s: float | None) -> MeasuredPoints:
    """Read every complete measured phase of an entry of ``[[measure]]`` that had its sessions."""
    table = _Columns(stored.run)
    connections = Connections(stored.run, table.metrics)
    points, shortfalls = [], []
    phases, warnings = measured_phases(stored.run, stored.index)
    for phase in phases:
        if (shortfall := connections.shortfall(phase)) is not None:
            shortfalls.append(shortfall)
        elif (point := _read_point(stored, table, phase, slo_s)) is not None:
            points.append(point)
    return MeasuredPoints(points, warnings, shortfalls)


@dataclass(frozen=True)
class Series:
    """Intervals in their order; one in which nothing ended has no row in a run's table, and is not among them."""

    start_s: NDArray[np.float64]
    length_s: NDArray[np.float64]
    committed: NDArray[np.float64]

    def rates(self, phase: Phase, interval_s: float) -> NDArray[np.float64]:
        """Return the TPS of each whole interval of a phase, 0 where nothing ended in it."""
        rates = np.zeros(int((phase.end_s - phase.start_s) / interval_s + 1e-6))
        for start, length, count in zip(self.start_s, self.length_s, self.committed, strict=True):
            place = round((start - phase.start_s) / interval_s)
            if length >= _WHOLE * interval_s and 0 <= place < len(rates):
                # To the nanosecond: a rate that is kept exactly must not have a trend of rounding.
                rates[place] = count / round(float(length), 9)
        return rates


def series_of(columns: Mapping[str, NDArray[Any]], rows: NDArray[np.bool_]) -> Series:
    """Sum the rows of each interval over tenants, roles and transactions."""
    starts, place = np.unique(columns["start_s"][rows], return_inverse=True)
    lengths = np.zeros(len(starts))
    np.maximum.at(lengths, place, columns["end_s"][rows] - columns["start_s"][rows])
    committed = np.bincount(place, columns["committed"][rows], len(starts))
    return Series(starts, lengths, np.asarray(committed, np.float64))


class _Columns:
    """The columns of a run's tables as arrays, read once."""

    def __init__(self, run: StoredRun) -> None:
        intervals = run.intervals
        self.intervals: dict[str, NDArray[Any]] = {
            name: intervals.column(name).to_numpy()
            for name in (
                "phase",
                "start_s",
                "end_s",
                "committed",
                "aborted",
                "failed",
                "retried",
                "unstarted",
            )
        }
        self.metrics = ClientMetrics(run)

    def series(self, phase: int) -> Series:
        """Return a phase's intervals."""
        return series_of(self.intervals, self.intervals["phase"] == phase)

    def total(self, phase: int, column: str) -> int:
        """Add up a count over a phase."""
        return int(self.intervals[column][self.intervals["phase"] == phase].sum())

    def client(self, metric: str, phase: Phase) -> NDArray[np.float64]:
        """Return the client's metric over a phase."""
        return self.metrics.during(metric, phase.start_s, phase.end_s)[1]


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if values.size else None


def _read_point(stored: Stored, table: _Columns, phase: Phase, slo_s: float | None) -> Point | None:
    series = table.series(phase.number)
    # The phase's own limits: an interval without a row still counts as time.
    seconds = phase.end_s - phase.start_s
    if seconds <= 0:
        return None
    whole = series.rates(phase, stored.interval_s)
    phases = frozenset({phase.number})
    histogram = stored.run.merged(Selection(phases=phases))
    labels = phase.labels
    slot = labels.get("slot")
    # In a slot of a pattern the level moves as the system scales.
    interval_of = block_bootstrap_ci if slot is None else moving_mean_ci
    steady = steady_state(whole, stored.interval_s) if whole.size and slot is None else None
    total = float(series.committed.sum())
    cpu = table.client("cpu_busy", phase)
    cpu_us = table.client("cpu_us_per_transaction", phase)
    lags = table.client("lag_p99_us", phase)
    good = histogram.count_up_to(round(slo_s * 1e9)) / seconds if slo_s is not None else None
    return Point(
        measure=stored.index,
        mix=labels.get("mix") if slot is None else f"{labels.get('pattern')} slot {slot}",
        slot=slot,
        concurrency=labels.get("concurrency"),
        rate=labels.get("rate"),
        repetition=int(labels.get("repetition", 1)),
        phase=phase.number,
        seconds=seconds,
        tps=total / seconds,
        ci95=interval_of(whole).ci95 if whole.size else None,
        goodput=good,
        latency_ms=latency_of(stored, phases),
        failed_latency_ms=_latency(stored.run.merged(Selection(phases=phases, kind="failed"))),
        committed=int(total),
        aborted=table.total(phase.number, "aborted"),
        failed=table.total(phase.number, "failed"),
        retried=table.total(phase.number, "retried"),
        dropped=int(table.client("dropped", phase).sum()),
        arrivals=int(table.client("arrivals", phase).sum()),
        unstarted=table.total(phase.number, "unstarted"),
        steady={"steady": True, "drifting": False}.get(steady.verdict) if steady else None,
        drift_per_minute=steady.slope_per_minute if steady else None,
        drift_ci95=steady.slope_ci95 if steady else None,
        known_after_s=steady.needed_intervals * stored.interval_s
        if steady and steady.needed_intervals
        else None,
        cpu_busy=_mean(cpu),
        cpu_wait=_mean(table.client("cpu_wait", phase)),
        cpu_us=_mean(cpu_us),
        lag_p99_us=float(np.quantile(lags, 0.99)) if lags.size else None,
    )


def latency_of(stored: Stored, phases: frozenset[int], tenant: str | None = None) -> Latency | None:
    """Read the latency of phases together, unfinished transactions included; None if they have none.

    It is that of a tenant or a stream, or of all.
    """
    ended = stored.run.merged(Selection(phases=phases, tenant=tenant))
    return _latency(ended, stored.run.merged(Selection(phases=phases, tenant=tenant, kind="censored")))


_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


def _latency(ended: _engine.Histogram, censored: _engine.Histogram | None = None) -> Latency | None:
    """Merge histograms, never percentiles."""
    both = _engine.Histogram()
    for histogram in (ended, censored):
        if histogram is not None:
            both.add(histogram)
    if not both.count:
        return None
    late = both.count - ended.count
    found = {name: both.quantile(share) for name, share in _SHARES.items()}
    ended_at = _time_of_rank(ended)
    bounds = [
        name
        for name, share in _SHARES.items()
        if is_at_least(share, ended.count, late, found[name], ended_at)
    ]
    values = {name: value / 1e6 for name, value in found.items()}
    return Latency(mean=both.mean / 1e6, **values, at_least=("mean", *bounds) if late else ())


def percentile_of(ended: _engine.Histogram, late: _engine.Histogram, share: float) -> tuple[int | None, bool]:
    """Return a percentile in ns, and whether it is only a lower bound; None if nothing was recorded.

    ``late`` are the waits of transactions that had not ended with their phase; ``share`` is from 0 to 1.
    """
    both = _engine.Histogram()
    both.add(ended)
    both.add(late)
    if not both.count:
        return None, False
    found = both.quantile(share)
    return found, is_at_least(share, ended.count, late.count, found, _time_of_rank(ended))


def _time_of_rank(ended: _engine.Histogram) -> Callable[[int], float]:
    # In the middle of a rank, so that rounding cannot reach the next.
    return lambda rank: ended.quantile((rank - 0.5) / ended.count)


def summed_up(stored: Stored, points: Sequence[Point]) -> dict[str, Any]:
    """Sum up the repetitions of a point: their mean TPS with its interval, their latency together, what failed.

    The interval of a single one is that of its own intervals.
    """
    estimate = mean_ci([point.tps for point in points])
    latency = latency_of(stored, frozenset(point.phase for point in points))
    return {
        "tps": estimate.mean,
        "ci95": points[0].ci95 if len(points) == 1 else no_less_than_0(estimate.ci95),
        "latency_ms": latency.model_dump() if latency else None,
        "failed": sum(point.failed for point in points),
        "unstarted": sum(point.unstarted for point in points),
        "repetitions": len(points),
        "phases": [point.phase for point in points],
    }


def by_mix(points: list[Point]) -> Mapping[str, list[Point]]:
    """Group points by their mix, in the order in which the mixes first appear."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(point.mix or "", []).append(point)
    return groups
