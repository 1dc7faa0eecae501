"""Two systems that were measured at the same moments: their intervals paired by time, and compared by their ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.errors import InputError
from nephoscope.results.compare import Compared, Figure, said_of
from nephoscope.results.environment import differences
from nephoscope.results.figures import KINDS, Key, Kind, label_of, points_of
from nephoscope.results.scores import scores_of
from nephoscope.statistics import Paired, Sums, compare_pairs, narrowing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.store import StoredRun
    from nephoscope.store.protocol import Phase

MEAN = Kind("mean", "ms", "mean", higher_is_better=False)
"""The mean latency: where the rate is given, it tells how fast a system is."""
_TPS = KINDS[0]

ONE_RUN = (
    "one run: what differs from one start of a system to the next is in no interval; --runs 5 starts both anew each"
    " time"
)
SAME_SYSTEM = "the same system twice: what differs is the noise of this machine"

_WHOLE = 1e-6
"""A share of an interval that is rounding."""


@dataclass(frozen=True)
class PairedRepetition:
    """A repetition of a point, as both systems were measured in it."""

    run: int
    """The run of both, counted from 1."""
    number: int
    starts_s: NDArray[np.float64]
    """When each interval begins, in seconds since the start of the baseline's load."""
    pair: Paired


@dataclass(frozen=True)
class PairedPoint:
    """A figure of a point of both systems."""

    key: Key
    kind: Kind
    repetitions: Sequence[PairedRepetition]

    @property
    def name(self) -> str:
        """The figure's name, as comparisons have it."""
        return f"{label_of(self.key)} {self.kind.name}"


@dataclass(frozen=True)
class Duet:
    """Two systems that were measured at the same moments."""

    points: Sequence[PairedPoint]
    compared: Compared


class _Course:
    """What one run had done by any time: transactions that were committed, and the time that they took."""

    def __init__(self, run: StoredRun, offset_s: float) -> None:
        """Add up the intervals; ``offset_s`` is how much later than the baseline's this load has begun."""
        table = run.intervals
        start, end, count, mean = (
            np.asarray(table.column(name).to_numpy(), np.float64)
            for name in ("start_s", "end_s", "committed", "latency_mean_ms")
        )
        # Intervals do not overlap: their ends go up with their starts.
        starts, place = np.unique(start, return_inverse=True)
        ends = np.zeros(len(starts))
        np.maximum.at(ends, place, end)
        self._times = offset_s + np.stack([starts, ends], axis=1).ravel()
        self._done = {
            "committed": np.bincount(place, count, len(starts)),
            "latency": np.bincount(place, count * np.nan_to_num(mean), len(starts)),
        }

    def during(self, edges: NDArray[np.float64], what: str) -> NDArray[np.float64]:
        """Return what was done between each edge and the next; an interval that an edge cuts is shared by time."""
        done = np.cumsum(self._done[what])
        by_then = np.stack([np.concatenate([[0.0], done[:-1]]), done], axis=1).ravel()
        return np.diff(np.interp(edges, self._times, by_then))

    def sums(self, edges: NDArray[np.float64], kind: Kind) -> Sums:
        """Return a figure by the intervals between edges."""
        committed = self.during(edges, "committed")
        return (
            Sums(committed, np.diff(edges))
            if kind is _TPS
            else Sums(self.during(edges, "latency"), committed)
        )


def compare_duet(runs: Sequence[tuple[StoredRun, StoredRun]], *, same: bool = False) -> Duet:
    """Pair the runs of two systems that were measured at the same moments, and compare each point that both have.

    TPS is compared, and the mean latency where the rate is given. ``same`` says that both are one system. Raises
    ``InputError`` where they have no point in common.
    """
    scores = [(scores_of(ours), scores_of(theirs)) for ours, theirs in runs]
    found: dict[Key, list[PairedRepetition]] = {}
    lacking: dict[str, None] = {}
    for number, ((ours, theirs), (our_scores, their_scores)) in enumerate(
        zip(runs, scores, strict=True), start=1
    ):
        before, after = points_of(ours, our_scores), points_of(theirs, their_scores)
        pairs = _Pairs(ours, theirs)
        for key in dict.fromkeys([*before, *after]):
            phases = {point["phase"]: point for point in before.get(key, ())}
            others = {point["phase"]: point for point in after.get(key, ())}
            for name, missing in (
                ("baseline", phases.keys() - others),
                ("candidate", others.keys() - phases),
            ):
                if missing:
                    lacking[f"only in the {name}: {label_of(key)}"] = None
            for phase in sorted(phases.keys() & others.keys()):
                repetition = pairs.repetition(phase, number, int(phases[phase]["repetition"]), _kind(key))
                if repetition is None:
                    lacking[f"{label_of(key)}: a repetition was not at the same time on both"] = None
                else:
                    found.setdefault(key, []).append(repetition)
    if not found:
        raise InputError("no point was measured to its end on both systems at the same time")
    points = [PairedPoint(key, _kind(key), repetitions) for key, repetitions in found.items()]
    first, *others_ = [run for pair in runs for run in pair]
    notes = [note for other in others_ for note in differences(first, other)]
    notes += [note for point in points if (note := _narrowing(point))]
    notes += [*lacking, *([ONE_RUN] if len(runs) == 1 else []), *([SAME_SYSTEM] if same else [])]
    said = said_of([ours for ours, _ in scores], [theirs for _, theirs in scores])
    figures = [_figure(point, len(points)) for point in points]
    return Duet(points, Compared(figures, list(dict.fromkeys(notes)), said, list(lacking)))


def _kind(key: Key) -> Kind:
    return _TPS if key[2] is None else MEAN


class _Pairs:
    """The intervals of two runs on one clock."""

    def __init__(self, ours: StoredRun, theirs: StoredRun) -> None:
        self._offset = (_origin(theirs) - _origin(ours)).total_seconds()
        self._interval = float(ours.manifest.get("load", {}).get("interval_s", 1.0)) or 1.0
        self._courses = _Course(ours, 0.0), _Course(theirs, self._offset)
        self._phases: tuple[Mapping[int, Phase], ...] = tuple(
            {phase.number: phase for phase in run.phases} for run in (ours, theirs)
        )

    def repetition(self, phase: int, run: int, number: int, kind: Kind) -> PairedRepetition | None:
        """Pair a phase by the baseline's intervals that lie in it on both systems; None where none does."""
        ours, theirs = (phases[phase] for phases in self._phases)
        begin = max(ours.start_s, theirs.start_s + self._offset) - ours.start_s
        end = min(ours.end_s, theirs.end_s + self._offset) - ours.start_s
        first = math.ceil(begin / self._interval - _WHOLE)
        last = math.floor(end / self._interval + _WHOLE)
        if last <= first:
            return None
        edges: NDArray[np.float64] = ours.start_s + self._interval * np.arange(
            first, last + 1, dtype=np.float64
        )
        baseline, candidate = (course.sums(edges, kind) for course in self._courses)
        return PairedRepetition(run, number, edges[:-1], Paired(baseline, candidate))


def _origin(run: StoredRun) -> datetime:
    """Return when a load has begun, by the day's clock. Raises ``InputError`` where that is not known."""
    try:
        return datetime.fromisoformat(run.manifest["clock"]["origin"])
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{run.folder}: its load has not begun") from None


def _figure(point: PairedPoint, comparisons: int) -> Figure:
    runs: dict[int, list[Paired]] = {}
    for one in point.repetitions:
        runs.setdefault(one.run, []).append(one.pair)
    found = compare_pairs(
        list(runs.values()), higher_is_better=point.kind.higher_is_better, comparisons=comparisons
    )
    baseline, candidate = (
        np.mean([getattr(one.pair, side).figure() or 0.0 for one in point.repetitions])
        for side in ("baseline", "candidate")
    )
    return Figure(
        point.name,
        point.kind.unit,
        float(baseline),
        float(candidate),
        found,
        higher_is_better=point.kind.higher_is_better,
    )


def _narrowing(point: PairedPoint) -> str | None:
    """Say what the pairs were good for."""
    by = narrowing([one.pair for one in point.repetitions])
    if by is None:
        return None
    said = f"{point.name}: pairs make the interval {by:.1f} times as narrow as the same runs without pairing"
    return said if by >= 1 else f"{said}: the systems took from each other what both need, such as processors"


def series_json(duet: Duet) -> list[dict[str, Any]]:
    """Write the paired intervals for machines: each figure of both systems, and their ratio."""
    return [
        {
            "name": point.name,
            "unit": point.kind.unit,
            "repetitions": [
                {
                    "run": one.run,
                    "repetition": one.number,
                    "start_s": [round(float(start), 6) for start in one.starts_s],
                    "baseline": _figures(one.pair.baseline),
                    "candidate": _figures(one.pair.candidate),
                    "ratio": one.pair.ratios(),
                }
                for one in point.repetitions
            ],
        }
        for point in duet.points
    ]


def _figures(sums: Sums) -> list[float | None]:
    pairs = zip(sums.amounts, sums.weights, strict=True)
    return [float(amount / weight) if weight > 0 else None for amount, weight in pairs]
