"""The tables of consistency: guarantees, t-visibility, stale reads, versions behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.tables.columns import entries_of, number, place_of, text, whole
from nephoscope.tables.model import ABSENT, Column, Row, Table, ends, interval_of, spread, with_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nephoscope.tables.columns import RunFigures

NAMES = {
    "monotonic_reads": "monotonic reads",
    "read_your_writes": "read your writes",
    "monotonic_writes": "monotonic writes",
    "writes_follow_reads": "writes follow reads",
    "long_fork": "long fork",
}
"""What the checks are called."""
_DEFAULT = "default"


def _situations(runs: Sequence[RunFigures]) -> Iterator[tuple[Row, Mapping[str, Any]]]:
    """Give each situation of each run, with what its rows begin with."""
    for run in runs:
        for place, entry in entries_of(run, "consistency"):
            for situation in entry.get("situations", ()):
                head = {"run": run.name, "measure": place}
                # Runs that were kept before nodes could fail have no such time.
                yield head | {name: situation.get(name) for name in ("load", "level", "when")}, situation


def _head(rows: Sequence[Row]) -> list[Column]:
    levels = {row["level"] for row in rows}
    return [
        place_of(rows),
        text("load", "The load beside which it was measured.", "beside"),
        text("level", "The consistency level.", "level" if levels != {_DEFAULT} else ""),
        text(
            "when",
            "Before, during or after failures; absent without any.",
            "failures" if any(row["when"] for row in rows) else "",
        ),
    ]


def _percent(name: str, digits: str = ".3g") -> Callable[[Row], str]:
    """Show a share with its interval, in %."""

    def show(row: Row) -> str:
        share = row.get(name)
        if share is None:
            return ABSENT
        low, high = row.get(f"{name}_ci95_low"), row.get(f"{name}_ci95_high")
        ci95 = None if low is None or high is None else (100 * low, 100 * high)
        return f"{with_interval(f'{100 * share:{digits}}', 100 * share, ci95, by_ends=True)} %"

    return show


def guarantees(runs: Sequence[RunFigures]) -> Table:
    """Make the table of violations of each guarantee."""
    rows = [
        head
        | {"guarantee": NAMES[name], "checks": found["checks"], "violations": found["violations"]}
        | {"share": found["share"]}
        | ends("share", found["ci95"])
        for head, situation in _situations(runs)
        for name, found in situation["guarantees"].items()
    ]
    columns = [
        *_head(rows),
        text("guarantee", "What was checked: docs/metrics.md says how.", "guarantee"),
        whole("checks", "How often.", "checks"),
        whole("violations", "How often it was broken.", "violations"),
        Column("share", "number", "Violations per check, 0 to 1.", "violations per check", _percent("share")),
        *interval_of("share", "that share"),
    ]
    return Table("guarantees", "Consistency: guarantees of a session", columns, rows)


def visibility(runs: Sequence[RunFigures]) -> Table:
    """Make the table of times from an acknowledgement to when the write is to be seen."""
    figures = ("mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms", "half_width_ms")
    rows = [
        head
        | {"node": found["node"], "writes": found["count"], "unseen": found["unseen"]}
        | {name: found[name] for name in figures}
        | ends("mean_ms", found["mean_ci95"])
        for head, situation in _situations(runs)
        for found in situation["visible"]
    ]
    columns = [
        *_head(rows),
        text(
            "node",
            "The endpoint; absent for all of them.",
            "node" if any(row["node"] for row in rows) else "",
        ),
        whole("writes", "Writes that were looked for, on each endpoint.", "writes"),
        whole("unseen", "Of these, not seen for as long as they were looked for: each takes at least that."),
        Column("mean_ms", "number", "The mean time, in ms.", "mean ms", spread("mean_ms")),
        *interval_of("mean_ms", "the mean"),
        *(
            number(f"{name}_ms", f"The {name} of the time, in ms.", f"{name} ms")
            for name in ("p50", "p95", "p99", "max")
        ),
        number("half_width_ms", "The median half-width of a write's bounds, in ms.", "half-width ms"),
    ]
    return Table("visibility", "Consistency: time until a write is visible", columns, rows)


def staleness(runs: Sequence[RunFigures]) -> Table:
    """Make the table of how likely a read is stale, by the time since the write."""
    figures = ("after_ms", "reads", "stale", "share", "missed", "at_most")
    rows = [
        head | {name: found[name] for name in figures} | ends("share", found["ci95"])
        for head, situation in _situations(runs)
        for found in situation["curve"]
    ]
    columns = [
        *_head(rows),
        number(
            "after_ms", "Where the bin of the time since the acknowledgement begins, in ms.", "from ms", ".3g"
        ),
        whole("reads", "Reads that were sent then and answered.", "reads"),
        whole("stale", "Of these, stale ones.", "stale"),
        Column("share", "number", "The share of stale reads, 0 to 1.", "P(stale)", _percent("share")),
        *interval_of("share", "that share"),
        whole("missed", "Reads that were due then and could not be sent."),
        number("at_most", "The share, 0 to 1, if all of those had been stale."),
    ]
    title = "Consistency: P(stale read | time since the write)"
    return Table("staleness", title, columns, rows, in_summary=False)


def behind(runs: Sequence[RunFigures]) -> Table:
    """Make the table of how many versions reads are behind."""
    rows = [
        head
        | {"versions": found["versions"], "reads": found["reads"]}
        | {"share": found["reads"] / max(sum(other["reads"] for other in situation["behind"]), 1)}
        for head, situation in _situations(runs)
        for found in situation["behind"]
    ]
    columns = [
        *_head(rows),
        whole("versions", "So many versions behind; above 16 the power of two below.", "versions behind"),
        whole("reads", "Reads that were.", "reads"),
        Column("share", "number", "Their share, 0 to 1.", "share", _percent("share")),
    ]
    return Table("behind", "Consistency: versions that reads are behind", columns, rows, in_summary=False)


PLACE = 45
TABLES = (guarantees, visibility, staleness, behind)
