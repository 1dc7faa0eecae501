"""What a workload demands of a run: response-time limits, least shares of the mix, and the rate that it is known by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nephoscope.evaluators.points import percentile_of
from nephoscope.statistics import wilson_interval
from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nephoscope.evaluators.points import Point
    from nephoscope.store import StoredRun
    from nephoscope.study.workload import DescribedWorkload

Outcome = Literal["holds", "does not hold", "not known"]

_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_UNPACED = 'the load has no keying and think times: think = "workload" asks for them'


@dataclass(frozen=True, kw_only=True)
class _Limit:
    """A demand, beside what was measured."""

    what: str
    bound: Literal["at most", "at least", ""]
    wanted: float | None = None
    measured: float | None
    unit: str
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True)
class _Load:
    """The measured phases of a mix at one load, all repetitions together."""

    mix: str
    of_mix: str
    """The mix that the workload knows: a sweep adds its parameter to the name."""
    concurrency: float | None
    rate: float | None
    paced: bool
    """Whether sessions keep the transactions' own keying and think times."""
    phases: frozenset[int]
    seconds: float
    counts: Mapping[str, tuple[int, int]]
    """By transaction: how many were committed, and how many rolled back by their own decision."""


def limits_of(run: StoredRun, points: Sequence[Point], workload: DescribedWorkload) -> list[dict[str, Any]]:
    """Compare what a workload demands with what was measured: a row for each demand and load."""
    said = workload.description
    bounds = {of["name"]: of.get("limits") or () for of in said["transactions"]}
    mixes = {mix["name"]: mix for mix in said["mixes"]}
    rows: list[dict[str, Any]] = []
    for load in _loads(run, points):
        mix = mixes.get(load.of_mix, {})
        found = [*_response_times(run, load, bounds), *_shares(load, mix.get("at_least") or {})]
        if rate := mix.get("rate"):
            found.append(_rate(load, rate, {limit.outcome for limit in found}))
        about = {"mix": load.mix, "concurrency": load.concurrency, "rate": load.rate}
        rows += [about | vars(limit) for limit in found]
    return rows


def _loads(run: StoredRun, points: Sequence[Point]) -> Iterator[_Load]:
    """Group the points by mix and load; in a slot of a pattern the load is the pattern's."""
    labels = {phase.number: phase.labels for phase in run.phases}
    groups: dict[tuple[str, float | None, float | None, bool], list[Point]] = {}
    for point in points:
        if point.slot is None:
            paced = labels[point.phase].get("think") == "workload"
            groups.setdefault((point.mix or "", point.concurrency, point.rate, paced), []).append(point)
    for (mix, concurrency, rate, paced), members in groups.items():
        phases = frozenset(point.phase for point in members)
        seconds = sum(point.seconds for point in members)
        of_mix = labels[members[0].phase].get("of_mix") or mix
        yield _Load(mix, of_mix, concurrency, rate, paced, phases, seconds, _counts(run, phases))


def _counts(run: StoredRun, phases: frozenset[int]) -> dict[str, tuple[int, int]]:
    chosen = np.isin(run.intervals.column("phase").to_numpy(), sorted(phases))
    rows = run.intervals.filter(chosen)
    sums = rows.group_by("transaction").aggregate([("committed", "sum"), ("aborted", "sum")])
    return {
        row["transaction"]: (row["committed_sum"] or 0, row["aborted_sum"] or 0) for row in sums.to_pylist()
    }


def _response_times(
    run: StoredRun, load: _Load, bounds: Mapping[str, Sequence[Mapping[str, float]]]
) -> Iterator[_Limit]:
    """Response times, from the intended start; transactions that had not ended with their phase are included."""
    for name, limits in bounds.items():
        if not limits or name not in load.counts:
            continue
        ended = run.merged(Selection(phases=load.phases, transaction=name))
        late = run.merged(Selection(phases=load.phases, transaction=name, kind="censored"))
        for limit in limits:
            lowest, is_bound = percentile_of(ended, late, limit["percentile"] / 100)
            measured = None if lowest is None else lowest / 1e9
            what = f"{name}, p{limit['percentile']:g} of the response time"
            wanted = limit["seconds"]
            outcome: Outcome = "holds"
            why = ""
            if measured is None:
                outcome, why = "not known", "none was committed"
            elif measured > wanted:
                outcome = "does not hold"
            elif is_bound:
                outcome, why = "not known", "transactions that had not ended with their phase could move it"
            yield _Limit(
                what=what,
                bound="at most",
                wanted=wanted,
                measured=measured,
                unit="s",
                outcome=outcome,
                why=why,
            )


def _shares(load: _Load, at_least: Mapping[str, float]) -> Iterator[_Limit]:
    """Shares of what has ended, rolled back ones included: a share that chance alone could make is not known."""
    total = sum(map(sum, load.counts.values()))
    for name, wanted in at_least.items():
        count = sum(load.counts.get(name, (0, 0)))
        measured = 100 * count / total if total else None
        outcome: Outcome = "holds"
        why = ""
        if measured is None:
            outcome, why = "not known", "no transaction has ended"
        elif measured < wanted:
            by_chance = 100 * wilson_interval(count, total)[1] >= wanted
            outcome = "not known" if by_chance else "does not hold"
            why = "the difference is within chance, at 95 %" if by_chance else ""
        what = f"{name}, share of the mix"
        yield _Limit(
            what=what, bound="at least", wanted=wanted, measured=measured, unit="%", outcome=outcome, why=why
        )


def _rate(load: _Load, rate: Mapping[str, Any], others: set[Outcome]) -> _Limit:
    """Return the rate that a workload is known by; it has its name where the limits hold, and the pauses are kept."""
    committed, _ = load.counts.get(rate["transaction"], (0, 0))
    measured = committed * _SECONDS[rate["per"]] / load.seconds
    outcome: Outcome = "holds"
    why = ""
    if rate["pauses"] and not load.paced:
        outcome, why = "does not hold", _UNPACED
    elif others - {"holds"}:
        outcome = "does not hold" if "does not hold" in others else "not known"
        why = "not all of the limits above hold"
    what = f"{rate['name']}: {rate['transaction']} committed"
    return _Limit(what=what, bound="", measured=measured, unit=f"per {rate['per']}", outcome=outcome, why=why)
