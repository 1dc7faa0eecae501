"""The tables of the highest rate within a latency limit: a row for each mix, and one for each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.tables.columns import (
    entries_of,
    latencies,
    latency_columns,
    milliseconds,
    number,
    place_of,
    text,
    whole,
)
from nephoscope.tables.model import ABSENT, Column, Row, Table, ends, figure, interval_of, spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.tables.columns import RunFigures

_ENDED = {"most": "most held", "least": "nothing held"}
"""How endings are shown that do not speak for themselves."""
_OF_STEP = (
    "rate", "tps", "arrivals", "share", "excused_share", "percentile_ms", "at_least", "failed", "unstarted", "outcome",
)  # fmt: skip


def slo(runs: Sequence[RunFigures]) -> Table:
    """Make the table of the highest rate of each mix, with its interval."""
    rows: list[Row] = [
        {
            "run": run.name,
            "measure": place,
            "mix": mix,
            "limit_ms": entry["limit_ms"],
            "percentile": entry["percentile"],
            "rate": found["rate"],
            "certainly_held": found["certainly_held"],
            "certainly_not_held": found["certainly_not_held"],
            "tps": found["tps"],
            **ends("tps", found["tps_ci95"]),
            **latencies(found["latency_ms"]),
            "ended": _ENDED.get(str(found["ended"]), str(found["ended"])),
            "why": found["why"],
        }
        for run in runs
        for place, entry in entries_of(run, "slo")
        for mix, found in entry["mixes"].items()
    ]
    columns = [
        place_of(rows),
        text("mix", "The mix of transactions.", "mix"),
        *_limit_columns(),
        number("rate", "The highest rate that held and was confirmed, in arrivals per second.", "rate"),
        Column(
            "certainly_held",
            "number",
            "The highest rate that certainly held (95 %), in arrivals per second.",
            "between",
            _between,
        ),
        number("certainly_not_held", "The lowest rate that certainly did not hold, in arrivals per second."),
        Column("tps", "number", "Committed transactions per second at this rate.", "TPS", spread("tps")),
        *interval_of("tps", "the TPS"),
        *latency_columns(),
        text("ended", "How the search ended.", "ended"),
        text("why", "Why it ended so."),
    ]
    return Table("slo", "The highest rate within a latency limit", columns, rows)


def slo_steps(runs: Sequence[RunFigures]) -> Table:
    """Make the table of all measured phases of the search, in their order."""
    rows = [
        _step(run, place, entry, mix, step)
        for run in runs
        for place, entry in entries_of(run, "slo")
        for mix, found in entry["mixes"].items()
        for step in found["steps"]
    ]
    columns = [
        place_of(rows),
        text("mix", "The mix of transactions.", "mix"),
        *_limit_columns(shown=False),
        number("rate", "The arrivals per second that were asked for.", "rate"),
        text("purpose", "Whether it searched for the rate, or confirmed it.", "to"),
        number("tps", "Committed transactions per second.", "TPS"),
        whole("arrivals", "The arrivals that count.", "arrivals"),
        Column(
            "share",
            "number",
            "The share of them that was committed within the limit.",
            "within the limit",
            _share,
        ),
        *interval_of("share", "the share"),
        number("excused_share", "The same, with the client's own lateness taken off each latency."),
        Column(
            "percentile_ms",
            "number",
            "The percentile of the latency, in ms.",
            "percentile",
            _percentile_cell,
        ),
        Column("at_least", "flag", "Whether that is a lower bound."),
        whole("failed", "Failed transactions.", "failed"),
        whole("unstarted", "Arrivals that had not started when the phase ended."),
        text(
            "outcome",
            "Whether the rate held; not known: the client's lateness could be the reason.",
            "outcome",
        ),
    ]
    return Table("slo_steps", "Steps of the search for the highest rate", columns, rows, in_summary=False)


def _step(run: RunFigures, place: int, entry: Mapping[str, Any], mix: str, step: Mapping[str, Any]) -> Row:
    return {
        "run": run.name,
        "measure": place,
        "mix": mix,
        "limit_ms": entry["limit_ms"],
        "percentile": entry["percentile"],
        "purpose": "confirm" if step["confirms"] else "search",
        **{name: step[name] for name in _OF_STEP},
        **ends("share", step["share_ci95"]),
    }


def _limit_columns(*, shown: bool = True) -> list[Column]:
    limit = number("limit_ms", "The latency limit, in ms.", "limit" if shown else "", "g", " ms")
    share = Column(
        "percentile",
        "number",
        "The share of arrivals that has to be committed within it.",
        "of" if shown else "",
        lambda row: f"{100 * row['percentile']:g} %",
    )
    return [limit, share]


def _between(row: Row) -> str:
    low, high = row["certainly_held"], row["certainly_not_held"]
    if low is None and high is None:
        return ABSENT
    if high is None:
        return f"{figure(low)} …"
    return f"… {figure(high)}" if low is None else f"{figure(low)} … {figure(high)}"


def _share(row: Row) -> str:
    if row["share"] is None:
        return ABSENT
    low, high = row["share_ci95_low"], row["share_ci95_high"]
    interval = "" if low is None else f" ({100 * low:.2f} … {100 * high:.2f})"
    return f"{100 * row['share']:.2f}{interval} %"


def _percentile_cell(row: Row) -> str:
    return milliseconds(row["percentile_ms"], is_bound=bool(row["at_least"]))


PLACE = 17
TABLES = (slo, slo_steps)
