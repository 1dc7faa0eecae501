"""What consistency probes have found in a stored run, by the load beside them and the consistency level."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.evaluators.points import measured_phases
from nephoscope.evaluators.probed import times_of_failures
from nephoscope.statistics import (
    Survival,
    block_bootstrap_ci,
    clustered_interval,
    expected,
    mean_ci,
    no_less_than_0,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nephoscope.evaluators.stored import Stored
    from nephoscope.store import Phase, StoredRun

GUARANTEES = ("monotonic_reads", "read_your_writes", "monotonic_writes", "writes_follow_reads")
"""Those of a session, in the order in which they are shown."""
_CHECKED = (*GUARANTEES, "long_fork")
WHEN = ("before", "during", "after")
"""The parts of a measured time in which nodes fail."""
_STEPS = 100
"""So many points of a distribution are kept."""


def read_situations(stored: Stored, *, long_fork: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """Read each situation, which is a load, a level and a time, and warnings about phases that were cut short.

    The time is all there is, or in three parts: before, during and after failures. With ``long_fork`` those were
    looked for.
    """
    phases, warnings = measured_phases(stored.run, stored.index)
    if not phases:
        return [], warnings
    counts, writes = _Counts(stored.run), _Writes(stored.run)
    found = []
    for load, level in dict.fromkeys((phase.labels["load"], phase.labels["level"]) for phase in phases):
        of = [
            _Measured(phase, tuple(times_of_failures(stored.run, phase)))
            for phase in phases
            if (phase.labels["load"], phase.labels["level"]) == (load, level)
        ]
        for when in WHEN if any(one.failures for one in of) else (None,):
            told = {**counts.during(of, when), **writes.during(of, when)}
            if when is not None and not told["reads"]["due"]:
                continue
            found.append({"load": load, "level": level, "when": when, **told})
            if long_fork:
                # Where no round's order was seen on two endpoints that has to be seen, too.
                none = {"violations": 0, "checks": 0, "share": None, "ci95": None}
                found[-1]["guarantees"].setdefault("long_fork", none)
    return found, warnings


@dataclass(frozen=True)
class _Measured:
    """A measured phase, and the times of its failures in their order."""

    phase: Phase
    failures: tuple[tuple[float, float], ...]

    def has(
        self, when: str | None, begin_s: NDArray[np.float64], end_s: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Tell which of some times belong to a part of the phase, by their middle; None is all of it.

        What overlaps a failure belongs to it, so each time belongs to one part.
        """
        middle_s = (begin_s + end_s) / 2
        inside: NDArray[np.bool_] = (self.phase.start_s <= middle_s) & (middle_s < self.phase.end_s)
        if when is None:
            return inside
        during = np.zeros(len(inside), bool)
        for start, end in self.failures:
            during |= (begin_s < end) & (end_s >= start)
        if when == "during":
            return inside & during
        first = min((start for start, _ in self.failures), default=math.inf)
        before: NDArray[np.bool_] = end_s < first
        return inside & ~during & (before if when == "before" else ~before)


# --- what reads have come to ------------------------------------------------------------------------------------


class _Counts:
    """The rows of ``checks.parquet``."""

    def __init__(self, run: StoredRun) -> None:
        table = run.checks
        self._check = np.asarray(table.column("check").to_pylist(), object)
        numbers = {name: table.column(name).to_numpy() for name in ("start_s", "end_s", "trials", "hits")}
        self._start_s, self._end_s = numbers["start_s"], numbers["end_s"]
        self._slice = np.unique(numbers["start_s"], return_inverse=True)[1]
        self._trials, self._hits = numbers["trials"], numbers["hits"]
        self._place = np.asarray(table.column("place").to_pylist(), np.float64)

    def during(self, measured: Sequence[_Measured], when: str | None) -> dict[str, Any]:
        """Add up the counts of some phases, or of a part of each."""
        inside = np.zeros(len(self._start_s), bool)
        for one in measured:
            inside |= one.has(when, self._start_s, self._end_s)
        due, answered = self._sum(inside, "reads")
        failed = self._sum(inside, "failed_reads")[1]
        stale = inside & (self._check == "stale")
        behind = inside & (self._check == "behind")
        return {
            "reads": {"due": due, "answered": answered, "failed": failed, "missed": due - answered - failed},
            "stale": _share(*self._clusters(stale)),
            "curve": self._curve(inside),
            "behind": [
                {"versions": int(place), "reads": int(self._hits[behind & (self._place == place)].sum())}
                for place in np.unique(self._place[behind])
            ],
            "guarantees": {
                name: {"violations": share.pop("hits"), "checks": share.pop("trials"), **share}
                for name in _CHECKED
                if (share := _share(*self._clusters(inside & (self._check == name))))["trials"]
            },
            "registers_given_up": self._sum(inside, "retired")[1],
        }

    def _sum(self, inside: NDArray[np.bool_], check: str) -> tuple[int, int]:
        of = inside & (self._check == check)
        return int(self._trials[of].sum()), int(self._hits[of].sum())

    def _clusters(self, rows: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return hits and trials by slice of time."""
        slices, place = np.unique(self._slice[rows], return_inverse=True)
        hits, trials = (np.zeros(len(slices), np.int64) for _ in range(2))
        np.add.at(hits, place, self._hits[rows])
        np.add.at(trials, place, self._trials[rows])
        return hits, trials

    def _curve(self, inside: NDArray[np.bool_]) -> list[dict[str, Any]]:
        """Return P(stale | t): a share for each bin of the time since the write, with its interval."""
        found = []
        for place in np.unique(self._place[inside & np.isin(self._check, ("stale", "missed"))]):
            here = inside & (self._place == place)
            missed = int(self._hits[here & (self._check == "missed")].sum())
            share = _share(*self._clusters(here & (self._check == "stale")), whole_clusters=True)
            reads = share["trials"]
            found.append(
                {
                    "after_ms": float(place),
                    "reads": reads,
                    "stale": share["hits"],
                    "share": share["share"],
                    "ci95": share["ci95"],
                    "missed": missed,
                    # Nobody knows what those that were missed would have read.
                    "at_most": (share["hits"] + missed) / (reads + missed),
                }
            )
        return found


def _share(
    hits: NDArray[np.int64], trials: NDArray[np.int64], *, whole_clusters: bool = False
) -> dict[str, Any]:
    total, hit = int(trials.sum()), int(hits.sum())
    return {
        "hits": hit,
        "trials": total,
        "share": hit / total if total else None,
        "ci95": clustered_interval(hits, trials, whole_clusters=whole_clusters) if total else None,
    }


# --- when writes are to be seen ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Visible:
    """Times from acknowledgements to when the writes were to be seen, in ms, in their order."""

    middle: NDArray[np.float64]
    half: NDArray[np.float64]
    """Half the distance of the bounds; NaN for a write that was not seen."""
    repetition: NDArray[np.int64]

    def summary(self, node: str | None) -> dict[str, Any]:
        """Sum them up; there has to be one."""
        unseen = np.isnan(self.half)
        survival, times = Survival.of(self.middle, unseen), expected(self.middle, unseen)
        each = [float(times[self.repetition == n].mean()) for n in np.unique(self.repetition)]
        ci95 = (mean_ci(each) if len(each) > 1 else block_bootstrap_ci(times)).ci95
        seen = self.half[~unseen]
        shown = np.unique(
            np.linspace(0, len(survival.times) - 1, min(_STEPS, len(survival.times))).astype(int)
        )
        return {
            "node": node,
            "count": len(times),
            "unseen": int(np.count_nonzero(unseen)),
            "mean_ms": float(times.mean()),
            "mean_ci95": no_less_than_0(ci95),
            **{f"p{name}_ms": survival.quantile(name / 100) for name in (50, 95, 99)},
            "max_ms": float(self.middle.max()),
            "half_width_ms": float(np.median(seen)) if len(seen) else None,
            # The true mean of the writes that were seen lies no further from the mean.
            "half_width_mean_ms": float(seen.mean()) if len(seen) else None,
            "seen": [[float(survival.times[at]), 1 - float(survival.shares[at])] for at in shown],
        }


class _Writes:
    """The rows of ``probes.parquet`` that are of registers."""

    def __init__(self, run: StoredRun) -> None:
        table = run.probes
        rows = np.asarray([probe == "consistency" for probe in table.column("probe").to_pylist()], bool)
        names = ("time_s", "node", "number", "outcome", "lower_ms", "upper_ms")
        columns = {name: np.asarray(table.column(name).to_pylist(), object)[rows] for name in names}
        order = np.argsort(columns["time_s"].astype(np.float64), kind="stable")
        self._node, self._outcome = columns["node"][order], columns["outcome"][order]
        self._number = columns["number"][order]
        self._time_s, self._lower, self._upper = (
            columns[name][order].astype(np.float64) for name in ("time_s", "lower_ms", "upper_ms")
        )

    def during(self, measured: Sequence[_Measured], when: str | None) -> dict[str, Any]:
        """Sum up the writes that were acknowledged in some phases, or a part of each, on all nodes and on each."""
        repetition = np.zeros(len(self._time_s), np.int64)
        for one in measured:
            inside = one.has(when, self._time_s, self._time_s)
            repetition[inside] = int(one.phase.labels.get("repetition", 1))
        written = (repetition > 0) & ~np.isnan(self._lower)
        nodes = sorted(set(self._node[written].tolist()))
        failed = Counter(self._outcome[(repetition > 0) & np.isnan(self._lower)].tolist())
        return {
            "writes": {
                "acknowledged": len(set(self._number[written].tolist())),
                "failed": dict(sorted(failed.items())),
            },
            "visible": [
                self._visible(written & (self._node == node if node else True), repetition).summary(node)
                for node in (None, *(nodes if len(nodes) > 1 else ()))
                if written.any()
            ],
        }

    def _visible(self, rows: NDArray[np.bool_], repetition: NDArray[np.int64]) -> _Visible:
        lower, upper = self._lower[rows], self._upper[rows]
        middle = np.where(np.isnan(upper), lower, (lower + upper) / 2)
        return _Visible(middle, (upper - lower) / 2, repetition[rows])
