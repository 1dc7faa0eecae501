"""The tables of patterns of load and of the system's reactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.tables.columns import (
    number,
    seconds,
    seconds_with_interval,
    text,
    whole,
    with_spread,
)
from nephoscope.tables.model import ABSENT, Column, Row, Table, ends, interval_of, spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.tables.columns import RunFigures


def elasticity(runs: Sequence[RunFigures]) -> Table:
    """Patterns of load, with E1 of each."""
    rows = []
    for run in runs:
        for entry in run.detail("E1").get("patterns", []):
            slowest = max(
                (_scaling_of(change) for change in entry["transitions"]), key=_length_of, default={}
            )
            row = {"run": run.name, "pattern": entry["pattern"], "repetition": entry["repetition"]}
            row |= {"sessions": ", ".join(str(slot["sessions"]) for slot in entry["slots"])}
            row |= {
                "tps": entry["mean_tps"],
                "e1": entry["e1"],
                **ends("tps", entry["ci95"]),
                **ends("e1", entry["e1_ci95"]),
            }
            row |= {f"slowest_{name}": value for name, value in slowest.items()}
            row |= {"cost_usd": entry["cost"]}
            row |= {"window_s": entry["window_s"], "mean_vcores": entry["mean_vcores"]}
            rows.append(row)
    columns = [
        text("pattern", "The pattern of load.", "pattern"),
        whole("repetition", "Which repetition it is."),
        text("sessions", "The sessions that are wanted in its slots.", "sessions"),
        Column("tps", "number", "Mean TPS over the slots.", "TPS", spread("tps", ",.0f")),
        *interval_of("tps", "the TPS"),
        Column(
            "slowest_scaling_s",
            "number",
            "The longest scaling, in s; none where none was seen, or it is only known in its range.",
            "slowest scaling",
            lambda row: _scaling(row, "slowest_") or "none",
        ),
        *_range_of("slowest_"),
        number("cost_usd", "What CPU, memory and IOPS cost over the window, in $.", "cost", ".3g"),
        number("window_s", "The window's length in s."),
        number("mean_vcores", "The mean of the vCores over the window."),
        Column("e1", "number", "E1 of the pattern, in TPS per $.", "E1", spread("e1", ",.0f")),
        *interval_of("e1", "E1"),
    ]
    title, foot = "E1-Score: TPS per $", []
    if len(runs) == 1 and rows:
        title += f" over {rows[0]['window_s']:.0f} s{_asked_for(runs)}"
        if score := runs[0].score("E1"):
            foot = ["mean", "", "", "", "", with_spread(score)]
    return Table("elasticity", title, columns, rows, foot)


_SCALING = ("scaling_s", "scaling_low_s", "scaling_high_s")


def _scaling_of(change: Mapping[str, Any]) -> Row:
    """Return how long a scaling took: the time, and its range where the provider had to be asked."""
    return {name: change.get(name) for name in _SCALING}


def _length_of(scaling: Row) -> float:
    known = scaling["scaling_s"] if scaling["scaling_s"] is not None else scaling["scaling_high_s"]
    return -1.0 if known is None else float(known)


def _scaling(row: Row, which: str = "") -> str:
    """Write how long a scaling took, as finely as it is known; empty where none was seen."""
    value, low, high = (row.get(f"{which}{name}") for name in _SCALING)
    if value is None:
        return "" if high is None else f"at most {seconds(high)}"
    return seconds(value) if low is None or high is None else seconds_with_interval(value, (low, high))


def _range_of(which: str = "") -> list[Column]:
    """Return the two columns of the bounds of a scaling time."""
    return [
        number(
            f"{which}scaling_{end}_s",
            f"The {word} that it can have been, where the provider was asked, in s.",
        )
        for end, word in (("low", "least"), ("high", "most"))
    ]


_CHANGE = {
    "under_time": "The share of the time with fewer vCores than in proportion to the load.",
    "over_time": "The share of the time with more.",
    "under_area": "How many were missing on average, as a share of the most vCores.",
    "over_area": "How many were too many.",
}


def transitions(runs: Sequence[RunFigures]) -> Table:
    """List the changes of the load, as in the paper's Table VI."""
    rows = [
        {
            "run": run.name,
            "pattern": entry["pattern"],
            "repetition": entry["repetition"],
            **{
                key: change.get(key)
                for key in ("at_s", "from_sessions", "to_sessions", "from_vcores", "to_vcores", *_CHANGE)
            },
            **_scaling_of(change),
            **{key: change.get(key) for key in ("oscillations", "slo_broken", "wake_up_s")},
            "scaling_cost_usd": change.get("scaling_cost"),
        }
        for run in runs
        for entry in run.detail("E1").get("patterns", [])
        for change in entry["transitions"]
    ]
    columns = [
        text("pattern", "The pattern of load.", "pattern"),
        whole("repetition", "Which repetition it is."),
        number("at_s", "When the load changed, in s since the start of the load."),
        Column(
            "from_sessions", "number", "Sessions before.", "sessions", lambda row: _change(row, "sessions")
        ),
        number("to_sessions", "Sessions after."),
        Column(
            "from_vcores",
            "number",
            "vCores of all nodes before.",
            "vCores",
            lambda row: _change(row, "vcores"),
        ),
        number("to_vcores", "vCores at the end."),
        Column(
            "scaling_s",
            "number",
            "From the change of the load to the last change of the allocation, in s.",
            "scaling",
            lambda row: _scaling(row) or ABSENT,
        ),
        *_range_of(),
        number("scaling_cost_usd", "What that time cost, in $.", "cost", ".3g"),
        *(number(name, meaning) for name, meaning in _CHANGE.items()),
        whole("oscillations", "How often the vCores turned."),
        whole("slo_broken", "Transactions that failed or broke the bound."),
        number("wake_up_s", "After an idle slot: to the first committed transaction, in s."),
    ]
    return Table(
        "transitions",
        f"Scaling, change by change{_asked_for(runs)}",
        columns,
        rows,
        in_summary=False,
        paper=6,
    )


def _asked_for(runs: Sequence[RunFigures]) -> str:
    """Describe the resolution of scaling times, where the provider was polled."""
    gaps = [gap for run in runs if (gap := run.detail("E1").get("allocation_gap_s"))]
    return f"; scaling times to {seconds(max(gaps))}, as the allocation was asked for" if gaps else ""


def _change(row: Row, of: str) -> str:
    before, after = (row[f"{end}_{of}"] for end in ("from", "to"))
    return ABSENT if before is None or after is None else f"{before:g} → {after:g}"


PLACE = 20
TABLES = (elasticity, transitions)
