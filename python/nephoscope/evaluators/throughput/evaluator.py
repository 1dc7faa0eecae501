"""The evaluator ``throughput``: mixes times concurrency, the search for saturation, and the P-Score.

METRICS, sections 1 to 3; CloudyBench, sections II-B and II-G, equation 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.connected import absent_for
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.points import by_mix, latency_of, read_points
from nephoscope.evaluators.search import SearchSettings, describe_saturation, search, searched
from nephoscope.evaluators.throughput.settings import ThroughputSettings
from nephoscope.scoring.formulas import Absent, Score, over_repetitions, p_score
from nephoscope.settings.loads import (
    Load,
)
from nephoscope.statistics import mean_ci, no_less_than_0
from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.engine.loadrun import LoadRun
    from nephoscope.evaluators.points import Point
    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload


class Throughput(Evaluator):
    """Measures throughput and latency of mixes over concurrency, finds saturation, and scores P."""

    name: ClassVar[str] = "throughput"
    summary: ClassVar[str] = (
        "throughput and latency of mixes over concurrency, saturation, throughput per dollar (P)"
    )
    settings_type: ClassVar[type[MeasureSettings]] = ThroughputSettings

    def __init__(self, settings: ThroughputSettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mixes."""
        self._settings = settings
        self._index = index
        self._mixes = workload.mixes(settings.mixes, f"measure.{index}.mixes")
        self._access = {mix: settings.access or workload.access(mix) for mix in self._mixes}

    def seconds(self) -> float:
        """Sum the phases; the steps of a search are taken to be as many as to its end."""
        settings = self._settings
        point = settings.warmup + settings.duration
        if settings.concurrency == "search":
            steps = math.log2(max(settings.search.most / settings.search.start, 1)) / 2 + 5
            each = steps * (settings.search.duration + self._search_warmup) + settings.repetitions * point
        else:
            each = len(settings.concurrency) * settings.repetitions * point
        return each * len(self._mixes)

    @property
    def is_scheduled(self) -> bool:
        """Without a search it is."""
        return self._settings.concurrency != "search"

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give each level of each mix."""
        del sessions
        if self._settings.concurrency != "search":
            for mix, weights in self._mixes.items():
                for level in self._settings.concurrency:
                    yield Demand(f"{mix} c={level}", (level,), weights)

    @property
    def _search_warmup(self) -> float:
        return min(self._settings.warmup, self._settings.search.duration / 2)

    # --- driving --------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Search where asked to, then measure the points: each repetition goes through all of them."""
        load = means.load
        if self._settings.concurrency == "search":
            plan = {mix: [self._search(means, mix)] for mix in self._mixes}
        else:
            plan = {mix: list(self._settings.concurrency) for mix in self._mixes}
        # Repetitions outermost: a drift of the system spreads over all points and does not pass for a difference.
        for repetition in range(1, self._settings.repetitions + 1):
            for mix, levels in plan.items():
                for concurrency in levels:
                    self._point(load, mix, concurrency, self._settings.duration, repetition=repetition)
        load.wait()

    def _point(self, load: LoadRun, mix: str, concurrency: int, seconds: float, **labels: Any) -> int:  # noqa: ANN401
        settings = self._settings
        level = Load(
            concurrency=float(concurrency),
            think=settings.think,
            mix=self._mixes[mix],
            access=self._access[mix],
        )
        labelled = self.labels(self._index, mix=mix, concurrency=concurrency, **labels)
        name = f"{mix} c={concurrency}"
        warmup = self._search_warmup if "search" in labels else settings.warmup
        if warmup > 0:
            load.phase(f"{name} warm-up", "warm_up", warmup, level, labelled)
        return load.phase(name, "measure", seconds, level, labelled)

    def _search(self, means: Means, mix: str) -> int:
        """Find τ of a mix; the steps are stored as points with the label ``search``."""
        settings, load = self._settings.search, means.load

        def ask(level: int) -> int:
            return self._point(load, mix, level, settings.duration, search=True)

        return search(load, settings, ask, means.room(self._mixes[mix]))

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read points, saturation and P."""
        read = read_points(stored, self._settings.slo)
        points = read.points
        found = Measurements(points=points, warnings=read.warnings, shortfalls=read.shortfalls)
        steps_of_search = searched(stored)
        final = [point for point in points if point.phase not in steps_of_search]
        if self._settings.concurrency == "search":
            steps = [point for point in points if point.phase in steps_of_search]
            for mix, group in by_mix(steps).items():
                short = [one for one in read.shortfalls if one.mix == mix and one.is_step]
                found.saturation[mix] = describe_saturation(stored, group, self._settings.search, short)
        else:
            for mix, group in by_mix(final).items():
                if len({point.concurrency for point in group}) > 1:
                    # At the steps that it has.
                    gain = SearchSettings(gain=self._settings.search.gain)
                    short = [one for one in read.shortfalls if one.mix == mix]
                    found.saturation[mix] = describe_saturation(stored, group, gain, short)
        found.scores["P"] = absent_for(read.shortfalls) or self._score(stored, final)
        return found

    def _score(self, stored: Stored, points: list[Point]) -> Score | Absent:
        if not points:
            return Absent(reason="no point was measured to its end")
        if stored.resources is None:
            return Absent(reason="the system's resources are not declared ([system.resources] of the study)")
        per_minute = stored.prices.per_minute(stored.resources)
        if per_minute <= 0:
            return Absent(reason="the system's resources cost nothing by this price book")
        detail: dict[str, Any] = {"mixes": {}, "tps_of": self._settings.score, "cost_per_minute": per_minute}
        columns = []
        for mix, group in by_mix(points).items():
            concurrency, values = self._repetitions(group)
            estimate = mean_ci(values)
            ci95 = no_less_than_0(estimate.ci95)
            if len(values) == 1 and concurrency is not None:
                ci95 = next((point.ci95 for point in group if point.concurrency == concurrency), None)
            detail["mixes"][mix] = {
                "tps": estimate.mean,
                "ci95": ci95,
                "concurrency": concurrency,
                "p": _p(estimate.mean, per_minute),
                "p_ci95": [end / per_minute for end in ci95] if ci95 else None,
                "repetitions": len(values),
                "latency_ms": _latency_at(stored, group, concurrency),
                "ro_share": _ro_share(stored, group),
            }
            columns.append(values)
        # P of a repetition is the mean over its mixes (the AVG of the paper's Table V).
        whole = min(len(values) for values in columns)
        scores = [_p(sum(values[r] for values in columns) / len(columns), per_minute) for r in range(whole)]
        within = _within(detail["mixes"].values(), per_minute)
        return over_repetitions("P", scores, within=within, detail=detail)

    def _repetitions(self, group: list[Point]) -> tuple[float | None, list[float]]:
        """Return the concurrency that counts and its TPS by repetition; the mean over a sweep has no concurrency."""
        levels: dict[float, list[float]] = {}
        for point in group:
            levels.setdefault(point.concurrency or 0.0, []).append(point.tps)
        if self._settings.score == "mean" and len(levels) > 1:
            shortest = min(len(values) for values in levels.values())
            return None, [sum(values[r] for values in levels.values()) / len(levels) for r in range(shortest)]
        best = max(levels, key=lambda level: sum(levels[level]) / len(levels[level]))
        return best, levels[best]


def _latency_at(stored: Stored, group: list[Point], concurrency: float | None) -> dict[str, Any] | None:
    """Return the latency of what is scored: of all its repetitions together, not a mean of percentiles."""
    at = frozenset(point.phase for point in group if concurrency in (None, point.concurrency))
    latency = latency_of(stored, at)
    return latency.model_dump() if latency else None


def _ro_share(stored: Stored, group: list[Point]) -> float | None:
    """Return the share of a mix's committed transactions that ran on read-only endpoints."""
    at = frozenset(point.phase for point in group)
    count = stored.run.merged(Selection(phases=at)).count
    return stored.run.merged(Selection(phases=at, role="ro")).count / count if count else None


def _p(tps: float, per_minute: float) -> float:
    score = p_score(tps, per_minute)
    return score if isinstance(score, float) else 0.0


def _within(mixes: Any, per_minute: float) -> tuple[float, float] | None:  # noqa: ANN401 - the detail's entries
    """Join the mixes' own intervals, for a single repetition: their errors are those of separate phases."""
    entries = list(mixes)
    if not entries or any(entry["ci95"] is None for entry in entries):
        return None
    mean = sum(entry["tps"] for entry in entries) / len(entries)
    below = math.hypot(*(entry["tps"] - entry["ci95"][0] for entry in entries)) / len(entries)
    above = math.hypot(*(entry["ci95"][1] - entry["tps"] for entry in entries)) / len(entries)
    return (mean - below) / per_minute, (mean + above) / per_minute
