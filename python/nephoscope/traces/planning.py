"""What of a trace is replayed, when, and after which commits."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.traces.trace import starts

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from nephoscope.traces.trace import StoredTrace

_BEGIN, _END = 1, 2
_DATA_APART = re.compile(
    r"copy .*\b(from stdin|to stdout)\b|load data .*\blocal\b", re.IGNORECASE | re.DOTALL
)
PARTIAL = "transactions of which the trace has a part"
APART = "transactions with COPY or LOAD DATA LOCAL, whose data is not in the trace"


@dataclass(frozen=True)
class ReplayPlan:
    """What of a trace is replayed. All arrays have an item for each statement of the trace, in its order."""

    time_us: NDArray[np.int64]
    duration_us: NDArray[np.float64]
    """NaN where it is not known."""
    session: NDArray[np.uint32]
    """From 0 without gaps, as are transactions."""
    transaction: NDArray[np.uint32]
    fingerprint: NDArray[np.uint64]
    text: NDArray[np.int32]
    """The number of its text in :attr:`texts`."""
    texts: list[str]
    is_sent: NDArray[np.bool_]
    ends: NDArray[np.uint8]
    """1 where it is the last of its transaction that is sent, 2 where it is the last of its session."""
    left_out: dict[str, int]
    """Transactions that are not replayed: why, and how many."""
    unfinished: int
    """Transactions that are replayed and that the trace has no end of: they end with their session."""
    after_ends: NDArray[np.int64]
    """Where in :attr:`after` the transactions end that the statement comes after."""
    after: NDArray[np.uint32]


def plan_replay(
    trace: StoredTrace, *, commits: bool = False, partial: bool = False, database: str | None = None
) -> ReplayPlan:
    """Plan the replay of a trace; columns of numbers are held in memory, about 70 bytes a statement.

    With ``commits`` a statement comes after the commits of other sessions' transactions that touched what it touches
    and ended before it did. Without ``partial``, transactions of which the trace has a part only are left out.

    Raises:
        InputError: there is nothing to replay, or the trace has the statements of several databases and none is chosen.

    """
    if trace.statements == 0:
        raise InputError(f"{trace.path}: no statement is in it")
    texts, text, names = _texts(trace)
    chosen = _chosen(trace, names, database)
    session, transaction = _dense(trace.column("session")), _dense(trace.column("transaction"))
    time, duration = trace.column("time_us"), trace.column("duration_us").astype(float)
    place = trace.column("place").astype(np.int64)
    order = np.lexsort((place, session))
    if len(np.unique(transaction)) != np.count_nonzero(starts(transaction[order], session[order])):
        raise InputError(f"{trace.path}: a transaction is not in one piece of one session")
    bounds = np.frombuffer(_engine.transaction_bounds(texts, trace.meta.dialect), np.uint8)[text]
    by_session = _Sessions(text[order], session[order], transaction[order], place[order], bounds[order])
    left_out, skipped = _left_out(texts, by_session, partial=partial)
    is_sent = chosen & ~skipped[transaction]
    if not is_sent.any():
        raise InputError(f"{trace.path}: nothing is left to replay ({_told(left_out)})")
    ends = _last_of(transaction, order, is_sent) + 2 * _last_of(session, order, is_sent)
    started = starts(transaction[order], session[order])
    first = np.zeros(len(skipped), np.uint8)
    first[transaction[order][started]] = bounds[order][started]
    is_last = ends & 1 == 1
    unfinished = np.count_nonzero(is_last & (first[transaction] == _BEGIN) & (bounds != _END))
    plan = ReplayPlan(
        time_us=time,
        duration_us=duration,
        session=session,
        transaction=transaction,
        fingerprint=trace.column("fingerprint"),
        text=text,
        texts=texts,
        is_sent=is_sent,
        ends=ends.astype(np.uint8),
        left_out=left_out,
        unfinished=int(unfinished),
        after_ends=np.zeros(len(time), np.int64),
        after=np.zeros(0, np.uint32),
    )
    return _in_order_of_commits(trace, plan, order) if commits else plan


def statements_of(batch: pa.RecordBatch) -> dict[str, Any]:
    """Give the texts and values of some statements as the engine takes them."""
    statement: Any = batch.column("statement")
    kinds: Any = batch.column("kinds")
    parameters: Any = batch.column("parameters")
    lengths: Any = pc.list_value_length(parameters)
    return {
        "statement": _codes(statement).tobytes(),
        "texts": statement.dictionary.to_pylist(),
        "kinds": _codes(kinds).tobytes(),
        "letters": kinds.dictionary.to_pylist(),
        "parameters": parameters.flatten().to_pylist(),
        "parameter_ends": np.cumsum(lengths.to_numpy(), dtype=np.int64).tobytes(),
    }


def _codes(column: Any) -> NDArray[np.int32]:  # noqa: ANN401 - a dictionary array
    return np.asarray(column.indices.to_numpy(zero_copy_only=False), np.int32)


def _dense(numbers: NDArray[Any]) -> NDArray[np.uint32]:
    return np.unique(numbers, return_inverse=True)[1].astype(np.uint32)


def _texts(trace: StoredTrace) -> tuple[list[str], NDArray[np.int32], list[Any]]:
    """Give all texts, the number of each statement's, and each piece's databases with their names."""
    numbers: dict[str, int] = {}
    codes, names = [], []
    for batch in trace.batches(["statement", "database"]):
        statement: Any = batch.column("statement")
        known = [numbers.setdefault(text, len(numbers)) for text in statement.dictionary.to_pylist()]
        codes.append(np.array(known, np.int32)[_codes(statement)])
        names.append(batch.column("database"))
    return list(numbers), np.concatenate(codes), names


def _chosen(trace: StoredTrace, names: list[Any], database: str | None) -> NDArray[np.bool_]:
    """Tell which statements are of the database that is replayed."""
    found = {name for column in names for name in column.unique().to_pylist() if name is not None}
    if database is None:
        if len(found) > 1:
            listed = ", ".join(sorted(found))
            raise InputError(
                f"{trace.path} has statements of several databases: choose one by --database ({listed})"
            )
        return np.ones(trace.statements, np.bool_)
    if database not in found:
        raise InputError(
            f"--database {database}: no statement is of it (allowed: {', '.join(sorted(found)) or 'none'})"
        )
    # An empty text is no database's name.
    return np.concatenate([np.array([name == database for name in column.to_pylist()]) for column in names])


@dataclass(frozen=True)
class _Sessions:
    """Statements session by session, each in its order."""

    text: NDArray[np.int32]
    session: NDArray[np.uint32]
    transaction: NDArray[np.uint32]
    place: NDArray[np.int64]
    bounds: NDArray[np.uint8]


def _left_out(texts: list[str], of: _Sessions, *, partial: bool) -> tuple[dict[str, int], NDArray[np.bool_]]:
    """Give why transactions are left out, with how many, and for each transaction whether it is."""
    skipped = np.zeros(int(of.transaction.max()) + 1, np.bool_)
    left_out: Counter[str] = Counter()
    apart = np.array([_DATA_APART.match(found) is not None for found in texts], np.bool_)
    skipped[of.transaction[apart[of.text]]] = True
    left_out[APART] = int(skipped.sum())
    if not partial:
        gap = ~starts(of.transaction, of.session)
        gap[1:] &= np.diff(of.place) > 1
        skipped[of.transaction[gap]] = True
        skipped[of.transaction[_before_first_end(of.transaction, of.session, of.bounds)]] = True
        left_out[PARTIAL] = int(skipped.sum()) - left_out[APART]
    return {why: count for why, count in left_out.items() if count}, skipped


def _before_first_end(
    transaction: NDArray[np.uint32], session: NDArray[np.uint32], bounds: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Tell which statements belong to a transaction that began before its session's first statement.

    There an end without a beginning comes before any beginning.
    """
    found = np.zeros(len(session), np.bool_)
    lone = np.flatnonzero(starts(transaction, session) & (bounds == _END))
    begun = np.flatnonzero(bounds == _BEGIN)
    first_begun = dict(zip(*_first_by(session, begun), strict=True))
    begins = np.flatnonzero(starts(session))
    for of, end in zip(*_first_by(session, lone), strict=True):
        if end < first_begun.get(of, len(session)):
            found[begins[of] : end + 1] = True
    return found


def _first_by(session: NDArray[np.uint32], places: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    sessions, first = np.unique(session[places], return_index=True)
    return sessions.tolist(), places[first].tolist()


def _last_of(
    group: NDArray[np.uint32], order: NDArray[np.int64], is_sent: NDArray[np.bool_]
) -> NDArray[np.uint8]:
    """Mark the last statement of each group that is sent."""
    sent = order[is_sent[order]]
    _, last = np.unique(group[sent][::-1], return_index=True)
    found = np.zeros(len(group), np.uint8)
    found[sent[::-1][last]] = 1
    return found


def _told(left_out: dict[str, int]) -> str:
    return "; ".join(f"{count:,} {why}" for why, count in left_out.items()) or "no statement is in it"


def _in_order_of_commits(trace: StoredTrace, plan: ReplayPlan, order: NDArray[np.int64]) -> ReplayPlan:
    found = _engine.SqlTraceOrder(plan.texts, trace.meta.dialect)
    for batch in trace.batches(["statement", "kinds", "parameters"]):
        found.push(statements_of(batch))
    sent = order[plan.is_sent[order]]
    last = (plan.ends & 1).astype(np.uint8)
    by_end = _by_end(plan, sent)
    ends, after = found.edges(
        by_end.astype(np.int64).tobytes(), plan.transaction.tobytes(), plan.session.tobytes(), last.tobytes()
    )
    return ReplayPlan(
        **{
            **vars(plan),
            "after_ends": np.frombuffer(ends, np.int64),
            "after": np.frombuffer(after, np.uint32),
        }
    )


def _by_end(plan: ReplayPlan, sent: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order statements by when they ended; ``sent`` has them by session, in its order.

    Where durations are not known, a statement has ended when its session's next begins, and a transaction at the latest
    when its last statement began: what waited for it ended later. Of those that ended at the same moment, as far as the
    trace's times tell, those that others of their session follow come first, and ends of transactions before the rest.
    """
    session, begun, last = plan.session[sent], plan.time_us[sent], plan.ends[sent] & 1 == 1
    following = np.append(begun[1:], begun[-1:])
    final = np.append(session[1:] != session[:-1], np.ones(1, np.bool_))
    took = plan.duration_us[sent]
    unknown = np.where(final | last, begun, following)
    ended = np.where(np.isnan(took), unknown, begun + np.nan_to_num(took).astype(np.int64))
    begins = np.flatnonzero(starts(session))
    for start, stop in zip(begins, np.append(begins[1:], len(sent)), strict=True):
        np.maximum.accumulate(ended[start:stop], out=ended[start:stop])
    together = np.flatnonzero(starts(session, ended))
    sizes = np.diff(np.append(together, len(sent)))
    remaining = np.repeat(together + sizes, sizes) - np.arange(len(sent))
    return sent[np.lexsort((sent, ~last, -remaining, ended))]
