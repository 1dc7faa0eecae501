"""The tables of what was executed: the tails side by side (CDSBen's Figure 14), and how each source was executed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nephoscope.report.kit.histograms import few_beyond
from nephoscope.storage.executed import ALL, PERCENTILES
from nephoscope.tables.columns import number, text, whole
from nephoscope.tables.model import ABSENT, Column, Table, figure, interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.storage.executed import Course, Executed, Tail
    from nephoscope.tables.model import Row

_NAMES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "max": "max"}


def tables_of(found: Executed) -> list[Table]:
    """Make all tables."""
    made = [_tails(found.tails), _courses(found.courses)]
    compared = [tail for tail in found.tails if tail.beside_first]
    if compared:
        made.insert(1, _beside(compared, found.courses[0].source))
    return made


def notes_of(found: Executed) -> list[str]:
    """Say what the figures are."""
    repeated = min(course.repetitions for course in found.courses) > 1
    notes = [
        "Latency counts from the intended start; lateness is the part of it before the request started.",
        "Percentiles are those of all repetitions together; "
        + (
            "their 95 % intervals are of the mean over the repetitions."
            if repeated
            else "their 95 % intervals are by blocks of one execution's intervals, and know nothing of another's."
        ),
    ]
    notes += [
        f"{tail.source}: its requests started late (p99 {tail.lateness.at(99):.3g} ms) though fewer than may be were "
        "in flight: the client was the limit, and its lateness is in the latencies."
        for tail in found.tails
        if tail.operation == ALL and _is_late(tail, _course_of(found, tail))
    ]
    if any(tail.percentiles.at_least for tail in found.tails):
        notes.append("≥: requests that did not start or did not end could move it.")
    if any(_is_thin(tail, name) for tail in found.tails for name in PERCENTILES):
        notes.append("*: fewer than 10 requests lie beyond it.")
    return notes


_LATE_MS = 1.0
_LATE_SHARE = 0.1
"""Of the latency's 99th percentile: less lateness than this does not change what is seen."""
_FULL_SHARE = 0.01
"""Of the requests: where more than these found all sessions busy, they explain a 99th percentile."""


def _is_late(tail: Tail, course: Course) -> bool:
    late, latency = tail.lateness.at(99) or 0.0, tail.percentiles.p99 or 0.0
    return late > max(_LATE_MS, _LATE_SHARE * latency) and course.waited < _FULL_SHARE * course.requests


def _course_of(found: Executed, tail: Tail) -> Course:
    return next(course for course in found.courses if course.source == tail.source)


def _is_thin(tail: Tail, name: str) -> bool:
    return name != "max" and few_beyond(PERCENTILES[name], tail.percentiles.count)


def _tails(tails: Sequence[Tail]) -> Table:
    rows: list[Row] = []
    for tail in tails:
        row: Row = {
            "source": tail.source,
            "operation": tail.operation,
            "done": tail.done,
            "failed": tail.failed,
            "unstarted": tail.unstarted,
            "latency_mean_ms": tail.percentiles.mean,
            "at_least": " ".join(tail.percentiles.at_least),
            "thin": " ".join(name for name in PERCENTILES if _is_thin(tail, name)),
            "lateness_p50_ms": tail.lateness.at(50),
            "lateness_p99_ms": tail.lateness.at(99),
            "lateness_max_ms": tail.lateness.at(100),
        }
        for name in PERCENTILES:
            low, high = tail.ci95.get(name, (None, None))
            row |= {
                f"latency_{name}_ms": getattr(tail.percentiles, name),
                f"latency_{name}_ms_ci95_low": low,
                f"latency_{name}_ms_ci95_high": high,
            }
        rows.append(row)
    columns = [
        text("source", "Which requests were executed.", "source"),
        text("operation", "What they asked for; all: every operation together.", "operation"),
        whole("done", "Requests that were done.", "done"),
        whole("failed", "Requests that failed.", ""),
        whole("unstarted", "Requests that were due and did not start.", ""),
        number("latency_mean_ms", "The mean of the latency, in ms."),
    ]
    for name, shown in _NAMES.items():
        columns += [_shown(name, shown), *_ends(f"latency_{name}_ms")]
    columns += [
        text("at_least", "Which of the latencies are lower bounds."),
        text("thin", "Beyond which percentiles fewer than 10 requests lie."),
        number("lateness_p50_ms", "The median of the lateness, in ms."),
        number("lateness_p99_ms", "The 99th percentile of the lateness, in ms.", "lateness p99 [ms]", ".3g"),
        number("lateness_max_ms", "The maximum of the lateness, in ms."),
    ]
    return Table("tails", "Latency in ms", columns, rows)


def _ends(name: str) -> list[Column]:
    ends = ("low", "high")
    return [number(f"{name}_ci95_{end}", f"The {end} end of its 95 % interval.") for end in ends]


def _shown(name: str, heading: str) -> Column:
    meaning = f"The {heading} of the latency, in ms."
    return Column(f"latency_{name}_ms", "number", meaning, heading, partial(_cell, name))


def _cell(name: str, row: Row) -> str:
    value = row.get(f"latency_{name}_ms")
    if value is None:
        return ABSENT
    bound = "≥ " if name in row["at_least"].split() else ""
    thin = "*" if name in row["thin"].split() else ""
    low, high = row[f"latency_{name}_ms_ci95_low"], row[f"latency_{name}_ms_ci95_high"]
    ci95 = None if low is None or high is None else (low, high)
    return f"{bound}{value:.3g}{thin} {interval(value, ci95)}".rstrip()


def _beside(tails: Sequence[Tail], first: str) -> Table:
    rows: list[Row] = []
    for tail in tails:
        row: Row = {"source": tail.source, "operation": tail.operation}
        for name in PERCENTILES:
            ratio, ci95 = tail.beside_first.get(name, (None, None))
            row |= {f"{name}_ratio": ratio}
            row |= dict(
                zip((f"{name}_ratio_ci95_low", f"{name}_ratio_ci95_high"), ci95 or (None, None), strict=True)
            )
        rows.append(row)
    columns = [
        text("source", "Which requests were executed.", "source"),
        text("operation", "What they asked for; all: every operation together.", "operation"),
    ]
    for name, heading in _NAMES.items():
        meaning = f"The {heading} of the latency, in multiples of that of {first}."
        columns.append(Column(f"{name}_ratio", "number", meaning, heading, partial(_ratio, name)))
        columns += _ends(f"{name}_ratio")
    return Table("beside_first", f"Latency in multiples of that of {first}", columns, rows)


def _ratio(name: str, row: Row) -> str:
    value = row.get(f"{name}_ratio")
    if value is None:
        return ABSENT
    low, high = row[f"{name}_ratio_ci95_low"], row[f"{name}_ratio_ci95_high"]
    ci95 = None if low is None or high is None else (low, high)
    return f"{value:.3g} {interval(value, ci95, by_ends=True)}".rstrip()


def _courses(courses: Sequence[Course]) -> Table:
    rows: list[Row] = [vars(course) for course in courses]
    columns = [
        text("source", "Which requests were executed.", "source"),
        whole("repetitions", "How often.", "executions"),
        whole("requests", "Requests that fell due, all executions together.", "requests"),
        number("seconds", "How long the executions took together, in s."),
        number("intended_rate", "Requests that fell due a second.", "due / s"),
        number("achieved_rate", "Requests that were done a second, until the last had ended.", "done / s"),
        whole("waited", "Requests that were due while as many were in flight as may be (--depth).", "waited"),
        whole("dropped", "Requests that had waited for longer than --give-up.", "dropped"),
        whole("failed", "Requests that failed.", "failed"),
        whole("in_flight", "Requests that had not ended when their execution was over.", "not ended"),
        Column(
            "cpu_us", "number", "Processor time of the workers for a request, in µs.", "CPU / request", _cpu
        ),
    ]
    return Table("executions", "Executions", columns, rows)


def _cpu(row: Row) -> str:
    return ABSENT if row.get("cpu_us") is None else f"{figure(float(row['cpu_us']))} µs"
