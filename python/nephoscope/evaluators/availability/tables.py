"""The tables of availability: by role, yield and harvest, what was foretold, endpoints, failures that were done."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from nephoscope.tables.columns import (
    difference,
    entries_of,
    number,
    place_of,
    seconds,
    seconds_with_interval,
    text,
    whole,
)
from nephoscope.tables.model import ABSENT, Column, Row, Table, ends, interval_of
from nephoscope.tables.numbers import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nephoscope.tables.columns import RunFigures

_MOST_DECIMALS = 7
_LEAST = 1e-7
_HOUR_S = 3600.0
_SOURCES = {"laws": "the laws", "schedule": "the schedule as done", "given": "given failure data"}


def share_text(share: float | None, ci95: Sequence[float] | None = None) -> str:
    """Write a share from 0 to 1 in %, with two digits of what it lacks: 99.9987 %."""
    if share is None:
        return ABSENT
    lacking = min(100 * share, 100 - 100 * share)
    if 0 < 100 - 100 * share < _LEAST:
        return f"> {100 - _LEAST:.{_MOST_DECIMALS}f} %"
    decimals = 0 if lacking <= 0 else min(max(1, 1 - math.floor(math.log10(lacking) + 1e-6)), _MOST_DECIMALS)
    shown = f"{100 * share:.{decimals}f}"
    if ci95 is not None:
        shown += f" ({100 * ci95[0]:.{decimals}f} … {100 * ci95[1]:.{decimals}f})"
    return f"{shown} %"


def _ends_of(row: Row, name: str) -> tuple[float, float] | None:
    low, high = row.get(f"{name}_ci95_low"), row.get(f"{name}_ci95_high")
    return None if low is None or high is None else (low, high)


def _share(name: str, meaning: str, heading: str) -> Column:
    return Column(name, "number", meaning, heading, lambda row: share_text(row[name], _ends_of(row, name)))


def _time(name: str) -> Callable[[Row], str]:
    def show(row: Row) -> str:
        if row[name] is None or row[name] < _HOUR_S:
            return ABSENT if row[name] is None else seconds_with_interval(row[name], _ends_of(row, name))
        return duration(row[name])

    return show


def _entries(runs: Sequence[RunFigures]) -> Iterator[tuple[Row, Mapping[str, Any]]]:
    for run in runs:
        for place, entry in entries_of(run, "availability"):
            yield {"run": run.name, "measure": place}, entry


def availability(runs: Sequence[RunFigures]) -> Table:
    """Make the table of availability by time, MTTF and MTTR of each role."""
    figures = ("role", "endpoints", "seconds", "down_s", "interruptions", "unended", "cycles", "resolution_s")
    rows = [
        head
        | {name: told[name] for name in (*figures, "availability", "mttf_s", "mttr_s")}
        | ends("availability", told["availability_ci95"])
        | ends("mttf_s", told["mttf_ci95"])
        | ends("mttr_s", told["mttr_ci95"])
        for head, entry in _entries(runs)
        for told in entry["roles"]
    ]
    columns = [
        place_of(rows),
        text("role", "The role: `rw` or `ro`. It is down while none of its endpoints serves.", "role"),
        whole("endpoints", "Its endpoints."),
        number("seconds", "How long it was measured, in s."),
        _share("availability", "The share of that time without an interruption, 0 to 1.", "availability"),
        *interval_of("availability", "that share"),
        number("down_s", "The time of all interruptions, in s."),
        whole("interruptions", "Interruptions.", "interruptions"),
        whole("unended", "Of these, not ended with the measured time."),
        whole("cycles", "Whole cycles of failure and repair, on which the intervals rest."),
        Column("mttf_s", "number", "The mean time up until an interruption, in s.", "MTTF", _time("mttf_s")),
        *interval_of("mttf_s", "that mean"),
        Column("mttr_s", "number", "The mean time of an interruption, in s.", "MTTR", _time("mttr_s")),
        *interval_of("mttr_s", "that mean"),
        number("resolution_s", "How far apart the probes on both sides of a return are at most, in s."),
    ]
    return Table("availability", "Availability by time", columns, rows)


def yields(runs: Sequence[RunFigures]) -> Table:
    """Make the table of yield and harvest."""
    counts = ("offered", "committed", "aborted", "failed", "unended", "good", "slo_s")
    rows = []
    for head, entry in _entries(runs):
        told = entry["yield"]
        row = head | {"load": entry["load"], "harvest": entry["harvest"]}
        row |= {name: told[name] for name in counts}
        row |= {"yield": told["share"], **ends("yield", told["share_ci95"])}
        row |= {"yield_in_time": told["good_share"], **ends("yield_in_time", told["good_share_ci95"])}
        row |= {name: (entry["durability"] or {}).get(name) for name in ("acknowledged", "lost")}
        rows.append(row)
    columns = [
        place_of(rows),
        text("load", "`closed`, a number of sessions, or `open`, a rate.", "load"),
        whole("offered", "Requests that were offered.", "offered"),
        whole("committed", "Of these, committed."),
        whole("aborted", "Of these, aborted by their workload: answered, too."),
        whole("failed", "Of these, failed.", "failed"),
        whole("unended", "Of these, neither started nor ended with the measured time.", "not ended"),
        _share("yield", "Answered per offered, 0 to 1.", "yield"),
        *interval_of("yield", "the yield"),
        number("slo_s", "How long a client waits, in s."),
        whole("good", "Committed within that time."),
        _share("yield_in_time", "The same of answers within that time.", "yield in time"),
        *interval_of("yield_in_time", "the yield in time"),
        _share("harvest", "The share of endpoints that serve, over time, 0 to 1.", "harvest"),
        whole("acknowledged", "Commits of the probe that were acknowledged."),
        Column("lost", "whole", "Of these, missing afterwards.", "lost commits", _lost),
    ]
    return Table("yield", "Availability by requests: yield and harvest", columns, rows)


def _lost(row: Row) -> str:
    return ABSENT if row["lost"] is None else f"{row['lost']:,} of {row['acknowledged']:,}"


def predicted(runs: Sequence[RunFigures]) -> Table:
    """Make the table of the availability that was foretold, beside the measured one."""
    names = (
        "source",
        "mttf_s",
        "mttr_s",
        "measured_mttr",
        "nodes",
        "node",
        "serial",
        "parallel",
        "role",
        "measured",
    )
    rows = [
        head | {name: told[name] for name in names}
        for head, entry in _entries(runs)
        for told in entry["predicted"]
    ]
    columns = [
        place_of(rows),
        Column(
            "source",
            "text",
            "Where MTTF and MTTR come from: `laws`, `schedule` as it was done, or `given` failure data.",
            "foretold from",
            lambda row: _SOURCES.get(row["source"], str(row["source"])),
        ),
        Column("mttf_s", "number", "The mean time to failure of a node, in s.", "MTTF", _time("mttf_s")),
        Column("mttr_s", "number", "The mean time to repair of a node, in s.", "MTTR", _mttr),
        Column("measured_mttr", "flag", "Whether that one is measured, as none was known beforehand."),
        whole("nodes", "The nodes of the system.", "nodes"),
        _share("node", "MTTF / (MTTF + MTTR), 0 to 1.", "one node"),
        _share("serial", "The same of a service that needs all nodes.", "all of them"),
        _share("parallel", "The same of a service that needs one of them.", "one of them"),
        text("role", "The role that was measured."),
        _share("measured", "Its availability by time.", "measured"),
    ]
    return Table("predicted_availability", "Availability foretold, and measured", columns, rows)


def _mttr(row: Row) -> str:
    if row["mttr_s"] is None:
        return ABSENT
    return f"{seconds(row['mttr_s'])}{' (measured)' if row['measured_mttr'] else ''}"


def endpoints(runs: Sequence[RunFigures]) -> Table:
    """Make the table of the endpoints that the harvest is made of."""
    names = ("role", "node", "availability", "down_s", "interruptions")
    rows = [
        head | {name: told[name] for name in names}
        for head, entry in _entries(runs)
        for told in entry["endpoints"]
    ]
    columns = [
        place_of(rows),
        text("role", "The role.", "role"),
        text("node", "The endpoint's name among the probes.", "endpoint"),
        _share("availability", "The share of the time without an interruption, 0 to 1.", "availability"),
        number("down_s", "The time of all its interruptions, in s.", "down s", ".4g"),
        whole("interruptions", "Its interruptions.", "interruptions"),
    ]
    title = "Availability of each endpoint"
    return Table("availability_endpoints", title, columns, rows, in_summary=False)


def done(runs: Sequence[RunFigures]) -> Table:
    """Make the table of the failures and repairs that were done."""
    rows = [
        head
        | {"repetition": one["repetition"], "start_s": one["start_s"]}
        | {
            name: told[name]
            for name in ("what", "failure", "fault", "target", "node", "action", "at_s", "took_s")
        }
        | {"late_s": difference(told["at_s"], told["due_s"])}
        for head, entry in _entries(runs)
        for one in entry["repetitions"]
        for told in one["done"]
    ]
    columns = [
        place_of(rows),
        whole("repetition", "Which repetition it is.", "repetition"),
        whole("failure", "The failure's place in the schedule, from 0; none of what was done at the end."),
        text("what", "`failure` or `repair`.", "what"),
        text("fault", "The fault.", "fault"),
        text("target", "Whose node failed.", "target"),
        text("node", "The node.", "node"),
        text("action", "What was done.", "action"),
        number("start_s", "When the measured time began, in s since the start of the load."),
        Column(
            "at_s",
            "number",
            "When it was done, in s since the start of the load.",
            "at",
            lambda row: seconds(row["at_s"] - row["start_s"]),
        ),
        number("late_s", "How much later than it was due, in s; none of a repair."),
        Column("took_s", "number", "How long it took, in s.", "took", lambda row: seconds(row["took_s"])),
    ]
    return Table(
        "availability_failures", "Failures and repairs that were done", columns, rows, in_summary=False
    )


PLACE = 32
TABLES = (availability, yields, predicted, endpoints, done)
