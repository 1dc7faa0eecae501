"""The evaluator ``elasticity``: patterns of load, the allocation over time, and the E1-Score.

METRICS, section 3; CloudyBench, sections II-C and II-G, equation 2, Table VI.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.evaluators.acting import act_beside
from nephoscope.evaluators.asking import AllocationClock
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.elasticity.patterns import resolve
from nephoscope.evaluators.elasticity.patterns import sessions as wanted_sessions
from nephoscope.evaluators.elasticity.reading import read_elasticity
from nephoscope.evaluators.elasticity.settings import _LEAST_S, ElasticitySettings
from nephoscope.evaluators.search import ask_step, search
from nephoscope.settings.loads import (
    Load,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nephoscope.engine.loadrun import LoadRun
    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload
    from nephoscope.systems.base import Allocation


class Elasticity(Evaluator):
    """Plays patterns of load, watches the allocation, and scores E1."""

    name: ClassVar[str] = "elasticity"
    summary: ClassVar[str] = (
        "patterns of load with peaks and valleys, scaling times, throughput per cost (E1)"
    )
    settings_type: ClassVar[type[MeasureSettings]] = ElasticitySettings

    def __init__(self, settings: ElasticitySettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mixes and the patterns."""
        self._settings = settings
        self._index = index
        self._mixes = workload.mixes(settings.mixes, f"measure.{index}.mixes")
        self._access = {mix: settings.access or workload.access(mix) for mix in self._mixes}
        self._patterns = dict(map(resolve, settings.patterns))
        self._told: set[Allocation] = set()

    def seconds(self) -> float:
        """Sum the slots and the rests around them; a search is omitted, as its length is unknown."""
        settings = self._settings
        each = [
            settings.rest
            + (settings.window if settings.watch is None else len(shares) * settings.slot + settings.watch)
            for shares in self._patterns.values()
        ]
        return sum(each) * len(self._mixes) * settings.repetitions

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give the highest slot of each pattern, where τ is known."""
        del sessions
        tau = self._settings.tau
        if tau != "search":
            for mix, weights in self._mixes.items():
                for pattern, shares in self._patterns.items():
                    yield Demand(f"{pattern} {mix}", (wanted_sessions(max(shares), tau),), weights)

    # --- driving --------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Find τ if it is to be searched for, then play the patterns in one continuous run."""
        tau = {mix: self._tau(means, mix) for mix in self._mixes}
        for repetition in range(1, self._settings.repetitions + 1):
            for mix in self._mixes:
                for pattern in self._patterns:
                    self._play(means, mix, pattern, tau[mix], repetition)

    def _tau(self, means: Means, mix: str) -> int:
        settings = self._settings
        if settings.tau != "search":
            return settings.tau
        steps, highest = settings.search, max(map(max, self._patterns.values()))

        def ask(concurrency: int) -> int:
            labels = self.labels(self._index, mix=mix, concurrency=concurrency, search=True)
            level, name = self._level(mix, concurrency), f"{mix} c={concurrency}"
            return ask_step(means.load, name, level, labels, steps.duration)

        room = means.room(self._mixes[mix])
        return search(means.load, steps, ask, room.shared(max(highest, 1.0)) if room else None)

    def _level(self, mix: str, concurrency: int) -> Load:
        """Describe a closed load; unwanted sessions close their connections, so that an idle system may pause."""
        settings = self._settings
        return Load(
            concurrency=float(concurrency),
            think=settings.think,
            mix=self._mixes[mix],
            access=self._access[mix],
            release=True,
        )

    def _play(self, means: Means, mix: str, pattern: str, tau: int, repetition: int) -> None:
        settings, load, shares = self._settings, means.load, self._patterns[pattern]
        name = f"{pattern} {mix}" if len(self._mixes) > 1 else pattern

        def labels(**more: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
            return self.labels(self._index, pattern=name, repetition=repetition, tau=tau, **more)

        # Polled before the pattern begins, so that no slot waits for a slow provider.
        watched = self._watched(means, len(shares))
        nobody = self._level(mix, 0)
        load.phase(f"{name} before", "pause", max(settings.rest, _LEAST_S), nobody, labels())
        for slot, share in enumerate(shares, start=1):
            wanted = wanted_sessions(share, tau)
            said = labels(slot=slot, sessions=wanted)
            load.phase(f"{name} slot {slot}", "measure", settings.slot, self._level(mix, wanted), said)
        load.phase(f"{name} after", "pause", max(watched, _LEAST_S), nobody, labels())
        try:
            with self._asking(means):
                load.wait()
        finally:
            self._note_allocation(means)

    def _asking(self, means: Means) -> contextlib.AbstractContextManager[object]:
        """Poll the allocation while a pattern is played, if the provider knows only the present."""
        period_s = means.provider.allocation_period()
        if period_s is None:
            return contextlib.nullcontext()

        def ask() -> None:
            self._keep(means.load, means.provider.allocation(), means.load.note_beside)

        return AllocationClock(means, period_s, self._settings.action_limit, ask)

    def _watched(self, means: Means, slots: int) -> float:
        """How long the allocation is watched when the pattern is over."""
        if self._settings.watch is not None:
            return self._settings.watch
        with contextlib.suppress(MeasurementError):
            if self._allocation(means):
                return self._settings.window - slots * self._settings.slot
        return 0.0

    def _allocation(self, means: Means) -> tuple[Allocation, ...]:
        """Ask the provider for its allocation. Raises ``MeasurementError`` for an error or a timeout."""
        limit_s = self._settings.action_limit
        return act_beside(means, lambda _: means.provider.allocation(), "telling the allocation", limit_s)

    def _note_allocation(self, means: Means) -> None:
        """Store the provider's allocation up to now, as events on the load's clock."""
        try:
            line = self._allocation(means)
        except MeasurementError as error:
            message = f"the provider does not tell the allocation: {error}"
            means.load.note("warning", _engine.monotonic_ns(), message=message)
            return
        self._keep(means.load, line, means.load.note)

    def _keep(self, load: LoadRun, line: Sequence[Allocation], note: Callable[..., None]) -> None:
        """Store the new part of a time line, as events on the load's clock."""
        for step in line:
            if step not in self._told:
                self._told.add(step)
                facts: dict[str, Any] = {"resources": step.resources.model_dump(mode="json")}
                if step.answered_ns is not None:
                    facts["answered_s"] = round(load.time_of(step.answered_ns), 6)
                note("allocation", step.time_ns, **facts)

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read slots, changes of the load, allocation and E1."""
        settings = self._settings
        return read_elasticity(stored, settings.window, settings.slo, settings.search)
