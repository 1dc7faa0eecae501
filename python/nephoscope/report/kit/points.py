"""The measured points of scores.json, completed by the stored intervals and histograms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.report.kit import scored
from nephoscope.report.kit.parts import Estimate, Percentiles
from nephoscope.report.kit.run import ShownPoint
from nephoscope.store.protocol import Selection
from nephoscope.tables.numbers import finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nephoscope.report.kit.run import Run, ShownPhase


@dataclass(frozen=True)
class Figures:
    """The throughput of a point, over its repetitions."""

    tps: Estimate
    goodput: float | None


def figures_of(run: Run, point: ShownPoint) -> Figures:
    """Return the mean of the repetitions' TPS; with its interval where there is only one."""
    said = [scored.point_of(run, phase) for phase in point.phases]
    rates = [rate for rate in (finite(entry.get("tps")) for entry in said) if rate is not None]
    goodputs = [rate for rate in (finite(entry.get("goodput")) for entry in said) if rate is not None]
    return Figures(
        tps=Estimate(
            value=sum(rates) / len(rates) if rates else committed_per_second(run, point.phases),
            ci95=scored.ci95(said[0].get("ci95")) if len(said) == 1 else None,
        ),
        goodput=sum(goodputs) / len(goodputs) if goodputs else None,
    )


def committed_per_second(run: Run, phases: Sequence[ShownPhase]) -> float | None:
    """TPS straight from the intervals: committed in these phases / their length."""
    seconds = sum(phase.end_s - phase.start_s for phase in phases)
    if seconds <= 0:
        return None
    rows = run.intervals.among(phase.number for phase in phases)
    return run.intervals.total("committed", rows) / seconds


def rows_of(
    run: Run, phases: frozenset[int], *, transaction: str | None = None, tenant: str | None = None
) -> NDArray[np.bool_]:
    """Return the rows of the intervals of these phases, narrowed to a transaction or a tenant."""
    rows = run.intervals.among(phases)
    if transaction is not None:
        rows = rows & (run.intervals.transactions == transaction)
    if tenant is not None:
        rows = rows & (run.intervals.tenants == tenant)
    return rows


def exact_latency(
    run: Run, phases: frozenset[int], *, transaction: str | None = None, tenant: str | None = None
) -> Percentiles:
    """Percentiles over these phases, from their merged histograms; never an average of percentiles."""
    selection = Selection(phases=phases, transaction=transaction, tenant=tenant)
    buckets, censored = run.histogram(selection), run.histogram(replace(selection, kind="censored"))
    if censored.total:
        return buckets.with_censored(censored)
    mean, most = _moments(run, rows_of(run, phases, transaction=transaction, tenant=tenant))
    return buckets.percentiles(mean, most) if buckets.total else Percentiles()


def failed_latency(run: Run, phases: frozenset[int]) -> Percentiles:
    """Percentiles of failed transactions over these phases, which are not among the others."""
    return run.histogram(Selection(phases=phases, kind="failed")).percentiles()


def service_times(run: Run, phases: frozenset[int]) -> Percentiles:
    """Service times over these phases: from the first byte sent, without the wait for a session."""
    return run.histogram(Selection(phases=phases, kind="service")).percentiles()


def headline_points(run: Run) -> tuple[ShownPoint, ...]:
    """One point a mix: the one that it is scored at, else its saturation, else the one with the highest TPS.

    The slots of a pattern are not loads to choose from: they are taken together.
    """
    chosen = []
    for mix in run.mixes:
        points = run.points_of(mix)
        # What an evaluator does not count, as a rate that was not confirmed, is no result. A run that was cut short may
        # have no more than its search.
        points = (
            [point for point in points if _is_counted(run, point)] or points or run.points_of(mix, steps=True)
        )
        if all(point.offered is None for point in points):
            chosen.append(_together(points))
        else:
            chosen.append(_scored(run, mix, points) or max(points, key=lambda point: _rate(run, point)))
    return tuple(chosen)


def _is_counted(run: Run, point: ShownPoint) -> bool:
    return any(scored.point_of(run, phase) for phase in point.phases)


def _together(points: Sequence[ShownPoint]) -> ShownPoint:
    if len(points) == 1:
        return points[0]
    phases = tuple(phase for point in points for phase in point.phases)
    return ShownPoint(points[0].mix, f"all {len(points)} parts", None, None, phases)


def _scored(run: Run, mix: str, points: list[ShownPoint]) -> ShownPoint | None:
    places = (scored.mix_details(run).get(mix, {}), scored.saturation(run, mix))
    for wanted in (finite(place.get("concurrency")) for place in places):
        for point in points:
            if wanted is not None and point.concurrency == wanted:
                return point
    return None


def _rate(run: Run, point: ShownPoint) -> float:
    return figures_of(run, point).tps.value or 0.0


def _moments(run: Run, rows: NDArray[np.bool_]) -> tuple[float | None, float | None]:
    """Return the exact mean and maximum in ms, which a histogram holds only within its buckets."""
    committed = run.intervals.counts("committed")[rows]
    means = run.intervals.floats("latency_mean_ms")[rows]
    largest = run.intervals.floats("latency_max_ms")[rows]
    known = np.isfinite(means) & (committed > 0)
    if not known.any():
        return None, None
    mean = float((means[known] * committed[known]).sum() / committed[known].sum())
    seen = largest[np.isfinite(largest)]
    return mean, float(seen.max()) if seen.size else None
