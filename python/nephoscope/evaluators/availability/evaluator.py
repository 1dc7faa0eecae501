"""The evaluator ``availability``: failures and repairs on a schedule, and what they leave of the service.

METRICS, section 4; runtime quality framework, III-C (availability) and IV (failure and recovery executor); Fox and
Brewer, "Harvest, Yield, and Scalable Tolerant Systems", HotOS 1999.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from nephoscope.engine.probes import ProbeSettings
from nephoscope.evaluators.acting import note_durability
from nephoscope.evaluators.availability.reading import read_availability
from nephoscope.evaluators.availability.settings import AvailabilitySettings
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.executors import Executors, can_fail
from nephoscope.evaluators.schedule import planned
from nephoscope.settings.loads import Load, closed_or_open

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload


class Availability(Evaluator):
    """Lets nodes fail and be repaired on a schedule, and measures how much of the service is left."""

    name: ClassVar[str] = "availability"
    summary: ClassVar[str] = "failures and repairs on a schedule: availability, yield, harvest, MTTF, MTTR"
    settings_type: ClassVar[type[MeasureSettings]] = AvailabilitySettings

    def __init__(self, settings: AvailabilitySettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mix, and draw the schedule of every repetition."""
        self._settings = settings
        self._index = index
        self._label, self._mix = workload.mix(settings.mix, f"measure.{index}.mix")
        self._access = settings.access or workload.access(self._label)
        self._schedules = {
            repetition: planned(settings, repetition) for repetition in range(1, settings.repetitions + 1)
        }

    def seconds(self) -> float:
        """All repetitions."""
        return self._settings.repetitions * (self._settings.warmup + self._settings.duration)

    def demands(self, sessions: int) -> Iterator[Demand]:
        """List the sessions of the load."""
        of = self._settings
        yield Demand(self.name, (sessions if of.rate is not None else of.concurrency,), self._mix)

    # --- driving --------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Run the load with the failures of each repetition."""
        of = self._settings
        if not can_fail(means, self._index, of, self._schedules.values()):
            return
        for repetition in range(1, of.repetitions + 1):
            self._run(means, repetition)

    def _run(self, means: Means, repetition: int) -> None:
        of, load = self._settings, means.load
        asked = closed_or_open(of.concurrency, of.rate)
        labels = self.labels(self._index, mix=self._label, failures=of.source, repetition=repetition, **asked)
        level = Load(**asked, mix=self._mix, access=self._access)
        load.phase("availability: warm-up", "warm_up", of.warmup, level, labels)
        with means.probes(ProbeSettings(rate=of.probe_rate)) as probes:
            executors = Executors(means, labels, of.action_limit)
            with load.expecting("schedule of failures"):
                executors.measure("availability", of.duration, level, self._schedules[repetition])
                probes.stop()
                executors.restore()
                # While a node was away, its readers may have used up the connections of the other.
                means.rest("after the failures", self._mix, labels)
            note_durability(means, probes, labels, "after the failures")

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read what was up and down, and what was answered; there is no score of it."""
        found, warnings = read_availability(stored, self._settings)
        if (why := stored.why_not()) is not None:
            warnings.append(f"availability was not measured whole: {why}")
        details = {self.name: {str(self._index): found}} if found else {}
        return Measurements(warnings=warnings, details=details)
