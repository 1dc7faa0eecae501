"""What is in a trace, and what became of one that was replayed, as lines and tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from nephoscope.settings.units import describe_count
from nephoscope.tables.model import ABSENT, Column, Row, Table, figure
from nephoscope.tables.numbers import duration, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.traces.describing import DescribedTrace
    from nephoscope.traces.replayed import ReplayedTrace

_MOST = 20
_SHOWN = 90
_TIMES = "\u00d7"
_UNITS = {1: "1 µs", 1000: "1 ms", 1_000_000: "1 s"}


def lines_of(found: DescribedTrace) -> Iterator[str]:
    """Say what is in it in a few lines."""
    meta = found.meta
    yield f"{found.path}: {meta.format}{', masked' if meta.masked else ''}, nephoscope {meta.nephoscope}"
    counts = {"session": found.sessions, "transaction": found.transactions, "statement": found.statements}
    counted = ", ".join(describe_count(count, name) for name, count in counts.items())
    yield f"  {counted} in {duration(found.length_s)}, from {_begin(found)}"
    resolution = _UNITS.get(meta.resolution_us, f"{meta.resolution_us:,} µs")
    shares = f"reads {percent(found.reads)}, writes {percent(found.writes)}"
    yield f"  times to {resolution}; {shares}, {found.errors:,} failed"
    for why, count in meta.left_out.items():
        yield f"  left out: {count:,} {why}"


def _begin(found: DescribedTrace) -> str:
    begun = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=found.meta.epoch_us)
    zone = found.meta.zone or "by the server's clock"
    return f"{begun:%Y-%m-%d %H:%M:%S} {zone}"


def tables_of(found: DescribedTrace) -> list[Table]:
    """Make the tables of statements, of the mix, and of arrivals."""
    return [_statements(found), _mix(found), _arrivals(found)]


def _share(row: Row) -> str:
    return percent(row["share"])


def _statements(found: DescribedTrace) -> Table:
    rows = [{**vars(statement)} for statement in found.by_fingerprint[:_MOST]]
    columns = [
        Column(
            "statement",
            "text",
            heading="statement",
            shown=lambda row: f"{row['number']:>3} {_short(row['statement'])}",
        ),
        Column("count", "whole", heading="count"),
        Column("share", heading="share", shown=_share),
        Column("mean_rows", heading="rows"),
        Column("errors", "whole", heading="failed"),
        Column("mean_ms", heading="mean ms"),
        Column("p99_ms", heading="p99 ms"),
    ]
    return Table("statements", _title("Statements", len(found.by_fingerprint)), columns, rows)


def _mix(found: DescribedTrace) -> Table:
    rows = [
        {
            "sequence": _sequence(kind.statements),
            "statements": len(kind.statements),
            "count": kind.count,
            "share": kind.share,
        }
        for kind in found.mix[:_MOST]
    ]
    columns = [
        Column("sequence", "text", heading="transaction: numbers of its statements"),
        Column("statements", "whole", heading="statements"),
        Column("count", "whole", heading="count"),
        Column("share", heading="share", shown=_share),
    ]
    return Table("mix", _title("Mix", len(found.mix)), columns, rows)


def _title(name: str, count: int) -> str:
    return f"{name}, the first {_MOST} of {count:,}" if count > _MOST else name


def _sequence(numbers: list[int]) -> str:
    runs = [(number, len(list(same))) for number, same in groupby(numbers)]
    return _short(
        " ".join(f"{number}" if times == 1 else f"{number}{_TIMES}{times}" for number, times in runs)
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _arrivals(found: DescribedTrace) -> Table:
    given = found.arrivals
    rows: list[Row] = [
        {"what": "transactions a second, mean", "value": given.per_second},
        {"what": "transactions in a whole second, least", "value": given.least},
        {"what": "transactions in a whole second, most", "value": given.most},
        {"what": "coefficient of variation of the gaps", "value": given.gaps_cv},
        {"what": "index of dispersion of the seconds", "value": given.dispersion},
        {"what": "sessions open at once, mean", "value": given.sessions_mean},
        {"what": "sessions open at once, most", "value": given.sessions_most},
    ]
    value = Column(
        "value", heading="value", shown=lambda row: ABSENT if row["value"] is None else figure(row["value"])
    )
    return Table("arrivals", "Arrivals", [Column("what", "text", heading="arrivals"), value], rows)


def replay_lines(found: ReplayedTrace) -> Iterator[str]:
    """Say what became of a trace in a few lines."""
    yield f"{found.path} → {found.url}{', masked: its values are replacements' if found.masked else ''}"
    counts = {"session": found.sessions, "transaction": found.transactions, "statement": found.statements}
    counted = ", ".join(describe_count(count, name) for name, count in counts.items())
    yield f"  {counted} in {duration(found.replayed_s)}, recorded in {duration(found.recorded_s)}"
    asked = "as fast as possible" if found.speed is None else f"speed {found.speed:g}"
    reached = "" if found.speed_reached is None else f", reached {figure(found.speed_reached)}"
    yield f"  {asked}{reached}; order of {found.order}; {found.failed:,} failed"
    for why, count in found.left_out.items():
        yield f"  left out: {count:,} {why}"
    others = {
        "transactions have no end in the trace: they ended with their session": found.unfinished,
        "statements were left out: their transaction was lost with its connection": found.lost,
        "statements were not reached": found.not_reached,
        "statements left before the commits that they come after: these took too long": found.out_of_order,
    }
    for told, count in others.items():
        if count:
            yield f"  {count:,} {told}"
    for at, length in found.standstills:
        yield f"  nephoscope itself stood still at {at:.1f} s for {duration(length)}"


def replay_tables(found: ReplayedTrace) -> list[Table]:
    """Make the tables of lateness, of divergence, and of latency; those that have nothing are left out."""
    return [table for table in (_lateness(found), _diverged(found), _latencies(found)) if table.rows]


def _lateness(found: ReplayedTrace) -> Table:
    rows = [vars(lateness) for lateness in found.lateness]
    columns = [
        Column("late", "text", heading="late"),
        Column("statements", "whole", heading="statements"),
        Column("p50_us", heading="p50 µs"),
        Column("p90_us", heading="p90 µs"),
        Column("p99_us", heading="p99 µs"),
        Column("max_us", heading="max µs"),
    ]
    return Table("lateness", "Lateness: sent after the planned time", columns, rows)


def _diverged(found: ReplayedTrace) -> Table:
    rows = [vars(statement) for statement in found.diverged[:_MOST]]
    columns = [
        _statement_column(),
        Column("count", "whole", heading="count"),
        Column("new_errors", "whole", heading="new errors" if found.errors_recorded else "errors"),
        Column("codes", "text", heading="codes", shown=lambda row: " ".join(row["codes"]) or ABSENT),
        Column("missing_errors", "whole", heading="errors missing"),
        Column("other_rows", "whole", heading="other rows"),
    ]
    return Table("diverged", _title("Diverged", len(found.diverged)), columns, rows)


def _latencies(found: ReplayedTrace) -> Table:
    rows = [vars(statement) for statement in found.by_fingerprint[:_MOST]]
    columns = [
        _statement_column(),
        Column("count", "whole", heading="count"),
        Column("recorded_mean_ms", heading="recorded ms"),
        Column("recorded_p99_ms", heading="p99 ms"),
        Column("replayed_mean_ms", heading="replayed ms"),
        Column("replayed_p99_ms", heading="p99 ms"),
    ]
    return Table("latency", _title("Latency", len(found.by_fingerprint)), columns, rows)


def _statement_column() -> Column:
    return Column("statement", "text", heading="statement", shown=lambda row: _short(row["statement"]))
