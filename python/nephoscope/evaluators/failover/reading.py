"""Failures of nodes in a stored run: outage, recovery, errors, lost commits (METRICS, section 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nephoscope.evaluators.client_metrics import ClientMetrics
from nephoscope.evaluators.outages import (
    CALM_S,
    Outage,
    Throughput,
    find_outages,
    least_tps,
    most_latency_ms,
    outage_of,
    recovered_at,
    served_as_before,
)
from nephoscope.evaluators.points import measured_phases, series_of
from nephoscope.evaluators.probed import AvailabilityProbes, errors_between
from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.evaluators.failover.settings import FailoverSettings
    from nephoscope.evaluators.stored import Stored
    from nephoscope.store import Phase, StoredRun


@dataclass(frozen=True)
class Interruption:
    """An interruption that came later than a fault's own outage; times in seconds since the start of the load."""

    node: str
    """The endpoint's name among the probes."""
    began_s: float
    back_s: float | None
    failed_probes: int
    late_probes: int


@dataclass(frozen=True)
class Recovery:
    """When a load was served again as before a fault."""

    load: Literal["closed", "open"]
    tps_before: float
    resolution_s: float
    """The resolution, in s, which is the length of a window: a shorter recovery has no exact time."""
    back_s: float | None
    """In seconds since the start of the load; None where it was not seen."""
    least_tps: float | None = None
    """The TPS at which a closed load counts as recovered."""
    most_p95_ms: float | None = None
    """The p95 latency that an open load had to come back to after its backlog."""


@dataclass(frozen=True)
class Failure:
    """The figures of one failure; times in seconds since the start of the load."""

    role: str
    repetition: int
    injected_s: float
    acted_s: float
    """When the fault's action was over."""
    began_s: float | None
    """The due time of the outage's first bad probe; None if there was no outage."""
    service_back_s: float | None
    """The same as ``injected_s`` where no interruption was seen."""
    tps_back_s: float | None
    interrupted: bool
    last_success_s: float | None
    failed_probes: int
    late_probes: int
    resolution_s: float
    tps_before: float
    load: Literal["closed", "open"]
    least_tps: float | None
    most_p95_ms: float | None
    recovery_resolution_s: float
    later: tuple[Interruption, ...]
    """Later interruptions, after the service had served for ``CALM_S``; no part of the outage."""
    errors: Mapping[str, int]
    """Errors of the load by class, from the fault to the end of the phase; refused connections are among them."""
    acknowledged: int | None = None
    """Commits of the probe that were acknowledged."""
    lost: int | None = None
    """Of these, missing afterwards."""
    indeterminate: int | None = None
    """Not acknowledged, and there."""

    @property
    def outage_s(self) -> float:
        """From the fault to the service back; infinite where it did not come back."""
        return math.inf if self.service_back_s is None else self.service_back_s - self.injected_s


def read_failures(stored: Stored, settings: FailoverSettings) -> tuple[list[Failure], list[str]]:
    """Read every failure that an entry of ``[[measure]]`` has caused, and warnings about those cut short."""
    phases, warnings = measured_phases(stored.run, stored.index)
    probes = AvailabilityProbes(stored.run)
    faults = [event for event in stored.run.events if event.get("event") == "fault"]
    failures = []
    for phase in phases:
        fault = next((e for e in faults if phase.start_s <= e.get("time_s", -1.0) <= phase.end_s), None)
        # A fault that was done in part is no measure of the whole.
        if fault is not None and next(_events_of(stored.run, phase, "fault_failed"), None) is None:
            failures.append(_failure(stored, settings, probes, phase, float(fault["time_s"])))
    return failures, [*warnings, *_unsure(failures, settings)]


_UNSURE = 0.25
"""The share of an outage by which its end may be uncertain without a warning; the table of failures always has it."""


def _unsure(failures: Sequence[Failure], settings: FailoverSettings) -> Iterator[str]:
    """Warn of outages whose end is uncertain, or that may have another cause."""
    for failure in failures:
        which = f"{failure.role} in repetition {failure.repetition}"
        if failure.resolution_s > max(4 / settings.probe_rate, _UNSURE * failure.outage_s):
            yield (
                f"the return of {which} is known only to {failure.resolution_s * 1000:.0f} ms: so long lie between the"
                " last probe that failed and the first answer"
            )
        if failure.began_s is not None and failure.began_s > failure.acted_s + CALM_S:
            yield (
                f"the outage of {which} began {failure.began_s - failure.acted_s:.1f} s after the {settings.fault} was"
                " done: it may have another cause"
            )


def _failure(
    stored: Stored, settings: FailoverSettings, samples: AvailabilityProbes, phase: Phase, injected_s: float
) -> Failure:
    role = str(phase.labels.get("role"))
    found = {
        node: find_outages(probes, injected_s, phase.end_s, late_s=settings.late)
        for node, probes in samples.of(role)
    }
    acted_s = _acted_s(stored.run, phase, injected_s)
    outage, others = outage_of(list(found.values()), acted_s)
    nodes = list(found)
    back = outage.back_s if outage else injected_s
    recovery = _recovery(stored, settings, phase, injected_s, back)
    durability = next(_events_of(stored.run, phase, "durability"), {})
    return Failure(
        role=role,
        repetition=int(phase.labels.get("repetition", 1)),
        injected_s=injected_s,
        acted_s=acted_s,
        began_s=outage.first_bad_s if outage else None,
        service_back_s=back,
        tps_back_s=recovery.back_s,
        interrupted=outage is not None,
        last_success_s=outage.last_success_s if outage else None,
        failed_probes=outage.failed if outage else 0,
        late_probes=outage.late if outage else 0,
        resolution_s=outage.gap_s if outage else 1 / settings.probe_rate,
        tps_before=recovery.tps_before,
        load=recovery.load,
        least_tps=recovery.least_tps,
        most_p95_ms=recovery.most_p95_ms,
        recovery_resolution_s=recovery.resolution_s,
        later=tuple(_interruption(nodes[place], other) for place, other in others),
        errors=errors_between(stored.run, injected_s, phase.end_s),
        acknowledged=durability.get("acknowledged"),
        lost=durability.get("lost"),
        indeterminate=durability.get("indeterminate"),
    )


def _interruption(node: str, outage: Outage) -> Interruption:
    return Interruption(node, outage.first_bad_s, outage.back_s, outage.failed, outage.late)


def _acted_s(run: StoredRun, phase: Phase, injected_s: float) -> float:
    """Return the end of the fault's last action; a node's start after the phase is none."""
    ends = [
        float(event["time_s"]) + float(event.get("took_s", 0.0))
        for name in ("fault", "action")
        for event in _events_of(run, phase, name)
        if event.get("time_s", math.inf) <= phase.end_s
    ]
    return max([injected_s, *ends])


# --- recovery ---------------------------------------------------------------------------------------------------


def _recovery(
    stored: Stored, settings: FailoverSettings, phase: Phase, fault_s: float, back_s: float | None
) -> Recovery:
    """Find when the load was served as before: a closed one by its TPS, an open one by its backlog and latency."""
    throughput = _throughput(stored, phase)
    starts, window_s = throughput.start_s, settings.window
    before = throughput.mean(phase.start_s, fault_s)
    least = most_ms = None
    if settings.is_open:
        length = max(1, round(window_s / stored.interval_s))
        is_before = starts + length * stored.interval_s <= fault_s + 1e-9
        p95_ms = _p95_ms(stored, phase, starts, length)
        most_ms = most_latency_ms(p95_ms, is_before)
        served = served_as_before(p95_ms, _backlog(stored, phase, len(starts)), most_ms, before, length)
    else:
        least = least_tps(throughput, phase.start_s, fault_s, window_s)
        served = throughput.means(window_s) >= least
    back = None
    if back_s is not None and before > 0:
        back = recovered_at(starts, served, back_s, settings.hold, float(throughput.end_s[-1]))
    return Recovery(
        load="open" if settings.is_open else "closed",
        tps_before=before,
        resolution_s=max(window_s, stored.interval_s),
        back_s=back,
        least_tps=least,
        most_p95_ms=most_ms,
    )


def _throughput(stored: Stored, phase: Phase) -> Throughput:
    """Read a phase's throughput; an interval in which nothing ended has no row in the run, and counts as 0 here."""
    table = stored.run.intervals
    rows = table.column("phase").to_numpy() == phase.number
    columns = {name: table.column(name).to_numpy() for name in ("start_s", "end_s", "committed")}
    length = stored.interval_s
    rates = series_of(columns, rows).rates(phase, length)
    starts = np.asarray(phase.start_s + np.arange(len(rates)) * length, np.float64)
    return Throughput(starts, np.asarray(starts + length, np.float64), rates * length)


def _p95_ms(stored: Stored, phase: Phase, start_s: NDArray[np.float64], length: int) -> list[float | None]:
    """Read the p95 latency of a window of so many intervals from each interval on."""
    found: list[float | None] = [None] * len(start_s)
    selection = Selection(phases=frozenset({phase.number}))
    for first in range(length):
        starts = start_s[first::length].tolist()
        windows = [(start, start + length * stored.interval_s) for start in starts]
        for place, (p95,) in enumerate(stored.run.percentiles(windows, [95], selection)):
            found[first + place * length] = None if p95 is None else p95 / 1e6
    return found


def _backlog(stored: Stored, phase: Phase, count: int) -> NDArray[np.float64]:
    """Read how many arrivals waited at the end of each interval of a phase; 0 where the run does not say."""
    backlog = np.zeros(count)
    times, values = ClientMetrics(stored.run).during("backlog", phase.start_s, phase.end_s)
    places = np.rint((times - phase.start_s) / stored.interval_s).astype(int) - 1
    inside = (places >= 0) & (places < count)
    backlog[places[inside]] = values[inside]
    return backlog


# --- the stored events --------------------------------------------------------------------------------------------


def _events_of(run: StoredRun, phase: Phase, name: str) -> Iterator[Mapping[str, Any]]:
    """Find events by the labels that they have in common with a phase."""
    wanted = {key: phase.labels.get(key) for key in ("measure", "role", "repetition")}
    for event in run.events:
        if event.get("event") == name and all(event.get(key) == value for key, value in wanted.items()):
            yield event
