"""The evaluator ``steady``: how long a warm-up, how long a window and how many repetitions a precision takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.steady.reading import read_plans
from nephoscope.evaluators.steady.settings import SteadySettings
from nephoscope.settings.loads import Load, closed_or_open

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload


class Steady(Evaluator):
    """Repeats a load from a cold start, and reads from it how it should be measured."""

    name: ClassVar[str] = "steady"
    summary: ClassVar[str] = (
        "how long a warm-up and a window, and how many repetitions, a wanted precision takes"
    )
    settings_type: ClassVar[type[MeasureSettings]] = SteadySettings

    def __init__(self, settings: SteadySettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mixes."""
        self._settings = settings
        self._index = index
        self._mixes = workload.mixes(settings.mixes, f"measure.{index}.mixes")
        self._access = {mix: settings.access or workload.access(mix) for mix in self._mixes}

    def seconds(self) -> float:
        """Sum the phases."""
        of = self._settings
        return len(self._mixes) * of.repetitions * (of.rest + of.duration)

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give each mix once."""
        level = self._settings.concurrency if self._settings.rate is None else sessions
        for mix, weights in self._mixes.items():
            yield Demand(mix, (level,), weights)

    # --- driving --------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Repeat the load of each mix."""
        of, load = self._settings, means.load
        asked = closed_or_open(of.concurrency, of.rate)
        for mix, weights in self._mixes.items():
            level = Load(**asked, mix=weights, access=self._access[mix], release=False)
            for repetition in range(1, of.repetitions + 1):
                # As a step of a search it is no result of its own: its warm-up is in it.
                labels = self.labels(self._index, mix=mix, repetition=repetition, search=True, **asked)
                if of.rest > 0:
                    rest = Load(concurrency=0.0, mix=weights, release=True)
                    load.phase(f"{mix} rest {repetition}", "pause", of.rest, rest, labels)
                load.phase(f"{mix} {repetition}", "measure", of.duration, level, labels)
            load.wait()

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read the plan of each mix; there are no points, as each phase has its warm-up in it."""
        mixes, warnings, shortfalls = read_plans(stored, self._settings)
        detail = {"precision": self._settings.precision, "interval_s": stored.interval_s, "mixes": mixes}
        details = {self.name: {str(self._index): detail}} if mixes else {}
        return Measurements(warnings=warnings, shortfalls=shortfalls, details=details)
