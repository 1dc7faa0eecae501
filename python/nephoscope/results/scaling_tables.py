"""The tables of scale-out and of sweeps of stored runs; ``run_tables`` gathers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.settings.loads import READS
from nephoscope.tables.columns import latencies, latency_columns, number, text, whole
from nephoscope.tables.model import Column, Row, Table, ends, interval_of, spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.tables.columns import RunFigures


def scaleout(runs: Sequence[RunFigures]) -> Table:
    """Read-only nodes added one by one, with what each brought (CloudyBench, equation 5)."""
    rows = [
        {"run": run.name, "measure": place, "mix": mix, **_step(step), **_came(found, step["nodes"])}
        for run in runs
        for place, found in _entries(run, "scaleout")
        for mix, entry in found["mixes"].items()
        for step in entry["steps"]
    ]
    columns = [
        _place(rows),
        text("mix", "The mix of transactions.", "mix"),
        whole("nodes", "How many read-only nodes there were.", "read-only nodes"),
        whole("concurrency", "Sessions at a time."),
        Column("tps", "number", "Committed transactions per second.", "TPS", spread("tps", ",.0f")),
        *interval_of("tps", "the TPS"),
        number("gain_tps", "How much the last node added, in TPS.", "gain", "+,.0f"),
        *latency_columns(),
        number("serve_s", "From the call for the last node until it served, in s.", "came in", ".3g", " s"),
        whole("repetitions", "How often it was measured."),
    ]
    return Table("scaleout", _scaleout_title(runs) + _reads(runs), columns, rows)


def _reads(runs: Sequence[RunFigures]) -> str:
    """Say where the reads were: E2 is another figure where they leave the node that takes writes."""
    said = {entry.get("reads") for run in runs for _, entry in _entries(run, "scaleout")}
    return "".join(f"; {READS[reads]}" for reads in READS if reads in said)


def _entries(run: RunFigures, evaluator: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Return what the entries of ``[[measure]]`` of an evaluator came to, each with its place."""
    told = run.scores.get("details", {}).get(evaluator, {})
    return [(int(place), entry) for place, entry in told.items()]


def _place(rows: Sequence[Row]) -> Column:
    """Make the column of an entry's place: shown where a run has several."""
    places: dict[Any, set[Any]] = {}
    for row in rows:
        places.setdefault(row["run"], set()).add(row["measure"])
    several = any(len(of_run) > 1 for of_run in places.values())
    return whole(
        "measure", "The place of its entry among `[[measure]]`, from 0.", "measure" if several else ""
    )


def _step(step: Mapping[str, Any]) -> Row:
    row: Row = {name: step[name] for name in ("nodes", "concurrency", "tps", "gain_tps", "repetitions")}
    return row | ends("tps", step["ci95"]) | latencies(step["latency_ms"])


def _came(found: Mapping[str, Any], nodes: int) -> Row:
    """Return how long the node took to serve that made it so many, over the repetitions."""
    waits = [one["serve_s"] for one in found["added"] if one["nodes"] == nodes]
    return {"serve_s": sum(waits) / len(waits) if waits else None}


def _scaleout_title(runs: Sequence[RunFigures]) -> str:
    if len(runs) != 1:
        return "E2-Score: read-only nodes added one by one"
    score = runs[0].score("E2")
    if score is None:
        return f"no E2-Score: {runs[0].scores.get('absent', {}).get('E2')}"
    shown = spread("value")({"value": score["value"], **ends("value", score["ci95"])})
    return f"E2-Score: {shown}, in {score['detail']['delta']:,.0f} TPS per node"


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
        for place, found in _entries(run, "sweep")
        for value in found["values"]
        for mix, of_mix in value["mixes"].items()
        for point in of_mix["points"]
    ]
    columns = [
        _place(rows),
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
