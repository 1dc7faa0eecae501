"""What is in a trace: its statements by fingerprint, the mix of its transactions, how they arrive."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.errors import InputError
from nephoscope.traces.trace import StoredTrace, TraceMeta, shapes, starts

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_SECOND_US = 1_000_000
_READS = ("select", "values", "show", "table", "explain", "describe", "desc")
_WRITES = ("insert", "update", "delete", "merge", "replace", "copy", "load", "truncate", "call")
_WRITERS = ("insert ", "update ", "delete ", "merge ")
_FEW = 2


@dataclass(frozen=True)
class DescribedStatement:
    """The statements of one fingerprint."""

    number: int
    """Its place in the table, from 1: the most frequent first."""
    fingerprint: str
    """In hexadecimal digits: JSON has no numbers of 64 bits."""
    statement: str
    count: int
    share: float
    errors: int
    mean_rows: float | None
    mean_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True)
class DescribedTransaction:
    """The transactions that have the same statements in the same order."""

    statements: list[int]
    """The numbers of their statements."""
    count: int
    share: float


@dataclass(frozen=True)
class Arrivals:
    """How transactions begin."""

    per_second: float | None
    """Their mean rate; None where the trace has no length."""
    least: int | None
    """In a whole second."""
    most: int | None
    gaps_cv: float | None
    """The standard deviation of the times between beginnings over their mean: 1 for a Poisson process."""
    dispersion: float | None
    """The variance of the counts of whole seconds over their mean: 1 for a Poisson process."""
    sessions_mean: float
    """How many sessions are open at once, from the first statement of each to the end of its last."""
    sessions_most: int


@dataclass(frozen=True)
class DescribedTrace:
    """What is in a trace."""

    path: str
    meta: TraceMeta
    sessions: int
    transactions: int
    statements: int
    length_s: float
    """From the first beginning of a statement to the last."""
    errors: int
    reads: float
    """The share of statements that read."""
    writes: float
    by_fingerprint: list[DescribedStatement]
    mix: list[DescribedTransaction]
    arrivals: Arrivals

    def as_json(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        return asdict(self)


def describe_trace(path: Path) -> DescribedTrace:
    """Describe a trace: some columns of numbers are held in memory, about 60 bytes a statement.

    Raises:
        InputError: it is none, or nothing is in it.

    """
    trace = StoredTrace(path)
    try:
        if trace.statements == 0:
            raise InputError(f"{path}: no statement is in it")
        return _described(trace)
    finally:
        trace.close()


def _described(trace: StoredTrace) -> DescribedTrace:
    time, session = trace.column("time_us"), trace.column("session")
    transaction, fingerprint = trace.column("transaction"), trace.column("fingerprint")
    texts, failed = _texts(trace)
    statements, numbers = _statements(trace, fingerprint, texts, failed)
    kinds = {found.number: _kind(found.statement) for found in statements}
    shares = {
        kind: sum(found.share for found in statements if kinds[found.number] == kind)
        for kind in ("read", "write")
    }
    if time.min() < 0:
        raise InputError(f"{trace.path}: a statement begins before the trace (allowed: time_us from 0 on)")
    begins = np.sort(_extremes(transaction, time, np.minimum))
    return DescribedTrace(
        path=str(trace.path),
        meta=trace.meta,
        sessions=len(np.unique(session)),
        transactions=len(begins),
        statements=trace.statements,
        length_s=float(time.max()) / _SECOND_US,
        errors=int(failed.sum()),
        reads=shares["read"],
        writes=shares["write"],
        by_fingerprint=statements,
        mix=_mix(transaction, trace.column("place"), fingerprint, numbers),
        arrivals=_arrivals(begins, time, _ends(trace, time), session),
    )


def _texts(trace: StoredTrace) -> tuple[dict[int, str], NDArray[np.bool_]]:
    """Give a text of each fingerprint, and which statements failed."""
    texts: dict[int, str] = {}
    failed = []
    for batch in trace.batches(["fingerprint", "statement", "error"]):
        found: Any = batch.column("statement")
        prints = batch.column("fingerprint").to_numpy()
        codes = found.indices.to_numpy()
        _, first = np.unique(prints, return_index=True)
        for at in first:
            texts.setdefault(int(prints[at]), found.dictionary[int(codes[at])].as_py())
        failed.append(batch.column("error").is_valid().to_numpy(zero_copy_only=False))
    return texts, np.concatenate(failed)


def _statements(
    trace: StoredTrace, fingerprint: NDArray[np.uint64], texts: dict[int, str], failed: NDArray[np.bool_]
) -> tuple[list[DescribedStatement], dict[int, int]]:
    """Describe the statements of each fingerprint; gives their numbers, too."""
    duration, rows = trace.column("duration_us").astype(float), trace.column("rows").astype(float)
    order = np.argsort(fingerprint, kind="stable")
    prints, firsts, counts = np.unique(fingerprint[order], return_index=True, return_counts=True)
    found, numbers = [], {}
    for number, at in enumerate(np.lexsort((prints, -counts)), start=1):
        places = order[firsts[at] : firsts[at] + counts[at]]
        took = duration[places]
        took = took[~np.isnan(took)] / 1000
        given = rows[places]
        given = given[~np.isnan(given)]
        numbers[int(prints[at])] = number
        found.append(
            DescribedStatement(
                number=number,
                fingerprint=f"{int(prints[at]):016x}",
                statement=texts[int(prints[at])],
                count=int(counts[at]),
                share=float(counts[at] / len(fingerprint)),
                errors=int(failed[places].sum()),
                mean_rows=float(given.mean()) if len(given) else None,
                mean_ms=float(took.mean()) if len(took) else None,
                p99_ms=float(np.percentile(took, 99)) if len(took) else None,
            )
        )
    return found, numbers


def _kind(statement: str) -> str:
    """Tell whether a statement reads or writes."""
    first = statement.lstrip("( ").split(" ", 1)[0].lower()
    if first == "with":
        return "write" if any(word in statement for word in _WRITERS) else "read"
    return "read" if first in _READS else "write" if first in _WRITES else "other"


def _mix(
    transaction: NDArray[Any], place: NDArray[Any], fingerprint: NDArray[np.uint64], numbers: dict[int, int]
) -> list[DescribedTransaction]:
    """Count transactions by the sequence of their fingerprints."""
    order = np.lexsort((place, transaction))
    begins, sizes, shape = shapes(transaction[order], fingerprint[order])
    _, first, counts = np.unique(shape, return_index=True, return_counts=True)
    return [
        DescribedTransaction(
            statements=[numbers[int(of)] for of in fingerprint[order[begins[at] : begins[at] + sizes[at]]]],
            count=int(count),
            share=float(count / len(begins)),
        )
        for at, count in zip(first, counts, strict=True)
    ]


def _extremes(groups: NDArray[Any], values: NDArray[np.int64], least: np.ufunc) -> NDArray[np.int64]:
    """Give the least or the largest value of each group."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    found: NDArray[np.int64] = least.reduceat(values[order], np.flatnonzero(starts(ordered)))
    return found


def _ends(trace: StoredTrace, time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give when each statement ended; where its duration is not known, when it began."""
    took: NDArray[np.float64] = np.nan_to_num(trace.column("duration_us").astype(float))
    return time + took.astype(np.int64)


def _arrivals(
    begins: NDArray[np.int64], time: NDArray[np.int64], ends: NDArray[np.int64], session: NDArray[Any]
) -> Arrivals:
    """Describe how transactions begin, of which each has one of the times, in order."""
    gaps = np.diff(begins)
    length_us = int(time.max())
    whole = length_us // _SECOND_US
    counts = np.bincount(begins // _SECOND_US, minlength=whole + 1)[:whole]
    opened = np.sort(_extremes(session, time, np.minimum))
    closed = np.sort(_extremes(session, ends, np.maximum))
    at_once = np.searchsorted(opened, opened, "right") - np.searchsorted(closed, opened, "left")
    return Arrivals(
        per_second=len(begins) / (length_us / _SECOND_US) if length_us else None,
        least=int(counts.min()) if whole else None,
        most=int(counts.max()) if whole else None,
        gaps_cv=float(gaps.std() / gaps.mean()) if len(gaps) >= _FEW and gaps.mean() > 0 else None,
        dispersion=float(counts.var() / counts.mean()) if whole >= _FEW and counts.mean() > 0 else None,
        sessions_mean=float((closed - opened).sum() / length_us) if length_us else float(len(opened)),
        sessions_most=int(at_once.max()),
    )
