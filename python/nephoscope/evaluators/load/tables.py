"""The table of streams: loads side by side on the same data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.tables.columns import entries_of, latencies, latency_columns, number, place_of, text, whole
from nephoscope.tables.model import Column, Row, Table, ends, interval_of, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.tables.columns import RunFigures

_SHOWN = ("name", "repetition", "stream", "mix", "concurrency", "rate", "committed", "tps")


def streams(runs: Sequence[RunFigures]) -> Table:
    """Make the table of streams, each with its own throughput and latency."""
    rows: list[Row] = [
        {"run": run.name, "measure": place}
        | {name: stream[name] for name in _SHOWN}
        | ends("tps", stream["ci95"])
        | latencies(stream["latency_ms"])
        for run in runs
        for place, found in entries_of(run, "load")
        for stream in found["streams"]
    ]
    repeated = any(int(row["repetition"]) > 1 for row in rows)
    columns = [
        place_of(rows),
        text("name", "The phase.", "phase"),
        whole("repetition", "Which repetition it was.", "repetition" if repeated else ""),
        text("stream", "The stream, as the rows of its transactions have it for a tenant.", "stream"),
        text("mix", "The mix of its transactions.", "mix"),
        number("concurrency", "Its sessions at a time, of a closed load.", "sessions"),
        number("rate", "Its arrivals per second, of an open load.", "rate"),
        Column("tps", "number", "Its committed transactions per second.", "TPS", spread("tps", ",.4g")),
        *interval_of("tps", "the TPS"),
        whole("committed", "Its committed transactions."),
        *latency_columns(),
    ]
    return Table("streams", "Streams: loads side by side", columns, rows)


PLACE = 15
TABLES = (streams,)
