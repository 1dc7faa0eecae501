"""The evaluator ``scaleout``: nodes that are added one by one under load, and the E2-Score.

METRICS, section 3; CloudyBench, section II-G, equation 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from nephoscope.errors import InputError, MeasurementError
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.scaleout.course import BEGIN_S, NodesCourse, RingCourse
from nephoscope.evaluators.scaleout.reading import read_scaleout
from nephoscope.evaluators.scaleout.settings import ScaleoutSettings
from nephoscope.settings.actions import Action
from nephoscope.settings.loads import Load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload


class Scaleout(Evaluator):
    """Adds nodes under load, read-only ones or those of a ring, and measures the gain of each."""

    name: ClassVar[str] = "scaleout"
    summary: ClassVar[str] = "nodes added one by one under load: TPS per node (E2), linearity, time to serve"
    settings_type: ClassVar[type[MeasureSettings]] = ScaleoutSettings

    def __init__(self, settings: ScaleoutSettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mixes. Raises ``InputError`` for one that never reads."""
        self._settings = settings
        self._index = index
        self._mixes = workload.mixes(settings.mixes, f"measure.{index}.mixes")
        self._access = {mix: settings.access or workload.access(mix) for mix in self._mixes}
        reads = {of["name"] for of in workload.description["transactions"] if of["read_only"]}
        for place, (mix, weights) in enumerate(self._mixes.items()):
            if not reads & set(weights):
                raise InputError(
                    f"measure.{index}.mixes.{place}: {mix} has no transaction that only reads, so that"
                    f" read-only nodes have nothing to do; those of {workload.name} are"
                    f" {', '.join(sorted(reads)) or 'none'}"
                )

    def seconds(self) -> float:
        """Sum the phases; how long nodes take to come is not known."""
        of = self._settings
        return of.repetitions * of.rounds * (of.nodes + 1) * len(self._mixes) * (of.warmup + of.duration)

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give the load of each mix, as it is before a node is added."""
        del sessions
        for mix, weights in self._mixes.items():
            yield Demand(f"{mix} c={self._settings.concurrency}", (self._settings.concurrency,), weights)

    # --- driving --------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Add nodes one by one and measure with each number of them; then restore the system."""
        if reason := self._why_not(means):
            means.unsupported(self._index, reason)
            return
        is_ring = means.provider.adds() == "rw"
        course = (RingCourse if is_ring else NodesCourse)(means, self._settings, self._index)
        try:
            # Away from the nodes that will be removed.
            away = self._level(course, 0, course.endpoints() if is_ring else ())
            warmup = max(self._settings.warmup, BEGIN_S)
            means.load.phase("scaleout", "warm_up", warmup, away, self.labels(self._index))
            means.load.wait()
            course.leave((), self._settings.limit)
            course.take_all_away()
            for repetition in range(1, self._settings.repetitions + 1):
                self._repeat(means, course, repetition)
                if not course.take_away(repetition, self._settings.limit):
                    break
            course.bring_back()
        except MeasurementError as error:
            means.load.note("action_failed", measure=self._index, message=str(error))
            raise
        finally:
            course.end()

    def _why_not(self, means: Means) -> str | None:
        """Return why nodes cannot be added, or would have no load."""
        provider = means.provider
        if Action.ADD_NODE not in provider.actions():
            return f"the provider {provider.name} cannot {Action.ADD_NODE}"
        if provider.adds() == "rw":
            return self._why_not_of_a_ring(len(provider.nodes()))
        if means.study.load.reads == "rw":
            return 'load.reads is "rw": nothing runs on read-only nodes'
        if means.study.load.balance == "first":
            return 'load.balance is "first": every session takes the same node'
        stay = len(provider.endpoints("ro"))
        if Action.REMOVE_NODE in provider.actions():
            stay -= sum(role == "ro" for role in provider.nodes().values())
        writers = len(provider.endpoints("rw")) if self._settings.reads == "all" else 0
        return self._too_few(stay + self._settings.nodes + writers)

    def _why_not_of_a_ring(self, nodes: int) -> str | None:
        if self._settings.rounds > 1:
            return "rounds leads the load to fewer nodes, and the data of a ring is on all of them"
        return self._too_few(nodes + self._settings.nodes)

    def _too_few(self, nodes: int) -> str | None:
        """Say so where there are more nodes than sessions."""
        if nodes <= self._settings.concurrency:
            return None
        return f"a concurrency of {self._settings.concurrency} leaves some of {nodes} nodes without a session"

    def _level(self, course: NodesCourse, place: int, urls: tuple[str, ...]) -> Load:
        mix, weights = list(self._mixes.items())[place]
        return Load(
            concurrency=float(self._settings.concurrency),
            mix=weights,
            access=self._access[mix],
            endpoints=course.led_to(urls),
        )

    def _repeat(self, means: Means, course: NodesCourse, repetition: int) -> None:
        of = self._settings
        first = (repetition - 1) * of.rounds + 1
        steps = []
        for added in range(of.nodes + 1):
            if added:
                course.add(repetition)
            steps.append((course.endpoints(), course.nodes()))
            self._measure(means, course, *steps[-1], first)
            means.load.wait()
        for later in range(first + 1, first + of.rounds):
            for urls, nodes in steps:
                self._measure(means, course, urls, nodes, later)
        means.load.wait()

    def _measure(
        self, means: Means, course: NodesCourse, urls: tuple[str, ...], nodes: int, repetition: int
    ) -> None:
        """Measure all mixes with reads on some nodes; each round is a repetition of what is measured."""
        of = self._settings
        for place, mix in enumerate(self._mixes):
            name, level = f"{mix} nodes={nodes}", self._level(course, place, urls)
            labels = self.labels(
                self._index,
                mix=name,
                of_mix=mix,
                nodes=nodes,
                adds=means.provider.adds(),
                reads=of.reads,
                concurrency=of.concurrency,
                repetition=repetition,
            )
            if of.warmup > 0:
                means.load.phase(f"{name} warm-up", "warm_up", of.warmup, level, labels)
            means.load.phase(name, "measure", of.duration, level, labels)

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read the TPS with each number of nodes, the gain and the start-up time of each, and E2."""
        return read_scaleout(stored, self._settings.nodes, self._settings.delta)
