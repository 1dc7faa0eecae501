"""The view of the page of ``nephoscope storage run``: the tails of the sources on one chart an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope import __version__
from nephoscope.report.kit.charts import Axis, Line, TimeAxis, XYChart, category
from nephoscope.report.kit.parts import Grid, Part, Verdict, grid
from nephoscope.storage.executed import ALL
from nephoscope.storage.executed_tables import notes_of, tables_of
from nephoscope.storage.executed_verdicts import verdicts_of
from nephoscope.tables.numbers import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.storage.executed import Executed, Tail
    from nephoscope.store.reader import StoredRun

TEMPLATE = "nephoscope.storage/executed.html.j2"
"""The page's template, as ``report.page.render_with`` takes it."""


class ExecutedView(Part):
    """The page."""

    title: str
    said: str
    verdicts: tuple[Verdict, ...]
    axis: TimeAxis
    tails: tuple[XYChart, ...]
    tables: tuple[Grid, ...]
    notes: tuple[str, ...]
    generator: str


def build(run: StoredRun, found: Executed) -> ExecutedView:
    """Compute the page of a run."""
    facts = run.manifest["storage"]
    operations = dict.fromkeys(tail.operation for tail in found.tails)
    charts = [
        _chart(operation, [tail for tail in found.tails if tail.operation == operation])
        for operation in operations
        # With one operation, that and all of them are the same.
        if not (operation == ALL and len(operations) <= 2)  # noqa: PLR2004
    ]
    tables = [table for table in tables_of(found) if table.shown]
    return ExecutedView(
        title=" and ".join(course.source for course in found.courses),
        said=f"Executed on {facts['target']}, at most {facts['depth']} requests in flight.",
        verdicts=tuple(verdicts_of(found)),
        axis=TimeAxis(start_s=0, end_s=max((phase.end_s for phase in run.phases), default=0.0)),
        tails=tuple(charts),
        tables=tuple(grid(table) for table in tables),
        notes=tuple(notes_of(found)),
        generator=f"nephoscope {__version__}",
    )


def _chart(operation: str, tails: Sequence[Tail]) -> XYChart:
    lines = []
    said = []
    for at, tail in enumerate(tails):
        color, dash = category(at)
        lines.append(Line(name=tail.source, color=color, dash=dash, data=tuple(tail.latency.tail())))
        bound = "at least " if "p99" in tail.percentiles.at_least else ""
        said.append(f"{tail.source} {bound}{number(tail.percentiles.p99, 3)} ms")
    return XYChart(
        id=f"storage-tail-{operation}",
        title="All operations" if operation == ALL else operation.capitalize(),
        unit="ms",
        message=f"99th percentile: {'; '.join(said)}.",
        note="From the intended start; what did not start or did not end is not drawn.",
        x=Axis(title="percentile", scale="percentile"),
        y=Axis(title="latency", unit="ms", scale="log10"),
        lines=tuple(lines),
    )
