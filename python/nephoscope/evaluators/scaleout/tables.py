"""The tables of nodes added one by one, and of what clients saw meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.settings.loads import READS
from nephoscope.tables.columns import entries_of, latencies, latency_columns, number, place_of, text, whole
from nephoscope.tables.model import Column, Row, Table, ends, interval_of, spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.tables.columns import RunFigures


def scaleout(runs: Sequence[RunFigures]) -> Table:
    """Nodes added one by one, with the gain of each (CloudyBench, equation 5)."""
    entries = [found for run in runs for _, found in entries_of(run, "scaleout")]
    of_rings = bool(entries) and all(found.get("adds") == "rw" for found in entries)
    rows = [
        {"run": run.name, "measure": place, "mix": mix, **_step(step), **_came(found, step["nodes"])}
        for run in runs
        for place, found in entries_of(run, "scaleout")
        for mix, entry in found["mixes"].items()
        for step in entry["steps"]
    ]
    columns = [
        place_of(rows),
        text("mix", "The mix of transactions.", "mix"),
        whole(
            "nodes",
            "How many nodes there were: read-only ones, or all of a ring.",
            "nodes" if of_rings else "read-only nodes",
        ),
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
    entries = [entry for run in runs for _, entry in entries_of(run, "scaleout")]
    said = {entry.get("reads") for entry in entries if entry.get("adds") != "rw"}
    return "".join(f"; {READS[reads]}" for reads in READS if reads in said)


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


def scaleout_changes(runs: Sequence[RunFigures]) -> Table:
    """Nodes that came and went under load: how long that took, what was moved, and what clients saw meanwhile."""
    rows: list[Row] = [
        {
            "run": run.name,
            "measure": place,
            "change": f"{change} {one['node'] or 'a node'}",
            **{name: one.get(name) for name in ("repetition", "nodes", "took_s", "serve_s", "moved_bytes")},
            **{name: one["clients"][name] for name in ("seconds", "tps", "failed")},
            **latencies(one["clients"]["latency_ms"]),
        }
        for run in runs
        for place, found in entries_of(run, "scaleout")
        for change in ("added", "removed")
        for one in found.get(change, ())
        if one.get("clients")
    ]
    columns = [
        place_of(rows),
        text("change", "Which node came or went.", "change"),
        whole("repetition", "In which repetition."),
        whole("nodes", "How many nodes there were then."),
        number(
            "took_s", "From the call until the provider had nothing more to do, in s.", "took", ".3g", " s"
        ),
        number("serve_s", "From the call for a node until it served, in s.", "came in", ".3g", " s"),
        whole("moved_bytes", "What was moved to it or from it, in bytes.", "moved"),
        number("seconds", "How long the phase was in which it happened, in s.", "over", ".3g", " s"),
        number("tps", "Committed transactions per second in that phase.", "TPS", ",.0f"),
        whole("failed", "Transactions that failed in it."),
        *latency_columns(),
    ]
    return Table(
        "scaleout_changes", "Nodes that came and went, and what clients saw meanwhile", columns, rows
    )


PLACE = 60
TABLES = (scaleout, scaleout_changes)
