"""What became of a trace that was replayed: lateness, divergence, latency, and every statement's times in a file."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nephoscope.errors import MeasurementError
from nephoscope.files import replacing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from nephoscope.traces.planning import ReplayPlan
    from nephoscope.traces.trace import StoredTrace

_DONE, _FAILED, _LOST, _NEVER = range(4)
_FATES = ["done", "failed", "left out", "not reached"]
_PIECE = 1 << 16
_US, _MS, _S = 1e3, 1e6, 1e9

SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("session", pa.uint32(), nullable=False),
        pa.field("transaction", pa.uint64(), nullable=False),
        pa.field("fingerprint", pa.uint64(), nullable=False),
        pa.field("fate", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("planned_us", pa.float64()),
        pa.field("sent_us", pa.float64()),
        pa.field("answered_us", pa.float64()),
        pa.field("lateness_us", pa.float64()),
        pa.field("late", pa.dictionary(pa.int8(), pa.string())),
        pa.field("rows", pa.int64()),
        pa.field("error", pa.string()),
        pa.field("recorded_duration_us", pa.float64()),
        pa.field("recorded_rows", pa.int64()),
        pa.field("recorded_error", pa.string()),
    ]
)
"""The columns of the statements' file. What they mean is in docs/traces.md."""


class Outcomes:
    """What has become of each statement, by its row in the trace. Times are in nanoseconds since time 0."""

    def __init__(self, statements: int) -> None:
        """Begin with nothing."""
        self.ready_ns = np.zeros(statements, np.int64)
        self.sent_ns = np.zeros(statements, np.int64)
        self.answered_ns = np.zeros(statements, np.int64)
        self.rows = np.full(statements, -1, np.int64)
        self.fate = np.full(statements, _NEVER, np.uint8)
        self.out_of_order = np.zeros(statements, np.bool_)
        self.errors: dict[int, str] = {}
        self.standstills: list[tuple[int, int]] = []
        """When the tool itself did not run, and for how long, in nanoseconds."""

    def take(self, found: Mapping[str, Any] | None) -> bool:
        """Add what the engine gives; tells whether more may come."""
        if found is None:
            return False
        row = np.frombuffer(found["row"], np.int64)
        for name in ("ready_ns", "sent_ns", "answered_ns", "rows"):
            getattr(self, name)[row] = np.frombuffer(found[name], np.int64)
        self.fate[row] = np.frombuffer(found["fate"], np.uint8)
        self.out_of_order[row] = np.frombuffer(found["out_of_order"], np.uint8) != 0
        self.errors.update((int(row[at]), code) for at, code in found["errors"])
        return True

    @property
    def is_answered(self) -> NDArray[np.bool_]:
        """Which statements were sent, and answered or failed."""
        return self.fate <= _FAILED


class RecordedOutcomes:
    """What a trace tells of how its statements ended, by their rows."""

    def __init__(self, trace: StoredTrace) -> None:
        """Read it. Raises ``InputError``."""
        self.path = trace.path
        self.masked = trace.meta.masked
        self.session, self.transaction = trace.column("session"), trace.column("transaction")
        self.rows: NDArray[np.float64] = trace.column("rows").astype(float)
        """NaN where the trace does not have it."""
        self.errors: dict[int, str] = {}
        first = 0
        for batch in trace.batches(["error"]):
            column: Any = batch.column("error")
            failed = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
            self.errors.update((first + int(at), column[int(at)].as_py()) for at in failed)
            first += batch.num_rows


@dataclass(frozen=True)
class Lateness:
    """How much later than planned statements left."""

    late: str
    """Who was late: server, nephoscope; or all of them, or what nephoscope added to what it had to wait for."""
    statements: int
    p50_us: float | None
    p90_us: float | None
    p99_us: float | None
    max_us: float | None


@dataclass(frozen=True)
class DivergedStatement:
    """The statements of one fingerprint that ended otherwise than they were recorded."""

    fingerprint: str
    statement: str
    count: int
    new_errors: int
    """Failed, and did not when they were recorded, as far as the trace tells."""
    codes: dict[str, int]
    """The codes of those errors, with how often each came."""
    missing_errors: int
    """Succeeded, and failed when they were recorded."""
    other_rows: int
    """Returned or changed another number of rows, where the trace has it."""


@dataclass(frozen=True)
class ReplayedStatement:
    """The latency of the statements of one fingerprint, as recorded and as replayed."""

    fingerprint: str
    statement: str
    count: int
    recorded_mean_ms: float | None
    recorded_p99_ms: float | None
    replayed_mean_ms: float | None
    replayed_p99_ms: float | None


@dataclass(frozen=True)
class ReplayedTrace:
    """What became of a trace."""

    path: str
    url: str
    order: str
    masked: bool
    errors_recorded: bool
    """Whether the trace's format has errors."""
    sessions: int
    transactions: int
    statements: int
    """Sent and answered."""
    failed: int
    lost: int
    """Not sent, because their transaction was lost with its connection."""
    not_reached: int
    """Not sent, because the replay was interrupted."""
    out_of_order: int
    """Sent before the commits that they come after, because these did not come within the limit."""
    left_out: dict[str, int]
    unfinished: int
    speed: float | None
    speed_reached: float | None
    """The recorded time between the first statement and the last over the replayed one."""
    recorded_s: float
    replayed_s: float
    standstills: list[tuple[float, float]]
    """When the tool itself did not run, and for how long, in seconds."""
    interrupted: str | None
    lateness: list[Lateness] = field(default_factory=list)
    diverged: list[DivergedStatement] = field(default_factory=list)
    by_fingerprint: list[ReplayedStatement] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        return asdict(self)


@dataclass(frozen=True)
class ReplayRequest:
    """What was asked for, and whether it came to its end."""

    url: str
    """Without a password."""
    order: str
    speed: float | None
    interrupted: str | None


def summary(
    recorded: RecordedOutcomes,
    plan: ReplayPlan,
    outcomes: Outcomes,
    planned_ns: NDArray[np.int64] | None,
    asked: ReplayRequest,
) -> ReplayedTrace:
    """Sum up what became of a trace; ``planned_ns`` is None where it was replayed as fast as possible."""
    sent, answered = plan.is_sent, outcomes.is_answered
    times, replayed = plan.time_us[answered], outcomes.sent_ns[answered]
    recorded_s = float(np.ptp(times)) / 1e6 if len(times) else 0.0
    replayed_s = float(np.ptp(replayed)) / _S if len(replayed) else 0.0
    return ReplayedTrace(
        path=str(recorded.path),
        url=asked.url,
        order=asked.order,
        masked=recorded.masked,
        errors_recorded=bool(recorded.errors) or not np.isnan(plan.duration_us).all(),
        sessions=len(np.unique(plan.session[answered])),
        transactions=len(np.unique(plan.transaction[answered])),
        statements=int(answered.sum()),
        failed=int((outcomes.fate == _FAILED).sum()),
        lost=int((outcomes.fate == _LOST).sum()),
        not_reached=int((sent & (outcomes.fate == _NEVER)).sum()),
        out_of_order=int(outcomes.out_of_order.sum()),
        left_out=plan.left_out,
        unfinished=plan.unfinished,
        speed=asked.speed,
        speed_reached=recorded_s / replayed_s if replayed_s else None,
        recorded_s=recorded_s,
        replayed_s=replayed_s,
        standstills=[(at / _S, length / _S) for at, length in outcomes.standstills],
        interrupted=asked.interrupted,
        lateness=[] if planned_ns is None else _lateness(outcomes, planned_ns),
        diverged=_diverged(plan, outcomes, recorded),
        by_fingerprint=_latencies(plan, outcomes),
    )


def _is_servers(ready_ns: NDArray[np.int64], planned_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell where the server had not answered, at the planned time, what has to be answered before."""
    return ready_ns > planned_ns


def _lateness(outcomes: Outcomes, planned_ns: NDArray[np.int64]) -> list[Lateness]:
    answered = outcomes.is_answered
    late = (outcomes.sent_ns - planned_ns)[answered]
    own = (outcomes.sent_ns - np.maximum(planned_ns, outcomes.ready_ns))[answered]
    servers = _is_servers(outcomes.ready_ns, planned_ns)[answered]
    groups = {"all": late, "server": late[servers], "nephoscope": late[~servers], "added by nephoscope": own}
    return [Lateness(name, len(of), *_percentiles(of / _US, 50, 90, 99, 100)) for name, of in groups.items()]


def _percentiles(values: NDArray[np.float64], *wanted: float) -> list[float | None]:
    return [float(np.percentile(values, one)) if len(values) else None for one in wanted]


def _groups(plan: ReplayPlan, chosen: NDArray[np.bool_]) -> list[tuple[int, NDArray[np.int64]]]:
    """Give a row of each fingerprint's, and all of its rows that are chosen; the most frequent first."""
    rows = np.flatnonzero(chosen)
    prints, numbers, counts = np.unique(plan.fingerprint[rows], return_inverse=True, return_counts=True)
    pieces = np.split(rows[np.argsort(numbers, kind="stable")], np.cumsum(counts)[:-1])
    return [(int(pieces[at][0]), pieces[at]) for at in np.lexsort((prints, -counts)) if len(pieces[at])]


def _name(plan: ReplayPlan, row: int) -> tuple[str, str]:
    # In hexadecimal digits: JSON has no numbers of 64 bits.
    return f"{int(plan.fingerprint[row]):016x}", plan.texts[int(plan.text[row])]


def _diverged(plan: ReplayPlan, outcomes: Outcomes, recorded: RecordedOutcomes) -> list[DivergedStatement]:
    rows, had_failed = recorded.rows, np.zeros(len(recorded.rows), np.bool_)
    had_failed[list(recorded.errors)] = True
    failed = outcomes.fate == _FAILED
    other = (outcomes.fate == _DONE) & ~np.isnan(rows) & (outcomes.rows != np.nan_to_num(rows)) & ~had_failed
    new, missing = failed & ~had_failed, (outcomes.fate == _DONE) & had_failed
    found = []
    for first, of in _groups(plan, outcomes.is_answered):
        if (new | missing | other)[of].any():
            codes = Counter(outcomes.errors.get(int(row), "") for row in of[new[of]])
            counts = [int(kind[of].sum()) for kind in (new, missing, other)]
            found.append(
                DivergedStatement(*_name(plan, first), len(of), counts[0], dict(codes), counts[1], counts[2])
            )
    return found


def _latencies(plan: ReplayPlan, outcomes: Outcomes) -> list[ReplayedStatement]:
    took_ms = (outcomes.answered_ns - outcomes.sent_ns) / _MS
    found = []
    for first, of in _groups(plan, outcomes.is_answered):
        recorded = plan.duration_us[of]
        recorded = recorded[~np.isnan(recorded)] / 1e3
        figures = [_mean_p99(recorded), _mean_p99(took_ms[of])]
        found.append(ReplayedStatement(*_name(plan, first), len(of), *figures[0], *figures[1]))
    return found


def _mean_p99(values: NDArray[np.float64]) -> tuple[float | None, float | None]:
    return (float(values.mean()), float(np.percentile(values, 99))) if len(values) else (None, None)


def write_outcomes(
    out: Path,
    recorded: RecordedOutcomes,
    plan: ReplayPlan,
    outcomes: Outcomes,
    planned_ns: NDArray[np.int64] | None,
) -> None:
    """Write a row for each statement that was to be sent. Raises ``MeasurementError`` where that cannot be done."""
    try:
        with replacing(out) as file, pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
            chosen = np.flatnonzero(plan.is_sent)
            for start in range(0, len(chosen), _PIECE):
                piece = chosen[start : start + _PIECE]
                columns = _columns(plan, outcomes, planned_ns, piece, recorded)
                writer.write_batch(
                    pa.RecordBatch.from_arrays(
                        [columns[name].cast(SCHEMA.field(name).type) for name in SCHEMA.names], schema=SCHEMA
                    )
                )
    except OSError as error:
        raise MeasurementError(f"{out} cannot be written: {error.strerror or error}") from None


def _columns(
    plan: ReplayPlan,
    outcomes: Outcomes,
    planned_ns: NDArray[np.int64] | None,
    rows: NDArray[np.int64],
    recorded: RecordedOutcomes,
) -> dict[str, Any]:
    absent = ~outcomes.is_answered[rows]
    untimed = np.ones(len(rows), np.bool_) if planned_ns is None else absent
    planned = np.zeros(len(rows), np.int64) if planned_ns is None else planned_ns[rows]
    late = np.where(_is_servers(outcomes.ready_ns[rows], planned), 0, 1).astype(np.uint8)
    duration, counts = plan.duration_us[rows], recorded.rows[rows]
    return {
        "row": pa.array(rows),
        "session": pa.array(recorded.session[rows]),
        "transaction": pa.array(recorded.transaction[rows]),
        "fingerprint": pa.array(plan.fingerprint[rows]),
        "fate": _named(outcomes.fate[rows], _FATES),
        "planned_us": pa.array(planned / _US, mask=np.full(len(rows), planned_ns is None)),
        "sent_us": pa.array(outcomes.sent_ns[rows] / _US, mask=absent),
        "answered_us": pa.array(outcomes.answered_ns[rows] / _US, mask=absent),
        "lateness_us": pa.array((outcomes.sent_ns[rows] - planned) / _US, mask=untimed),
        "late": _named(late, ["server", "nephoscope"], untimed),
        "rows": pa.array(outcomes.rows[rows], mask=outcomes.rows[rows] < 0),
        "error": pa.array([outcomes.errors.get(int(row)) for row in rows], pa.string()),
        "recorded_duration_us": pa.array(duration, mask=np.isnan(duration)),
        "recorded_rows": pa.array(np.nan_to_num(counts).astype(np.int64), mask=np.isnan(counts)),
        "recorded_error": pa.array([recorded.errors.get(int(row)) for row in rows], pa.string()),
    }


def _named(numbers: NDArray[np.uint8], names: list[str], absent: NDArray[np.bool_] | None = None) -> Any:  # noqa: ANN401 - a dictionary array
    codes: Any = pa.array(numbers.astype(np.int8), mask=absent)
    return pa.DictionaryArray.from_arrays(codes, pa.array(names))
