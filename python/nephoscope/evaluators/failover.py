"""The evaluator ``failover``: what a failure costs: F and R, errors, and what becomes of acknowledged commits.

METRICS, section 3, "F and R: failure"; CloudyBench, section II-F, equations 3 and 4.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from nephoscope.errors import MeasurementError
from nephoscope.evaluators.acting import act_beside
from nephoscope.evaluators.base import Evaluator, Means, Measurements, Stored
from nephoscope.evaluators.outages import LATE_S, Outage, Probes, Throughput, find_outages, recovered_at
from nephoscope.evaluators.points import measured_phases, series_of
from nephoscope.loads import HIGHEST_RATE, MOST_CONCURRENCY, AccessSetting, Load, MixSetting, UniformAccess
from nephoscope.probes import ProbeSettings
from nephoscope.room import Demand
from nephoscope.scoring import Absent, Score, f_score, over_repetitions, r_score
from nephoscope.study import MeasureSettings
from nephoscope.systems.base import Action, Role
from nephoscope.units import Duration, one_as_list

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

    from nephoscope.probes import Probes as RunningProbes
    from nephoscope.scoring import ScoreName
    from nephoscope.store import Phase, StoredRun
    from nephoscope.workload import DescribedWorkload

FaultName = Literal["restart", "kill", "node-loss", "crash", "promote", "pause"]

FAULTS: Mapping[FaultName, tuple[Action, ...]] = {
    "restart": (Action.RESTART,),
    "kill": (Action.KILL, Action.START),
    "node-loss": (Action.KILL,),
    "crash": (Action.KILL, Action.PROMOTE),
    "promote": (Action.PROMOTE,),
    "pause": (Action.PAUSE, Action.RESUME),
}
"""What is done to a node, one action after the other."""


class FailoverSettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "failover"``."""

    evaluator: Literal["failover"] = "failover"
    fault: FaultName = "restart"
    """What happens: a `restart`; a `kill`, and the node is started again; a `node-loss`: it is killed, and the system
    itself has to bring the service back; a `crash`: it is killed, and a replica is promoted; `promote`, a planned
    switchover; a `pause` of the node."""
    roles: Annotated[tuple[Role, ...], BeforeValidator(one_as_list), Field(min_length=1, strict=False)] = (
        "rw",
    )
    """Whose node fails: that of `rw`, or one of `ro`. A crash and a promotion are of `rw`."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 3
    """How often each is done."""
    mix: MixSetting = "RW"
    """Which transactions run: see [mixes](#mixes)."""
    concurrency: Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] = 16
    """Transactions at a time."""
    rate: Annotated[float, Field(gt=0, le=HIGHEST_RATE)] | None = None
    """Transactions that arrive in a second, in place of a concurrency: who asks a service does not wait for it. The
    throughput is then as steady as the rate, and R is known better."""
    access: AccessSetting = Field(default_factory=UniformAccess)
    """Which keys transactions touch: see [access distributions](#access-distributions)."""
    warmup: Duration = 2.0
    """How long the load runs before it counts, each time."""
    before: Duration = 5.0
    """How long it is measured before the fault: what R has to come back to."""
    after: Duration = 20.0
    """How long it is measured after the fault. What has not come back by then has not come back."""
    pause: Duration = 2.0
    """How long a pause lasts."""
    action_limit: Duration = 600.0
    """How long the provider may take to do what a fault is, besides the pause. What takes longer is given up, and the
    run ends."""
    probe_rate: Annotated[float, Field(gt=0, le=10_000)] = 200.0
    """Probes a second, for each role."""
    late: Duration = LATE_S
    """A probe that is answered later than this after it was due counts as not served."""
    hold: Duration = 2.0
    """How long the throughput has to stay at 95 % of what it was."""
    window: Duration = 0.5
    """Over how long it is taken each time: what it does within that is noise."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.fault in ("crash", "promote") and self.roles != ("rw",):
            raise ValueError(f"a {self.fault} is of the node that takes writes: roles must be ['rw']")
        if self.after <= self.hold or min(self.before, self.warmup, self.action_limit) <= 0:
            raise ValueError("warmup, before and action_limit must be above 0, and after longer than hold")
        return self


def _node_of(means: Means, role: Role) -> str | None:
    """Name a node of a role; None where the provider knows none by name."""
    return next((node for node, of in means.provider.nodes().items() if of == role), None)


def _act(means: Means, event: str, action: Action, node: str | None, labels: Mapping[str, Any]) -> None:
    """Do something to a node, and keep when that was. Raises ``MeasurementError``."""
    done = means.provider.act(action, node=None if action is Action.PROMOTE else node)
    means.load.note(
        event,
        done.began_ns,
        **labels,
        action=str(action),
        node=done.node,
        took_s=(done.ended_ns - done.began_ns) / 1e9,
    )


@dataclass(frozen=True)
class Failure:
    """What one failure came to; times in seconds since the start of the load."""

    role: str
    repetition: int
    injected_s: float
    service_back_s: float | None
    """The same as ``injected_s`` where no interruption was seen."""
    tps_back_s: float | None
    interrupted: bool
    last_success_s: float | None
    failed_probes: int
    late_probes: int
    resolution_s: float
    tps_before: float
    errors: Mapping[str, int]
    """Errors of the load by class, from the fault to the end of the phase; refused connections are among them."""
    acknowledged: int | None = None
    """Commits of the probe that were acknowledged."""
    lost: int | None = None
    """Of these, missing afterwards."""
    indeterminate: int | None = None
    """Not acknowledged, and there."""


class Failover(Evaluator):
    """Lets nodes fail under load, and finds out when the service and its throughput were back."""

    name: ClassVar[str] = "failover"
    summary: ClassVar[str] = "nodes that fail under load: outage (F), recovery (R), errors, lost commits"
    settings_type: ClassVar[type[MeasureSettings]] = FailoverSettings

    def __init__(self, settings: FailoverSettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mix."""
        self._settings = settings
        self._index = index
        self._label, self._mix = workload.mix(settings.mix, f"measure.{index}.mix")

    def seconds(self) -> float:
        """All failures."""
        of = self._settings
        return len(of.roles) * of.repetitions * (of.warmup + of.before + of.after)

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give the load that runs while nodes fail."""
        of = self._settings
        wanted = of.concurrency if of.rate is None else sessions
        yield Demand(f"{of.fault} of {of.roles[0]}", (wanted,), self._mix)

    # --- driving --------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Let one node after another fail."""
        wanted = {*FAULTS[self._settings.fault]}
        if missing := wanted - means.provider.actions():
            names = ", ".join(sorted(missing))
            means.unsupported(self._index, f"the provider {means.provider.name} cannot {names}")
            return
        for repetition in range(1, self._settings.repetitions + 1):
            for role in self._settings.roles:
                if role == "ro" and not means.provider.endpoints("ro"):
                    means.unsupported(self._index, "the system has no read-only node that could fail")
                    return
                self._fail(means, role, repetition)

    def _fail(self, means: Means, role: Role, repetition: int) -> None:
        of, load = self._settings, means.load
        concurrency = float(of.concurrency) if of.rate is None else None
        level = Load(concurrency=concurrency, rate=of.rate, mix=self._mix, access=of.access)
        labels = self.labels(self._index, mix=self._label, role=role, fault=of.fault, repetition=repetition)
        name = f"{of.fault} of {role}"
        load.phase(f"{name} warm-up", "warm_up", of.warmup, level, labels)
        with means.probes(ProbeSettings(rate=of.probe_rate)) as probes:
            load.phase(name, "measure", of.before + of.after, level, labels)
            load.pump_until(load.planned_end - of.after)
            node = _node_of(means, role)
            with load.expecting(name):
                self._inject(means, node, labels)
                load.wait()
                probes.stop()
                # While a node was away, its readers may have taken all the connections that the other one gives.
                means.rest(f"after the {name}", self._mix, labels)
            self._restore(means, node, labels)
            self._note_durability(means, probes, labels)

    def _note_durability(self, means: Means, probes: RunningProbes, labels: Mapping[str, Any]) -> None:
        """Keep what became of the probes' writes. Raises ``MeasurementError`` where the system is not back."""
        of = self._settings
        try:
            found = probes.durability(means.system.rw[0])
        except MeasurementError as error:
            told = f"{of.after:g} s after the {of.fault} the system could not be read"
            raise MeasurementError(f"{told}: {error}") from error
        counts = {"acknowledged": found.acknowledged}
        counts |= {"lost": len(found.lost), "indeterminate": len(found.indeterminate)}
        means.load.note("durability", **labels, **counts)

    def _inject(self, means: Means, node: str | None, labels: Mapping[str, Any]) -> None:
        """Do what the fault is, beside the load. Raises ``MeasurementError`` where the provider fails."""
        of = self._settings
        actions = FAULTS[of.fault]
        limit_s = of.action_limit + (of.pause if Action.RESUME in actions else 0.0)

        def inject(given_up: threading.Event) -> None:
            for place, action in enumerate(actions):
                if action is Action.RESUME:
                    given_up.wait(of.pause)
                _act(means, "fault" if place == 0 else "action", action, node, labels)

        try:
            act_beside(means, inject, f"the fault {of.fault}", limit_s)
        except MeasurementError as error:
            means.load.note("fault_failed", **labels, message=str(error))
            raise

    def _restore(self, means: Means, node: str | None, labels: Mapping[str, Any]) -> None:
        """Start a node that was left lost, where that can be done: the next failure has to meet a whole system."""
        if self._settings.fault == "node-loss" and Action.START in means.provider.actions():
            act_beside(
                means,
                lambda _: _act(means, "action", Action.START, node, labels),
                "the start of the lost node",
                self._settings.action_limit,
            )

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read F and R, and what else each failure came to."""
        failures, warnings = read_failures(stored, self._settings)
        scores: dict[ScoreName, Score | Absent]
        if failures:
            scores = {
                "F": self._score("F", failures, stored.interval_s),
                "R": self._score("R", failures, stored.interval_s),
            }
        else:
            scores = dict.fromkeys(
                ("F", "R"), Absent(reason=stored.why_not() or "no failure was measured whole")
            )
        # A phase with a failure in it is no measure of throughput: it makes no points.
        return Measurements(
            scores=scores, warnings=warnings, details={self.name: self._details(scores, failures)}
        )

    def _details(
        self, scores: Mapping[ScoreName, Score | Absent], failures: Sequence[Failure]
    ) -> dict[str, Any]:
        """Tell what this entry came to, by its place in the study: of several the first gives the scores.

        Told whole where F or R is absent, too: a service that never came back is what a reader wants to see.
        """
        told: dict[str, Any] = {
            str(name): score.value if isinstance(score, Score) else None for name, score in scores.items()
        }
        told |= {"fault": self._settings.fault, "late_s": self._settings.late}
        return {str(self._index): told | {"failures": [asdict(failure) for failure in failures]}}

    def _score(self, name: ScoreName, failures: Sequence[Failure], interval_s: float) -> Score | Absent:
        detail = {
            "fault": self._settings.fault,
            "resolution_s": (
                max(failure.resolution_s for failure in failures) if name == "F" else interval_s
            ),
            "failures": [asdict(failure) for failure in failures],
        }
        values: list[float | Absent] = []
        for failure in failures:
            if name == "F":
                values.append(f_score([failure.injected_s], [failure.service_back_s]))
            else:
                values.append(r_score([failure.service_back_s], [failure.tps_back_s]))
        return over_repetitions(name, values, detail=detail)


def read_failures(stored: Stored, settings: FailoverSettings) -> tuple[list[Failure], list[str]]:
    """Read every failure that an entry of ``[[measure]]`` has caused, and warnings about those cut short."""
    phases, warnings = measured_phases(stored.run, stored.index)
    probes = _Samples(stored.run)
    faults = [event for event in stored.run.events if event.get("event") == "fault"]
    failures = []
    for phase in phases:
        fault = next((e for e in faults if phase.start_s <= e.get("time_s", -1.0) <= phase.end_s), None)
        # Where only a part of the fault was done, what was seen is no measure of it.
        if fault is not None and _event_of(stored.run, phase, "fault_failed") is None:
            failures.append(_failure(stored, settings, probes, phase, float(fault["time_s"])))
    warnings += [
        f"the return of {failure.role} in repetition {failure.repetition} is known only to"
        f" {failure.resolution_s * 1000:.0f} ms: so long lie between the last probe that failed and the first answer"
        for failure in failures
        if failure.resolution_s > max(4 / settings.probe_rate, _UNSURE * _outage_s(failure))
    ]
    return failures, warnings


_UNSURE = 0.25
"""By how much of an outage its end may be unsure before that is a warning; the table of failures tells it always."""


def _outage_s(failure: Failure) -> float:
    return math.inf if failure.service_back_s is None else failure.service_back_s - failure.injected_s


def _failure(
    stored: Stored, settings: FailoverSettings, samples: _Samples, phase: Phase, injected_s: float
) -> Failure:
    role = str(phase.labels.get("role"))
    found = [
        # A single probe that fails by chance, while a command still looks for its node, is not the failure's effect.
        max(outages, key=lambda one: (one.back_s or phase.end_s) - one.first_bad_s)
        for probes in samples.of(role)
        if (outages := find_outages(probes, injected_s, phase.end_s, late_s=settings.late))
    ]
    # Of several endpoints of a role the one that was away for longest; who has not come back was.
    outage: Outage | None = max(found, key=lambda one: one.back_s or math.inf, default=None)
    back = outage.back_s if outage else injected_s
    throughput = _throughput(stored, phase)
    before = throughput.mean(phase.start_s, injected_s)
    tps_back = (
        recovered_at(throughput, before, back, settings.hold, window_s=settings.window)
        if back is not None and before > 0
        else None
    )
    durability = _event_of(stored.run, phase, "durability") or {}
    return Failure(
        role=role,
        repetition=int(phase.labels.get("repetition", 1)),
        injected_s=injected_s,
        service_back_s=back,
        tps_back_s=tps_back,
        interrupted=outage is not None,
        last_success_s=outage.last_success_s if outage else None,
        failed_probes=outage.failed if outage else 0,
        late_probes=outage.late if outage else 0,
        resolution_s=outage.gap_s if outage else 1 / settings.probe_rate,
        tps_before=before,
        errors=_errors(stored.run, injected_s, phase.end_s),
        acknowledged=durability.get("acknowledged"),
        lost=durability.get("lost"),
        indeterminate=durability.get("indeterminate"),
    )


class _Samples:
    """The availability probes of a run, by role and endpoint."""

    def __init__(self, run: StoredRun) -> None:
        self._rows: dict[tuple[str, str], list[tuple[float, float, bool, bool]]] = {}
        for row in run.probes.to_pylist():
            if row["probe"] == "availability":
                due = row["time_s"]
                end = row["end_s"] if row["end_s"] is not None else due
                of_node = self._rows.setdefault((row["role"], row["node"]), [])
                of_node.append((due, end, row["outcome"] == "ok", row["outcome"] != "missing"))

    def of(self, role: str) -> Iterator[Probes]:
        """Give the probes of each endpoint of a role."""
        for (of, _), rows in self._rows.items():
            if of == role:
                yield Probes.of(*zip(*rows, strict=True))


def _throughput(stored: Stored, phase: Phase) -> Throughput:
    """Read a phase's throughput; an interval in which nothing ended has no row in the run, and counts as 0 here."""
    table = stored.run.intervals
    rows = table.column("phase").to_numpy() == phase.number
    columns = {name: table.column(name).to_numpy() for name in ("start_s", "end_s", "committed")}
    length = stored.interval_s
    rates = series_of(columns, rows).rates(phase, length)
    starts = np.asarray(phase.start_s + np.arange(len(rates)) * length, np.float64)
    return Throughput(starts, np.asarray(starts + length, np.float64), rates * length)


def _errors(run: StoredRun, since_s: float, until_s: float) -> dict[str, int]:
    counts: dict[str, int] = {}
    for event in run.events:
        if event.get("event") == "error" and since_s <= event.get("time_s", -1.0) <= until_s:
            counts[str(event["class"])] = counts.get(str(event["class"]), 0) + int(event["count"])
    return dict(sorted(counts.items()))


def _event_of(run: StoredRun, phase: Phase, name: str) -> Mapping[str, Any] | None:
    """Find an event by the labels that it has in common with a phase."""
    wanted = {key: phase.labels.get(key) for key in ("measure", "role", "repetition")}
    for event in run.events:
        if event.get("event") == name and all(event.get(key) == value for key, value in wanted.items()):
            return event
    return None
