"""The evaluator ``failover``: the cost of a failure: F and R, errors, lost commits.

METRICS, section 3, "F and R: failure"; CloudyBench, section II-F, equations 3 and 4.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope.engine.probes import ProbeSettings
from nephoscope.errors import MeasurementError
from nephoscope.evaluators.acting import act_beside, act_on, inject, node_of, note_durability
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.failover.reading import read_failures
from nephoscope.evaluators.failover.settings import FailoverSettings
from nephoscope.scoring.failures import over_roles, recovery
from nephoscope.scoring.formulas import Absent, Score, f_score, r_score
from nephoscope.settings.actions import FAULTS, Action
from nephoscope.settings.loads import (
    HIGHEST_RATE,
    Load,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nephoscope.evaluators.failover.reading import Failure
    from nephoscope.evaluators.stored import Stored
    from nephoscope.scoring.definitions import ScoreName
    from nephoscope.settings.base import Role
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload


_MISSING = {
    "closed": "the TPS did not come back",
    "open": "the backlog did not drain, or the latency did not come back,",
}
"""The reason of a missing R, by kind of load."""


class Failover(Evaluator):
    """Makes nodes fail under load, and measures when service and throughput were back."""

    name: ClassVar[str] = "failover"
    summary: ClassVar[str] = "nodes that fail under load: outage (F), recovery (R), errors, lost commits"
    settings_type: ClassVar[type[MeasureSettings]] = FailoverSettings

    def __init__(self, settings: FailoverSettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mix."""
        self._settings = settings
        self._index = index
        self._label, self._mix = workload.mix(settings.mix, f"measure.{index}.mix")
        self._access = settings.access or workload.access(self._label)

    def seconds(self) -> float:
        """All failures."""
        of = self._settings
        failures = len(of.roles) * of.repetitions * (of.warmup + of.before + of.after)
        return failures if of.utilization is None else failures + of.warmup + of.before

    def demands(self, sessions: int) -> Iterator[Demand]:
        """List the sessions of the load under failures, and of the one that measures the capacity."""
        of = self._settings
        wanted = sessions if of.is_open else of.concurrency
        if of.utilization is not None:
            wanted = max(wanted, of.concurrency)
        yield Demand(f"{of.fault} of {of.roles[0]}", (wanted,), self._mix)

    # --- driving --------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Let one node after another fail."""
        if not means.can(self._index, FAULTS[self._settings.fault]):
            return
        level = self._level(means)
        for repetition in range(1, self._settings.repetitions + 1):
            for role in self._settings.roles:
                if role == "ro" and not means.provider.endpoints("ro"):
                    means.unsupported(self._index, "the system has no read-only node that could fail")
                    return
                self._fail(means, level, role, repetition)

    def _level(self, means: Means) -> Load:
        """Describe the load; where it is a share of the capacity, measure that. Raises ``MeasurementError``."""
        of, load = self._settings, means.load
        closed = Load(concurrency=float(of.concurrency), mix=self._mix, access=self._access)
        if not of.is_open:
            return closed
        rate = of.rate
        if of.utilization is not None:
            # Labelled as a step of a search: it is no measurement of the throughput.
            labels = self.labels(self._index, mix=self._label, concurrency=of.concurrency, search=True)
            load.phase("capacity warm-up", "warm_up", of.warmup, closed, labels)
            number = load.phase("capacity", "measure", of.before, closed, labels)
            load.wait()
            capacity = load.phases[number].tps if number in load.phases else 0.0
            if capacity <= 0:
                raise MeasurementError(
                    "no transaction was committed, so there is no capacity to take a share of"
                )
            rate = min(of.utilization * capacity, HIGHEST_RATE)
            load.note("capacity", **labels, tps=capacity, rate=rate)
        return Load(rate=rate, mix=self._mix, access=self._access)

    def _fail(self, means: Means, level: Load, role: Role, repetition: int) -> None:
        of, load = self._settings, means.load
        facts = {"mix": self._label, "role": role, "fault": of.fault, "repetition": repetition}
        if of.utilization is not None:
            facts["rate"] = level.rate
        labels = self.labels(self._index, **facts)
        name = f"{of.fault} of {role}"
        load.phase(f"{name} warm-up", "warm_up", of.warmup, level, labels)
        with means.probes(ProbeSettings(rate=of.probe_rate)) as probes:
            load.phase(name, "measure", of.before + of.after, level, labels)
            load.pump_until(load.planned_end - of.after)
            node = node_of(means, role)
            with load.expecting(name):
                self._inject(means, node, labels)
                load.wait()
                probes.stop()
                # While a node was away, its readers may have used up the connections of the other.
                means.rest(f"after the {name}", self._mix, labels)
            self._restore(means, node, labels)
            note_durability(means, probes, labels, f"{of.after:g} s after the {of.fault}")

    def _inject(self, means: Means, node: str | None, labels: Mapping[str, Any]) -> None:
        """Cause the fault beside the load. Raises ``MeasurementError`` if the provider fails."""
        of = self._settings
        inject(means, of.fault, node, labels, pause_s=of.pause, limit_s=of.action_limit)

    def _restore(self, means: Means, node: str | None, labels: Mapping[str, Any]) -> None:
        """Start a node that is still down, if possible: the next failure needs a complete system."""
        if self._settings.fault == "node-loss" and Action.START in means.provider.actions():
            act_beside(
                means,
                lambda _: act_on(means, "action", Action.START, node, labels),
                "the start of the lost node",
                self._settings.action_limit,
            )

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read F and R, and all other figures of each failure."""
        failures, warnings = read_failures(stored, self._settings)
        scores: dict[ScoreName, Score | Absent]
        if failures:
            scores = {
                "F": self._f_score(failures),
                "R": self._r_score(failures),
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
        """Return this entry's details, by its index in the study: of several entries the first gives the scores.

        Complete even if F or R is absent: a service that never came back has to be seen.
        """
        told: dict[str, Any] = {
            str(name): score.value if isinstance(score, Score) else None for name, score in scores.items()
        }
        told |= {"fault": self._settings.fault, "late_s": self._settings.late}
        return {str(self._index): told | {"failures": [asdict(failure) for failure in failures]}}

    def _f_score(self, failures: Sequence[Failure]) -> Score | Absent:
        values: dict[str, list[float | Absent]] = {}
        for failure in failures:
            found = f_score([failure.injected_s], [failure.service_back_s])
            values.setdefault(failure.role, []).append(found)
        resolution_s = max(failure.resolution_s for failure in failures)
        return over_roles("F", values, detail=self._detail(failures, resolution_s))

    def _r_score(self, failures: Sequence[Failure]) -> Score | Absent:
        """Score R; of a recovery below its resolution the middle counts: it lies between 0 and that."""
        values: dict[str, list[float | Absent]] = {}
        half_widths: dict[str, list[float]] = {}
        for failure in failures:
            found = r_score([failure.service_back_s], [failure.tps_back_s], _MISSING[failure.load])
            half = 0.0
            if not isinstance(found, Absent):
                found, half = recovery(found, failure.recovery_resolution_s)
            values.setdefault(failure.role, []).append(found)
            half_widths.setdefault(failure.role, []).append(half)
        resolution_s = max(failure.recovery_resolution_s for failure in failures)
        detail = self._detail(failures, resolution_s)
        return over_roles("R", values, half_widths=half_widths, detail=detail)

    def _detail(self, failures: Sequence[Failure], resolution_s: float) -> dict[str, Any]:
        told = [asdict(failure) for failure in failures]
        return {"fault": self._settings.fault, "resolution_s": resolution_s, "failures": told}
