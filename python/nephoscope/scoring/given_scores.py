"""Scores from figures that a user already has: each system's PERFECT and O, and those by the actual prices.

The formulas are those of ``formulas`` and ``prices``; this module applies them to given figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nephoscope.scoring.definitions import DEFINITIONS, SCORES, STARRED, ScoreName
from nephoscope.scoring.failures import over_roles
from nephoscope.scoring.formulas import (
    Absent,
    Score,
    c_score,
    e1_score,
    e2_score,
    f_score,
    lacking,
    o_score,
    over_repetitions,
    p_score,
    r_score,
    t_score,
)
from nephoscope.scoring.offers import NotPricedError
from nephoscope.scoring.prices import Stretch, allocated_cost, bill, cost
from nephoscope.settings.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nephoscope.scoring.given import FigureFile, GivenFigure, GivenTime, MethodFigures, SystemFigures
    from nephoscope.scoring.prices import Cost, PriceBook

_PRICED = tuple(name for name in STARRED if DEFINITIONS[name].in_o)

_Found = dict[ScoreName, Score | Absent]


@dataclass(frozen=True)
class SystemScores:
    """The scores of one system; an absent score has its reason."""

    name: str
    scores: Mapping[ScoreName, Score | Absent]
    starred: Mapping[ScoreName, Score | Absent] = field(default_factory=dict)
    """P*, E1*, T* and O*; empty where the file has no actual prices for any system."""
    cost: Cost | None = None
    """The cost of the system's resources, line by line."""
    notice: str | None = None
    """The notice of the price book with the actual prices."""

    def to_json(self) -> dict[str, Any]:
        """Describe the scores for machines, as ``scores.json`` does."""
        return {
            "name": self.name,
            **_split(self.scores),
            "starred": _split(self.starred) | {"notice": self.notice},
            "cost": self.cost.model_dump(mode="json") if self.cost else None,
        }


def _split(found: Mapping[ScoreName, Score | Absent]) -> dict[str, Any]:
    return {
        "scores": {
            name: one.model_dump(mode="json") for name, one in found.items() if isinstance(one, Score)
        },
        "absent": {name: one.reason for name, one in found.items() if isinstance(one, Absent)},
    }


def score_systems(
    figures: FigureFile, book: PriceBook, starred: Mapping[str, PriceBook]
) -> list[SystemScores]:
    """Score every system of a file. ``starred`` has the price books of the actual prices, by the systems' names."""
    has_stars = bool(starred) or any(_names_actual_prices(system) for system in figures.system)
    return [
        _score(system, figures.method, book, starred.get(system.name), has_stars=has_stars)
        for system in figures.system
    ]


def _names_actual_prices(system: SystemFigures) -> bool:
    return (
        any(getattr(system.starred_scores, name, None) is not None for name in _PRICED)
        or system.starred_cost_per_minute is not None
        or any(entry.starred_cost is not None for entry in system.elasticity)
        or (system.tenants is not None and bool(system.tenants.starred_costs_per_minute))
    )


def _score(
    system: SystemFigures,
    method: MethodFigures,
    book: PriceBook,
    starred: PriceBook | None,
    *,
    has_stars: bool,
) -> SystemScores:
    declared = cost(system.resources, book) if system.resources else None
    scores: _Found = {
        "P": _p(system, method, declared.per_minute if declared else system.cost_per_minute),
        "E1": _e1(system, book),
        "R": _r(system),
        "F": _f(system),
        "E2": _e2(system, method.delta),
        "C": _c(system),
        "T": _t(system, _tenant_costs(system, book)),
    }
    for name in SCORES:
        if given := getattr(system.scores, name, None):
            scores[name] = _given(name, given)
        elif name in system.absent:
            scores[name] = Absent(reason=system.absent[name])
        else:
            scores.setdefault(name, Absent(reason="not measured"))
    scores["O"] = _o(scores, method)
    stars = _starred(system, method, starred, scores) if has_stars else {}
    notice = f"{starred.name}: {starred.notice}" if starred and starred.notice else None
    return SystemScores(system.name, scores, stars, declared, notice)


def _starred(
    system: SystemFigures,
    method: MethodFigures,
    book: PriceBook | None,
    scores: Mapping[ScoreName, Score | Absent],
) -> _Found:
    """Score by the actual prices; the other scores are not changed by them."""
    makers: dict[ScoreName, Callable[[], Score | Absent]] = {
        "P": lambda: _p(system, method, _starred_cost(system, book)),
        "E1": lambda: _e1(system, book, starred=True),
        "T": lambda: _t(system, _starred_tenant_costs(system, book)),
    }
    found: _Found = {}
    for name, make in makers.items():
        try:
            found[name] = make()
        except NotPricedError as error:
            found[name] = Absent(reason=str(error))
    for name in _PRICED:
        if given := getattr(system.starred_scores, name, None):
            found[name] = _given(name, given)
        elif name in system.absent:
            found[name] = Absent(reason=system.absent[name])
    found["O"] = _o({**scores, **found}, method)
    return {name: found.get(name, scores[name]) for name in STARRED}


def _given(name: ScoreName, given: GivenFigure | GivenTime) -> Score:
    ends = (given.ci95[0], given.ci95[1]) if given.ci95 else None
    return Score(
        value=given.value,
        unit=DEFINITIONS[name].unit,
        ci95=ends,
        repetitions=given.repetitions,
        detail={"given": True},
    )


def _o(scores: Mapping[ScoreName, Score | Absent], method: MethodFigures) -> Score | Absent:
    return lacking(scores) or o_score(scores, scale_factor=method.scale_factor, weights=method.weights)


# --- P ------------------------------------------------------------------------------------------------------------


def _p(system: SystemFigures, method: MethodFigures, per_minute: float | Absent | None) -> Score | Absent:
    if not system.throughput:
        return Absent(reason="the file has no throughput")
    if isinstance(per_minute, Absent):
        return per_minute
    if per_minute is None:
        return Absent(reason="neither resources nor cost_per_minute is known")
    by_mix: dict[str, list[list[float]]] = {}
    for entry in system.throughput:
        by_mix.setdefault(entry.mix, []).append(entry.tps)
    mixes = {mix: _tps_of_mix(levels, method) for mix, levels in by_mix.items()}
    repetitions = [_mean(values) for values in zip(*mixes.values(), strict=True)]
    detail = {
        "cost_per_minute": per_minute,
        "mixes": {
            mix: {"tps": _mean(tps), "p": found}
            for mix, tps in mixes.items()
            if not isinstance(found := p_score(_mean(tps), per_minute), Absent)
        },
    }
    return over_repetitions("P", [p_score(tps, per_minute) for tps in repetitions], detail=detail)


def _tps_of_mix(levels: Sequence[Sequence[float]], method: MethodFigures) -> list[float]:
    """Return the TPS of a mix in each repetition: of its best concurrency, or the mean over all."""
    if method.p == "peak":
        return list(max(levels, key=math.fsum))
    return [_mean(values) for values in zip(*levels, strict=True)]


def _starred_cost(system: SystemFigures, book: PriceBook | None) -> float | Absent:
    if system.starred_cost_per_minute is not None:
        return system.starred_cost_per_minute
    if book is None or system.resources is None:
        return Absent(reason="the actual cost per minute is not known")
    if system.held is None:
        return Absent(reason="held does not say for how long the resources were billed")
    return bill(system.resources, book, system.held).per_minute


# --- E1 -----------------------------------------------------------------------------------------------------------


def _e1(system: SystemFigures, book: PriceBook | None, *, starred: bool = False) -> Score | Absent:
    if not system.elasticity:
        return Absent(reason="the file has no pattern of elasticity")
    patterns: dict[str, float] = {}
    for place, entry in enumerate(system.elasticity, start=1):
        dollars = entry.starred_cost if starred else entry.cost
        if dollars is None and entry.allocation and book is not None:
            steps = [
                Stretch(step.duration, Resources.model_validate(step.model_dump(exclude={"duration"})))
                for step in entry.allocation
            ]
            dollars = allocated_cost(steps, book)
        name = entry.pattern or f"pattern {place}"
        if dollars is None:
            return Absent(reason=f"the actual cost of {name} is not known")
        found = e1_score(entry.slot_tps, dollars)
        if isinstance(found, Absent):
            return Absent(reason=f"{name}: {found.reason}")
        patterns[name] = found
    return over_repetitions("E1", [_mean(list(patterns.values()))], detail={"patterns": patterns})


# --- F, R, E2, C --------------------------------------------------------------------------------------------------


def _moments(system: SystemFigures) -> tuple[list[float], list[float | None], list[float | None]]:
    """Return when each fault was injected, the service was back and the TPS was back: a clock for each, from 0."""
    injected = [0.0] * len(system.failures)
    service = [None if one.failover == "never" else one.failover for one in system.failures]
    back: list[float | None] = [
        None if start is None or one.recovery is None or one.recovery == "never" else start + one.recovery
        for start, one in zip(service, system.failures, strict=True)
    ]
    return injected, list(service), back


def _by_role(system: SystemFigures) -> dict[str, list[int]]:
    """Group the places of failures by the role of the node that failed."""
    places: dict[str, list[int]] = {}
    for at, failure in enumerate(system.failures):
        places.setdefault(failure.role, []).append(at)
    return places


def _f(system: SystemFigures) -> Score | Absent:
    injected, service, _ = _moments(system)
    if not injected:
        return Absent(reason="the file has no failure")
    if isinstance(gone := f_score(injected, service), Absent):
        return gone
    values = {
        role: [f_score([injected[at] for at in places], [service[at] for at in places])]
        for role, places in _by_role(system).items()
    }
    return over_roles("F", values, detail={"failures": len(injected)})


def _r(system: SystemFigures) -> Score | Absent:
    injected, service, back = _moments(system)
    if not injected:
        return Absent(reason="the file has no failure")
    if any(one.recovery is None for one in system.failures if one.failover != "never"):
        return Absent(reason="the file does not have the recovery of every failure")
    if isinstance(gone := r_score(service, back), Absent):
        return gone
    values = {
        role: [r_score([service[at] for at in places], [back[at] for at in places])]
        for role, places in _by_role(system).items()
    }
    return over_roles("R", values, detail={"failures": len(injected)})


def _e2(system: SystemFigures, delta: float) -> Score | Absent:
    if not system.tps_by_nodes:
        return Absent(reason="the file has no tps_by_nodes")
    return over_repetitions("E2", [e2_score(system.tps_by_nodes, delta)], detail={"delta": delta})


def _c(system: SystemFigures) -> Score | Absent:
    lag = system.lag
    if lag is None:
        return Absent(reason="the file has no lag")
    return over_repetitions("C", [c_score(lag.insert, lag.update, lag.delete, lag.replicas)])


# --- T ------------------------------------------------------------------------------------------------------------


def _t(system: SystemFigures, costs: Sequence[float] | Absent) -> Score | Absent:
    if not system.tenancy:
        return Absent(reason="the file has no pattern of tenancy")
    if isinstance(costs, Absent):
        return costs
    patterns: dict[str, float] = {}
    for place, entry in enumerate(system.tenancy, start=1):
        name = entry.pattern or f"pattern {place}"
        found = t_score(entry.tps, costs)
        if isinstance(found, Absent):
            return Absent(reason=f"{name}: {found.reason}")
        patterns[name] = found
    detail = {"cost_per_minute": math.fsum(costs), "patterns": patterns}
    return over_repetitions("T", [_mean(list(patterns.values()))], detail=detail)


def _tenant_costs(system: SystemFigures, book: PriceBook) -> list[float] | Absent:
    if system.tenants is None:
        return Absent(reason="what the tenants have is not known")
    if system.tenants.costs_per_minute:
        return list(system.tenants.costs_per_minute)
    return [cost(resources, book).per_minute for resources in system.tenants.resources]


def _starred_tenant_costs(system: SystemFigures, book: PriceBook | None) -> list[float] | Absent:
    tenants = system.tenants
    if tenants is not None and tenants.starred_costs_per_minute:
        return list(tenants.starred_costs_per_minute)
    if tenants is None or book is None or not tenants.resources:
        return Absent(reason="the tenants' actual cost is not known")
    if system.held is None:
        return Absent(reason="held does not say for how long the tenants' resources were billed")
    return [bill(resources, book, system.held).per_minute for resources in tenants.resources]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
