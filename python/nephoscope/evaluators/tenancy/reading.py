"""The tenants of a stored run: throughput and latency in each pattern, interference, fairness, T."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.evaluators.points import measured_phases, series_of
from nephoscope.scoring.formulas import Absent, Score, over_repetitions, t_score
from nephoscope.settings.resources import Resources
from nephoscope.statistics import block_bootstrap_ci, jain_index
from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from nephoscope.evaluators.stored import Stored
    from nephoscope.store import Phase


@dataclass(frozen=True)
class _Rate:
    """A tenant's throughput in a phase."""

    tps: float
    ci95: tuple[float, float] | None


class TenancyFigures:
    """The figures of one entry of ``[[measure]]``."""

    def __init__(self, stored: Stored, without: Collection[int] = ()) -> None:
        """Read the phases that were measured to their end.

        ``without`` are the numbers of phases that do not count; the pattern of such a slot does not count either.
        """
        self._stored = stored
        phases, _ = measured_phases(stored.run, stored.index)
        missing = {_played(phase) for phase in phases if phase.number in without}
        self.phases = [
            phase for phase in phases if phase.number not in without and _played(phase) not in missing
        ]
        table = stored.run.intervals
        self._columns = {
            name: table.column(name).to_numpy() for name in ("phase", "start_s", "end_s", "committed")
        }
        self._tenant_of = np.asarray(table.column("tenant").to_pylist(), object)
        told = stored.run.manifest.get("system", {}).get("tenants", {})
        self._share: str = told.get("share", "schema")
        self._each: list[Mapping[str, Any]] = told.get("each", [])
        self.tenants: tuple[str, ...] = tuple(str(tenant["name"]) for tenant in self._each)
        self._rates = {
            (phase.number, tenant): self._rate(phase, tenant)
            for phase in self.phases
            for tenant in self.tenants
        }

    def _rate(self, phase: Phase, tenant: str) -> _Rate:
        seconds = phase.end_s - phase.start_s
        rows = (self._columns["phase"] == phase.number) & (self._tenant_of == tenant)
        series = series_of(self._columns, rows)
        rates = series.rates(phase, self._stored.interval_s)
        ci95 = block_bootstrap_ci(rates).ci95 if rates.size else None
        return _Rate(float(series.committed.sum()) / seconds if seconds > 0 else 0.0, ci95)

    # --- patterns ---------------------------------------------------------------------------------------------

    def _slots(self) -> dict[str, dict[int, list[Phase]]]:
        """Group the slots by pattern and repetition; one that lacks a slot does not count."""
        found: dict[str, dict[int, list[Phase]]] = {}
        for phase in self.phases:
            if "pattern" in phase.labels:
                pattern = found.setdefault(str(phase.labels["pattern"]), {})
                pattern.setdefault(int(phase.labels.get("repetition", 1)), []).append(phase)
        whole = {name: max(map(len, groups.values())) for name, groups in found.items()}
        return {
            name: {number: slots for number, slots in groups.items() if len(slots) == whole[name]}
            for name, groups in found.items()
        }

    def _mean_tps(self, slots: Sequence[Phase], tenant: str) -> float:
        """Return a tenant's mean TPS over slots of equal length, those in which it rests included."""
        return math.fsum(self._rates[slot.number, tenant].tps for slot in slots) / len(slots)

    def _costs(self) -> list[float] | Absent:
        """Return what the tenants cost per minute: one for all, or one each where each has a server."""
        given: list[Any] = [self._stored.resources]
        if self._share == "server":
            given = [tenant.get("resources") for tenant in self._each]
        if not all(given):
            return Absent(reason="the tenants' resources are not declared ([system.resources] of the study)")
        known = [Resources.model_validate(resources) for resources in given]
        return [self._stored.prices.per_minute(resources) for resources in known]

    def score(self) -> Score | Absent:
        """Return T: of a repetition the mean over its patterns, and the mean over repetitions."""
        slots = self._slots()
        costs = self._costs()
        if not slots:
            return Absent(reason="no pattern was measured to its end")
        if isinstance(costs, Absent):
            return costs
        repetitions = sorted(set.intersection(*(set(groups) for groups in slots.values())))
        values: list[float | Absent] = []
        for number in repetitions:
            found = [self._t(groups[number], costs) for groups in slots.values()]
            missing = next((one for one in found if isinstance(one, Absent)), None)
            numbers = [one for one in found if isinstance(one, float)]
            values.append(missing or math.fsum(numbers) / len(numbers))
        detail = {
            "cost_per_minute": math.fsum(costs),
            "patterns": {name: self._mean_t(groups, costs) for name, groups in slots.items()},
        }
        within = (
            self._within([groups[repetitions[0]] for groups in slots.values()], costs)
            if repetitions
            else None
        )
        return over_repetitions("T", values, within=within, detail=detail)

    def _t(self, slots: Sequence[Phase], costs: Sequence[float]) -> float | Absent:
        return t_score([self._mean_tps(slots, tenant) for tenant in self.tenants], costs)

    def _mean_t(self, groups: Mapping[int, Sequence[Phase]], costs: Sequence[float]) -> float | None:
        found = [self._t(slots, costs) for slots in groups.values()]
        numbers = [one for one in found if isinstance(one, float)]
        return math.fsum(numbers) / len(numbers) if len(numbers) == len(found) else None

    def _within(
        self, patterns: Sequence[Sequence[Phase]], costs: Sequence[float]
    ) -> tuple[float, float] | None:
        """Join the intervals of tenants and slots into that of T, for a single repetition.

        Their errors are those of separate sessions and times: distances add up as the roots of squares, downwards and
        upwards apart; those of a geometric mean on the logarithm, to first order.
        """
        below, above, mean = [], [], 0.0
        for slots in patterns:
            t = self._t(slots, costs)
            distances = [self._distances(slots, tenant) for tenant in self.tenants]
            if isinstance(t, Absent) or t == 0 or any(one is None for one in distances):
                return None
            mean += t / len(patterns)
            known = [one for one in distances if one is not None]
            below.append(t * math.hypot(*(low for low, _ in known)) / len(known))
            above.append(t * math.hypot(*(high for _, high in known)) / len(known))
        return mean - math.hypot(*below) / len(patterns), mean + math.hypot(*above) / len(patterns)

    def _distances(self, slots: Sequence[Phase], tenant: str) -> tuple[float, float] | None:
        """Return how far below and above a tenant's mean TPS may lie, as shares of it."""
        low, high = [], []
        for slot in slots:
            rate = self._rates[slot.number, tenant]
            if rate.tps == 0:
                continue
            if rate.ci95 is None:
                return None
            low.append(max(rate.tps - rate.ci95[0], 0.0))
            high.append(max(rate.ci95[1] - rate.tps, 0.0))
        whole = self._mean_tps(slots, tenant) * len(slots)
        return (math.hypot(*low) / whole, math.hypot(*high) / whole) if whole else None

    # --- interference -----------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Describe patterns and tenants for ``scores.json``: means over repetitions."""
        costs = self._costs()
        return {
            "tenants": list(self.tenants),
            "share": self._share,
            "patterns": {
                name: self._pattern(groups, None if isinstance(costs, Absent) else costs)
                for name, groups in self._slots().items()
            },
        }

    def _pattern(
        self, groups: Mapping[int, Sequence[Phase]], costs: Sequence[float] | None
    ) -> dict[str, Any]:
        slots = [phase for group in groups.values() for phase in group]
        tenants = {tenant: self._tenant(slots, place, tenant) for place, tenant in enumerate(self.tenants)}
        shares = [one["share"] for one in tenants.values() if one["share"] is not None]
        first = next(iter(groups.values()))
        return {
            "t": self._mean_t(groups, costs) if costs is not None else None,
            "sessions": [list(column) for column in zip(*map(_sessions, first), strict=True)],
            "repetitions": len(groups),
            "tenants": tenants,
            "jain": jain_index(shares) if len(shares) > 1 else None,
        }

    def _tenant(self, slots: Sequence[Phase], place: int, tenant: str) -> dict[str, Any]:
        """Describe a tenant in a pattern; ``share`` is what it got beside others of what it gets alone."""
        busy = [slot for slot in slots if _sessions(slot)[place] > 0]
        together, alone = 0.0, 0.0
        for slot in busy:
            by_itself = self._alone_tps(tenant, _sessions(slot)[place])
            if sum(count > 0 for count in _sessions(slot)) > 1 and by_itself:
                together += self._rates[slot.number, tenant].tps
                alone += by_itself
        selection = Selection(phases=frozenset(slot.number for slot in busy), tenant=tenant)
        histogram = self._stored.run.merged(selection)
        latency = {
            name: histogram.quantile(at) / 1e6 for name, at in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
        }
        share = together / alone if alone else None
        numbers = sorted({int(slot.labels["slot"]) for slot in slots})
        return {
            "tps": self._mean_tps(slots, tenant),
            "slots": [
                self._mean_tps([slot for slot in slots if slot.labels["slot"] == number], tenant)
                for number in numbers
            ],
            "latency_ms": latency if histogram.count else None,
            "share": share,
            "interference": 1 - share if share is not None else None,
        }

    def _alone_tps(self, tenant: str, sessions: int) -> float | None:
        """Return what a tenant gets alone with so many sessions, over all repetitions."""
        found = [
            self._rates[phase.number, tenant].tps
            for phase in self.phases
            if phase.labels.get("alone") == tenant and _sessions(phase) == [sessions]
        ]
        return math.fsum(found) / len(found) if found else None


def _played(phase: Phase) -> tuple[object, ...]:
    """Return what a phase belongs to: a repetition of a pattern, or itself."""
    pattern = phase.labels.get("pattern")
    return (phase.number,) if pattern is None else (pattern, phase.labels.get("repetition", 1))


def _sessions(phase: Phase) -> list[int]:
    return [int(count) for count in str(phase.labels.get("sessions", "0")).split("+")]
