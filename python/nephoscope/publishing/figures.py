"""What a run has come to so far, as families of metrics that every monitoring system knows."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from nephoscope import _engine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Labels = tuple[tuple[str, str], ...]
"""Names with values, sorted by name."""

BOUNDS_S = tuple(step * 10.0**power for power in range(-5, 2) for step in (1.0, 2.0, 5.0))
"""The upper bounds of the latency's buckets, in s: 10 µs to 50 s. Those of a scrape are coarser than the run's own."""
_OUTCOMES = ("committed", "aborted", "failed", "unstarted")
_QUANTILES = {"0.5": "p50_us", "0.99": "p99_us"}


@dataclass(frozen=True)
class Distribution:
    """A histogram's figures: the count of values up to each of `BOUNDS_S`, and of all; times in s."""

    up_to: tuple[int, ...]
    count: int
    sum: float
    min: float
    max: float


@dataclass(frozen=True)
class Family:
    """A metric with its values by labels. Its name is OpenTelemetry's form: words with dots, without a unit."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    """As UCUM has it, which OpenTelemetry uses: ``s``, ``1`` for a share, ``{transaction}`` for a count."""
    help: str
    values: Mapping[Labels, float | Distribution]


@dataclass
class _Sums:
    """What only grows, and what is so now, each by metric and labels."""

    counters: dict[tuple[str, Labels], float] = field(default_factory=dict)
    gauges: dict[tuple[str, Labels], float] = field(default_factory=dict)
    latency: dict[Labels, _engine.Histogram] = field(default_factory=dict)


_HELP = {
    "transactions": ("counter", "{transaction}", "Transactions that have ended, or were never started, by outcome."),
    "errors": ("counter", "{error}", "Errors of attempts, by class and by the system's own code."),
    "arrivals": ("counter", "{transaction}", "Arrivals of an open load."),
    "dropped": ("counter", "{transaction}", "Arrivals beyond the longest backlog."),
    "connections.lost": ("counter", "{connection}", "Connections that were lost."),
    "connections.refused": ("counter", "{connection}", "Connections that could not be made."),
    "gaps": ("counter", "{gap}", "Stretches of time in which the client itself did not run."),
    "gaps.time": ("counter", "s", "How long the client itself did not run."),
    "client.cpu.time": ("counter", "s", "Processor time of the client."),
    "sessions": ("gauge", "{session}", "Sessions that the load has."),
    "sessions.connected": ("gauge", "{session}", "Sessions that have a connection."),
    "backlog": ("gauge", "{transaction}", "Arrivals that wait for a session."),
    "client.cpu.busy": ("gauge", "1", "Share of one core that the client's busiest load thread used."),
    "schedule.lag": ("gauge", "s", "How late transactions were started, by quantile, in the last interval."),
    "phase.info": ("gauge", "", "The phase that is going on: always 1."),
    "run.info": ("gauge", "", "The run: always 1."),
}  # fmt: skip
_LATENCY_HELP = "Latency of committed transactions; in an open load from the intended start."


class LiveFigures:
    """Adds up what a run tells while it goes on. One thread tells; any other may ask."""

    def __init__(self, study: str, version: str) -> None:
        """Begin with nothing but the names of the study and of this version."""
        self._about = {"study": study, "version": version}
        self._sums = _Sums()
        self._lock = threading.Lock()

    def begin(self, folder: Path, seconds: float) -> None:
        """Begin a run: of several in one command, each counts from 0."""
        del seconds
        with self._lock:
            self._sums = _Sums()
            self._set("run.info", 1.0, run=folder.name, **self._about)

    def phase(self, record: Mapping[str, Any]) -> None:
        """Take the phase that begins; the one before it is no longer shown."""
        with self._lock:
            gauges = self._sums.gauges
            self._sums.gauges = {key: value for key, value in gauges.items() if key[0] != "phase.info"}
            number, name, kind = (str(record[key]) for key in ("phase", "name", "kind"))
            self._set("phase.info", 1.0, phase=number, name=name, kind=kind)

    def error(self, record: Mapping[str, Any]) -> None:
        """Take errors of one kind."""
        labels = {key: str(record[key] or "") for key in ("tenant", "role", "transaction", "class", "code")}
        with self._lock:
            self._add("errors", record["count"], **labels)

    def gap(self, record: Mapping[str, Any]) -> None:
        """Take a gap: the tool itself did not run for a while."""
        with self._lock:
            self._add("gaps", 1.0)
            self._add("gaps.time", record["stopped_s"] + record["suspended_s"])

    def expect(self, what: str | None) -> None:
        """Nothing: errors are counted, whatever their cause."""

    def interval(self, record: Mapping[str, Any]) -> None:
        """Take an interval, its series and tenants."""
        with self._lock:
            for series in record["series"]:
                self._take_series(series)
            for tenant in record["tenants"]:
                self._take_tenant(tenant)
            self._add("client.cpu.time", record["cpu_s"])
            self._set("client.cpu.busy", record["cpu_busy"])
            for quantile, name in _QUANTILES.items() if record["lag"] else ():
                self._set("schedule.lag", record["lag"][name] / 1e6, quantile=quantile)

    def _take_series(self, series: Mapping[str, Any]) -> None:
        of = {key: str(series[key]) for key in ("tenant", "role", "transaction")}
        for outcome in _OUTCOMES:
            self._add("transactions", series[outcome], **of, outcome=outcome)
        if encoded := series.get("latency"):
            latency = self._sums.latency.setdefault(_labels(of), _engine.Histogram())
            latency.add(_engine.Histogram.decode(encoded))

    def _take_tenant(self, record: Mapping[str, Any]) -> None:
        tenant = str(record["tenant"])
        for name, key in (("connections.lost", "lost"), ("connections.refused", "refused")):
            self._add(name, record[key], tenant=tenant)
        for name in ("arrivals", "dropped"):
            self._add(name, record[name], tenant=tenant)
        for name in ("sessions", "backlog"):
            self._set(name, record[name], tenant=tenant)
        self._set("sessions.connected", record["connected"], tenant=tenant)

    def _add(self, metric: str, value: float, **labels: str) -> None:
        key = (metric, _labels(labels))
        self._sums.counters[key] = self._sums.counters.get(key, 0.0) + value

    def _set(self, metric: str, value: float, **labels: str) -> None:
        self._sums.gauges[metric, _labels(labels)] = float(value)

    def families(self) -> Sequence[Family]:
        """Return all metrics that have a value now; those of a run that has not begun are absent."""
        with self._lock:
            found: dict[str, dict[Labels, float | Distribution]] = {}
            for (name, labels), value in (*self._sums.counters.items(), *self._sums.gauges.items()):
                found.setdefault(name, {})[labels] = value
            latency = {labels: _distribution(of) for labels, of in self._sums.latency.items()}
        families = [
            Family(f"nephoscope.{name}", kind, unit, text, found[name])  # type: ignore[arg-type]
            for name, (kind, unit, text) in _HELP.items()
            if name in found
        ]
        if latency:
            families.append(
                Family("nephoscope.transaction.latency", "histogram", "s", _LATENCY_HELP, latency)
            )
        return families


def _labels(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))


def _distribution(of: _engine.Histogram) -> Distribution:
    up_to = tuple(of.count_up_to(round(bound * 1e9)) for bound in BOUNDS_S)
    return Distribution(up_to, of.count, of.mean * of.count / 1e9, of.quantile(0.0) / 1e9, of.max / 1e9)
