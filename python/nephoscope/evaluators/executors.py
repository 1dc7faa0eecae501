"""The failure executor and the recovery executor: they do what a schedule has planned, beside the load."""

from __future__ import annotations

import contextlib
import heapq
import itertools
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from nephoscope.errors import MeasurementError
from nephoscope.evaluators.acting import Acting, act_beside, act_on, fail, node_of, recover
from nephoscope.settings.actions import FAULTS, Action
from nephoscope.settings.base import ROLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nephoscope.evaluators.base import Means
    from nephoscope.evaluators.schedule import PlannedFailure
    from nephoscope.settings.failures import FailureSettings
    from nephoscope.settings.loads import Load

_END_S = 0.2


def _waits(failure: PlannedFailure) -> bool:
    """Tell whether there is a repair that the recovery executor does."""
    return len(FAULTS[failure.fault]) > 1


@dataclass(frozen=True, order=True)
class _Due:
    """What is to be done next; time in s since the start of the load."""

    at_s: float
    place: int
    """What is due at the same time keeps its order."""
    number: int = field(compare=False)
    is_repair: bool = field(compare=False, default=False)


class _Agenda:
    """What is due when: a failure that is drawn by a law comes so long after the repair of its target before it."""

    def __init__(self, failures: Sequence[PlannedFailure], start_s: float) -> None:
        self._places = itertools.count()
        self._due: list[_Due] = []
        self._drawn: dict[str, deque[tuple[int, float]]] = {}
        for number, failure in enumerate(failures):
            if failure.up_s is None:
                heapq.heappush(self._due, _Due(start_s + failure.at_s, next(self._places), number))
            else:
                self._drawn.setdefault(failure.target, deque()).append((number, failure.up_s))
        for target in self._drawn:
            self.repaired(target, start_s)

    def next(self) -> _Due | None:
        """Take what is due first; None where nothing is left."""
        return heapq.heappop(self._due) if self._due else None

    def repair(self, number: int, at_s: float) -> None:
        """Note the repair of a failure."""
        heapq.heappush(self._due, _Due(at_s, next(self._places), number, is_repair=True))

    def repaired(self, target: str, at_s: float) -> None:
        """Note the next failure of a target that is up again."""
        if drawn := self._drawn.get(target):
            number, up_s = drawn.popleft()
            heapq.heappush(self._due, _Due(at_s + up_s, next(self._places), number))


class Executors:
    """Let nodes fail and bring them back, one action at a time.

    What is due while an action goes on is done when that has ended: the events of the run have both times.
    """

    def __init__(self, means: Means, labels: Mapping[str, Any], limit_s: float) -> None:
        """Act on the system of ``means``; ``limit_s`` is the timeout of an action, ``labels`` go with its events."""
        self._means = means
        self._labels = labels
        self._limit_s = limit_s
        self._down: dict[int, tuple[PlannedFailure, str | None]] = {}
        """The failures whose repair is to come, by their number, each with its node."""
        self._lost: list[tuple[PlannedFailure, str | None]] = []
        """Nodes that nothing but the system itself brings back."""

    def measure(self, name: str, duration_s: float, level: Load, failures: Sequence[PlannedFailure]) -> None:
        """Measure a load for so long with failures at their times, and wait until it ends; ``restore`` follows.

        Raises ``MeasurementError`` if an action fails.
        """
        load = self._means.load
        load.phase(name, "measure", duration_s, level, self._labels)
        end_s = load.planned_end
        # An action may outlast the measured time: this phase ends it in time all the same.
        load.phase(f"{name}: end", "ramp_down", _END_S, level, self._labels)
        system, nodes = self._means.system, self._means.provider.nodes()
        load.note(
            "schedule",
            **self._labels,
            nodes=len(nodes) or len(system.rw) + len(system.ro),
            planned=[asdict(failure) for failure in failures],
        )
        self.run(failures, end_s - duration_s, end_s)
        load.wait()

    def run(self, failures: Sequence[PlannedFailure], start_s: float, end_s: float) -> None:
        """Do failures and repairs at their times, until the measured time ends; times since the start of the load.

        A failure that is late is followed by its repair as much later. Raises ``MeasurementError`` if an action fails;
        then, and where the run is interrupted, what is down is brought back as far as that can be.
        """
        agenda = _Agenda(failures, start_s)
        try:
            while (due := agenda.next()) is not None and due.at_s < end_s:
                self._means.load.pump_until(due.at_s)
                if self._means.load.elapsed >= end_s or self._means.load.end is not None:
                    break
                failure = failures[due.number]
                if due.is_repair:
                    self._recover(due.number)
                elif (began_s := self._fail(due.number, failure, due.at_s)) is not None and _waits(failure):
                    agenda.repair(due.number, began_s + (failure.for_s or 0.0))
                    continue
                agenda.repaired(failure.target, self._means.load.elapsed)
        except BaseException:
            self._hurry()
            raise

    def restore(self) -> None:
        """Bring back what is down at the end of the measured time. Raises ``MeasurementError``."""
        for number in list(self._down):
            self._recover(number)
        if Action.START in self._means.provider.actions():
            for failure, node in self._lost:
                facts = {**self._labels, "target": failure.target}
                act_beside(
                    self._means,
                    lambda _, node=node, facts=facts: act_on(  # type: ignore[misc]
                        self._means, "action", Action.START, node, facts
                    ),
                    "the start of the lost node",
                    self._limit_s,
                )
        self._lost.clear()

    def _fail(self, number: int, failure: PlannedFailure, due_s: float) -> float | None:
        """Let the node fail that the target names now; returns when that began, None of a node that is down already."""
        node = resolved(self._means, failure.target)
        facts = self._facts(number, failure, due_s)
        if any(other == node for _, other in self._down.values()):
            self._means.load.note("failure_skipped", **facts, node=node)
            return None
        began_s = max(self._means.load.elapsed, due_s)
        if _waits(failure):
            self._down[number] = (failure, node)
        elif failure.fault == "node-loss":
            self._lost.append((failure, node))
        fail(self._means, failure.fault, node, facts, self._limit_s)
        return began_s

    def _recover(self, number: int) -> None:
        failure, node = self._down[number]
        recover(self._means, failure.fault, node, self._facts(number, failure), self._limit_s)
        del self._down[number]

    def _facts(self, number: int, failure: PlannedFailure, due_s: float | None = None) -> dict[str, Any]:
        told = {"failure": number, "fault": failure.fault, "target": failure.target}
        return {**self._labels, **told, **({} if due_s is None else {"due_s": due_s})}

    def _hurry(self) -> None:
        """Bring back what is down although the run is at its end: nobody handles its records any more."""
        for number, (failure, node) in self._down.items():
            facts = self._facts(number, failure)
            for action in FAULTS[failure.fault][1:]:
                with contextlib.suppress(MeasurementError):
                    Acting(
                        lambda _, action=action, node=node, facts=facts: act_on(  # type: ignore[misc]
                            self._means, "action", action, node, facts
                        ),
                        f"the {action}",
                    ).give_up(self._means.provider)


def can_fail(
    means: Means, index: int, settings: FailureSettings, schedules: Iterable[Sequence[PlannedFailure]]
) -> bool:
    """Tell whether the nodes of some schedules can be made to fail; where they cannot, that is stored as the reason.

    Raises ``MeasurementError`` for a node that is not there.
    """
    if not means.can(index, {action for fault in settings.faults for action in FAULTS[fault]}):
        return False
    targets = {failure.target for schedule in schedules for failure in schedule}
    if "ro" in targets and not means.provider.endpoints("ro"):
        means.unsupported(index, "the system has no read-only node that could fail")
        return False
    for target in sorted(targets):
        resolved(means, target)
    return True


def resolved(means: Means, target: str) -> str | None:
    """Return the node that a target names now; None for a role of a provider that knows no nodes by name.

    Raises ``MeasurementError`` for a node that is not there.
    """
    for role in ROLES:
        if target == role:
            return node_of(means, role)
    nodes = means.provider.nodes()
    if target not in nodes:
        there = ", ".join(nodes) or "none by name"
        raise MeasurementError(f"there is no node {target!r} that could fail; nodes are {there}")
    return target
