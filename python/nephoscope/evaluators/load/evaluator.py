"""The evaluator ``load``: any course of load, as a study writes it, phase by phase."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.load.settings import LoadSettings, _highest, _levels, _name
from nephoscope.evaluators.points import read_points
from nephoscope.scoring.formulas import Absent
from nephoscope.settings.loads import Load as LoadLevel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.loads import AccessSetting
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload


def _accesses(settings: LoadSettings, workload: DescribedWorkload) -> Iterator[AccessSetting | None]:
    """Give the access distribution of each phase; None leaves that of the phase before."""
    chosen = False
    for phase in settings.phases:
        chosen = chosen or phase.access is not None
        yield phase.access or (None if chosen or phase.mix is None else workload.access(phase.mix))


class LoadEvaluator(Evaluator):
    """Runs phases one after another and reports throughput, latency and errors of those that are measured."""

    name: ClassVar[str] = "load"
    summary: ClassVar[str] = (
        "any course of load, phase by phase: closed or open, ramps, steps, changing mixes"
    )
    settings_type: ClassVar[type[MeasureSettings]] = LoadSettings

    def __init__(self, settings: LoadSettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the phases' mixes."""
        self._settings = settings
        self._index = index
        self._mixes = [
            workload.mix(phase.mix, f"measure.{index}.phases.{place}.mix") if phase.mix is not None else None
            for place, phase in enumerate(settings.phases)
        ]
        self._access = list(_accesses(settings, workload))

    def seconds(self) -> float:
        """All phases, all repetitions."""
        return sum(phase.duration for phase in self._settings.phases) * self._settings.repetitions

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give each phase; values that a phase leaves out stay."""
        weights: Mapping[str, float] = {}
        for place, (phase, mix) in enumerate(zip(self._settings.phases, self._mixes, strict=True)):
            weights = mix[1] if mix else weights
            wanted = sessions if _highest(phase.rate) else math.ceil(_highest(phase.concurrency))
            yield Demand(_name(phase, place), (wanted,), weights)

    def drive(self, means: Means) -> None:
        """Ask for all phases, and wait until they are over."""
        for repetition in range(1, self._settings.repetitions + 1):
            label = None
            for place, (phase, mix) in enumerate(zip(self._settings.phases, self._mixes, strict=True)):
                label = mix[0] if mix else label
                means.load.phase(
                    _name(phase, place),
                    phase.kind,
                    phase.duration,
                    LoadLevel(
                        concurrency=phase.concurrency,
                        think=phase.think,
                        rate=phase.rate,
                        arrivals=phase.arrivals,
                        mix=mix[1] if mix else None,
                        access=self._access[place],
                    ),
                    self.labels(
                        self._index,
                        mix=label,
                        repetition=repetition,
                        step=place + 1,
                        **_levels(phase),
                    ),
                )
        means.load.wait()

    def read(self, stored: Stored) -> Measurements:
        """Read the points; a course of load has no score of its own."""
        read = read_points(stored, self._settings.slo)
        reason = "a course of load is no measurement of productivity; the evaluator throughput is"
        return Measurements(
            scores={"P": Absent(reason=reason)},
            points=read.points,
            warnings=read.warnings,
            shortfalls=read.shortfalls,
        )
