"""The tables of throughput and of the search for saturation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.tables.columns import (
    latencies,
    latency_columns,
    number,
    text,
    whole,
    with_spread,
)
from nephoscope.tables.model import Column, Row, Table, ends, interval_of, spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.tables.columns import RunFigures


def throughput(runs: Sequence[RunFigures]) -> Table:
    """Mixes of transactions, with P of each."""
    rows = [
        _mix_row(run, mix, entry) for run in runs for mix, entry in run.detail("P").get("mixes", {}).items()
    ]
    columns = [
        text("mix", "The mix of transactions.", "mix"),
        Column(
            "concurrency",
            "number",
            "Sessions at a time; none where P is of a whole sweep.",
            "sessions",
            _sessions,
        ),
        Column("tps", "number", "Committed transactions per second.", "TPS", spread("tps", ",.0f")),
        *interval_of("tps", "the TPS"),
        *latency_columns(),
        Column("p", "number", "P of the mix, in TPS per $/min.", "P", spread("p", ",.0f")),
        *interval_of("p", "P"),
        number(
            "cost_usd_per_min",
            "What the resources cost, in $ per minute.",
            "$/min" if len(runs) > 1 else "",
            ".4f",
        ),
        whole("repetitions", "How often it was measured."),
        number(
            "ro_share",
            "The share of its transactions that ran on read-only endpoints.",
            "on ro" if any(row["ro_share"] for row in rows) else "",
            ".0%",
        ),
    ]
    title = "P-Score: TPS per $/min"
    foot: list[str] = []
    if len(runs) == 1 and (score := runs[0].score("P")):
        title += f", at ${score['detail']['cost_per_minute']:.4f} a minute"
        foot = ["mean", "", "", "", "", with_spread(score)]
    return Table("throughput", title, columns, rows, foot, in_summary=False, of_points=True)


def _mix_row(run: RunFigures, mix: str, entry: Mapping[str, Any]) -> Row:
    return {
        "run": run.name,
        "mix": mix,
        **{key: entry.get(key) for key in ("concurrency", "tps", "p", "repetitions", "ro_share")},
        **ends("tps", entry["ci95"]),
        **ends("p", entry["p_ci95"]),
        **latencies(entry.get("latency_ms")),
        "cost_usd_per_min": run.detail("P")["cost_per_minute"],
    }


def _sessions(row: Row) -> str:
    return "all" if row["concurrency"] is None else f"{row['concurrency']:g}"


def saturation(runs: Sequence[RunFigures]) -> Table:
    """Where each mix saturated."""
    rows: list[Row] = [
        {"run": run.name, "mix": mix, **{key: found.get(key) for key in ("concurrency", "tps", "why")}}
        for run in runs
        for mix, found in run.scores.get("saturation", {}).items()
    ]
    columns = [
        text("mix", "The mix of transactions.", "mix"),
        number("concurrency", "τ, in sessions.", "τ", "g"),
        number("tps", "The TPS at τ.", "TPS", ",.0f"),
        text("why", "Why the search ended.", "why"),
    ]
    return Table("saturation", "Saturation", columns, rows, in_summary=False)


PLACE = 10
TABLES = (throughput, saturation)
