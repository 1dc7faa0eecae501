"""From a stored run to the view of its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope import __version__
from nephoscope.evaluators.elasticity import section as elasticity
from nephoscope.evaluators.failover import section as failures
from nephoscope.evaluators.lag import section as lags
from nephoscope.evaluators.scaleout import section as scaleout
from nephoscope.evaluators.sweep import section as parameters
from nephoscope.evaluators.tenancy import section as tenancy
from nephoscope.evaluators.throughput import section as sweep
from nephoscope.report.kit.buckets import TimeBuckets
from nephoscope.report.kit.method import redacted
from nephoscope.report.kit.run import Run
from nephoscope.report.sections import (
    accounting,
    costs,
    environment,
    errors,
    headline,
    latency,
    metrics,
    scores,
    timeline,
    title,
    verdicts,
)
from nephoscope.report.view import ReportView

if TYPE_CHECKING:
    from nephoscope.store.protocol import RunReader


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
        study=redacted(reader.study),
        environment=environment.build(run),
        reproduce=environment.reproduce(run),
        generator=f"nephoscope {run.manifest.get('nephoscope') or __version__}",
    )
