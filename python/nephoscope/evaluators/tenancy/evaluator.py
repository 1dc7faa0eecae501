"""The evaluator ``tenancy`` (T): patterns of load on several tenants, each alone against all together, fairness.

METRICS, section 3; CloudyBench, sections II-D and II-G, equation 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from nephoscope.errors import InputError
from nephoscope.evaluators.base import Evaluator, Means, Measurements, Stored
from nephoscope.evaluators.connected import absent_for
from nephoscope.evaluators.points import read_points
from nephoscope.evaluators.search import SearchSettings, ask_step, describe_saturation, search, searched
from nephoscope.evaluators.tenancy.patterns import PATTERNS, PatternName, contended, pattern_of
from nephoscope.evaluators.tenancy.reading import TenancyFigures
from nephoscope.measuring.room import Demand
from nephoscope.settings.loads import MOST_CONCURRENCY, AccessSetting, Load, MixSetting, UniformAccess
from nephoscope.settings.units import Duration, one_as_list
from nephoscope.study.reading import MeasureSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from nephoscope.engine.workload import DescribedWorkload

_Patterns = dict[str, list[list[int]]]
_LARGE = 10_000
"""A saturation of which a pattern's levels are shares without rounding."""
_Sessions = Annotated[int, Field(ge=0, le=MOST_CONCURRENCY)]


class TenancySettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "tenancy"``."""

    evaluator: Literal["tenancy"] = "tenancy"
    mix: MixSetting = "RW"
    """Which transactions run: see [mixes](#mixes)."""
    patterns: Annotated[list[PatternName], BeforeValidator(one_as_list)] = Field(default=list(PATTERNS))
    """The patterns that are gone through: see [patterns](#patterns-of-tenancy)."""
    saturation: Literal["search"] | Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] | None = None
    """τ, the concurrency at which the system reaches its limit, or ``"search"``: it is searched for with the first
    tenant, as far as the server has room for all patterns; the paper's 330 and 100 sessions if left out."""
    search: SearchSettings = Field(default_factory=SearchSettings)
    """How saturation is searched for: see [search](#measuresearch)."""
    custom: dict[
        str, Annotated[list[Annotated[list[_Sessions], Field(min_length=1)]], Field(min_length=1)]
    ] = Field(default_factory=dict)
    """Patterns of one's own: a list for each tenant, of its sessions in each slot."""
    slot: Duration = 60.0
    """How long a slot lasts."""
    warmup: Duration = 5.0
    """How long the load of the first slot runs before it counts, and that of a tenant alone."""
    alone: bool = True
    """Whether each tenant is also measured alone, at its concurrency beside others, for the interference."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often all patterns are gone through."""
    access: AccessSetting = Field(default_factory=UniformAccess)
    """Which keys transactions touch: see [access distributions](#access-distributions)."""

    @field_validator("custom")
    @classmethod
    def _rectangular(cls, custom: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        for name, pattern in custom.items():
            if name in PATTERNS:
                raise ValueError(f"{name} is the name of a pattern that there is already")
            if len({len(tenant) for tenant in pattern}) > 1:
                raise ValueError(f"every tenant of {name} needs the same number of slots")
            if not any(map(sum, pattern)):
                raise ValueError(f"nobody has a session in {name}")
        return custom

    @model_validator(mode="after")
    def _has_patterns(self) -> Self:
        if not self.patterns and not self.custom:
            raise ValueError("it needs at least one pattern")
        if len(set(self.patterns)) < len(self.patterns):
            raise ValueError("a pattern is there twice; repetitions say how often each is measured")
        if self.slot <= 0:
            raise ValueError("a slot needs a length above 0")
        return self


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
        # Who is not loaded gives his connections back: the others may need their places.
        general = {"*": Load(mix=self._mix, access=self._settings.access, release=True)}
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
        # A point has the load of all tenants together: what they are told apart by is the phase.
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
