"""The tables of isolation: what was found at each level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.tables.columns import entries_of, number, place_of, text, whole
from nephoscope.tables.model import Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.tables.columns import RunFigures

_COUNTS = ("isolation", "repetition", "tps", "committed", "aborted", "unknown", "operations", "answer")


def levels(runs: Sequence[RunFigures]) -> Table:
    """Make the table of levels: how much was checked, and what it says of the level."""
    rows: list[Row] = [
        {"run": run.name, "measure": place}
        | {name: level[name] for name in _COUNTS}
        | {
            "strongest": level["strongest"] or "none",
            "anomalies": sum(one["times"] for one in level["anomalies"]),
        }
        for run in runs
        for place, found in entries_of(run, "isolation")
        for level in found["levels"]
    ]
    columns = [
        place_of(rows),
        text("isolation", "The isolation level that was asked for.", "isolation"),
        whole("repetition", "Which repetition it was."),
        text("answer", "Whether what was seen contradicts the level.", "answer"),
        text("strongest", "The strongest level that is not contradicted.", "fits"),
        whole("anomalies", "Anomalies that were found, those that the level allows included.", "anomalies"),
        number("tps", "Committed transactions per second.", "TPS", ",.0f"),
        whole("committed", "Checked transactions that committed.", "checked"),
        whole("aborted", "Checked transactions that aborted.", "aborted"),
        whole("unknown", "Transactions whose outcome nobody knows.", "unknown"),
        whole("operations", "What these did and saw."),
    ]
    return Table("isolation", "Isolation: what transactions saw at each level", columns, rows)


def anomalies(runs: Sequence[RunFigures]) -> Table:
    """Make the table of anomalies by level."""
    rows: list[Row] = [
        {
            "run": run.name,
            "measure": place,
            "isolation": level["isolation"],
            "repetition": level["repetition"],
            "anomaly": anomaly["anomaly"],
            "order": anomaly["order"],
            "times": anomaly["times"],
            "contradicts": "yes"
            if [anomaly["anomaly"], anomaly["order"]] in _pairs(level["contradicting"])
            else "no",
            "about": anomaly["about"],
        }
        for run in runs
        for place, found in entries_of(run, "isolation")
        for level in found["levels"]
        for anomaly in level["anomalies"]
    ]
    columns = [
        place_of(rows),
        text("isolation", "The isolation level that was asked for.", "isolation"),
        whole("repetition", "Which repetition it was."),
        text("anomaly", "The anomaly, by its name in the literature.", "anomaly"),
        text("order", "What orders transactions besides their dependencies, for it to be one.", "order"),
        whole("times", "How often it was found; of cycles at least.", "times"),
        text("contradicts", "Whether the level forbids it.", "contradicts the level"),
        text("about", "What it is.", "about"),
    ]
    return Table("anomalies", "Anomalies of isolation", columns, rows)


def _pairs(given: Sequence[Sequence[str]]) -> list[list[str]]:
    return [list(pair) for pair in given]


PLACE = 75
TABLES = (levels, anomalies)
