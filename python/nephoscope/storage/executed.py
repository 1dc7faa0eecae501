"""What a run of ``nephoscope storage run`` has measured: latency, lateness and rate by source and operation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.errors import InputError
from nephoscope.report.kit.histograms import Buckets
from nephoscope.statistics import mean_ci
from nephoscope.storage.corpus import OPERATIONS
from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.report.kit.parts import Percentiles
    from nephoscope.store.protocol import Phase
    from nephoscope.store.reader import StoredRun

ALL = "all"
"""All operations together."""
PERCENTILES: Mapping[str, float] = {"p50": 50, "p90": 90, "p99": 99, "p999": 99.9, "max": 100}
"""Of latencies; the maximum is the 100th."""
_RESAMPLES = 400
_BLOCK = 5
"""Intervals that are drawn together: neighbours resemble each other."""
_LEAST_INTERVALS = 10
_SEED = 0x6E6570686F


@dataclass(frozen=True)
class Tail:
    """A source's requests of one operation, or of all."""

    source: str
    operation: str
    done: int
    failed: int
    unstarted: int
    """Due, and not started: dropped, or late when the execution ended."""
    latency: Buckets
    censored: Buckets
    """Of those that did not start or did not end: how long at least."""
    lateness: Buckets
    percentiles: Percentiles
    """In ms, of all repetitions together; those that are lower bounds are named."""
    ci95: Mapping[str, tuple[float, float]]
    """Of the percentiles, in ms."""
    beside_first: Mapping[str, tuple[float, tuple[float, float] | None]]
    """How many times as long as the first source's, with its interval where there are repetitions."""


@dataclass(frozen=True)
class Course:
    """The executions of a source."""

    source: str
    repetitions: int
    requests: int
    seconds: float
    intended_rate: float
    """Requests that fell due a second."""
    achieved_rate: float
    """Requests that were done a second, until the last had ended."""
    waited: int
    """Requests that were due while as many were in flight as may be."""
    dropped: int
    in_flight: int
    """Started, and not ended when the execution was."""
    failed: int
    cpu_us: float | None
    """Processor time of the workers for a request."""


@dataclass(frozen=True)
class FailedRequests:
    """Requests that failed for reasons of one class."""

    source: str
    operation: str
    words: str
    """What the target said of the first of them."""
    count: int


@dataclass(frozen=True)
class Executed:
    """All of a run."""

    courses: Sequence[Course]
    tails: Sequence[Tail]
    refused: Sequence[FailedRequests] = ()


def executed(run: StoredRun) -> Executed:
    """Read what a run has measured. Raises ``InputError`` for a run of something else."""
    phases: dict[str, list[Phase]] = {}
    for phase in run.phases:
        phases.setdefault(str(phase.labels.get("source", "")), []).append(phase)
    if "storage" not in run.manifest or not phases or "" in phases:
        raise InputError(f"{run.folder}: no run of nephoscope storage run")
    tails: list[Tail] = []
    for source, own in phases.items():
        for operation in (ALL, *OPERATIONS):
            first = next((tail for tail in tails if tail.operation == operation), None)
            tail = _tail(run, source, operation, own, phases[first.source] if first else None)
            if tail is not None:
                tails.append(tail)
    return Executed([_course(run, source, own) for source, own in phases.items()], tails, _refused(run))


def _refused(run: StoredRun) -> list[FailedRequests]:
    found: dict[tuple[str, str, str], FailedRequests] = {}
    for event in run.events:
        if event["event"] == "error":
            key = (str(event["tenant"]), str(event["transaction"]), str(event["class"]))
            known = found.get(key) or FailedRequests(*key[:2], str(event["message"]), 0)
            found[key] = replace(known, count=known.count + int(event["count"]))
    return list(found.values())


def _buckets(run: StoredRun, phases: Sequence[Phase], operation: str, kind: Any) -> Buckets:  # noqa: ANN401 - a literal
    numbers = frozenset(phase.number for phase in phases)
    chosen = None if operation == ALL else operation
    return Buckets(run.histogram(Selection(phases=numbers, transaction=chosen, kind=kind)))


def _tail(
    run: StoredRun, source: str, operation: str, phases: Sequence[Phase], first: Sequence[Phase] | None
) -> Tail | None:
    latency, censored, lateness = (
        _buckets(run, phases, operation, kind) for kind in ("latency", "censored", "lateness")
    )
    counts = _counts(run, phases, operation)
    if not counts["committed"] + counts["failed"] + censored.total:
        return None
    return Tail(
        source=source,
        operation=operation,
        done=counts["committed"],
        failed=counts["failed"],
        unstarted=counts["unstarted"],
        latency=latency,
        censored=censored,
        lateness=lateness,
        percentiles=latency.with_censored(censored),
        ci95=_intervals(run, phases, operation),
        beside_first=_beside(run, phases, first, operation) if first else {},
    )


def _counts(run: StoredRun, phases: Sequence[Phase], operation: str) -> dict[str, int]:
    table = run.intervals
    kept = np.isin(table["phase"].to_numpy(), [phase.number for phase in phases])
    if operation != ALL:
        kept &= np.array(table["transaction"].to_pylist(), dtype=object) == operation
    names = ("committed", "failed", "unstarted")
    return {name: int(table[name].to_numpy()[kept].sum()) for name in names}


def _each(run: StoredRun, phases: Sequence[Phase], operation: str) -> dict[int, Percentiles]:
    """Give the percentiles of each repetition that has any, by its number."""
    found = {}
    for phase in phases:
        latency, censored = (_buckets(run, [phase], operation, kind) for kind in ("latency", "censored"))
        if latency.total + censored.total:
            found[int(phase.labels.get("repetition", 1))] = latency.with_censored(censored)
    return found


def _intervals(run: StoredRun, phases: Sequence[Phase], operation: str) -> dict[str, tuple[float, float]]:
    """Give 95 % intervals: over repetitions, or by blocks of the intervals of one."""
    each = list(_each(run, phases, operation).values())
    if len(each) == 1:
        return _of_one(run, phases, operation)
    found = {}
    for name in PERCENTILES:
        values = [value for one in each if (value := getattr(one, name)) is not None]
        ci95 = mean_ci(values).ci95 if values else None
        if ci95 is not None:
            found[name] = (max(ci95[0], 0.0), ci95[1])
    return found


def _of_one(run: StoredRun, phases: Sequence[Phase], operation: str) -> dict[str, tuple[float, float]]:
    """Draw blocks of neighbouring intervals, merge their histograms, and take the percentiles."""
    numbers = {phase.number for phase in phases}
    windows = sorted(
        {
            (row["start_s"], row["end_s"])
            for row in run.intervals.select(["phase", "start_s", "end_s"]).to_pylist()
            if row["phase"] in numbers
        }
    )
    if len(windows) < _LEAST_INTERVALS:
        return {}
    counts, values = _matrix(run, windows, frozenset(numbers), operation)
    random = np.random.default_rng(_SEED)
    blocks = math.ceil(len(windows) / _BLOCK)
    starts = random.integers(0, len(windows), (_RESAMPLES, blocks, 1))
    places = (starts + np.arange(_BLOCK)).reshape(_RESAMPLES, -1)[:, : len(windows)] % len(windows)
    drawn = np.zeros((_RESAMPLES, len(windows)))
    np.add.at(drawn, (np.arange(_RESAMPLES)[:, None], places), 1)
    running = np.cumsum(drawn @ counts, axis=1)
    found = {}
    for name, percentile in PERCENTILES.items():
        # Of a maximum the bootstrap knows nothing.
        if percentile < 100:  # noqa: PLR2004
            ranks = np.maximum(np.ceil(running[:, -1:] * percentile / 100), 1)
            at = np.minimum((running < ranks).sum(axis=1), len(values) - 1)
            low, high = np.quantile(values[at], (0.025, 0.975))
            found[name] = (float(low), float(high))
    return found


def _matrix(
    run: StoredRun, windows: Sequence[tuple[float, float]], phases: frozenset[int], operation: str
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Give the counts by interval and value, and the values in ms."""
    chosen = Selection(phases=phases, transaction=None if operation == ALL else operation)
    each = run.histograms(windows, chosen)
    values = sorted({value for buckets in each for value, _ in buckets})
    place = {value: at for at, value in enumerate(values)}
    counts = np.zeros((len(windows), len(values)))
    for at, buckets in enumerate(each):
        for value, count in buckets:
            counts[at, place[value]] += count
    return counts, np.array(values, float) / 1e6


def _beside(
    run: StoredRun, own: Sequence[Phase], first: Sequence[Phase], operation: str
) -> dict[str, tuple[float, tuple[float, float] | None]]:
    """Compare with the first source: the ratio in each repetition, and its geometric mean."""
    ours, theirs = _each(run, own, operation), _each(run, first, operation)
    found: dict[str, tuple[float, tuple[float, float] | None]] = {}
    for name in PERCENTILES:
        pairs = [
            (getattr(ours[at], name), getattr(theirs[at], name)) for at in sorted(ours.keys() & theirs.keys())
        ]
        ratios = [math.log(one / other) for one, other in pairs if one and other]
        if ratios:
            mean = mean_ci(ratios)
            ci95 = None if mean.ci95 is None else (math.exp(mean.ci95[0]), math.exp(mean.ci95[1]))
            found[name] = (math.exp(mean.mean), ci95)
    return found


def _course(run: StoredRun, source: str, phases: Sequence[Phase]) -> Course:
    numbers = {phase.number for phase in phases}
    ends = [event for event in run.events if event["event"] == "executed" and event.get("phase") in numbers]
    seconds = sum(phase.end_s - phase.start_s for phase in phases)
    planned = sum(float(phase.labels.get("planned_s", 0.0)) for phase in phases)
    counts = _counts(run, phases, ALL)

    def total(name: str) -> int:
        return sum(int(event.get(name, 0)) for event in ends)

    ended = counts["committed"] + counts["failed"]
    due = ended + counts["unstarted"] + total("in_flight")
    cpu_s = sum(float(event.get("cpu_s", 0.0)) for event in ends)
    return Course(
        source=source,
        repetitions=len(phases),
        requests=due,
        seconds=seconds,
        intended_rate=due / min(planned, seconds) if min(planned, seconds) else 0.0,
        achieved_rate=counts["committed"] / seconds if seconds else 0.0,
        waited=total("waited"),
        dropped=total("dropped"),
        in_flight=total("in_flight"),
        failed=counts["failed"],
        cpu_us=cpu_s * 1e6 / ended if ended else None,
    )
