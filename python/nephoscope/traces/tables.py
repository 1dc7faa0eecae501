"""What is in a trace, as lines and tables."""

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
