"""The tables of lags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.evaluators.lag.samples import LagSamples
from nephoscope.evaluators.lag.section import lag_rows
from nephoscope.report.kit.run import Run
from nephoscope.settings.units import describe_count
from nephoscope.tables.columns import (
    PERCENTILES,
    number,
    seconds,
    text,
    whole,
)
from nephoscope.tables.model import Column, Row, Table, ends, interval_of, spread, with_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nephoscope.tables.columns import RunFigures


def _samples(runs: Sequence[RunFigures]) -> Iterator[tuple[RunFigures, LagSamples]]:
    for run in runs:
        yield run, LagSamples.of(Run(run.reader))


def lags(runs: Sequence[RunFigures]) -> Table:
    """Lags by load and kind."""
    rows = []
    for run, samples in _samples(runs):
        for found in lag_rows(samples):
            row: Row = {"run": run.name, "load": found.load, "kind": found.kind, "node": found.node or None}
            row |= {"markers": found.count, "unseen": found.unseen}
            row |= {"mean_ms": found.mean.value, **ends("mean_ms", found.mean.ci95)}
            row |= {f"{name}_ms": getattr(found, name) for name in (*PERCENTILES, "max", "half_width")}
            rows.append(row)
    columns = [
        text("load", "The load beside which it was measured.", "beside"),
        text("kind", "`insert`, `update` or `delete`.", "kind"),
        text(
            "node",
            "The read-only endpoint, where there are several.",
            "replica" if any(row["node"] for row in rows) else "",
        ),
        whole("markers", "Markers that were looked for.", "markers"),
        whole(
            "unseen",
            "Of these, not seen for as long as they were looked for: each lags by at least that.",
        ),
        Column("mean_ms", "number", "The mean lag, in ms.", "mean ms", spread("mean_ms", ".3g")),
        *interval_of("mean_ms", "the mean"),
        *(
            number(f"{name}_ms", f"The {name} of the lag, in ms.", f"{name} ms", ".3g")
            for name in (*PERCENTILES, "max")
        ),
        number("half_width_ms", "The median half-width of a sample, in ms.", "half-width ms", ".2g"),
    ]
    title = "C-Score: replication lag"
    if len(runs) == 1 and (score := runs[0].score("C")):
        least = "at least " if score["detail"].get("at_least") else ""
        over = describe_count(score["detail"]["replicas"], "replica")
        title = f"C-Score: {least}{seconds(score['value'])} over {over}"
    # Section III-F of the paper has lags in its text, after Table VIII.
    return Table("lags", title, columns, rows, paper=8)


def stale_reads(runs: Sequence[RunFigures]) -> Table:
    """How likely a read is stale, by the time since the write."""
    rows = []
    for run, samples in _samples(runs):
        for load in samples.loads:
            of = samples.beside(load)
            for after in samples.times_ms():
                share = of.stale(after)
                row = {
                    "run": run.name,
                    "load": load,
                    "after_ms": after,
                    "stale": share.value,
                    "markers": len(of),
                }
                rows.append(row | ends("stale", share.ci95))
    columns = [
        text("load", "The load beside which it was measured.", "beside"),
        number("after_ms", "The time since the write, in ms.", "after ms", "g"),
        Column("stale", "number", "The share of reads that are stale, 0 to 1.", "stale", _stale),
        *interval_of("stale", "the share"),
        whole("markers", "Of so many markers."),
    ]
    return Table(
        "stale_reads", "Stale reads: P(stale read | time since the write)", columns, rows, in_summary=False
    )


def _stale(row: Row) -> str:
    share, ends_of = 100 * row["stale"], [100 * row[f"stale_ci95_{end}"] for end in ("low", "high")]
    return f"{with_interval(f'{share:.3g}', share, ends_of)} %"


PLACE = 40
TABLES = (lags, stale_reads)
