"""The evaluator ``consistency``: how stale reads are, and which guarantees of a session the system breaks.

METRICS, section 4; runtime quality framework, III-B and V-A.3; Terry et al., "Session Guarantees for Weakly Consistent
Replicated Data", PDIS 1994.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from nephoscope.engine.probes import Consistency, ProbeSettings
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.consistency.reading import GUARANTEES, read_situations
from nephoscope.evaluators.consistency.settings import ConsistencySettings
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.executors import Executors, can_fail
from nephoscope.evaluators.schedule import planned
from nephoscope.settings.loads import Load, LoadBeside

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload

DEFAULT_LEVEL = "default"
"""How the level of a system is called that none was asked of."""
_MISSED = 0.01
"""A larger share of reads that were due and not answered is worth a warning."""


class ConsistencyEvaluator(Evaluator):
    """Lets sessions write and read registers beside each load and at each level, and checks what they read."""

    name: ClassVar[str] = "consistency"
    summary: ClassVar[str] = "stale reads, broken guarantees of sessions, long forks, idle and under load"
    settings_type: ClassVar[type[MeasureSettings]] = ConsistencySettings

    def __init__(self, settings: ConsistencySettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the loads' mixes, and check the levels."""
        self._settings = settings
        self._index = index
        loads, where = settings.loads or [LoadBeside(name="idle")], f"measure.{index}"
        self._loads = [
            (
                load.name,
                workload.mix(load.mix, f"{where}.loads.{place}.mix")[1] if load.mix is not None else None,
            )
            for place, load in enumerate(loads)
        ]
        self._access = {load.name: settings.access or workload.access(load.mix) for load in loads}
        self._any_mix = {workload.transactions[0]: 1.0}
        self._schedules = {
            repetition: planned(settings, repetition) for repetition in range(1, settings.repetitions + 1)
        }
        workload.check_consistency(settings.levels or (), f"{where}.levels")

    def seconds(self) -> float:
        """All levels, all loads, all repetitions."""
        of = self._settings
        times = len(of.levels or (1,)) * len(self._loads) * of.repetitions
        return times * (of.warmup + of.duration)

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give each load that is not idle."""
        del sessions
        for name, mix in self._loads:
            if mix is not None:
                yield Demand(f"consistency, {name}", (self._settings.concurrency,), mix)

    # --- driving --------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Run the loads at each level, with the sessions beside each."""
        of, load = self._settings, means.load
        read_from = of.read_from
        if read_from == "auto":
            read_from = "rw" if not means.system.ro else "all" if of.long_fork else "ro"
        if read_from != "rw" and not means.system.ro:
            means.unsupported(self._index, "no read-only endpoint to read from")
            return
        if not can_fail(means, self._index, of, self._schedules.values()):
            return
        settings = ProbeSettings(timeout=of.read_timeout)
        # Before the first load, so that no load contains the creation of the probes' tables.
        load.phase("consistency: warm-up", "warm_up", of.warmup, self._level(), self.labels(self._index))
        levels: list[str | None] = [*of.levels] if of.levels else [means.study.load.consistency]
        for level in levels:
            sessions = Consistency(
                readers=of.readers,
                read_interval=of.read_interval,
                writers=of.writers,
                write_interval=of.write_interval,
                keys=of.registers,
                read_from=read_from,
                routing=of.routing,
                long_fork=of.long_fork,
                limit=of.limit,
                level=level,
            )
            with means.probes(settings, availability=False, consistency=sessions):
                self._run(means, level or DEFAULT_LEVEL)
                load.wait()

    def _run(self, means: Means, level: str) -> None:
        """Run the loads, all repetitions."""
        of = self._settings
        for repetition in range(1, of.repetitions + 1):
            for name, mix in self._loads:
                labels = self.labels(self._index, load=name, level=level, repetition=repetition)
                said = f"consistency, {name}" if of.levels is None else f"consistency, {name}, {level}"
                if of.warmup > 0:
                    means.load.phase(f"{said}: warm-up", "warm_up", of.warmup, self._level(name, mix), labels)
                if of.source == "none":
                    means.load.phase(said, "measure", of.duration, self._level(name, mix), labels)
                    continue
                executors = Executors(means, labels, of.action_limit)
                with means.load.expecting("schedule of failures"):
                    executors.measure(said, of.duration, self._level(name, mix), self._schedules[repetition])
                    executors.restore()

    def _level(self, name: str = "", mix: Mapping[str, float] | None = None) -> Load:
        """Make a load of a mix; without one the system is idle."""
        concurrency = float(self._settings.concurrency) if mix is not None else 0.0
        return Load(concurrency=concurrency, mix=mix or self._any_mix, access=self._access.get(name))

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read what was found beside each load and at each level; there is no score of it."""
        situations, warnings = read_situations(stored, long_fork=self._settings.long_fork)
        if (why := stored.why_not()) is not None:
            warnings.append(f"consistency was not measured: {why}")
        for situation in situations:
            warnings += [f"consistency, {_name(situation)}: {said}" for said in _warnings(situation)]
        details = {self.name: {str(self._index): {"situations": situations}}} if situations else {}
        return Measurements(warnings=warnings, details=details)


def _name(situation: Mapping[str, Any]) -> str:
    load, level, when = situation["load"], situation["level"], situation["when"]
    return ", ".join(
        [load, *([level] if level != DEFAULT_LEVEL else ()), *([f"{when} failures"] if when else ())]
    )


def _warnings(situation: Mapping[str, Any]) -> Iterator[str]:
    """Say what keeps the figures from being those of every read and write that was due."""
    reads, writes = situation["reads"], situation["writes"]
    unanswered = reads["due"] - reads["answered"]
    if unanswered > _MISSED * reads["due"]:
        yield (
            f"{unanswered / reads['due']:.1%} of the reads that were due were not answered"
            f" ({reads['missed']:,} missed, {reads['failed']:,} failed): shares are of the others"
        )
    if writes["failed"]:
        said = ", ".join(f"{count:,} {outcome}" for outcome, count in writes["failed"].items())
        yield f"writes that were not acknowledged ({said}) are in no figure"
    if unseen := sum(entry["unseen"] for entry in situation["visible"] if entry["node"] is None):
        yield f"{unseen:,} writes were not seen for as long as they were looked for: they take at least that long"
    broken = [name for name in GUARANTEES if situation["guarantees"].get(name, {}).get("violations")]
    forks = situation["guarantees"].get("long_fork")
    if forks and not forks["checks"]:
        yield "of no two writes the order was seen on two endpoints: long forks could not be looked for"
    elif forks and forks["violations"]:
        yield f"{forks['violations']:,} long forks: two reads saw two writes in opposite orders"
    if broken:
        yield f"violations of {', '.join(name.replace('_', ' ') for name in broken)}"
