"""The evaluator ``slo``: the highest rate at which a percentile of the latency stays within a limit.

As NoSQLBench's findmax, with an open load: the latency counts from the intended start, so that a queue is part of it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.bracket import SearchBounds, highest_rate, typical_steps
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.points import read_points
from nephoscope.evaluators.slo.reading import read_mixes
from nephoscope.evaluators.slo.settings import SloSettings
from nephoscope.evaluators.slo.shares import LimitCounter, WithinLimit, certain_interval
from nephoscope.settings.loads import Load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nephoscope.engine.loadrun import LoadRun
    from nephoscope.evaluators.slo.shares import Outcome
    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload


class Slo(Evaluator):
    """Searches for the highest rate within a latency limit, mix by mix."""

    name: ClassVar[str] = "slo"
    summary: ClassVar[str] = "the highest rate at which a percentile of the latency stays within a limit"
    settings_type: ClassVar[type[MeasureSettings]] = SloSettings

    def __init__(self, settings: SloSettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mixes."""
        self._settings = settings
        self._index = index
        self._mixes = workload.mixes(settings.mixes, f"measure.{index}.mixes")
        self._access = {mix: settings.access or workload.access(mix) for mix in self._mixes}

    def seconds(self) -> float:
        """Give about how long the search takes; how many steps it has is known only afterwards."""
        of = self._settings
        steps = typical_steps(of.precision, of.repetitions)
        return len(self._mixes) * steps * (of.rest + of.warmup + of.duration)

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give each mix once: an open load may have all sessions."""
        for mix, weights in self._mixes.items():
            yield Demand(mix, (sessions,), weights)

    # --- driving --------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Search for the rate of each mix. Raises ``MeasurementError`` where sessions have no connection."""
        of = self._settings
        bounds = SearchBounds.of(of, of.repetitions)
        for mix in self._mixes:
            search = _MixSearch(means.load, of, partial(self._ask, means.load, mix))
            highest_rate(bounds, search.holds, search.certain)

    def _ask(self, load: LoadRun, mix: str, rate: float, repetition: int) -> tuple[int, str]:
        """Request the phases of a step; return the measured one's number and name."""
        of = self._settings
        level = Load(rate=rate, arrivals=of.arrivals, mix=self._mixes[mix], access=self._access[mix])
        purpose = {"slo": "confirmation"} if repetition else {"slo": "search", "search": True}
        labels = self.labels(self._index, mix=mix, rate=rate, repetition=max(repetition, 1), **purpose)
        name = f"{mix} {rate:g}/s"
        if of.rest > 0:
            load.phase(f"{name} rest", "pause", of.rest, Load(rate=0.0, mix=self._mixes[mix]), labels)
        if of.warmup > 0:
            load.phase(f"{name} warm-up", "warm_up", of.warmup, level, labels)
        return load.phase(name, "measure", of.duration, level, labels), name

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read the rate of each mix with its steps; points are the phases that confirmed it."""
        of = self._settings
        read = read_points(stored, of.limit)
        mixes = read_mixes(stored, read, of)
        if not mixes:
            return Measurements(warnings=read.warnings, shortfalls=read.shortfalls)
        confirmed = {phase for found in mixes.values() for phase in found["phases"]}
        detail = {"limit_ms": of.limit * 1e3, "percentile": of.percentile, "mixes": mixes}
        return Measurements(
            points=[point for point in read.points if point.phase in confirmed],
            warnings=read.warnings,
            shortfalls=read.shortfalls,
            details={self.name: {str(self._index): detail}},
        )


class _MixSearch:
    """The steps of a mix that were measured."""

    def __init__(
        self, load: LoadRun, settings: SloSettings, ask: Callable[[float, int], tuple[int, str]]
    ) -> None:
        self._load = load
        self._settings = settings
        self._ask = ask
        self._counts: dict[float, list[WithinLimit]] = {}

    def holds(self, rate: float, repetition: int) -> bool:
        """Measure a rate; once more if the client was late, so that its lateness does not count as the system's."""
        outcome = self._measure(rate, repetition)
        if outcome == "not known":
            outcome = self._measure(rate, repetition)
        return outcome == "held"

    def certain(self) -> tuple[float | None, float | None]:
        """Return the rates between which the highest one lies, as far as they are certain."""
        percentile = self._settings.percentile
        joined = {rate: WithinLimit.of_all(counts) for rate, counts in self._counts.items()}
        return certain_interval({rate: counts.certainty(percentile) for rate, counts in joined.items()})

    def _measure(self, rate: float, repetition: int) -> Outcome:
        phase, name = self._ask(rate, repetition)
        counting = _Counting(phase, self._settings.limit, rate)
        self._load.listening.append(counting.add)
        try:
            self._load.wait()
        finally:
            self._load.listening.remove(counting.add)
        record = self._load.phases.get(phase)
        if record is not None and record.is_short:
            reason = f"at {name} not all sessions were connected"
            raise MeasurementError(f"the search for the highest rate: {reason}")
        counts = counting.counted()
        self._counts.setdefault(rate, []).append(counts)
        return counts.outcome(self._settings.percentile)


class _Counting:
    """Counts the arrivals of a phase while it goes on."""

    def __init__(self, phase: int, limit_s: float, rate: float) -> None:
        self._phase = phase
        self._counter = LimitCounter(limit_s, rate)
        self._start_s: float | None = None
        self._arrivals = 0
        self._aborted = 0

    def add(self, record: Mapping[str, Any]) -> None:
        """Add an interval's record, if it is of the phase."""
        if record["phase"] != self._phase:
            return
        if self._start_s is None:
            self._start_s = record["start_s"]
        latency, others = _engine.Histogram(), 0
        for series in record["series"]:
            self._aborted += series["aborted"]
            if encoded := series.get("latency"):
                latency.add(_engine.Histogram.decode(encoded))
            for kind in ("failed_latency", "censored"):
                if encoded := series.get(kind):
                    others += _engine.Histogram.decode(encoded).count
        self._arrivals += sum(tenant["arrivals"] for tenant in record["tenants"])
        lag = record["lag"]
        self._counter.add(
            record["start_s"] - self._start_s, latency, others, lag["max_us"] / 1e6 if lag else None
        )

    def counted(self) -> WithinLimit:
        """Return the counts of the whole phase."""
        return self._counter.counted(self._arrivals, self._aborted)
