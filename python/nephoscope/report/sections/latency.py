"""The distribution of latencies: its histogram, its tail, and a table of percentiles per transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.report.kit.charts import Axis, Line, XYChart, category
from nephoscope.report.kit.histograms import BINS_PER_DECADE, Buckets
from nephoscope.report.kit.points import (
    exact_latency,
    failed_latency,
    headline_points,
    rows_of,
    service_times,
)
from nephoscope.report.kit.run import in_order
from nephoscope.report.view import LatencyGroup, LatencyRow, LatencySection
from nephoscope.store.protocol import Selection
from nephoscope.tables.numbers import count, duration, number

if TYPE_CHECKING:
    from nephoscope.report.kit.parts import Percentiles
    from nephoscope.report.kit.run import Run, ShownPoint

# In a closed loop the two are the same but for scheduling; a reader need not see them twice.
_SAME = 1.05


def build(run: Run) -> LatencySection:
    """Return the section, for the points of the headline."""
    points = headline_points(run)
    merged = [(point, run.histogram(Selection(phases=point.numbers))) for point in points]
    drawn = [(point, buckets) for point, buckets in merged if buckets.total]
    left = _left(run, points)
    return LatencySection(
        charts=(_histogram(run, drawn, left), _tail(run, drawn, left)) if drawn else (),
        groups=tuple(_group(run, point) for point in points),
        tenants=_tenants(run),
        part_of_load=run.part_of_load,
        scope=_scope(run, points),
    )


def _scope(run: Run, points: tuple[ShownPoint, ...]) -> str:
    parts = [f"{point.name} at {point.load}" if point.load else point.name for point in points]
    where = "warm-up, because no phase was measured" if run.nothing_measured else "the measured phases"
    if not parts:
        return ""
    failed = "Failed transactions are not among them; their latency is a line of its own."
    return f"Committed transactions of {where}: {'; '.join(parts)}. {failed}"


def _left(run: Run, points: tuple[ShownPoint, ...]) -> str:
    """Say of how many transactions a chart shows nothing, because they had not ended with their phase."""
    phases = frozenset(number for point in points for number in point.numbers)
    late = run.histogram(Selection(phases=phases, kind="censored")).total
    return f" Without {count(late)} that had not ended with their phase." if late else ""


def _histogram(run: Run, drawn: list[tuple[ShownPoint, Buckets]], left: str) -> XYChart:
    medians = [f"{point.name} {number(buckets.at(50), 3)}" for point, buckets in drawn]
    return XYChart(
        id="latency-histogram",
        title="Distribution",
        unit="% of transactions per bin",
        message=f"Half of the transactions take no longer than: {', '.join(medians)} ms.",
        note=f"{BINS_PER_DECADE} bins per decade.{left}",
        x=Axis(title="Latency", unit="ms", scale="log10"),
        y=Axis(title="Share", unit="%"),
        lines=tuple(
            Line(name=point.name, color=run.mix_color(point.name), style="area", data=tuple(buckets.bins()))
            for point, buckets in drawn
        ),
    )


def _tail(run: Run, drawn: list[tuple[ShownPoint, Buckets]], left: str) -> XYChart:
    tails = [f"{point.name} {number(buckets.at(99.9), 3)}" for point, buckets in drawn]
    return XYChart(
        id="latency-tail",
        title="Tail",
        unit="latency by percentile, log scales",
        message=f"One transaction in a thousand takes longer than: {', '.join(tails)} ms.",
        note=f"Ends at the slowest transaction.{left}",
        x=Axis(title="Percentile", scale="percentile"),
        y=Axis(title="Latency", unit="ms", scale="log10"),
        lines=tuple(
            Line(name=point.name, color=run.mix_color(point.name), data=tuple(buckets.tail()))
            for point, buckets in drawn
        ),
    )


def _group(run: Run, point: ShownPoint) -> LatencyGroup:
    phases = point.numbers
    names = in_order(str(name) for name in run.intervals.transactions[rows_of(run, phases)])
    rows = [_row(run, phases, name) for name in names]
    rows = [row for row in rows if row.committed or row.aborted or row.failed]
    everything = _row(run, phases, None)
    # With one transaction, its row says all there is to say.
    shown = [*rows, everything] if len(rows) != 1 else rows
    service = service_times(run, phases)
    if _differs(everything.percentiles, service):
        shown.append(LatencyRow(transaction="service time", percentiles=service, kind="service"))
    if (failed := failed_latency(run, phases)).count:
        shown.append(LatencyRow(transaction="failed", percentiles=failed, kind="failed"))
    seconds = sum(phase.end_s - phase.start_s for phase in point.phases)
    times = f"{point.repetitions} \u00d7 " if point.repetitions > 1 else ""
    length = f"{times}{duration(seconds / point.repetitions)}"
    return LatencyGroup(
        name=point.name,
        detail=" · ".join(part for part in (point.load, length) if part),
        rows=tuple(shown),
        color=run.mix_color(point.name),
    )


def _row(run: Run, phases: frozenset[int], transaction: str | None, tenant: str | None = None) -> LatencyRow:
    rows = rows_of(run, phases, transaction=transaction, tenant=tenant)
    total = run.intervals.total
    return LatencyRow(
        transaction=transaction or "all",
        percentiles=exact_latency(run, phases, transaction=transaction, tenant=tenant),
        committed=total("committed", rows),
        aborted=total("aborted", rows),
        failed=total("failed", rows),
        retried=total("retried", rows),
        kind="transaction" if transaction else "all",
    )


def _differs(latency: Percentiles, service: Percentiles) -> bool:
    """Whether transactions waited for a session long enough to be seen in the tail."""
    return bool(latency.p99 and service.p99 and latency.p99 > _SAME * service.p99)


def _tenants(run: Run) -> tuple[LatencyGroup, ...]:
    """Return a group per tenant over all measured phases; none for a run with one tenant."""
    if len(run.tenants) < 2:  # noqa: PLR2004 - one tenant's figures are the run's
        return ()
    phases = frozenset(phase.number for phase in run.counted)
    seconds = sum(phase.end_s - phase.start_s for phase in run.counted)
    groups = []
    for tenant in run.tenants:
        row = _row(run, phases, None, tenant)
        tps = number(row.committed / seconds) if seconds else ""
        groups.append(LatencyGroup(name=tenant, detail=tps, rows=(row,), color=_tenant_color(run, tenant)))
    return tuple(groups)


def _tenant_color(run: Run, tenant: str) -> str:
    return category(run.tenants.index(tenant))[0]
