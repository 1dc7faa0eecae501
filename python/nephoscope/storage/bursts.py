"""Bursts: requests that follow each other closely, learned from captured runs, as arrays, and as the engine takes them.

A transaction's requests follow each other within microseconds. Spread evenly they would wait for nothing, so the tails
of latencies depend on bursts. A burst is a maximal group of requests of a stream whose gaps are below a limit; the
limit is the one with which bursts that begin at other times have the captured indices of dispersion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nephoscope.errors import InputError
from nephoscope.storage.features import READ, STREAMS, WRITE, stream_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    State = Mapping[str, NDArray[Any]]

LIMITS_US = (0, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""The limits that are tried, and halves between them; with 0 each request is a burst of its own."""
STARTS = ("stratified", "poisson")
"""How bursts may begin within a second, by the engine's names."""
WINDOWS_US = (1000, 10_000, 100_000)
"""The windows in which requests are counted for the indices of dispersion."""
COARSEST_US = 100
"""Times that are multiples of more tell no bursts."""
LONGEST_US = 500_000
"""A longer burst is several, which follow each other as they may."""
LARGEST = 8192
"""So is one of more requests."""
KEPT = 32_768
"""So many requests are kept of a stream of a run, in whole bursts, or one burst."""

_TRIED = 50_000
_TRIED_SECONDS = 600
_TRIALS = 2
_NEAR = 0.1
_HALVES = 3
_LEAST_DISPERSION = 0.01
_SECOND_US = 1_000_000
_ARRAYS = ("burst_laws", "burst_law", "burst_size", "burst_offset", "burst_write")


class Bursts(NamedTuple):
    """What was learned of the bursts of a stream of a run: B bursts, N requests."""

    stream: int
    starts: int
    """The place in ``STARTS`` of how they begin."""
    size: NDArray[np.int64]
    """Requests of each: (B,)."""
    offset: NDArray[np.int64]
    """The time of each request in µs from the beginning of its burst: (N,)."""
    write: NDArray[np.bool_]
    """Whether it is a write: (N,)."""


def learn(runs: Sequence[Mapping[str, NDArray[Any]]]) -> State:
    """Learn from the requests of runs as ``joined`` has it, in the order of their times."""
    return joined([of_run(columns) for columns in runs])


def of_run(columns: Mapping[str, NDArray[Any]]) -> list[Bursts]:
    """Learn from the requests of a run, in the order of their times; the same run gives the same.

    A stream without requests has no bursts, nor has one whose times are too coarse.
    """
    found = []
    counted = np.isin(columns["operation"], (READ, WRITE))
    streams = stream_of(columns["process"])
    for stream in range(len(STREAMS)):
        own = counted & (streams == stream)
        time, operation = columns["time_us"][own], columns["operation"][own]
        if not len(time) or np.gcd.reduce(time[:_TRIED]) > COARSEST_US:
            continue
        limit, starts = _chosen(time)
        kept = _kept(_cut(time, limit), len(time))
        at = np.repeat(kept[:, 0] - np.cumsum(kept[:, 1]) + kept[:, 1], kept[:, 1])
        at += np.arange(len(at))
        offset = time[at] - np.repeat(time[kept[:, 0]], kept[:, 1])
        found.append(Bursts(stream, starts, kept[:, 1], offset, operation[at] == WRITE))
    return found


def joined(runs: Sequence[Sequence[Bursts]]) -> State:
    """Join what was learned from runs.

    K laws, B bursts, N requests: ``burst_laws``, (K, 3), each with the place of its run in ``runs``, its stream, and
    the place in ``STARTS`` of how its bursts begin; ``burst_law`` and ``burst_size``, (B,); ``burst_offset``, (N,), the
    time of each request in µs from the beginning of its burst; ``burst_write``, (N,), 1 for a write and 0 for a read. A
    stream without bursts has no law.
    """
    laws = [(place, of) for place, found in enumerate(runs) for of in found]
    numbers = [(place, of.stream, of.starts) for place, of in laws]
    none = np.zeros(0, np.int64)
    return {
        "burst_laws": np.array(numbers, dtype=np.int64).reshape(-1, 3),
        "burst_law": np.repeat(np.arange(len(laws)), [len(of.size) for _, of in laws]),
        "burst_size": np.concatenate([none, *(of.size for _, of in laws)]).astype(np.uint32),
        "burst_offset": np.concatenate([none, *(of.offset for _, of in laws)]).astype(np.uint32),
        "burst_write": np.concatenate([none, *(of.write for _, of in laws)]).astype(np.uint8),
    }


def _cut(time: NDArray[np.int64], limit: int) -> NDArray[np.intp]:
    """Give the place of the first request of each burst."""
    begins = np.concatenate([[True], np.diff(time) >= limit])
    first = np.flatnonzero(begins)
    behind = np.append(first[1:], len(time))
    if (behind - first).max() <= LARGEST and (time[behind - 1] - time[first]).max() < LONGEST_US:
        return first
    of = np.cumsum(begins) - 1
    pieces = np.stack([(time - time[first][of]) // LONGEST_US, (np.arange(len(time)) - first[of]) // LARGEST])
    begins[1:] |= (np.diff(pieces, axis=1) > 0).any(axis=0)
    return np.flatnonzero(begins)


def _kept(first: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Choose bursts at random: the place of the first request and the size of each."""
    bursts = np.column_stack([first, np.diff(first, append=count)])
    order = np.random.default_rng(1).permutation(len(bursts))
    fitting = int(np.searchsorted(bursts[order, 1].cumsum(), KEPT, side="right"))
    return np.asarray(bursts[np.sort(order[: max(fitting, 1)])])


def _chosen(time: NDArray[np.int64]) -> tuple[int, int]:
    """Choose the limit, and how bursts begin, by what this does to the indices of dispersion.

    The smallest limit of ``LIMITS_US`` that is as near as the nearest, or almost; from there the nearest of the limits
    half way to the neighbours, a few times.
    """
    sample = _Tried(time)
    tried = {limit: sample.nearest(limit) for limit in LIMITS_US}
    nearest = min(tried.values())[0]
    limit = min(limit for limit, (distance, _) in tried.items() if distance <= nearest + _NEAR)
    for _ in range(_HALVES if limit else 0):
        ordered = sorted(tried)
        place = ordered.index(limit)
        sides = [(limit + other) // 2 for other in ordered[max(place - 1, 0) : place + 2]]
        tried.update({side: sample.nearest(side) for side in sides if side not in tried})
        limit = min(sides, key=lambda side: tried[side])
    return limit, tried[limit][1]


class _Tried:
    """The first seconds of a stream, in which each burst is put at another time of its second."""

    def __init__(self, time: NDArray[np.int64]) -> None:
        time = time - time[0] // _SECOND_US * _SECOND_US
        # The last second is whole only where the stream ends in it.
        seconds = int(time[: _TRIED + 1][-1]) // _SECOND_US + (len(time) <= _TRIED)
        self.seconds = min(max(seconds, 1), _TRIED_SECONDS)
        self.time = time[: np.searchsorted(time, self.seconds * _SECOND_US)]
        self.truth = dispersions(self.time, self.seconds)
        self.random = np.random.default_rng(1)

    def nearest(self, limit: int) -> tuple[float, int]:
        """Give how far off a limit is, and the place in ``STARTS`` with which it is."""
        first = _cut(self.time, limit)
        return min((self._distance(first, starts), starts) for starts in range(len(STARTS)))

    def _distance(self, first: NDArray[np.intp], starts: int) -> float:
        """Give Σ |ln| of the ratios of the indices of dispersion to the captured ones."""
        moved = [_moved(self.time, first, starts, self.random) for _ in range(_TRIALS)]
        found = np.mean([dispersions(time, self.seconds) for time in moved], axis=0)
        return float(np.abs(np.log(found / self.truth)).sum())


def _moved(
    time: NDArray[np.int64], first: NDArray[np.intp], starts: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Let each burst begin at another time of its second, as the engine does it."""
    sizes = np.diff(first, append=len(time))
    second = time[first] // _SECOND_US
    begin = random.random(len(first))
    if STARTS[starts] == "stratified":
        of_second = np.bincount(second)
        order = np.argsort(second + begin)
        rank = np.arange(len(first)) - (of_second.cumsum() - of_second)[second]
        begin[order] = (rank + random.random(len(first))) / of_second[second]
    inside = np.repeat((begin * _SECOND_US).astype(np.int64) - time[first], sizes) + time
    return np.asarray(np.repeat(second, sizes) * _SECOND_US + inside % _SECOND_US)


def dispersions(time: NDArray[np.int64], seconds: int) -> NDArray[np.float64]:
    """Give the index of dispersion (variance / mean; 1 for a Poisson process) in each of ``WINDOWS_US``.

    Times are in µs, from 0 to before so many seconds.
    """
    finest = WINDOWS_US[0]
    counts = np.bincount(time // finest, minlength=seconds * _SECOND_US // finest)
    found = [counts]
    for window, finer in zip(WINDOWS_US[1:], WINDOWS_US, strict=False):
        found.append(found[-1].reshape(-1, window // finer).sum(axis=1))
    return np.array([max(each.var() / max(each.mean(), 1e-9), _LEAST_DISPERSION) for each in found])


def known(patterns: State) -> dict[tuple[int, int], int]:
    """Give the number of the law of a run's stream, by the place of the run and the stream; of old models, none."""
    laws = patterns.get("burst_laws", np.zeros((0, 3), np.int64))
    return {(int(run), int(stream)): number for number, (run, stream, _) in enumerate(laws)}


def of_plan(patterns: State, laws: Sequence[int]) -> list[dict[str, Any]]:
    """Write laws as the engine's plan has them.

    Raises:
        InputError: they are damaged.

    """
    try:
        _, law, size, offset, write = (patterns[name] for name in _ARRAYS)
        of_request = np.repeat(law, size)
        return [
            {
                "starts": STARTS[int(patterns["burst_laws"][number, 2])],
                "sizes": size[law == number].tolist(),
                "offsets_us": offset[of_request == number].tolist(),
                "operations": write[of_request == number].tolist(),
            }
            for number in laws
        ]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"the bursts of the model are damaged: {error}") from error
