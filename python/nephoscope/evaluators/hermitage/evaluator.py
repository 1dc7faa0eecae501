"""The evaluator ``hermitage``: which anomalies each isolation level allows, and how it prevents the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from nephoscope import _engine
from nephoscope.engine.interleaving import interleaver
from nephoscope.errors import InputError
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.hermitage.cases import CASES
from nephoscope.evaluators.hermitage.reading import read_cases
from nephoscope.evaluators.hermitage.settings import HermitageSettings

if TYPE_CHECKING:
    from nephoscope.engine.interleaving import Interleaved
    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload

_TABLE = "nephoscope_case"
_WAITS = 2.0
"""So many moments a case waits, about."""


class Hermitage(Evaluator):
    """Runs each case at each level: deterministic interleavings, on connections of their own."""

    name: ClassVar[str] = "hermitage"
    summary: ClassVar[str] = "Hermitage's cases: which anomalies each isolation level allows"
    settings_type: ClassVar[type[MeasureSettings]] = HermitageSettings

    def __init__(self, settings: HermitageSettings, workload: DescribedWorkload, index: int) -> None:
        """Check that the levels are there. Raises ``InputError``."""
        self._settings = settings
        self._index = index
        self._dialect = str(workload.description.get("dialect", ""))
        self._mix = {workload.transactions[0]: 1.0}
        known = workload.description.get("capabilities", {}).get("isolation")
        if known is not None and (missing := [level for level in settings.isolation if level not in known]):
            has = ", ".join(known) or "none"
            raise InputError(
                f"measure.{index}.isolation: {self._dialect} has no {missing[0]!r}; it has {has}"
            )

    def seconds(self) -> float:
        """Give about how long the cases take."""
        return len(self._settings.isolation) * len(CASES) * _WAITS * self._settings.moment

    def drive(self, means: Means) -> None:
        """Run all cases, one after another, while the load rests."""
        of = self._settings
        means.rest("before the cases", self._mix, self.labels(self._index))
        with interleaver(means.system.rw[0], self._dialect, _TABLE, (of.moment, of.limit)) as by_hand:
            for isolation in of.isolation:
                for case in CASES:
                    began = _engine.monotonic_ns()
                    course = by_hand.run(isolation, case.steps)
                    means.load.note(
                        "case",
                        began,
                        measure=self._index,
                        isolation=isolation,
                        anomaly=case.anomaly,
                        about=case.about,
                        writes=case.writes,
                        occurred=case.occurs(course),
                        prevented_by=_how(course),
                        errors=course.errors,
                    )
                    means.load.pump_for(0.001)

    def read(self, stored: Stored) -> Measurements:
        """Read what became of each case."""
        levels = read_cases(stored)
        return Measurements(details={self.name: {str(self._index): {"levels": levels}}} if levels else {})


def _how(course: Interleaved) -> str:
    """Say by what an anomaly is prevented that did not occur."""
    if course.errors:
        return "error"
    return "waiting" if course.waited else "versions"
