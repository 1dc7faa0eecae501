"""The base of evaluators: each drives a load, and reads measurements from the stored run.

The two halves know nothing of each other but the run directory: reading a stored run again gives the same figures.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope import registry
from nephoscope.engine.probes import Endpoint, Probes, ProbeSettings
from nephoscope.settings.loads import Endpoints, Load, Reads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nephoscope.engine.loadrun import LoadRun
    from nephoscope.engine.probes import Consistency
    from nephoscope.evaluators.connected import Shortfall
    from nephoscope.evaluators.demand import Demand, Room, RoomSource
    from nephoscope.evaluators.points import Point
    from nephoscope.evaluators.stored import Stored
    from nephoscope.scoring.definitions import ScoreName
    from nephoscope.scoring.formulas import Absent, Score
    from nephoscope.settings.actions import Action
    from nephoscope.settings.base import Role
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.reading import Study
    from nephoscope.study.workload import DescribedWorkload
    from nephoscope.systems.base import Provider, System

_REST_S = 0.2
"""How long a load rests, in s: enough to close its connections."""


@dataclass(frozen=True)
class Means:
    """The means of an evaluator: the load, the provider and the system."""

    load: LoadRun
    provider: Provider
    system: System
    """As it is when the evaluator begins: nodes may have come or gone since the start."""
    study: Study
    ro_of: Callable[[System], tuple[str, ...]]
    """Gives, for a state of the system, the read-only URLs of the tenant that is loaded."""
    rooms: RoomSource | None = None
    """How many sessions the servers accept, if that was asked."""

    def room(self, mix: Mapping[str, float]) -> Room | None:
        """Return the room for sessions of the first tenant; None if it is not known."""
        return self.rooms.of(mix) if self.rooms is not None else None

    def unsupported(self, index: int, message: str) -> None:
        """Store why an entry of ``[[measure]]`` cannot be measured on this system, for `Stored.why_not`."""
        self.load.note("unsupported", measure=index, message=message)

    def can(self, index: int, actions: Iterable[Action]) -> bool:
        """Tell whether the provider can act so; where it cannot, that is stored as by `unsupported`."""
        missing = set(actions) - self.provider.actions()
        if missing:
            names = ", ".join(sorted(missing))
            self.unsupported(index, f"the provider {self.provider.name} cannot {names}")
        return not missing

    def rest(self, name: str, mix: Mapping[str, float], labels: Mapping[str, Any]) -> None:
        """Let the load rest, and wait until its connections are closed; ``mix`` is any of the workload."""
        self.load.phase(name, "pause", _REST_S, Load(concurrency=0.0, mix=mix, release=True), labels)
        self.load.wait()

    def endpoints(self, urls: Sequence[str], reads: Reads | None = None, role: Role = "ro") -> Endpoints:
        """Describe, for the tenant that is loaded, a system with these endpoints of a role.

        ``reads`` says where read-only transactions run; if left out, it is that of the study's load.
        """
        of_load = self.study.load.reads
        reads = reads or ("ro" if of_load == "auto" else of_load)
        if role == "rw":
            return Endpoints(rw=tuple(urls), reads=reads)
        return Endpoints(ro=self.ro_of(self.system.model_copy(update={"ro": tuple(urls)})), reads=reads)

    def probes(
        self,
        settings: ProbeSettings | None = None,
        *,
        availability: bool = True,
        lag: bool = False,
        consistency: Consistency | None = None,
        watch: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> Probes:
        """Make probes of the system's endpoints, on the load's clock and into its run: a context for a running load.

        ``watch`` is called with each row of ``probes.parquet`` as it comes, from another thread.
        """
        return Probes(
            Endpoint.of(self.system),
            self.load.writer,
            self.load.origin_ns,
            settings or ProbeSettings(),
            availability=availability,
            lag=lag,
            consistency=consistency,
            watch=watch,
        )


@dataclass
class Measurements:
    """An evaluator's results from a run, for ``scores.json``."""

    scores: dict[ScoreName, Score | Absent] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    saturation: dict[str, dict[str, Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    shortfalls: list[Shortfall] = field(default_factory=list)
    """Measured phases that do not count because sessions had no connection."""
    details: dict[str, Any] = field(default_factory=dict)
    """All other results, by the evaluator's name: for tables and the report."""


class Evaluator(ABC):
    """One entry of a study's ``[[measure]]``."""

    name: ClassVar[str]
    """How a study names it."""
    summary: ClassVar[str]
    """One line for ``nephoscope systems``."""
    settings_type: ClassVar[type[MeasureSettings]]

    @abstractmethod
    def __init__(self, settings: Any, workload: DescribedWorkload, index: int) -> None:  # noqa: ANN401 - each its own type
        """Take validated settings and check them against the workload. Raises ``InputError``."""

    def check_tenants(self, number: int) -> None:
        """Take how many tenants the study has, before anything is touched. Raises ``InputError``.

        By default a phase loads the first tenant alone.
        """
        del number

    @property
    def streams(self) -> int:
        """How many loads the first tenant has at a time, at the most: see `LoadRun.phase`."""
        return 1

    @property
    def is_scheduled(self) -> bool:
        """Whether all phases and their lengths are known beforehand: two systems can go through them together."""
        return False

    def demands(self, sessions: int) -> Iterable[Demand]:
        """List the sessions that each step wants, as far as known beforehand; an open load has ``sessions``.

        A search for saturation adapts to the room.
        """
        del sessions
        return ()

    @abstractmethod
    def seconds(self) -> float:
        """Return the expected duration, in s, as far as known beforehand."""

    @abstractmethod
    def drive(self, means: Means) -> None:
        """Drive the load, the probes and the provider. Raises ``MeasurementError``."""

    @abstractmethod
    def read(self, stored: Stored) -> Measurements:
        """Read the measurements from the stored run, and from nothing else."""

    def labels(self, index: int, **labels: Any) -> Mapping[str, Any]:  # noqa: ANN401 - whatever JSON can hold
        """Label a phase, so that ``read`` finds it again."""
        return {"measure": index, **labels}


def evaluator_class(name: str) -> type[Evaluator]:
    """Return the class of an evaluator. Raises ``InputError``."""
    loaded: type[Evaluator] = registry.load("evaluators", name)
    return loaded
