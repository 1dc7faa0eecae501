"""The scores of PERFECT and their union O: formulas only, numbers in and numbers out.

METRICS, section 3; CloudyBench, section II-G, equations 1 to 8. A formula returns ``Absent`` with its reason
where what was measured does not define the score (no replica, one tenant, resources that cost nothing), and
raises ``ValueError`` where its numbers cannot be measurements at all (negative, infinite, an end before its
start).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from nephoscope.errors import InputError
from nephoscope.scoring.definitions import DEFINITIONS, PERFECT, TIMES
from nephoscope.statistics import SEED, geometric_mean, mean_ci, no_less_than_0

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.scoring.definitions import ScoreName

DEFAULT_DELTA = 1000.0
"""TPS per step of E2 (delta of equation 5): a score of 20 is 20,000 TPS more per read-only node."""

_LEAST_REPEATED = 2
"""The fewest repetitions that have a spread."""

DEFAULT_RESOLUTION_S = 1e-6
"""The resolution of the instrument: the unit of its histograms (METRICS, section 1)."""


class Score(BaseModel):
    """A score as ``scores.json`` holds it."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    value: float
    unit: str
    ci95: tuple[float, float] | None
    """95 % confidence interval, in the score's unit; ``None`` where nothing is known of the spread."""
    repetitions: int = Field(ge=1)
    detail: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.ci95 is not None and self.ci95[0] > self.ci95[1]:
            raise ValueError(f"ci95 is {self.ci95}; allowed: the low end first")
        return self


class Absent(BaseModel):
    """A score that could not be measured, and why, for ``absent`` of ``scores.json``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reason: str = Field(min_length=1)


def p_score(mean_tps: float, cost_per_minute: float) -> float | Absent:
    """P: mean TPS over the cost per minute of CPU, memory, storage, IOPS and network (equation 1).

    In TPS per $/min, higher is better. P* is the same with the cost per minute of a ``Bill``.
    """
    _check("a mean TPS", mean_tps)
    _check("a cost per minute", cost_per_minute)
    if cost_per_minute == 0:
        return Absent(reason="the system's resources cost nothing by this price book")
    return mean_tps / cost_per_minute


def e1_score(slot_tps: Sequence[float], cost_of_window: float) -> float | Absent:
    """E1: mean TPS over a pattern's slots of equal length, over what CPU, memory and IOPS cost (equation 2).

    ``cost_of_window`` is in dollars for the whole cost window, 10 minutes from the pattern's start by
    default, so that resources which are released slowly are charged (``allocated_cost``). In TPS per $,
    higher is better.
    """
    for tps in slot_tps:
        _check("a slot's TPS", tps)
    _check("the cost of a window", cost_of_window)
    if not slot_tps:
        return Absent(reason="the pattern has no slot")
    if cost_of_window == 0:
        return Absent(reason="CPU, memory and IOPS cost nothing over the window")
    return math.fsum(slot_tps) / len(slot_tps) / cost_of_window


def f_score(injected_s: Sequence[float], service_back_s: Sequence[float | None]) -> float | Absent:
    """F: mean over failures of the time from the fault's injection to the service back (equation 3).

    Both in seconds on one clock, one of each per failure, ``None`` where the service did not come back: the
    score is then absent, since a mean over the others would reward the failure. In seconds, lower is better.
    """
    return _mean_wait(injected_s, service_back_s, "the service did not come back")


def r_score(
    service_back_s: Sequence[float | None],
    tps_back_s: Sequence[float | None],
    missing: str = "the TPS did not come back",
) -> float | Absent:
    """R: mean over failures of the time from the service back to the TPS back (equation 4).

    As for `f_score`. In seconds, lower is better; 0 where the TPS was never missed. ``missing`` is the reason of a
    score that is absent because a recovery was not seen.
    """
    starts = [start for start in service_back_s if start is not None]
    if len(starts) < len(service_back_s):
        failure = f"failure {service_back_s.index(None) + 1} of {len(service_back_s)}"
        return Absent(reason=f"the service did not come back after {failure}")
    return _mean_wait(starts, tps_back_s, missing)


def e2_score(tps_by_nodes: Sequence[float], delta: float = DEFAULT_DELTA) -> float | Absent:
    """E2: mean gain of TPS per read-only node that is added, in units of ``delta`` TPS (equation 5).

    ``tps_by_nodes[i]`` is the TPS with i read-only nodes, from 0 to lambda. The sum telescopes: only the
    first and the last count, and the others tell where the gain stops. Below 0 where nodes cost throughput;
    higher is better.
    """
    if not (math.isfinite(delta) and delta > 0):
        raise ValueError(f"delta is {delta}; allowed: any positive, finite number")
    for tps in tps_by_nodes:
        _check("a TPS", tps)
    nodes = len(tps_by_nodes) - 1
    if nodes < 1:
        return Absent(reason="no read-only node was added")
    return (tps_by_nodes[-1] - tps_by_nodes[0]) / (nodes * delta)


def c_score(insert_s: float, update_s: float, delete_s: float, replicas: int) -> float | Absent:
    """C: the mean lags of inserts, updates and deletes, added up, over the number of replicas (equation 6).

    In seconds, as O takes it (Table IX prints milliseconds); lower is better.
    """
    for kind, lag in (("an insert", insert_s), ("an update", update_s), ("a delete", delete_s)):
        _check(f"{kind} lag", lag)
    if replicas < 0:
        raise ValueError(f"{replicas} replicas; allowed: 0 and above")
    if replicas == 0:
        return Absent(reason="no read-only endpoint to lag behind")
    return (insert_s + update_s + delete_s) / replicas


def t_score(tenant_tps: Sequence[float], costs_per_minute: Sequence[float]) -> float | Absent:
    """T: geometric mean of the tenants' mean TPS, over the sum of their costs per minute (equation 7).

    The root is of the TPS alone, the reading that reproduces Table VII. One cost per tenant, or a single one
    for all where they share their resources. In TPS per $/min, higher is better; 0 where any tenant got
    nothing.
    """
    for tps in tenant_tps:
        _check("a tenant's TPS", tps)
    for cost in costs_per_minute:
        _check("a cost per minute", cost)
    if len(tenant_tps) < 2:  # noqa: PLR2004 - tenancy begins with two
        return Absent(reason="one tenant only" if tenant_tps else "no tenant")
    if len(costs_per_minute) not in {1, len(tenant_tps)}:
        raise ValueError(
            f"{len(costs_per_minute)} costs for {len(tenant_tps)} tenants; allowed: one each, or one for all"
        )
    total = math.fsum(costs_per_minute)
    if total == 0:
        return Absent(reason="the tenants' resources cost nothing by this price book")
    return geometric_mean(tenant_tps) / total


def over_repetitions(
    name: ScoreName,
    values: Sequence[float | Absent],
    *,
    within: tuple[float, float] | None = None,
    detail: Mapping[str, Any] | None = None,
    seed: int = SEED,
) -> Score | Absent:
    """Sum up a score's repetitions: their mean and its 95 % confidence interval (`mean_ci`).

    ``within`` is the interval from inside a single repetition (`block_bootstrap_ci`, in the score's unit) and
    is used only for a single repetition. One absent repetition makes the score absent, with its reason:
    omitting it would select the repetitions that succeeded.
    """
    numbers = [value for value in values if not isinstance(value, Absent)]
    for place, value in enumerate(values, start=1):
        if isinstance(value, Absent):
            where = f"repetition {place}: " if len(values) > 1 else ""
            return Absent(reason=where + value.reason)
    if not numbers:
        return Absent(reason="not measured")
    estimate = mean_ci(numbers, seed)
    ci95 = within if len(numbers) == 1 else estimate.ci95
    return Score(
        value=estimate.mean,
        unit=DEFINITIONS[name].unit,
        # Added nodes may cost throughput; no other score is below 0.
        ci95=ci95 if DEFINITIONS[name].is_signed else no_less_than_0(ci95),
        repetitions=len(numbers),
        detail={**(detail or {}), **({"by_repetition": numbers} if len(numbers) > 1 else {})},
    )


def o_score(
    scores: Mapping[ScoreName, Score | Absent],
    *,
    scale_factor: float = 1.0,
    weights: Mapping[ScoreName, float] | None = None,
    resolution_s: Mapping[ScoreName, float] | None = None,
) -> Score | Absent:
    """O: scale factor times log10 of P T E1 E2 / (R F C), each to the power of its weight (equation 8).

    R, F and C are in seconds. Weights are 1 where not given; a weight of 0 takes a score out of the sum, yet
    it must have been measured. O is absent where any of the seven is, or where P, E1, E2 or T is not above 0
    (a system that loses throughput by every added node has no logarithm). Times below the resolution (1
    microsecond, or what ``resolution_s`` says for R, F or C) are floored at it, and ``detail["floored"]``
    names them.

    The interval (``detail["interval"]`` describes it). The scores share a machine, whose speed moves all of them;
    treating their errors as independent would make the interval too narrow. If all scores have the same number of
    repetitions (``detail["by_repetition"]``), the interval is that of the repetitions' own O, which holds for any
    correlation. Otherwise each score's interval becomes an interval of its term, on the scale of the logarithm, and the
    distances of the ends from the terms are added, downwards and upwards apart: Zou and Donner's MOVER (Statistics in
    Medicine 27, 2008) with all correlations at 1, the widest interval of any correlation. It keeps skew. O has no
    interval if a score has none, or if that of P, E1, E2 or T reaches 0; ``detail["no_interval"]`` gives the reason.
    The interval of a time ends at its resolution. The interval of a time below its resolution reaches from the
    resolution down to a microsecond.

    Raises ``InputError`` for a weight or a resolution that cannot be used, or a scale factor not above 0.
    """
    powers = _settings("weight", weights, PERFECT, default=1.0, zero_allowed=True)
    floors = _settings("resolution", resolution_s, TIMES, default=DEFAULT_RESOLUTION_S, zero_allowed=False)
    if not (math.isfinite(scale_factor) and scale_factor > 0):
        raise InputError(f"a scale factor of {scale_factor}; allowed: any positive, finite number")
    measured = _measured(scores, powers)
    if isinstance(measured, Absent):
        return measured
    used = {name: score for name, score in measured.items() if powers[name] > 0}
    terms = {name: _term(name, score, scale_factor * powers[name], floors) for name, score in used.items()}
    value = math.fsum(term[1] for term in terms.values())
    detail: dict[str, Any] = {
        "scale_factor": scale_factor,
        "weights": powers,
        "terms": {name: term[1] for name, term in terms.items()},
        "floored": {name: floors[name] for name in TIMES if name in used and used[name].value < floors[name]},
    }
    gaps = {name: score for name, score in used.items() if _ends(name, score, floors) is None}
    if gaps:
        detail["no_interval"] = _why_no_interval(gaps)
    ci95 = None
    if not gaps:
        of_each = _o_by_repetition(used, {name: scale_factor * powers[name] for name in used}, floors)
        ci95, detail["interval"] = _interval_of_o(used, terms, of_each)
        if of_each:
            detail["by_repetition"] = of_each
    return Score(
        value=value,
        unit=DEFINITIONS["O"].unit,
        ci95=ci95,
        repetitions=min(score.repetitions for score in measured.values()),
        detail=detail,
    )


def lacking(scores: Mapping[ScoreName, Score | Absent]) -> Absent | None:
    """Say which of the seven scores O lacks, where the reasons stand beside them; None where it lacks none."""
    missing = [name for name in PERFECT if isinstance(scores[name], Absent)]
    if not missing:
        return None
    verb = "is" if len(missing) == 1 else "are"
    return Absent(reason=f"it needs every score, and {', '.join(missing)} {verb} absent")


def _measured(
    scores: Mapping[ScoreName, Score | Absent], powers: Mapping[ScoreName, float]
) -> dict[ScoreName, Score] | Absent:
    """Gather all seven scores, or every reason why they do not make an O."""
    measured: dict[ScoreName, Score] = {}
    reasons = []
    for name in PERFECT:
        score = scores.get(name, Absent(reason="not measured"))
        if isinstance(score, Absent):
            reasons.append(f"{name} is absent ({score.reason})")
        elif name not in TIMES and score.value <= 0 and powers[name] > 0:
            reasons.append(f"{name} is {score.value:g}, which has no logarithm")
        else:
            measured[name] = score
    return Absent(reason="; ".join(reasons)) if reasons else measured


def _why_no_interval(gaps: Mapping[ScoreName, Score]) -> str:
    """Name the scores whose intervals leave O without one."""
    without = [name for name, score in gaps.items() if score.ci95 is None]
    reasons = [f"{', '.join(without)} {'have' if len(without) > 1 else 'has'} none"] if without else []
    for name, score in gaps.items():
        if score.ci95 is not None:
            low, high = score.ci95
            below = "below 0" if low < 0 else "0"
            reasons.append(
                f"that of {name} reaches {below} ({low:.3g} … {high:.3g}), where there is no logarithm"
            )
    return "; ".join(reasons)


def _o_by_repetition(
    used: Mapping[ScoreName, Score], factors: Mapping[ScoreName, float], floors: Mapping[ScoreName, float]
) -> list[float] | None:
    """Return the O of each repetition; None unless all scores have as many repetitions, each with a logarithm."""
    columns = {name: score.detail.get("by_repetition") or [] for name, score in used.items()}
    number = min(map(len, columns.values()), default=0)
    for name, values in columns.items():
        # Of times below the resolution it is not known how far below.
        if (
            number < _LEAST_REPEATED
            or len(values) != number
            or min(values) <= 0
            or min(values) < floors.get(name, 0)
        ):
            return None
    signs = {name: -factors[name] if name in TIMES else factors[name] for name in used}
    return [
        math.fsum(signs[name] * math.log10(values[place]) for name, values in columns.items())
        for place in range(number)
    ]


def _interval_of_o(
    used: Mapping[ScoreName, Score],
    terms: Mapping[ScoreName, tuple[float, float, float]],
    of_each: Sequence[float] | None,
) -> tuple[tuple[float, float], dict[str, Any]]:
    """Make the interval of O and name its assumption, beside the interval for independent errors."""
    value = math.fsum(term[1] for term in terms.values())
    below, above = ([abs(term[1] - term[end]) for term in terms.values()] for end in (0, 2))
    told: dict[str, Any] = {
        "if_independent": (value - math.hypot(*below), value + math.hypot(*above)),
        "within_one": [name for name, score in used.items() if score.repetitions == 1],
    }
    estimate = mean_ci(of_each) if of_each else None
    if estimate is None or estimate.ci95 is None:
        told["assumes"] = (
            "no scores are independent: it is the widest that any correlation of their errors gives"
        )
        return (value - math.fsum(below), value + math.fsum(above)), told
    low, high = (end - estimate.mean for end in estimate.ci95)
    told["assumes"] = (
        f"the O of {estimate.count} repetitions, however the scores move together from one to the next"
    )
    return (value + min(low, 0.0), value + max(high, 0.0)), told


def _ends(name: ScoreName, score: Score, floors: Mapping[ScoreName, float]) -> tuple[float, float] | None:
    """Find the interval of a score on its own scale, or ``None`` where that of O cannot be made with it."""
    if score.ci95 is None:
        return None
    # The interval of a time ends at the resolution; the other scores have no logarithm at 0.
    if score.ci95[0] <= 0 and name not in floors:
        return None
    # An interval that leaves its own mean out would shorten the sum's on that side.
    return min(score.ci95[0], score.value), max(score.ci95[1], score.value)


def _term(
    name: ScoreName, score: Score, factor: float, floors: Mapping[ScoreName, float]
) -> tuple[float, float, float]:
    """Return low end, value and high end of a score's part of O; all the value where it has no interval."""
    low, high = _ends(name, score, floors) or (score.value, score.value)
    floor = floors.get(name, 0.0)
    # An interval that was cut off at 0 ends at the resolution: nothing lies below.
    lowest = floor if low <= 0 else min(low, floor)
    if name in TIMES and score.value < floor:
        lowest = min(DEFAULT_RESOLUTION_S, floor)
    below, value, above = (
        factor * math.log10(max(x, least))
        for x, least in ((low, lowest), (score.value, floor), (high, floor))
    )
    return (-above, -value, -below) if name in TIMES else (below, value, above)


def _settings(
    what: str,
    given: Mapping[ScoreName, float] | None,
    names: Sequence[ScoreName],
    *,
    default: float,
    zero_allowed: bool,
) -> dict[ScoreName, float]:
    """Fill in defaults and check the given values."""
    given = given or {}
    for name, value in given.items():
        if name not in names:
            raise InputError(f"a {what} for {name!r}; allowed: {', '.join(names)}")
        if not (math.isfinite(value) and (value > 0 or (zero_allowed and value == 0))):
            allowed = "0 and above" if zero_allowed else "above 0"
            raise InputError(f"the {what} of {name} is {value}; allowed: {allowed}, finite")
    return {name: given.get(name, default) for name in names}


def _mean_wait(starts: Sequence[float], ends: Sequence[float | None], missing: str) -> float | Absent:
    if len(starts) != len(ends):
        raise ValueError(f"{len(starts)} starts and {len(ends)} ends; allowed: one of each per failure")
    if not starts:
        return Absent(reason="no failure was injected")
    waits = []
    for place, (start, end) in enumerate(zip(starts, ends, strict=True), start=1):
        if end is None:
            return Absent(reason=f"{missing} after failure {place} of {len(starts)}")
        _check(f"the wait of failure {place}", end - start)
        waits.append(end - start)
    return math.fsum(waits) / len(waits)


def _check(what: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{what} is {value}; allowed: 0 and above, finite")
