"""A trace is sent to a server again."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.files import check_named
from nephoscope.interrupts import Interrupted
from nephoscope.traces.planning import plan_replay, statements_of
from nephoscope.traces.replayed import (
    Outcomes,
    RecordedOutcomes,
    ReplayedTrace,
    ReplayRequest,
    summary,
    write_outcomes,
)
from nephoscope.traces.trace import StoredTrace

if TYPE_CHECKING:
    from pathlib import Path

    from nephoscope.traces.planning import ReplayPlan

Order = Literal["sessions", "commits"]
ORDERS: tuple[str, ...] = get_args(Order)
SPEEDS = (0.1, 10.0)
_FASTEST = "max"
_WAIT_S = 0.1
_MOST_WORKERS = 8
_NANO = 1_000_000_000


@dataclass(frozen=True)
class ReplayOptions:
    """How a trace is replayed."""

    speed: float | None = 1.0
    """How many times as fast as it was recorded; as fast as possible if None."""
    order: Order = "sessions"
    partial: bool = False
    """Whether transactions are replayed of which the trace has a part only."""
    database: str | None = None
    """The one database whose statements are taken."""
    answer_timeout_s: float = 60.0
    connect_timeout_s: float = 10.0
    workers: int = 0
    """How many threads; as many as processors if 0, but no more than 8."""


def parse_speed(text: str) -> float | None:
    """Read a speed: a factor from 0.1 to 10, or ``max`` (None). Raises ``InputError``."""
    if text == _FASTEST:
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = float("nan")
    if not SPEEDS[0] <= speed <= SPEEDS[1]:
        raise InputError(
            f"--speed {text}: no such speed (allowed: {SPEEDS[0]:g} to {SPEEDS[1]:g}, or {_FASTEST})"
        )
    return speed


def parse_order(text: str) -> Order:
    """Read an order. Raises ``InputError``."""
    for order in ORDERS:
        if text == order:
            return order  # type: ignore[return-value]
    raise InputError(f"--order {text}: no such order (allowed: {', '.join(ORDERS)})")


def replay_trace(path: Path, url: str, options: ReplayOptions, out: Path | None = None) -> ReplayedTrace:
    """Send a trace to a server, and tell what became of it; with ``out`` every statement's times are kept.

    An interruption ends it; what was measured until then is kept. About 150 bytes a statement are held in memory.

    Raises:
        InputError: it is no trace, the URL cannot be used, its server speaks another dialect, or ``out`` cannot be
            made there.
        MeasurementError: the server cannot be reached.

    """
    if out is not None:
        check_named(out)
    trace = StoredTrace(path)
    try:
        replay = _engine.SqlReplay(json.dumps(_spec(url, trace.meta.dialect, options)))
        plan = plan_replay(
            trace, commits=options.order == "commits", partial=options.partial, database=options.database
        )
        # What is wrong with the URL, it says once and not for each session.
        _engine.Admin(url, options.connect_timeout_s).close()
        outcomes = Outcomes(trace.statements)
        planned_ns = _planned_ns(plan, options.speed)
        interrupted = _drive(replay, trace, plan, planned_ns, outcomes)
        outcomes.standstills += replay.gaps()
        known = None if options.speed is None else planned_ns
        recorded = RecordedOutcomes(trace)
        if out is not None:
            write_outcomes(out, recorded, plan, outcomes, known)
        asked = ReplayRequest(_engine.redact(url), options.order, options.speed, interrupted)
        return summary(recorded, plan, outcomes, known, asked)
    finally:
        trace.close()


def _spec(url: str, dialect: str, options: ReplayOptions) -> dict[str, Any]:
    return {
        "url": url,
        "dialect": dialect,
        "workers": options.workers or min(len(os.sched_getaffinity(0)), _MOST_WORKERS),
        "timed": options.speed is not None,
        "connect_timeout_ns": round(options.connect_timeout_s * _NANO),
        "answer_timeout_ns": round(options.answer_timeout_s * _NANO),
    }


def _planned_ns(plan: ReplayPlan, speed: float | None) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Give when each statement is to leave; the first that is sent leaves at time 0."""
    if speed is None:
        return np.zeros(len(plan.time_us), np.int64)
    since = plan.time_us - plan.time_us[plan.is_sent].min()
    planned: np.ndarray[Any, np.dtype[np.int64]] = np.round(np.maximum(since, 0) * (1000 / speed)).astype(
        np.int64
    )
    return planned


def _drive(
    replay: _engine.SqlReplay,
    trace: StoredTrace,
    plan: ReplayPlan,
    planned_ns: np.ndarray[Any, np.dtype[np.int64]],
    outcomes: Outcomes,
) -> str | None:
    """Feed the statements and take what becomes of them; gives why it was interrupted."""
    begun, row = False, 0
    try:
        for batch in trace.batches(["statement", "kinds", "parameters"]):
            while not replay.has_room():
                if not begun:
                    replay.begin()
                    begun = True
                outcomes.take(replay.next(_WAIT_S))
            _feed(replay, plan, planned_ns, row, batch)
            row += batch.num_rows
            if begun:
                outcomes.take(replay.next(0.0))
        if not begun:
            replay.begin()
        replay.end()
        while outcomes.take(replay.next(_WAIT_S)):
            pass
    except Interrupted as error:
        replay.stop()
        while outcomes.take(replay.next(_WAIT_S)):
            pass
        return str(error)
    return None


def _feed(
    replay: _engine.SqlReplay,
    plan: ReplayPlan,
    planned_ns: np.ndarray[Any, np.dtype[np.int64]],
    first: int,
    batch: pa.RecordBatch,
) -> None:
    rows = first + np.flatnonzero(plan.is_sent[first : first + batch.num_rows])
    if not len(rows):
        return
    # What a statement comes after stands between the end of the row before, which may not be sent, and its own.
    ends = plan.after_ends[rows]
    after = plan.after[ends[0] - _count_after(plan, rows[0]) : ends[-1]]
    places: Any = pa.array(rows - first)
    replay.feed(
        statements_of(batch.take(places)),
        {
            "row": rows.astype(np.int64).tobytes(),
            "session": plan.session[rows].tobytes(),
            "transaction": plan.transaction[rows].tobytes(),
            "at_ns": planned_ns[rows].tobytes(),
            "ends": plan.ends[rows].tobytes(),
            "after_ends": (ends - (ends[-1] - len(after))).tobytes(),
            "after": after.tobytes(),
        },
    )


def _count_after(plan: ReplayPlan, row: int) -> int:
    before = int(plan.after_ends[row - 1]) if row else 0
    return int(plan.after_ends[row]) - before
