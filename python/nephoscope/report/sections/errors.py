"""Errors by class: their number, their times and the server's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.report.kit.run import class_name, in_order
from nephoscope.report.view import ConnectionRow, ErrorRow, Errors
from nephoscope.tables.numbers import count, finite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.report.kit.run import Run

    Event = Mapping[str, Any]

# Ticks nearer than this share of the run's length would lie on one another.
_TICKS = 160


def build(run: Run) -> Errors:
    """Return the section: errors of transactions by class, and apart from them connections that could not be made.

    An ``error`` event stands for either. The intervals count the errors of transactions alone, each attempt, so they
    say how many those are; the events give the words.
    """
    events = run.events_of("error")
    names = in_order([*_counted_classes(run), *(str(event.get("class")) for event in events)])
    rows = [_row(run, name, [event for event in events if str(event.get("class")) == name]) for name in names]
    total = sum(row.count for row in rows)
    rows = [row.model_copy(update={"share": row.count / total}) for row in rows if row.count]
    rows.sort(key=lambda row: -row.count)
    dropped = sum(_count(event) for event in run.events_of("dropped"))
    return Errors(
        rows=tuple(rows),
        total=total,
        connections=_connections(run),
        dropped=dropped,
        statement=_statement(run, rows, total),
        also=_also(run),
    )


def _counted_classes(run: Run) -> list[str]:
    return [column for column in run.intervals.error_classes if run.intervals.counts(column).any()]


def _statement(run: Run, rows: list[ErrorRow], total: int) -> str:
    ended = sum(run.intervals.total(column) for column in ("committed", "aborted", "failed"))
    if not rows:
        return (
            f"No errors: none of {count(ended)} transactions met one."
            if ended
            else "No errors were recorded."
        )
    retried, failed = run.intervals.total("retried"), run.intervals.total("failed")
    classes = "one class" if len(rows) == 1 else f"{len(rows)} classes"
    return (
        f"{count(total)} {'error' if total == 1 else 'errors'} of {classes}, each attempt of a transaction counted: "
        f"{count(retried)} transactions needed more than one attempt, {count(failed)} failed for good."
    )


def _also(run: Run) -> str:
    """Return the other errors: those outside transactions, and unknown outcomes."""
    refused = sum(_count(event) for event in run.events_of("connection") if event.get("state") == "refused")
    uncertain = round(finite(run.table("totals").get("uncertain")) or 0)
    said = []
    if refused:
        said.append(
            f"{_times(refused)} a connection could not be made: no transaction had begun, so it is no error above."
        )
    if uncertain:
        said.append(
            f"{_times(uncertain)} an attempt ended after its commit was sent and before the answer came: "
            "whether it was committed is not known, and it was not run again."
        )
    return " ".join(said)


def _times(number_of: int) -> str:
    return "Once" if number_of == 1 else f"{count(number_of)} times"


def _row(run: Run, name: str, events: Sequence[Event]) -> ErrorRow:
    times = sorted(time for time in (finite(event.get("time_s")) for event in events) if time is not None)
    counted = run.intervals.counts(name) if name in run.intervals.error_classes else np.zeros(0, np.int64)
    if not times and counted.any():
        times = sorted(run.intervals.middle[counted > 0].tolist())
    first = events[0] if events else {}
    codes = in_order(str(event["code"]) for event in events if event.get("code"))
    return ErrorRow(
        name=class_name(name),
        count=int(counted.sum()) if name in run.intervals.error_classes else sum(map(_count, events)),
        first_message=str(first.get("message") or ""),
        code=", ".join(codes),
        distinct=len({str(event.get("message")) for event in events}),
        where=", ".join(in_order(str(event["transaction"]) for event in events if event.get("transaction"))),
        first_s=times[0] if times else None,
        last_s=times[-1] if times else None,
        ticks=_ticks(times, run.end_s),
    )


def _ticks(times: Sequence[float], length_s: float) -> tuple[float, ...]:
    if length_s <= 0:
        return ()
    return tuple(sorted({round(min(1.0, time / length_s) * _TICKS) / _TICKS for time in times}))


def _count(event: Event) -> int:
    given = finite(event.get("count"))
    return 1 if given is None else round(given)


def _connections(run: Run) -> tuple[ConnectionRow, ...]:
    groups: dict[tuple[str, str], list[Event]] = {}
    for event in run.events_of("connection"):
        tenant = str(event.get("tenant") or "") if len(run.tenants) > 1 else ""
        groups.setdefault((str(event.get("state")), tenant), []).append(event)
    rows = []
    for (state, tenant), events in groups.items():
        times = [time for time in (finite(event.get("time_s")) for event in events) if time is not None]
        rows.append(
            ConnectionRow(
                state=state,
                tenant=tenant,
                count=sum(_count(event) for event in events),
                first_s=min(times, default=None),
                last_s=max(times, default=None),
            )
        )
    return tuple(rows)
