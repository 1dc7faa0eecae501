"""The evaluator ``isolation``: histories at each isolation level, and the anomalies in them.

Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB 2020.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope.errors import InputError, MeasurementError
from nephoscope.evaluators.acting import act_beside, act_on, inject, node_of
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.isolation.reading import read_levels
from nephoscope.evaluators.isolation.settings import IsolationSettings
from nephoscope.evaluators.points import read_points
from nephoscope.settings.actions import FAULTS, Action
from nephoscope.settings.loads import Load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nephoscope.engine.sessions import PhaseRecord
    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload

_RENEW_S = 0.5
"""How long new keys are opened before a history, in s, each time."""
_REST_S = 0.2
_MOST_TRIES = 150
"""So often it is tried: a node that takes writes may have to come back first."""


class IsolationEvaluator(Evaluator):
    """Runs transactions that tell what they do and see, and looks for anomalies in each level's history."""

    name: ClassVar[str] = "isolation"
    summary: ClassVar[str] = "anomalies of isolation in what transactions see, level by level"
    settings_type: ClassVar[type[MeasureSettings]] = IsolationSettings

    def __init__(self, settings: IsolationSettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mix, and check that the levels are there. Raises ``InputError``."""
        self._settings = settings
        self._index = index
        self._label, self._mix = workload.mix(settings.mix, f"measure.{index}.mix")
        self._access = settings.access or workload.access(self._label)
        known = workload.description.get("capabilities", {}).get("isolation")
        if known is not None and (missing := [level for level in settings.isolation if level not in known]):
            name = workload.description["dialect"]
            raise InputError(
                f"measure.{index}.isolation: {name} has no {missing[0]!r}; it has {', '.join(known)}"
            )
        if settings.renew is not None and settings.renew not in workload.transactions:
            raise InputError(
                f"measure.{index}.renew: {workload.name} has no transaction {settings.renew!r};"
                f" it has {', '.join(workload.transactions)}"
            )

    def seconds(self) -> float:
        """All histories."""
        of = self._settings
        return len(of.isolation) * of.repetitions * (of.duration + (_RENEW_S if of.renew else 0.0))

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give the one level of load."""
        del sessions
        yield Demand(
            f"{self._label} c={self._settings.concurrency}", (self._settings.concurrency,), self._mix
        )

    def drive(self, means: Means) -> None:
        """Make a history at each level."""
        of = self._settings
        if of.fault and not means.can(self._index, FAULTS[of.fault]):
            return
        for repetition in range(1, of.repetitions + 1):
            for level in of.isolation:
                self._history(means, level, repetition)
        means.load.wait()

    def _history(self, means: Means, isolation: str, repetition: int) -> None:
        of, load = self._settings, means.load
        labels = self.labels(
            self._index,
            isolation=isolation,
            order=of.order,
            mix=self._label,
            concurrency=of.concurrency,
            repetition=repetition,
        )
        level = Load(
            concurrency=float(of.concurrency),
            mix=self._mix,
            access=self._access,
            isolation=isolation,
            release=False,
        )
        if of.renew is not None:
            self._renew(means, of.renew, isolation, labels)
        load.phase(isolation, "measure", of.duration, level, labels, history=True)
        if of.fault is not None:
            self._fail(means, labels)

    def _renew(self, means: Means, transaction: str, isolation: str, labels: Mapping[str, Any]) -> None:
        """Open new keys once every transaction has ended, so that nothing of another history is seen or goes on.

        Raises ``MeasurementError``.
        """
        mix = {transaction: 1.0}
        resting = Load(concurrency=0.0, mix=mix, release=True)
        opening = Load(concurrency=1.0, mix=mix, access=self._access, isolation=isolation, release=False)
        rests = self._until(
            means, f"before {isolation}", (_REST_S, "pause", resting), labels, lambda it: it.connected == 0
        )
        if not rests:
            raise MeasurementError(f"transactions of the history before {isolation} do not end")
        name = f"new keys for {isolation}"
        if not self._until(means, name, (_RENEW_S, "warm_up", opening), labels, lambda it: it.committed > 0):
            raise MeasurementError(f"{transaction} does not commit: there are no new keys for {isolation}")

    def _until(
        self,
        means: Means,
        name: str,
        phase: tuple[float, str, Load],
        labels: Mapping[str, Any],
        done: Callable[[PhaseRecord], bool],
    ) -> bool:
        """Repeat a phase until its figures say that it is done; returns whether it is."""
        seconds, kind, level = phase
        for _ in range(_MOST_TRIES):
            number = means.load.phase(name, kind, seconds, level, labels)
            means.load.wait()
            if number in means.load.phases and done(means.load.phases[number]):
                return True
        return False

    def _fail(self, means: Means, labels: Mapping[str, Any]) -> None:
        """Let the node fail that takes writes, half-way through the history; afterwards the system is whole again."""
        of, load = self._settings, means.load
        if of.fault is None:
            return
        load.pump_until(load.planned_end - of.duration / 2)
        node = node_of(means, "rw")
        with load.expecting(f"{of.fault} of rw"):
            inject(means, of.fault, node, labels, pause_s=of.pause, limit_s=of.action_limit)
            load.wait()
        if of.fault == "node-loss" and Action.START in means.provider.actions():
            act_beside(
                means,
                lambda _: act_on(means, "action", Action.START, node, labels),
                "the start of the lost node",
                of.action_limit,
            )

    def read(self, stored: Stored) -> Measurements:
        """Read each level's anomalies, and its throughput."""
        read = read_points(stored, None)
        warnings = list(read.warnings)
        if reason := stored.why_not():
            warnings.append(f"isolation: {reason}")
        levels = read_levels(stored, read.points)
        return Measurements(
            points=read.points,
            warnings=warnings,
            shortfalls=read.shortfalls,
            details={self.name: {str(self._index): {"order": self._settings.order, "levels": levels}}}
            if levels
            else {},
        )
