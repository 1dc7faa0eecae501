"""From a stored run to the view of its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope import __version__, registry
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
    limits,
    metrics,
    scores,
    timeline,
    title,
    verdicts,
    waits,
)
from nephoscope.report.view import ReportView, Shown

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        limits=limits.build(run),
        sections=tuple(_sections(run)),
        timeline=timeline.build(run, buckets),
        waits=waits.build(run, buckets),
        latency=latency.build(run),
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


def _sections(run: Run) -> Iterator[Shown]:
    """Build the evaluators' sections, each by the ``section`` of its folder."""
    for module in registry.shown("section"):
        if (part := module.build(run)) is not None:
            package = module.__name__.rpartition(".")[0]
            template = f"{package}/section.html.j2"
            place = getattr(module, "PLACE", registry.LAST)
            yield Shown(place=place, anchor=module.ANCHOR, label=module.LABEL, template=template, part=part)
