"""The evaluator ``capture``: a grid of rates and mixes in random order, for a corpus of I/O (CDSBen, section 4.1)."""

from __future__ import annotations

import contextlib
import random
import time
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.evaluators.acting import Acting
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.capture.reading import read_cells
from nephoscope.evaluators.capture.settings import CaptureSettings
from nephoscope.evaluators.demand import Demand
from nephoscope.settings.loads import Load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload

_LEAST_REST_S = 0.1
_VACUUM_LIMIT_S = 1800.0


class GridCell(NamedTuple):
    """A cell of the grid, once."""

    replicate: int
    mix: str
    rate: float

    @property
    def name(self) -> str:
        """The name of its phase."""
        return f"{self.mix} {self.rate:g}/s {self.replicate}".replace("|", "/").replace(",", " ")


class Capture(Evaluator):
    """Runs every rate with every mix, replicated, each replicate in an order of its own."""

    name: ClassVar[str] = "capture"
    summary: ClassVar[str] = (
        "a grid of open loads, replicated, in random order: what `nephoscope storage capture` records"
    )
    settings_type: ClassVar[type[MeasureSettings]] = CaptureSettings

    def __init__(self, settings: CaptureSettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mixes."""
        self._settings = settings
        self._index = index
        self._mixes = workload.mixes(settings.mixes, f"measure.{index}.mixes")
        self._access = {mix: settings.access or workload.access(mix) for mix in self._mixes}

    def cells(self) -> list[GridCell]:
        """All cells in the order in which they are measured."""
        order = random.Random(self._settings.seed)  # noqa: S311 - an order, no secret
        found: list[GridCell] = []
        for replicate in range(1, self._settings.replicates + 1):
            block = [GridCell(replicate, mix, rate) for mix in self._mixes for rate in self._settings.rates]
            order.shuffle(block)
            found += block
        return found

    def seconds(self) -> float:
        """All cells with their pauses and warm-ups, and what is before the first; vacuuming takes longer."""
        settings = self._settings
        return settings.settle + len(self.cells()) * (settings.pause + settings.warm_up + settings.duration)

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give each mix once: an open load may have all sessions."""
        for mix, weights in self._mixes.items():
            yield Demand(mix, (sessions,), weights)

    def drive(self, means: Means) -> None:
        """Measure the cells, one after the other; tell what time both clocks have between them."""
        try:
            self._settle(means)
            for cell in self.cells():
                self._rest(means, cell)
                self._ask(means, cell)
                self._tell_time(means)
                means.load.wait()
        finally:
            self._tell_time(means)
            self._tell_recording(means)

    def _settle(self, means: Means) -> None:
        """Load a database that was just loaded, until it is as it will be."""
        settings = self._settings
        if settings.settle <= 0:
            return
        for mix in self._mixes:
            load, labels = self._load(mix, max(settings.rates)), self.labels(self._index, mix=mix)
            means.load.phase(f"{mix} settle", "warm_up", settings.settle / len(self._mixes), load, labels)

    def _rest(self, means: Means, cell: GridCell) -> None:
        """Let the queue of the cell before drain, and the server reclaim what that left behind."""
        settings = self._settings
        if settings.pause > 0 or settings.vacuum:
            # Without a pause the load rests for as long as the vacuum takes.
            seconds = max(settings.pause, _LEAST_REST_S)
            means.load.phase(
                f"{cell.name} pause", "pause", seconds, self._load(cell.mix, 0.0), self._labels(cell)
            )
        if settings.vacuum:
            means.load.wait()
            vacuum = Acting(lambda _: means.provider.vacuum(), "vacuuming")
            try:
                vacuum.wait(means.load, _VACUUM_LIMIT_S)
            finally:
                vacuum.give_up(means.provider)

    def _ask(self, means: Means, cell: GridCell) -> None:
        settings, load, labels = self._settings, self._load(cell.mix, cell.rate), self._labels(cell)
        if settings.warm_up > 0:
            means.load.phase(f"{cell.name} warm-up", "warm_up", settings.warm_up, load, labels)
        means.load.phase(cell.name, "measure", settings.duration, load, labels)

    def _load(self, mix: str, rate: float) -> Load:
        return Load(
            rate=rate, arrivals=self._settings.arrivals, mix=self._mixes[mix], access=self._access[mix]
        )

    def _labels(self, cell: GridCell) -> Mapping[str, Any]:
        weights = self._mixes[cell.mix]
        total = sum(weights.values())
        return self.labels(
            self._index,
            mix=cell.mix,
            rate=cell.rate,
            repetition=cell.replicate,
            weights={name: weight / total for name, weight in weights.items()},
        )

    def _tell_time(self, means: Means) -> None:
        """Store the time of day and the monotonic clock at one moment: a server's log has the time of day."""
        monotonic, realtime = clocks()
        means.load.note(
            "clocks",
            measure=self._index,
            monotonic_ns=monotonic,
            realtime_ns=realtime,
            origin_ns=means.load.origin_ns,
        )

    def _tell_recording(self, means: Means) -> None:
        """Store where the server's I/O was recorded, and the names of its relations while it still runs."""
        provider = means.provider
        with contextlib.suppress(MeasurementError):  # its last action may be to fail
            if (records := provider.io_records()) is None:
                return
            log = provider.log_folder()
            means.load.note(
                "recorded",
                measure=self._index,
                records=str(records),
                log=None if log is None else str(log),
                relations=dict(provider.relation_files()),
            )

    def read(self, stored: Stored) -> Measurements:
        """Read the points, and whether the system kept up."""
        return read_cells(stored)


def clocks() -> tuple[int, int]:
    """Read ``CLOCK_MONOTONIC`` and the time of day at one moment, in ns: of several tries the quickest."""
    tries: list[tuple[int, Any, Any]] = []
    for _ in range(9):
        before, now, after = _engine.monotonic_ns(), time.time_ns(), _engine.monotonic_ns()
        tries.append((after - before, (before + after) // 2, now))
    _, monotonic, realtime = min(tries)
    return monotonic, realtime
