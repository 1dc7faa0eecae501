"""The evaluator ``scaleout``: read-only nodes that are added one by one under load, and the E2-Score.

METRICS, section 3; CloudyBench, section II-G, equation 5.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from nephoscope.errors import InputError, MeasurementError
from nephoscope.evaluators.acting import Acting
from nephoscope.evaluators.base import Evaluator, Means, Measurements, Stored
from nephoscope.evaluators.scaleout.reading import read_scaleout
from nephoscope.interrupts import Interrupted
from nephoscope.measuring.room import Demand
from nephoscope.scoring.formulas import DEFAULT_DELTA
from nephoscope.settings.loads import MOST_CONCURRENCY, AccessSetting, Load, Mixes, UniformAccess, each_once
from nephoscope.settings.units import Duration, describe_count
from nephoscope.study.reading import MeasureSettings
from nephoscope.systems.base import Action

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from nephoscope.engine.workload import DescribedWorkload
    from nephoscope.systems.base import Done

_PATIENCE_S = 30.0
"""How long an action is waited for that was interrupted, before what it has done is undone; and then sessions that are
still at a node."""
_BEGIN_S = 0.5
"""How long the load runs at least before a node is taken away."""


class ScaleoutSettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "scaleout"``."""

    evaluator: Literal["scaleout"] = "scaleout"
    nodes: Annotated[int, Field(ge=1, le=100)] = 2
    """How many read-only nodes are added, one by one."""
    mixes: Mixes = Field(default=["RO"])
    """The mixes that are measured with each number of nodes; each has transactions that only read."""
    concurrency: Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] = 32
    """Transactions at a time. It should saturate all nodes: else another one has nothing to add."""
    reads: Literal["all", "ro"] = "all"
    """Where transactions run that only read: `"all"` is on the node that takes writes and all read-only ones, dealt by
    `load.writer_weight`, as in the paper; with `"ro"` they leave that node for the first read-only one."""
    access: AccessSetting = Field(default_factory=UniformAccess)
    """Which keys transactions touch: see [access distributions](#access-distributions)."""
    warmup: Duration = 5.0
    """How long the load runs before it counts, with each number of nodes."""
    duration: Duration = 30.0
    """How long it is measured with each number of nodes."""
    rounds: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often the numbers of nodes are gone through in each repetition: first as nodes come, then by leading the load
    to none, one and more of those that are there."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often all nodes are added; they are removed after each time."""
    delta: Annotated[float, Field(gt=0)] = DEFAULT_DELTA
    """δ, the unit of E2: so many TPS more per node are a score of 1."""
    limit: Duration = 600.0
    """How long adding or removing a node may take, its first transaction after that, and sessions to leave it."""

    _each_once = field_validator("mixes")(each_once)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.duration <= 0 or self.limit <= 0:
            raise ValueError("duration and limit must be above 0")
        if self.concurrency < self.nodes:
            raise ValueError(
                f"a concurrency of {self.concurrency} leaves some of {self.nodes} nodes without a session"
            )
        return self


class Scaleout(Evaluator):
    """Adds read-only nodes under load, and measures what each of them brings."""

    name: ClassVar[str] = "scaleout"
    summary: ClassVar[str] = (
        "read-only nodes added one by one under load: TPS per node (E2), linearity, time to serve"
    )
    settings_type: ClassVar[type[MeasureSettings]] = ScaleoutSettings

    def __init__(self, settings: ScaleoutSettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mixes. Raises ``InputError`` for one that never reads."""
        self._settings = settings
        self._index = index
        self._mixes = workload.mixes(settings.mixes, f"measure.{index}.mixes")
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
        """Give the load of each mix, as it is before a node comes."""
        del sessions
        for mix, weights in self._mixes.items():
            yield Demand(f"{mix} c={self._settings.concurrency}", (self._settings.concurrency,), weights)

    # --- driving --------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Add nodes one by one and measure with each number of them; then the system is as it was."""
        if reason := self._why_not(means):
            means.unsupported(self._index, reason)
            return
        course = _Course(means, self._settings, self._index)
        try:
            # Away from the nodes that are going to be taken away.
            away = self._level(means, 0, ())
            warmup = max(self._settings.warmup, _BEGIN_S)
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
        """Say why nodes cannot be added, or would have nothing to do."""
        provider = means.provider
        if Action.ADD_NODE not in provider.actions():
            return f"the provider {provider.name} cannot {Action.ADD_NODE}"
        if means.study.load.reads == "rw":
            return 'load.reads is "rw": nothing runs on read-only nodes'
        if means.study.load.balance == "first":
            return 'load.balance is "first": every session takes the same node'
        stay = len(provider.endpoints("ro"))
        if Action.REMOVE_NODE in provider.actions():
            stay -= sum(role == "ro" for role in provider.nodes().values())
        writers = len(provider.endpoints("rw")) if self._settings.reads == "all" else 0
        if (most := stay + self._settings.nodes + writers) > self._settings.concurrency:
            return (
                f"a concurrency of {self._settings.concurrency} leaves some of {most} nodes without a session"
            )
        return None

    def _level(self, means: Means, place: int, ro: tuple[str, ...]) -> Load:
        weights = list(self._mixes.values())[place]
        return Load(
            concurrency=float(self._settings.concurrency),
            mix=weights,
            access=self._settings.access,
            endpoints=means.endpoints(ro, self._settings.reads),
        )

    def _repeat(self, means: Means, course: _Course, repetition: int) -> None:
        of = self._settings
        first = (repetition - 1) * of.rounds + 1
        steps = []
        for added in range(of.nodes + 1):
            if added:
                course.add(repetition)
            steps.append(course.endpoints())
            self._measure(means, steps[-1], first)
            means.load.wait()
        for later in range(first + 1, first + of.rounds):
            for urls in steps:
                self._measure(means, urls, later)
        means.load.wait()

    def _measure(self, means: Means, urls: tuple[str, ...], repetition: int) -> None:
        """Measure all mixes with reads on some nodes; each round is a repetition of what is measured."""
        of = self._settings
        for place, mix in enumerate(self._mixes):
            name, level = f"{mix} nodes={len(urls)}", self._level(means, place, urls)
            labels = self.labels(
                self._index,
                mix=name,
                of_mix=mix,
                nodes=len(urls),
                reads=of.reads,
                concurrency=of.concurrency,
                repetition=repetition,
            )
            if of.warmup > 0:
                means.load.phase(f"{name} warm-up", "warm_up", of.warmup, level, labels)
            means.load.phase(name, "measure", of.duration, level, labels)

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read the TPS with each number of nodes, what each brought, how long it took to come, and E2."""
        return read_scaleout(stored, self._settings.nodes, self._settings.delta)


@dataclass
class _Course:
    """The nodes that come and go, so that in the end there are those that were there."""

    means: Means
    settings: ScaleoutSettings
    index: int
    added: list[str | None] = field(default_factory=list)
    """The nodes that were added and are still there; None for one without a name."""
    removed: int = 0
    """How many there were before, and are taken away for as long as it is measured."""
    acting: Acting[Done] | None = None

    def endpoints(self) -> tuple[str, ...]:
        """Tell the URLs of the read-only endpoints as they are now."""
        return self.means.provider.endpoints("ro")

    def take_all_away(self) -> None:
        """Take the read-only nodes away that are there, where the provider can; else it begins with those."""
        provider = self.means.provider
        for node in [name for name, role in provider.nodes().items() if role == "ro"]:
            if Action.REMOVE_NODE not in provider.actions():
                return
            try:
                self._act(Action.REMOVE_NODE, node)
            except MeasurementError as error:
                if self.acting is not None and self.acting.goes_on:
                    raise
                self.means.load.note(
                    "warning", message=f"{node} stays, and is there from the beginning: {error}"
                )
                return
            self.removed += 1

    def add(self, repetition: int) -> None:
        """Add a node, and let the load go there. Raises ``MeasurementError`` where it does not come to serve."""
        load, limit_s = self.means.load, self.settings.limit
        before = self.endpoints()
        done = self._act(Action.ADD_NODE, None)
        self.added.append(done.node)
        now = self.endpoints()
        if not set(now) - set(before):
            raise MeasurementError("a node was added, and there is no endpoint that was not there before")
        load.reached_s = None
        routed_s = load.set(endpoints=self.means.endpoints(now, self.settings.reads))
        until = load.elapsed + limit_s
        while load.reached_s is None and load.end is None and load.elapsed < until:
            load.pump_for(0.05)
        if load.reached_s is None:
            raise MeasurementError(f"no transaction was committed at the new node within {limit_s:g} s")
        began_s = (done.began_ns - load.origin_ns) / 1e9
        load.note(
            "scaling",
            done.began_ns,
            measure=self.index,
            repetition=repetition,
            action=str(Action.ADD_NODE),
            node=done.node,
            nodes=len(now),
            took_s=(done.ended_ns - done.began_ns) / 1e9,
            routed_s=routed_s,
            reached_s=load.reached_s,
            serve_s=load.reached_s - began_s,
        )

    def take_away(self, repetition: int, limit_s: float) -> bool:
        """Take the nodes away that were added, last first; says whether there is to be another repetition.

        Sessions have so long to leave each of them.
        """
        last = repetition == self.settings.repetitions
        if self.added and Action.REMOVE_NODE not in self.means.provider.actions():
            left = f"{describe_count(len(self.added), 'read-only node')} of this run cannot be taken away: the provider"
            message = f"{left} {self.means.provider.name} cannot {Action.REMOVE_NODE}"
            self.means.load.note("warning", message=message)
            self.added.clear()
            return False
        while self.added:
            node = self.added[-1]
            self.leave(self._without(node), limit_s)
            self._act(Action.REMOVE_NODE, node)
            self.added.pop()
        return not last

    def bring_back(self) -> None:
        """Have as many nodes again as there were before. Raises ``MeasurementError``."""
        while self.removed:
            self._act(Action.ADD_NODE, None)
            self.removed -= 1

    def end(self) -> None:
        """Leave none of the added nodes, whatever has happened; what cannot be done is told, and not raised.

        Those that were there before are not brought back where something has happened: the run is over then, and with
        it the systems that can take nodes away which they have not added.
        """
        try:
            if self.acting is not None:
                self.acting.give_up(self.means.provider, _PATIENCE_S)
            self._note_late_node()
            self.take_away(self.settings.repetitions, _PATIENCE_S)
        except MeasurementError as error:
            self.means.load.note("warning", message=f"the read-only nodes are not those of before: {error}")
        except Interrupted:
            self.means.load.note(
                "warning", message="interrupted: the read-only nodes are not those of before"
            )
            raise
        finally:
            with contextlib.suppress(MeasurementError):
                self.means.load.set(endpoints=self.means.endpoints(self.endpoints()))

    def _note_late_node(self) -> None:
        """Keep in mind a node whose coming, or going, was interrupted, and that has come or gone by now."""
        if self.acting is None:
            return
        with contextlib.suppress(MeasurementError):
            done = self.acting.result()
            if done.action is Action.ADD_NODE and done.node not in self.added:
                self.added.append(done.node)
            elif done.action is Action.REMOVE_NODE and done.node in self.added:
                self.added.remove(done.node)

    def leave(self, stay: tuple[str, ...], limit_s: float) -> None:
        """Lead the load to the nodes that stay, and wait until nobody is at another: one is going to be taken away."""
        load = self.means.load
        with contextlib.suppress(MeasurementError):
            if not load.follow(load.set(endpoints=self.means.endpoints(stay, self.settings.reads)), limit_s):
                message = (
                    f"after {limit_s:g} s there were still sessions at a node that was going to be taken away"
                )
                load.note("warning", message=message)

    def _without(self, node: str | None) -> tuple[str, ...]:
        """Tell the URLs of the read-only endpoints that stay when a node goes."""
        names = [name for name, role in self.means.provider.nodes().items() if role == "ro"]
        urls = self.endpoints()
        if len(names) == len(urls) and node in names:
            return tuple(url for name, url in zip(names, urls, strict=True) if name != node)
        return urls[:-1]

    def _act(self, action: Action, node: str | None) -> Done:
        """Do something beside the load, within the limit. Raises ``MeasurementError``."""
        provider = self.means.provider
        self.acting = Acting(lambda _: provider.act(action, node=node), str(action))
        done = self.acting.wait(self.means.load, self.settings.limit)
        self.acting = None
        return done
