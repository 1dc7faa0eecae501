"""The table of tenants under each pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.tables.columns import (
    difference,
    latencies,
    latency_columns,
    number,
    text,
    with_spread,
)
from nephoscope.tables.model import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.tables.columns import RunFigures


def tenants(runs: Sequence[RunFigures]) -> Table:
    """Tenants under each pattern, as in the paper's Table VII."""
    rows = []
    for run in runs:
        for pattern, told in run.scores.get("details", {}).get("tenancy", {}).get("patterns", {}).items():
            for tenant, entry in told["tenants"].items():
                row = {
                    "run": run.name,
                    "pattern": pattern,
                    "tenant": tenant,
                    "tps": entry["tps"],
                    "share": entry["share"],
                }
                row |= {"interference": difference(1.0, entry["share"]), "jain": told["jain"], "t": told["t"]}
                rows.append(row | latencies(entry["latency_ms"]))
    columns = [
        text("pattern", "The pattern of tenancy.", "pattern"),
        text("tenant", "The tenant.", "tenant"),
        number("tps", "Its mean TPS over all slots.", "TPS", ",.0f"),
        number("share", "Its TPS beside others, as a share of its TPS alone.", "of alone", ".0%"),
        number("interference", "1 - `share`."),
        *latency_columns(headings=()),
        number("jain", "Jain's index of the tenants' shares, of the pattern.", "fairness", ".2f"),
        number("t", "T of the pattern, in TPS per $/min.", "T", ",.0f"),
    ]
    title, foot = "T-Score: TPS per $/min", []
    if len(runs) == 1 and rows:
        if score := runs[0].score("T"):
            foot = ["mean", "", "", "", "", with_spread(score)]
        else:
            title = f"no T-Score: {runs[0].scores['absent'].get('T')}"
    return Table("tenants", title, columns, rows, foot, paper=7)


PLACE = 50
TABLES = (tenants,)
