"""Pairs: two systems measured at the same moments, compared by the ratio of their figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.statistics.comparison import Comparison, verdict_of
from nephoscope.statistics.distributions import Z95, t_quantile
from nephoscope.statistics.intervals import (
    LEAST_INTERVALS,
    SEED,
    block_bootstrap_ci,
    half_width,
    standard_error,
)
from nephoscope.statistics.series import checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nephoscope.statistics.series import Values

_SIGNIFICANCE = 0.05
_BLIND = math.log(2)
"""Where half of a log ratio's interval is larger, not even a figure twice as large would have been seen."""

_ROUNDING = 1e-9
"""A spread of less, as a share of the figure, is one of rounding."""


@dataclass(frozen=True, slots=True)
class Sums:
    """A figure of one system by intervals, as a ratio of two sums: transactions by seconds, time by transactions."""

    amounts: Values
    """What is added up."""
    weights: Values
    """By what it is divided; none is negative."""

    def figure(self) -> float | None:
        """Return the figure of all intervals together; None where it is not above 0."""
        amount, weight = math.fsum(self.amounts), math.fsum(self.weights)
        return amount / weight if amount > 0 and weight > 0 else None

    def influence(self) -> NDArray[np.float64]:
        """Return how far each interval moves the logarithm of the figure, times their number (the delta method)."""
        amounts, weights = checked(self.amounts), checked(self.weights)
        return np.asarray(amounts / amounts.mean() - weights / weights.mean(), np.float64)


@dataclass(frozen=True, slots=True)
class Paired:
    """A figure of two systems over the same intervals of one repetition."""

    baseline: Sums
    candidate: Sums

    def log_ratio(self) -> float | None:
        """Return the logarithm of candidate / baseline; None where one of them is not above 0."""
        ours, theirs = self.baseline.figure(), self.candidate.figure()
        return None if ours is None or theirs is None else math.log(theirs / ours)

    def ratios(self) -> list[float | None]:
        """Return candidate / baseline of each interval; None where one of them is not above 0."""
        found = []
        for amount, weight, of_amount, of_weight in zip(
            self.candidate.amounts,
            self.candidate.weights,
            self.baseline.amounts,
            self.baseline.weights,
            strict=True,
        ):
            below = weight * of_amount
            found.append(float(amount * of_weight / below) if below > 0 else None)
        return found


def compare_pairs(
    runs: Sequence[Sequence[Paired]], *, higher_is_better: bool, comparisons: int = 1, seed: int = SEED
) -> Comparison:
    """Compare two systems that were measured at the same moments; ``runs`` are their repetitions, run by run.

    After Bulej and others, "Duet Benchmarking", ICPE 2020: what disturbs both systems at a moment is in both figures,
    and cancels in their ratio. The estimate is the geometric mean of the repetitions' ratios. Of one run, its spread is
    the larger of two: that of the ratio from interval to interval, of which neighbours resemble each other
    (`block_bootstrap_ci`), and that of the ratio from repetition to repetition. Of several runs each is one value, and
    the interval is Student's.

    Intervals are at 1 - 0.05 / ``comparisons``, as those of `compare`. False verdicts between equal systems, simulated
    for 2 to 8 repetitions of 20 to 60 intervals, AR(1) with φ up to 0.7: at most 7 %; where repetitions differ by more
    than their intervals explain, 5 % from five repetitions up, 8 % of three and 13 % of two.

    Raises ``ValueError`` for no runs, a run without repetitions, or less than one comparison.
    """
    if not runs or not all(runs) or comparisons < 1:
        raise ValueError(f"{len(runs)} runs, {comparisons} comparisons; allowed: 1 and above")
    counts = (len(runs), len(runs)) if len(runs) > 1 else (len(runs[0]), len(runs[0]))
    whole = [_joined([one for run in runs for one in run], side) for side in ("baseline", "candidate")]
    ours, theirs = (side.figure() or 0.0 for side in whole)
    by_run = [[one.log_ratio() for one in run] for run in runs]
    known = [[ratio for ratio in of if ratio is not None] for of in by_run]
    if known != by_run:
        note = "a repetition's figure is 0: it has no ratio"
        return Comparison("cannot tell", theirs - ours, None, None, None, counts, None, note)
    values = [math.fsum(of) / len(of) for of in known]
    mean = math.fsum(values) / len(values)
    relative = math.expm1(mean)
    spread = _of_runs(values) if len(runs) > 1 else _of_one_run(Paired(*whole), known[0], seed)
    if spread is None:
        note = f"fewer than {LEAST_INTERVALS} pairs of intervals: the spread is not known"
        return Comparison("cannot tell", ours * relative, None, relative, None, counts, None, note)
    error, freedom = spread
    half = t_quantile(freedom, 1 - _SIGNIFICANCE / (2 * comparisons)) * error
    ends = (math.expm1(mean - half), math.expm1(mean + half))
    return Comparison(
        verdict="cannot tell" if half > _BLIND else verdict_of(ends, higher_is_better=higher_is_better),
        difference=ours * relative,
        ci95=(ours * ends[0], ours * ends[1]),
        relative=relative,
        relative_ci95=ends,
        repetitions=counts,
        visible=ours * math.expm1(half),
        note=None,
    )


def narrowing(pairs: Sequence[Paired], seed: int = SEED) -> float | None:
    """Return how many times as narrow an interval is by the pairs as by the same intervals without pairing.

    Below 1 the systems have taken from each other: where one was faster, the other was slower. None where it is not
    known.
    """
    if any(pair.log_ratio() is None for pair in pairs):
        return None
    ours, theirs = (_joined(pairs, side).influence() for side in ("baseline", "candidate"))
    halves = [half_width(block_bootstrap_ci(series, seed).ci95) for series in (ours, theirs, theirs - ours)]
    known = [half for half in halves if half and half > _ROUNDING]
    return math.hypot(known[0], known[1]) / known[2] if len(known) == len(halves) else None


def _joined(pairs: Sequence[Paired], side: str) -> Sums:
    """Put one side of several repetitions one after the other."""
    sums: list[Sums] = [getattr(pair, side) for pair in pairs]
    return Sums(
        *(np.concatenate([checked(getattr(one, of)) for one in sums]) for of in ("amounts", "weights"))
    )


def _of_runs(values: Sequence[float]) -> tuple[float, float]:
    """Return the standard error of the mean of runs' log ratios, and its degrees of freedom."""
    return standard_error(np.asarray(values)), len(values) - 1


def _of_one_run(whole: Paired, repetitions: Sequence[float], seed: int) -> tuple[float, float] | None:
    """Return the standard error of a run's mean log ratio, and its degrees of freedom; None of too few intervals.

    The influence of what both systems had in common is in both, and cancels in the difference.
    """
    half = half_width(block_bootstrap_ci(whole.candidate.influence() - whole.baseline.influence(), seed).ci95)
    if half is None:
        return None
    within = half / Z95
    if len(repetitions) > 1 and (between := standard_error(np.asarray(repetitions))) > within:
        return between, len(repetitions) - 1
    return within, math.inf
