"""The evaluator ``load``: any course of load, as a study writes it, phase by phase."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from nephoscope.errors import InputError
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.load.reading import read_streams
from nephoscope.evaluators.load.settings import LoadSettings, _highest, _levels, _name
from nephoscope.evaluators.points import read_points
from nephoscope.scoring.formulas import Absent
from nephoscope.settings.loads import Load as LoadLevel
from nephoscope.settings.loads import UniformAccess, skew_between

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nephoscope.evaluators.load.settings import LevelSettings, PhaseSettings
    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.loads import AccessSetting
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload


class _Given(NamedTuple):
    """A load as a study writes it: its mix, as labels have it and by weights; its access. None leaves what there is."""

    level: LevelSettings
    mix: tuple[str, Mapping[str, float]] | None
    access: AccessSetting | None
    transition: float | None = None

    def load(self) -> LoadLevel:
        return LoadLevel(
            concurrency=self.level.concurrency,
            think=self.level.think,
            rate=self.level.rate,
            arrivals=self.level.arrivals,
            mix=self.mix[1] if self.mix else None,
            access=self.access,
            transition=self.transition,
        )


@dataclass(frozen=True)
class _Step:
    """A phase with its loads: one, or one for each stream. Values that are left out stay."""

    name: str
    phase: PhaseSettings
    loads: Sequence[_Given]

    def labels(self) -> dict[str, Any]:
        """Label the phase with its streams, and their levels together."""
        if self.phase.streams is None:
            return _levels(self.phase)
        levels = [_levels(load.level) for load in self.loads]
        streams = [
            {"mix": load.mix[0] if load.mix else None, **level}
            for load, level in zip(self.loads, levels, strict=True)
        ]
        together = {
            name: sum(level[name] for level in levels if name in level)
            for name in ("concurrency", "rate")
            if any(name in level for level in levels)
        }
        return {"streams": streams, **together}


def _check_way(before: AccessSetting, after: AccessSetting, where: str) -> None:
    """Refuse a transition between distributions of two kinds."""
    try:
        skew_between(before, after, 1.0)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None


class LoadEvaluator(Evaluator):
    """Runs phases one after another and reports throughput, latency and errors of those that are measured."""

    name: ClassVar[str] = "load"
    summary: ClassVar[str] = (
        "any course of load, phase by phase: closed or open, ramps, steps, changing mixes, streams"
    )
    settings_type: ClassVar[type[MeasureSettings]] = LoadSettings

    def __init__(self, settings: LoadSettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the phases' mixes."""
        self._settings = settings
        self._index = index
        self._steps: list[_Step] = []
        chosen = False
        before: AccessSetting = UniformAccess()
        for place, phase in enumerate(settings.phases):
            where = f"measure.{index}.phases.{place}"
            loads = []
            for number, level in enumerate(phase.loads):
                of = where if phase.streams is None else f"{where}.streams.{number}"
                mix = None if level.mix is None else workload.mix(level.mix, f"{of}.mix")
                chosen = chosen or level.access is not None
                begins = place == 0 or phase.streams is not None
                # A mix brings its own until the study chooses one; a stream begins anew.
                own = workload.access(level.mix) if mix and (begins or not chosen) else None
                access = level.access or own or (UniformAccess() if begins else None)
                if phase.transition is not None and access is not None:
                    _check_way(before, access, f"{of}.access")
                before = access or before
                loads.append(_Given(level, mix, access, phase.transition))
            self._steps.append(_Step(_name(phase, place), phase, loads))

    @property
    def streams(self) -> int:
        """The most loads of a phase."""
        return max(len(step.loads) for step in self._steps)

    @property
    def is_scheduled(self) -> bool:
        """Always: the study writes the phases."""
        return True

    def seconds(self) -> float:
        """All phases, all repetitions."""
        return sum(phase.duration for phase in self._settings.phases) * self._settings.repetitions

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give each phase; values that a phase leaves out stay."""
        weights: Mapping[str, float] = {}
        for step in self._steps:
            if given := [load.mix[1] for load in step.loads if load.mix]:
                weights = {name: weight for mix in given for name, weight in mix.items()}
            wanted = sum(
                sessions if _highest(load.level.rate) else math.ceil(_highest(load.level.concurrency))
                for load in step.loads
            )
            yield Demand(step.name, (wanted,), weights)

    def drive(self, means: Means) -> None:
        """Ask for all phases, and wait until they are over."""
        for repetition in range(1, self._settings.repetitions + 1):
            label, labels, running = None, {}, 1
            for place, step in enumerate(self._steps):
                if given := [load.mix[0] for load in step.loads if load.mix]:
                    label = " + ".join(given)
                loads = [load.load() for load in step.loads]
                if self._has_streams and step.phase.streams is None:
                    # All of them stay as they are.
                    loads = [LoadLevel()] * running
                else:
                    labels, running = step.labels(), len(loads)
                means.load.phase(
                    step.name,
                    step.phase.kind,
                    step.phase.duration,
                    loads,
                    self.labels(self._index, mix=label, repetition=repetition, step=place + 1, **labels),
                )
        means.load.wait()

    @property
    def _has_streams(self) -> bool:
        return self._settings.phases[0].streams is not None

    def read(self, stored: Stored) -> Measurements:
        """Read the points; a course of load has no score of its own."""
        read = read_points(stored, self._settings.slo)
        reason = "a course of load is no measurement of productivity; the evaluator throughput is"
        streams = read_streams(stored, read.points)
        return Measurements(
            scores={"P": Absent(reason=reason)},
            points=read.points,
            warnings=read.warnings,
            shortfalls=read.shortfalls,
            details={self.name: {str(self._index): {"streams": streams}}} if streams else {},
        )
