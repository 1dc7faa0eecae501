"""Figures that a user already has, from which ``nephoscope score`` makes scores: a TOML file of one or more systems.

Reading it touches nothing but the file and the price books. What is wrong with it is said with its key, its value
and what is allowed, as one ``InputError``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from nephoscope.errors import InputError
from nephoscope.files import read_toml
from nephoscope.scoring.definitions import PerfectName
from nephoscope.scoring.formulas import DEFAULT_DELTA
from nephoscope.scoring.offers import Usage
from nephoscope.scoring.prices import DEFAULT_PRICE_BOOK, PriceBook, load_price_book, load_unit_costs
from nephoscope.settings.base import Settings
from nephoscope.settings.resources import Resources
from nephoscope.settings.units import Duration
from nephoscope.settings.validation import validated

if TYPE_CHECKING:
    from pydantic import BaseModel

Amount = Annotated[float, Field(ge=0)]


def _as_list(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    return value if isinstance(value, list) else [value]


def _as_figure(value: Any) -> Any:  # noqa: ANN401
    return value if isinstance(value, dict) else {"value": value}


class CostFigures(Settings):
    """``[cost]``: what resources cost."""

    price_book: str = DEFAULT_PRICE_BOOK
    """The name of a price book that comes with nephoscope, or the path of one's own, relative to this file."""
    starred: str | None = None
    """A second price book, a vendor's own prices with minimum billing periods, for P*, E1*, T* and O*."""


class MethodFigures(Settings):
    """``[method]``: how scores are made of the figures."""

    p: Literal["mean", "peak"] = "mean"
    """P of a mix with several concurrencies: of their mean TPS, as in the paper, or of the highest."""
    delta: Annotated[float, Field(gt=0)] = DEFAULT_DELTA
    """The TPS that count as 1 in E2."""
    scale_factor: Annotated[float, Field(gt=0)] = 1.0
    """The factor of O."""
    weights: dict[PerfectName, Amount] = Field(default_factory=dict)
    """The exponents of the scores in O; 1 where left out."""


class ThroughputFigures(Settings):
    """An entry of ``[[system.throughput]]``."""

    mix: str = ""
    """What the mix is called, ``RO`` or ``RW``."""
    concurrency: Annotated[float, Field(gt=0)] | None = None
    """At which concurrency it was measured."""
    tps: Annotated[list[Amount], BeforeValidator(_as_list), Field(min_length=1)]
    """Committed transactions per second; a list is one for each repetition."""


class AllocationFigures(Resources):
    """An entry of ``allocation``: resources, and how long the system had them."""

    duration: Duration
    """How long the system had these resources."""


class ElasticityFigures(Settings):
    """An entry of ``[[system.elasticity]]``: a pattern of slots of equal length."""

    pattern: str = ""
    """What the pattern is called."""
    slot_tps: Annotated[list[Amount], Field(min_length=1)]
    """The TPS of each slot."""
    cost: Amount | None = None
    """Dollars for CPU, memory and IOPS over the whole cost window."""
    starred_cost: Amount | None = None
    """The same by the actual prices, for E1*."""
    allocation: list[AllocationFigures] = Field(default_factory=list)
    """What was allocated over the cost window, stretch by stretch, in place of its cost."""

    @model_validator(mode="after")
    def _one_cost(self) -> Self:
        _one_of(self, "cost", "allocation")
        if any(step.duration <= 0 for step in self.allocation):
            raise ValueError("a stretch of allocation needs a duration above 0")
        return self


class FailureFigures(Settings):
    """An entry of ``[[system.failures]]``: one failure that was injected."""

    role: str = ""
    """Which node failed, ``rw`` or ``ro``."""
    failover: Duration | Literal["never"]
    """From the fault to the service back (F), or ``"never"``."""
    recovery: Duration | Literal["never"] | None = None
    """From the service back to the TPS back (R), or ``"never"``; R is absent where it is left out."""


class LagFigures(Settings):
    """``[system.lag]``: mean replication lag, the replicas' sum."""

    insert: Duration
    """Of inserts."""
    update: Duration
    """Of updates."""
    delete: Duration
    """Of deletes."""
    replicas: Annotated[int, Field(ge=1)] = 1
    """How many replicas there were."""


class GivenTenancy(Settings):
    """An entry of ``[[system.tenancy]]``: a pattern of load on several tenants."""

    pattern: str = ""
    """What the pattern is called."""
    tps: Annotated[list[Amount], Field(min_length=1)]
    """The mean TPS of each tenant."""


class TenantCostFigures(Settings):
    """``[system.tenants]``: what the tenants have, for T."""

    resources: list[Resources] = Field(default_factory=list)
    """What each tenant has, or one entry for all of them together."""
    costs_per_minute: list[Amount] = Field(default_factory=list)
    """In place of ``resources``: each tenant's cost, or one for all."""
    starred_costs_per_minute: list[Amount] = Field(default_factory=list)
    """The same by the actual prices, for T*."""

    @model_validator(mode="after")
    def _one_cost(self) -> Self:
        _one_of(self, "resources", "costs_per_minute")
        return self


class GivenFigure(Settings):
    """A score that is known already; a number alone is its value."""

    value: float
    """In the score's unit."""
    ci95: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    """The ends of its 95 % confidence interval."""
    repetitions: Annotated[int, Field(ge=1)] = 1
    """The number of repetitions of which it is the mean."""

    @field_validator("ci95")
    @classmethod
    def _ordered(cls, ends: list[float] | None) -> list[float] | None:
        return _in_order(ends)


class GivenTime(Settings):
    """A score that is known already and is a time; a time alone is its value."""

    value: Duration
    """The time."""
    ci95: Annotated[list[Duration], Field(min_length=2, max_length=2)] | None = None
    """The ends of its 95 % confidence interval."""
    repetitions: Annotated[int, Field(ge=1)] = 1
    """The number of repetitions of which it is the mean."""

    @field_validator("ci95")
    @classmethod
    def _ordered(cls, ends: list[float] | None) -> list[float] | None:
        return _in_order(ends)


def _in_order(ends: list[float] | None) -> list[float] | None:
    if ends is not None and ends[0] > ends[1]:
        raise ValueError("the low end stands first")
    return ends


Figure = Annotated[GivenFigure, BeforeValidator(_as_figure)]
Time = Annotated[GivenTime, BeforeValidator(_as_figure)]


class StarredFigures(Settings):
    """``[system.starred_scores]``: scores by the actual prices that are known already."""

    P: Figure | None = None
    """P*, in TPS per $/min."""
    E1: Figure | None = None
    """E1*, in TPS per $."""
    T: Figure | None = None
    """T*, in TPS per $/min."""


class ScoreFigures(StarredFigures):
    """``[system.scores]``: scores that are known already; a value, or a table of value, ci95 and repetitions."""

    P: Figure | None = None
    """In TPS per $/min."""
    E1: Figure | None = None
    """In TPS per $."""
    R: Time | None = None
    """A time."""
    F: Time | None = None
    """A time."""
    E2: Figure | None = None
    """In steps of ``delta`` TPS per node."""
    C: Time | None = None
    """A time: Table IX prints milliseconds."""
    T: Figure | None = None
    """In TPS per $/min."""


class SystemFigures(Settings):
    """An entry of ``[[system]]``: what is known of a system. A score without its figures is absent."""

    name: Annotated[str, Field(min_length=1)]
    """What the system is called."""
    resources: Resources | None = None
    """What it was given, for P: see [resources](systems.md#resources)."""
    cost_per_minute: Amount | None = None
    """In place of ``resources``: dollars per minute."""
    starred_cost_per_minute: Amount | None = None
    """The same by the actual prices, for P*."""
    held: Duration | None = None
    """How long the resources were held, which minimum billing periods are compared with, for P* and T*."""
    starred: str | None = None
    """In place of the file's `cost.starred`: a price book of this system's vendor."""
    usage: Usage = Field(default_factory=Usage)
    """The use of what a vendor's book charges by use: see [usage](studies.md#costusage)."""
    throughput: list[ThroughputFigures] = Field(default_factory=list)
    """TPS of each mix and concurrency, for P."""
    elasticity: list[ElasticityFigures] = Field(default_factory=list)
    """TPS and cost of each pattern, for E1."""
    failures: list[FailureFigures] = Field(default_factory=list)
    """Times of each failure, for F and R."""
    tps_by_nodes: list[Amount] = Field(default_factory=list)
    """The TPS with 0, 1, 2 … read-only nodes, for E2."""
    lag: LagFigures | None = None
    """Replication lag, for C."""
    tenants: TenantCostFigures | None = None
    """What the tenants have, for T."""
    tenancy: list[GivenTenancy] = Field(default_factory=list)
    """TPS of the tenants under each pattern, for T."""
    scores: ScoreFigures = Field(default_factory=ScoreFigures)
    """Scores that are known already, in place of their figures."""
    starred_scores: StarredFigures = Field(default_factory=StarredFigures)
    """Scores by the actual prices that are known already."""
    absent: dict[PerfectName, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    """The reasons for which scores could not be measured, where known."""

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if self.resources is not None and self.cost_per_minute is not None:
            raise ValueError("resources and cost_per_minute exclude each other")
        figures: dict[str, Any] = {
            "P": self.throughput,
            "E1": self.elasticity,
            "R": [failure for failure in self.failures if failure.recovery is not None],
            "F": self.failures,
            "E2": self.tps_by_nodes,
            "C": self.lag,
            "T": self.tenancy,
        }
        for name, given in figures.items():
            if given and getattr(self.scores, name) is not None:
                raise ValueError(f"scores.{name} and the figures that {name} is made of exclude each other")
            if name in self.absent and (given or getattr(self.scores, name) is not None):
                raise ValueError(f"absent.{name} says that there is no {name}, and its figures are here")
        if self.held is not None and self.held <= 0:
            raise ValueError("held needs to be above 0")
        if self.throughput and len({len(entry.tps) for entry in self.throughput}) > 1:
            raise ValueError("every entry of throughput needs the same number of repetitions")
        self._costs_match()
        return self

    def _costs_match(self) -> None:
        """Refuse costs that are neither one for all tenants nor one for each."""
        if self.tenants is None:
            return
        for key in ("resources", "costs_per_minute", "starred_costs_per_minute"):
            count = len(getattr(self.tenants, key))
            for entry in self.tenancy:
                if count not in {0, 1, len(entry.tps)}:
                    raise ValueError(
                        f"tenants.{key} has {count} entries for {len(entry.tps)} tenants; allowed: one each, or one"
                    )


def _one_of(table: BaseModel, first: str, second: str) -> None:
    given = [name for name in (first, second) if getattr(table, name) not in (None, [])]
    if len(given) != 1:
        raise ValueError(f"it needs {first} or {second}, and not both")


class FigureFile(Settings):
    """A whole file, validated."""

    cost: CostFigures
    method: MethodFigures
    system: Annotated[list[SystemFigures], Field(min_length=1)]


def read_figures(path: Path) -> tuple[FigureFile, PriceBook, dict[str, PriceBook]]:
    """Read a file of figures, its price book, and by the systems' names the books of the actual prices.

    Raises ``InputError`` that lists everything that is wrong.
    """
    figures = _validated(read_toml(path), path)
    book = load_unit_costs(_book_at(figures.cost.price_book, path.parent))
    named = {system.name: system.starred or figures.cost.starred for system in figures.system}
    loaded = {name: load_price_book(_book_at(name, path.parent)) for name in set(named.values()) if name}
    starred = {
        system.name: loaded[name].used(system.usage)
        for system in figures.system
        if (name := named[system.name]) is not None
    }
    return figures, book, starred


def _book_at(name: str, folder: Path) -> str | Path:
    is_path = name.endswith(".toml") or Path(name).name != name
    return folder / os.path.expanduser(name) if is_path else name  # noqa: PTH111 - pathlib's raises for nobody's


_TABLES: dict[str, type[Settings]] = {"cost": CostFigures, "method": MethodFigures}


def _validated(tables: dict[str, Any], path: Path) -> FigureFile:
    known = (*_TABLES, "system")
    faults = [
        f"{key}: there is no such table; tables are {', '.join(known)}" for key in tables if key not in known
    ]
    made: dict[str, Any] = {
        name: validated(model, tables.get(name, {}), name, faults) for name, model in _TABLES.items()
    }
    entries = tables.get("system", [])
    if not isinstance(entries, list) or not entries:
        faults.append("system: it needs at least one [[system]]")
        entries = []
    made["system"] = [
        validated(SystemFigures, table, f"system.{place}", faults) for place, table in enumerate(entries)
    ]
    names = [system.name for system in made["system"] if system is not None]
    faults += [
        f"system: {name!r} is there more than once" for name in dict.fromkeys(names) if names.count(name) > 1
    ]
    if faults:
        raise InputError("\n".join(f"{path}: {fault}" for fault in faults))
    return FigureFile.model_construct(**made)
