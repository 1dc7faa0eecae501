"""The evaluator ``tenancy`` (T): patterns of load on several tenants, each alone against all together, fairness.

METRICS, section 3; CloudyBench, sections II-D and II-G, equation 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from nephoscope.errors import InputError
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.connected import absent_for
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.points import read_points
from nephoscope.evaluators.search import ask_step, describe_saturation, search, searched
from nephoscope.evaluators.tenancy.patterns import PATTERNS, contended, pattern_of
from nephoscope.evaluators.tenancy.reading import TenancyFigures
from nephoscope.evaluators.tenancy.settings import TenancySettings
from nephoscope.settings.loads import Load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload

_Patterns = dict[str, list[list[int]]]
_LARGE = 10_000
"""A saturation of which a pattern's levels are shares without rounding."""


class Tenancy(Evaluator):
    """Loads all tenants pattern by pattern, and each alone; scores T."""

    name: ClassVar[str] = "tenancy"
    summary: ClassVar[str] = (
        "several tenants under contention and one after another, interference, fairness, tenancy (T)"
    )
    settings_type: ClassVar[type[MeasureSettings]] = TenancySettings

    def __init__(self, settings: TenancySettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mix."""
        self._settings = settings
        self._index = index
        self._label, self._mix = workload.mix(settings.mix, f"measure.{index}.mix")
        self._access = settings.access or workload.access(self._label)
        self._tenants = 1

    def check_tenants(self, number: int) -> None:
        """Resolve the patterns for so many tenants."""
        where = f"measure.{self._index}"
        if number < 2:  # noqa: PLR2004 - tenancy begins with two
            raise InputError(f"{where}: tenancy needs two tenants at least; tenants.number is {number}")
        for name, pattern in self._settings.custom.items():
            if len(pattern) != number:
                raise InputError(
                    f"{where}.custom.{name}: it has {len(pattern)} tenants, and tenants.number is {number}"
                )
        self._tenants = number

    def _patterns(self, tau: int | None) -> _Patterns:
        """Give the patterns for a saturation; the paper's own where it is None."""
        named: _Patterns = {name: pattern_of(name, self._tenants, tau) for name in self._settings.patterns}
        return {**named, **self._settings.custom}

    @property
    def _given(self) -> int | None:
        """The saturation that the study gives; the paper's own where that is searched for, or left out."""
        return None if self._settings.saturation == "search" else self._settings.saturation

    def seconds(self) -> float:
        """All slots with their warm-up, and each tenant alone; a search is not counted, as its length is not known."""
        settings, patterns = self._settings, self._patterns(self._given)
        slots = sum(settings.warmup + settings.slot * len(pattern[0]) for pattern in patterns.values())
        alone = len(self._alone(patterns)) * (settings.warmup + settings.slot)
        return (slots + alone) * settings.repetitions

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give each slot of the patterns, but for those whose saturation is searched for."""
        del sessions
        is_searched = self._settings.saturation == "search"
        patterns = self._settings.custom if is_searched else self._patterns(self._given)
        for name, pattern in patterns.items():
            for slot, wanted in enumerate(zip(*pattern, strict=True), start=1):
                yield Demand(f"{name} slot {slot}", wanted, self._mix)

    def _alone(self, patterns: _Patterns) -> list[tuple[int, int]]:
        """List the tenants that are measured alone, each with its sessions, from both patterns and slots."""
        if not self._settings.alone:
            return []
        levels = [
            (tenant, pattern[tenant][slot])
            for pattern in patterns.values()
            for slot in contended(pattern)
            for tenant in range(len(pattern))
        ]
        return [entry for entry in dict.fromkeys(levels) if entry[1] > 0]

    # --- driving ----------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Go through the patterns, slot by slot without a pause, then through the tenants alone."""
        load = means.load
        names = load.tenants
        patterns = self._patterns(
            self._search(means) if self._settings.saturation == "search" else self._given
        )
        for repetition in range(1, self._settings.repetitions + 1):
            for pattern, levels in patterns.items():
                for slot in range(len(levels[0])):
                    sessions = [tenant[slot] for tenant in levels]
                    loads = self._loads(names, sessions)
                    name = f"{pattern} slot {slot + 1}"
                    labels = self.labels(
                        self._index,
                        mix=self._label,
                        pattern=pattern,
                        slot=slot + 1,
                        sessions=" + ".join(map(str, sessions)),
                        repetition=repetition,
                    )
                    if slot == 0 and self._settings.warmup > 0:
                        load.phase(f"{name} warm-up", "warm_up", self._settings.warmup, loads, labels)
                    load.phase(name, "measure", self._settings.slot, loads, labels)
            for tenant, level in self._alone(patterns):
                loads = self._loads(names, [level if place == tenant else 0 for place in range(len(names))])
                name = f"{names[tenant]} alone c={level}"
                labels = self.labels(
                    self._index,
                    mix=self._label,
                    alone=names[tenant],
                    sessions=str(level),
                    repetition=repetition,
                )
                if self._settings.warmup > 0:
                    load.phase(f"{name} warm-up", "warm_up", self._settings.warmup, loads, labels)
                load.phase(name, "measure", self._settings.slot, loads, labels)
        load.wait()

    def _loads(self, names: tuple[str, ...], sessions: list[int]) -> dict[str, Load]:
        """Describe the load of each tenant; one without sessions rests."""
        # A tenant without load closes its connections: the others may need them.
        general = {"*": Load(mix=self._mix, access=self._access, release=True)}
        return general | {
            name: Load(concurrency=float(count)) for name, count in zip(names, sessions, strict=True)
        }

    def _search(self, means: Means) -> int:
        """Find τ with the first tenant; its steps are stored with the label ``search``."""
        load, settings = means.load, self._settings.search

        def ask(level: int) -> int:
            loads = self._loads(load.tenants, [level, *(0 for _ in load.tenants[1:])])
            labels = self.labels(self._index, mix=self._label, concurrency=level, search=True)
            return ask_step(load, f"{self._label} c={level}", loads, labels, settings.duration)

        # All tenants of a slot together have so many times τ.
        large = self._patterns(_LARGE).items()
        shares = [
            sum(slot) / _LARGE
            for name, pattern in large
            if name in PATTERNS
            for slot in zip(*pattern, strict=True)
        ]
        room = means.room(self._mix)
        return search(load, settings, ask, room.shared(max(shares, default=1.0)) if room else None)

    # --- reading ----------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read each tenant's figures, and T."""
        read = read_points(stored, None)
        figures = TenancyFigures(stored, {one.phase for one in read.shortfalls})
        # A point has the load of all tenants together, so points are identified by their phase.
        names = {phase.number: phase.name for phase in figures.phases}
        steps = searched(stored)
        points = [
            point
            if point.phase in steps
            else point.model_copy(update={"mix": f"{point.mix} {names[point.phase]}"})
            for point in read.points
            if point.phase in names
        ]
        details = figures.describe()
        if of_search := [point for point in points if point.phase in steps]:
            short = [one for one in read.shortfalls if one.is_step]
            details["saturation"] = describe_saturation(stored, of_search, self._settings.search, short)
        return Measurements(
            scores={"T": absent_for(read.shortfalls) or figures.score()},
            points=points,
            warnings=read.warnings,
            shortfalls=read.shortfalls,
            details={"tenancy": details},
        )
