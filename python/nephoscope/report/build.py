"""From a stored run to the view of its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope import __version__
from nephoscope.report.buckets import TimeBuckets
from nephoscope.report.facts import Run
from nephoscope.report.sections import (
    accounting,
    costs,
    elasticity,
    environment,
    errors,
    failures,
    headline,
    lags,
    latency,
    metrics,
    parameters,
    scaleout,
    scores,
    sweep,
    tenancy,
    timeline,
    title,
    verdicts,
)
from nephoscope.report.view import ReportView

if TYPE_CHECKING:
    from nephoscope.report.reader import RunReader


def build_view(reader: RunReader) -> ReportView:
    """Compute everything that the page shows; a run that is incomplete gives a page that says so."""
    run = Run(reader)
    buckets = TimeBuckets.of(run)
    judged = verdicts.build(run)
    return ReportView(
        name=reader.name,
        title=title.build(run),
        headline=headline.build(run, judged),
        scores=scores.build(run),
        verdicts=judged,
        sweep=sweep.build(run),
        timeline=timeline.build(run, buckets),
        elasticity=elasticity.build(run),
        failures=failures.build(run),
        lags=lags.build(run),
        scaleout=scaleout.build(run),
        parameters=parameters.build(run),
        latency=latency.build(run),
        tenancy=tenancy.build(run),
        cost=costs.build(run),
        errors=errors.build(run),
        accounting=accounting.build(run),
        client=metrics.build_client(run, buckets),
        system=metrics.build_system(run, buckets),
        study=environment.redacted(reader.study),
        environment=environment.build(run),
        reproduce=environment.reproduce(run),
        generator=f"nephoscope {run.manifest.get('nephoscope') or __version__}",
    )
