"""The table of how a load should be measured: a row for each mix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.tables.columns import entries_of, number, place_of, text, whole
from nephoscope.tables.model import ABSENT, Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nephoscope.tables.columns import RunFigures

_FIGURES = (
    "tps", "measured", "warm_up_s", "window_s", "within", "between", "repetitions", "repetitions_at_most", "takes_s",
)  # fmt: skip


def steady(runs: Sequence[RunFigures]) -> Table:
    """Make the table."""
    rows: list[Row] = [
        {
            "run": run.name,
            "measure": place,
            "mix": mix,
            "precision": entry["precision"],
            **{name: found[name] for name in _FIGURES},
        }
        for run in runs
        for place, entry in entries_of(run, "steady")
        for mix, found in entry["mixes"].items()
    ]
    columns = [
        place_of(rows),
        text("mix", "The mix of transactions.", "mix"),
        number("tps", "Committed transactions per second, without the warm-up.", "TPS"),
        whole("measured", "The repetitions that this was read from."),
        number(
            "warm_up_s",
            "The warm-up, in s; empty if no steady part was seen.",
            "warm-up",
            unit=" s",
        ),
        number("window_s", "The longest useful window, in s.", "window", unit=" s"),
        Column(
            "within",
            "number",
            "The standard deviation of a repetition's mean by its own noise, as a share of the mean.",
            "noise within",
            _share("within"),
        ),
        Column(
            "between",
            "number",
            "The standard deviation from one repetition to the next beyond that, as a share of the mean.",
            "between",
            _share("between"),
        ),
        Column("precision", "number", "The wanted half-width, as a share of the mean.", "for", _precision),
        Column(
            "repetitions",
            "whole",
            "How many repetitions of this window it takes, about; empty above 10,000.",
            "repetitions",
            _repetitions,
        ),
        whole("repetitions_at_most", "The same by the upper 95 % bound of the spread between repetitions."),
        number(
            "takes_s",
            "How long these repetitions take, rests and warm-ups included, in s.",
            "takes",
            unit=" s",
        ),
    ]
    return Table("steady", "How to measure this load", columns, rows)


def _share(name: str) -> Callable[[Row], str]:
    return lambda row: f"{100 * row[name]:.3g} %"


def _precision(row: Row) -> str:
    return f"± {100 * row['precision']:g} %"


def _repetitions(row: Row) -> str:
    if row["repetitions"] is None:
        return ABSENT
    most = row["repetitions_at_most"]
    return f"{row['repetitions']:,} (at most {f'{most:,}' if most is not None else 'more than 10,000'})"


PLACE = 18
TABLES = (steady,)
