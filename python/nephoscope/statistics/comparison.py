"""Comparison: whether one set of repetitions differs from another, and by how much."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from nephoscope.statistics.distributions import Z95, t_quantile
from nephoscope.statistics.intervals import LEAST_INTERVALS, SEED, block_bootstrap_ci, standard_error
from nephoscope.statistics.series import checked, is_constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nephoscope.statistics.series import Values

Verdict = Literal["faster", "slower", "no difference seen", "cannot tell"]

LEAST_BETWEEN = 0.01
"""How far single runs of one system are taken to scatter at least, as a share of the figure (a standard deviation)."""

_SIGNIFICANCE = 0.05
_UNBALANCED = 2
_BETWEEN_PER_WITHIN = 2.0
"""The variance of a run's mean about its system's, over that of the run's repetitions: see `between_runs`."""
_BLOCKS = 5


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate against a baseline."""

    verdict: Verdict
    """Of the candidate. "no difference seen" is not "equal": ``visible`` says what could have stayed unseen; "cannot
    tell" is where the spread is not known, or where not even a figure twice as large would have been seen."""
    difference: float
    """Candidate - baseline, in the unit of the figure."""
    ci95: tuple[float, float] | None
    """Its confidence interval: at 95 %, or at more where several comparisons are read side by side."""
    relative: float | None
    """Difference as a share of the baseline; absent if the baseline's mean is not above 0."""
    relative_ci95: tuple[float, float] | None
    """Its interval, which excludes 0 exactly where ``ci95`` does; absent if the baseline may be 0."""
    repetitions: tuple[int, int]
    """Of the baseline and of the candidate."""
    visible: float | None
    """The smallest difference that would have been seen, in the unit of the figure: half of ``ci95``."""
    note: str | None
    """The variation that the interval omits, where a side has one repetition only."""


@dataclass(frozen=True, slots=True)
class Between:
    """How far single runs of one system lie from each other."""

    share: float
    """The standard deviation of a run's figure about its system's, as a share of the figure."""
    freedom: float
    """The degrees of freedom of its square."""


def between_runs(groups: Sequence[Values]) -> Between | None:
    """Estimate the spread between runs of one system from that of their repetitions; None without repetitions.

    Each group holds the repetitions of one point in one run. Repetitions of one run share its machine, caches and
    neighbours, so the standard error of their mean underestimates the spread between runs. A single run shows only how
    the system's speed moved during its measurement. The model: the speed moves between runs as it did within them. For
    a random walk sampled by n repetitions, the means of two successive runs differ with 3.2 (n = 3) to 4 times the
    variance of the repetitions, so each side gets twice that variance. `LEAST_BETWEEN` is added, because a steady run
    does not predict the next day. The groups' relative variances are pooled, because a group of three is too small.

    A machine that changes more between runs than within them misleads any comparison of single runs.
    """
    deviations, freedom = 0.0, 0
    for group in groups:
        x = checked(group)
        mean = math.fsum(x) / len(x)
        if len(x) > 1 and mean > 0:
            deviations += float(np.sum((x / mean - 1) ** 2))
            freedom += len(x) - 1
    if not freedom:
        return None
    wandered = _BETWEEN_PER_WITHIN * deviations / freedom
    variance = wandered + LEAST_BETWEEN**2
    return Between(math.sqrt(variance), freedom * (variance / wandered) ** 2 if wandered > 0 else math.inf)


def block_means(series: Values) -> list[float]:
    """Cut the intervals of a single repetition into five blocks: how its speed moves stands in for repetitions."""
    x = checked(series)
    return [] if len(x) < LEAST_INTERVALS else [float(part.mean()) for part in np.array_split(x, _BLOCKS)]


@dataclass(frozen=True, slots=True)
class _Side:
    mean: float
    variance: float | None
    """Of the mean; ``None`` where nothing is known of it."""
    freedom: float
    count: int


def compare(
    baseline: Values,
    candidate: Values,
    *,
    higher_is_better: bool,
    baseline_series: Values | None = None,
    candidate_series: Values | None = None,
    figures: tuple[float, float] | None = None,
    between: Between | None = None,
    comparisons: int = 1,
    each: str = "repetition",
    seed: int = SEED,
) -> Comparison:
    """Compare the repetitions of a candidate with those of a baseline.

    The difference of the means has Welch's interval; the relative difference has Fieller's from the same
    Student's t, so the two never contradict each other. Where one side has twice the repetitions of the other
    or more, the degrees of freedom are those of the shorter: Welch's would give up to 10 % false verdicts, as
    a spread that came out small by chance lends the short side the long side's freedom. "faster" means
    better, in the direction of the figure. Repetitions that agree exactly leave no doubt, and get an interval
    of none.

    A side with one repetition has no spread of its own. It then borrows that of the other side's repetitions;
    or, where its series of intervals spreads wider or is all there is, the block bootstrap's
    (`block_bootstrap_ci`). One run against one run is therefore a comparison of those two runs: what changes
    from run to run is not in it, and ``note`` says so. Without any of these there is no interval, and the answer
    is "cannot tell".

    ``figures`` are the figures themselves where they are no means of the repetitions (a percentile of the merged
    histograms): the repetitions then give the spread alone. ``between`` is how far single runs of one system lie from
    each other; it is added where all repetitions of a side come from one run (`between_runs`).

    False verdicts between equal systems by simulation, 2 to 30 repetitions a side, equal or not: normal at
    most 5 %, lognormal with sigma = 0.5 at most 5 %; 7 % for one repetition against several of the latter.
    One run against one, by AR(1) series of 20 to 300 intervals with φ up to 0.7: at most 6 %.

    ``each`` is what a value is called in ``note``. ``comparisons`` is how many are read side by side: each interval is
    then at 1 - 0.05 / ``comparisons`` (Bonferroni).

    Raises ``ValueError`` for no values, a non-finite one, or less than one comparison.
    """
    if comparisons < 1:
        raise ValueError(f"{comparisons} comparisons; allowed: 1 and above")
    base, cand = checked(baseline), checked(candidate)
    base_side = _side(base, cand, baseline_series, seed)
    cand_side = _side(cand, base, candidate_series, seed)
    if figures is not None:
        base_side, cand_side = (
            replace(side, mean=mean) for side, mean in zip((base_side, cand_side), figures, strict=True)
        )
    difference = cand_side.mean - base_side.mean
    relative = difference / base_side.mean if base_side.mean > 0 else None
    counts = (base_side.count, cand_side.count)
    note = _note(base_side, cand_side, each)
    if base_side.variance is None or cand_side.variance is None:
        return Comparison("cannot tell", difference, None, relative, None, counts, None, note)
    variance = base_side.variance + cand_side.variance
    freedom = _freedom(base_side, cand_side, variance)
    if between is not None:
        base_side, cand_side = (_apart(side, between) for side in (base_side, cand_side))
        added = (base_side.variance or 0.0) + (cand_side.variance or 0.0) - variance
        freedom = _joined(((variance, freedom), (added, between.freedom)))
        variance += added
    quantile = t_quantile(freedom, 1 - _SIGNIFICANCE / (2 * comparisons))
    half = quantile * math.sqrt(variance)
    interval = (difference - half, difference + half)
    blind = half > max(abs(base_side.mean), abs(cand_side.mean))
    return Comparison(
        verdict="cannot tell" if blind else verdict_of(interval, higher_is_better=higher_is_better),
        difference=difference,
        ci95=interval,
        relative=relative,
        relative_ci95=_relative_interval(base_side, cand_side, quantile),
        repetitions=counts,
        visible=half,
        note=note,
    )


def _side(own: NDArray[np.float64], other: NDArray[np.float64], series: Values | None, seed: int) -> _Side:
    n = len(own)
    mean = math.fsum(own) / n
    if n > 1:
        return _Side(mean, 0.0 if is_constant(own) else standard_error(own) ** 2, n - 1, n)
    within = None
    if series is not None:
        interval = block_bootstrap_ci(series, seed).ci95
        if interval is not None:
            within = ((interval[1] - interval[0]) / (2 * Z95)) ** 2
    between = float(np.var(other, ddof=1)) if len(other) > 1 else None
    if between is None or (within is not None and within > between):
        return _Side(mean, within, math.inf, n)
    return _Side(mean, between, len(other) - 1, n)


def _apart(side: _Side, between: Between) -> _Side:
    """Add what a run's figure is off its system's to what it is off its own."""
    return replace(side, variance=(side.variance or 0.0) + (between.share * side.mean) ** 2)


def _joined(parts: Sequence[tuple[float, float]]) -> float:
    """Welch and Satterthwaite's degrees of freedom of a sum of variances, each with its own."""
    total = math.fsum(variance for variance, _ in parts)
    shares = math.fsum(variance**2 / freedom for variance, freedom in parts)
    return math.inf if shares == 0 else total**2 / shares


def _freedom(base: _Side, cand: _Side, variance: float) -> float:
    """Welch and Satterthwaite's degrees of freedom."""
    if base.variance is None or cand.variance is None or variance == 0:
        return math.inf
    if min(base.count, cand.count) == 1 and base.freedom == cand.freedom:
        # One estimate of the spread serves both sides: it is not worth twice its freedom.
        return base.freedom
    shorter, longer = sorted((base.count, cand.count))
    if shorter > 1 and longer >= _UNBALANCED * shorter:
        # A spread that came out small by chance on the short side would lend it the long side's freedom.
        return min(base.freedom, cand.freedom)
    return _joined(((base.variance, base.freedom), (cand.variance, cand.freedom)))


def verdict_of(interval: tuple[float, float], *, higher_is_better: bool) -> Verdict:
    """Name a difference by its interval."""
    low, high = interval
    if low <= 0 <= high:
        return "no difference seen"
    return "faster" if (low > 0) == higher_is_better else "slower"


def _relative_interval(base: _Side, cand: _Side, quantile: float) -> tuple[float, float] | None:
    """Find the ratios that a test at this quantile does not reject (Fieller), less 1."""
    if base.variance is None or cand.variance is None or base.mean <= 0:
        return None
    certain = base.mean**2 - quantile**2 * base.variance
    if certain <= 0:
        return None
    product = base.mean * cand.mean
    root = math.sqrt(max(0.0, product**2 - certain * (cand.mean**2 - quantile**2 * cand.variance)))
    return (product - root) / certain - 1, (product + root) / certain - 1


def _note(base: _Side, cand: _Side, each: str) -> str | None:
    single = [name for name, side in (("baseline", base), ("candidate", cand)) if side.count == 1]
    if not single:
        return None
    if base.variance is None or cand.variance is None:
        return f"one {each} a side and no series of {LEAST_INTERVALS} intervals: the spread is not known"
    if len(single) == 1:
        return f"the {single[0]} has one {each}: its spread is the other side's, or that of its intervals"
    return f"one {each} a side: what changes from run to run is not in this interval"
