"""The table of parameters that were swept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.tables.columns import entries_of, latencies, latency_columns, number, place_of, text, whole
from nephoscope.tables.model import Column, Row, Table, ends, interval_of, spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.tables.columns import RunFigures


def sweeps(runs: Sequence[RunFigures]) -> Table:
    """Values of a parameter of the server, with TPS, cost and P at each (CloudyBench, Figure 8)."""
    rows = [
        {
            "run": run.name,
            "measure": place,
            "parameter": found["parameter"],
            "mix": mix,
            **_value(value),
            **_point(point),
        }
        for run in runs
        for place, found in entries_of(run, "sweep")
        for value in found["values"]
        for mix, of_mix in value["mixes"].items()
        for point in of_mix["points"]
    ]
    columns = [
        place_of(rows),
        text("parameter", "The parameter of the server.", "parameter"),
        text("value", "What it was while this was measured.", "value"),
        text("mix", "The mix of transactions.", "mix"),
        number("concurrency", "Sessions at a time.", "sessions", "g"),
        Column("tps", "number", "Committed transactions per second.", "TPS", spread("tps", ",.0f")),
        *interval_of("tps", "the TPS"),
        *latency_columns(),
        number("cost_usd_per_min", "What the resources cost, in $ per minute.", "$/min", ".4f"),
        Column("p", "number", "P, in TPS per $/min.", "P", spread("p", ",.0f")),
        *interval_of("p", "P"),
        whole("repetitions", "How often it was measured."),
    ]
    return Table("sweeps", "Sweeps: TPS per $/min at each value of a parameter", columns, rows)


def _value(value: Mapping[str, Any]) -> Row:
    held = value["held"] if value["held"] is not None else value["value"]
    return {"value": str(held), "cost_usd_per_min": value["cost_per_minute"]}


def _point(point: Mapping[str, Any]) -> Row:
    row: Row = {name: point[name] for name in ("concurrency", "tps", "p", "repetitions")}
    row |= ends("tps", point["ci95"]) | ends("p", point["p_ci95"])
    return row | latencies(point["latency_ms"])


PLACE = 70
TABLES = (sweeps,)
