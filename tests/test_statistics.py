"""Intervals, indices and series: coverage by simulation, and what must hold for any numbers.

Every simulation is seeded, so its rates are constants; the bounds say what is promised, and
``record_property`` keeps the rate itself in the test report. The docstrings of the functions quote longer
simulations.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, t

from nephoscope.statistics import (
    MeanEstimate,
    autocorrelation,
    block_bootstrap_ci,
    block_length,
    clustered_interval,
    effective_sample_size,
    geometric_mean,
    jain_index,
    mean_ci,
    moving_mean_ci,
    r_squared,
    wilson_interval,
)
from simulated import allowance, ar1, generator

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Record = Callable[[str, object], None]

moderate = st.floats(min_value=-1e6, max_value=1e6, allow_subnormal=False)
rates = st.floats(min_value=1e-3, max_value=1e6)


def covers(estimate: MeanEstimate, truth: float) -> bool:
    assert estimate.ci95 is not None
    return estimate.ci95[0] <= truth <= estimate.ci95[1]


def spread(found: MeanEstimate) -> float:
    assert found.ci95 is not None
    return found.ci95[1] - found.ci95[0]


@pytest.mark.parametrize(
    ("sigma", "n", "promised"),
    [
        # What 5,000 runs gave. Sigma = 1 is far more skewed than repetitions of a rate, and shows the limit.
        (0.0, 2, 0.95),
        (0.0, 3, 0.95),
        (0.0, 5, 0.95),
        (0.0, 6, 0.935),
        (0.0, 10, 0.95),
        (0.0, 30, 0.95),
        (0.25, 2, 0.945),
        (0.25, 3, 0.945),
        (0.25, 5, 0.94),
        (0.25, 6, 0.935),
        (0.25, 10, 0.945),
        (0.25, 30, 0.945),
        (0.5, 2, 0.94),
        (0.5, 3, 0.925),
        (0.5, 5, 0.915),
        (0.5, 6, 0.92),
        (0.5, 10, 0.94),
        (0.5, 30, 0.94),
        (1.0, 2, 0.89),
        (1.0, 3, 0.835),
        (1.0, 5, 0.825),
        (1.0, 6, 0.88),
        (1.0, 10, 0.905),
        (1.0, 30, 0.925),
    ],
)
def test_the_interval_of_a_mean_covers_it(
    sigma: float, n: int, promised: float, record_property: Record
) -> None:
    runs = 3000 if n < 6 else 300
    samples = generator().standard_normal((runs, n))
    truth = 0.0
    if sigma:
        samples, truth = np.exp(sigma * samples), math.exp(sigma * sigma / 2)
    coverage = np.mean([covers(mean_ci(sample), truth) for sample in samples])
    record_property("coverage", float(coverage))
    assert coverage >= promised - allowance(promised, runs)


def test_few_repetitions_have_students_interval() -> None:
    found = mean_ci([1.0, 2.0, 4.0])
    half = t.ppf(0.975, 2) * np.std([1, 2, 4], ddof=1) / math.sqrt(3)
    assert found.mean == pytest.approx(7 / 3)
    assert found.ci95 == pytest.approx((7 / 3 - half, 7 / 3 + half))
    assert found.method == "student t"


def test_many_repetitions_have_a_bootstrap_interval_that_follows_skew() -> None:
    found = mean_ci([1, 1.1, 1.2, 1.3, 1.5, 2, 3, 6])
    assert found.method == "bootstrap t"
    assert found.ci95 is not None
    assert found.ci95[1] - found.mean > 1.5 * (found.mean - found.ci95[0])


def test_one_repetition_has_no_interval_and_equal_ones_have_no_width() -> None:
    assert mean_ci([3.0]) == MeanEstimate(3.0, None, 1, "one value")
    assert mean_ci([3.0, 3.0]) == MeanEstimate(3.0, (3.0, 3.0), 2, "constant")
    assert mean_ci([0.1] * 7).ci95 == (mean_ci([0.1] * 7).mean,) * 2


def test_repetitions_that_agree_but_for_one_have_an_interval_within_reason() -> None:
    found = mean_ci([6, 6.001, 6, 5.999, 6, 12])
    # Most resamples leave the 12 out and see next to no spread: unbounded, the end would be in the hundreds.
    assert found.ci95 is not None
    assert 4 < found.ci95[0] < 7 < found.ci95[1] < 16


@settings(deadline=None)
@given(st.lists(moderate, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_repetitions_does_not_matter(values: list[float], random: object) -> None:
    shuffled = sorted(values, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert mean_ci(shuffled) == mean_ci(values)


@settings(deadline=None)
@given(st.lists(moderate, min_size=2, max_size=12), st.floats(min_value=1e-3, max_value=1e3), moderate)
def test_an_interval_moves_and_scales_with_its_values(
    values: list[float], factor: float, shift: float
) -> None:
    size = max(map(abs, values)) + abs(shift) / factor + 1
    assume(np.ptp(values) > 1e-6 * size)
    base, moved = mean_ci(values), mean_ci([value * factor + shift for value in values])
    assert base.ci95 is not None
    expected = [end * factor + shift for end in base.ci95]
    assert moved.ci95 == pytest.approx(expected, abs=1e-7 * size * factor)
    assert base.ci95[0] <= base.mean <= base.ci95[1]


def test_the_same_values_give_the_same_figures_for_ever() -> None:
    # Recorded figures: a stored run that is read by a later version must show what it showed.
    assert mean_ci([1, 2, 3, 4, 5, 7, 9, 20]).ci95 == pytest.approx(
        (3.024856525315018, 17.611190412532906), rel=1e-9
    )
    series = [10 + (i * 7919 % 13) for i in range(40)]
    assert block_bootstrap_ci(series).ci95 == pytest.approx((14.447906120389902, 17.30498837621424), rel=1e-9)
    assert mean_ci([1, 2, 3, 4, 5, 7, 9, 20], seed=2).ci95 != mean_ci([1, 2, 3, 4, 5, 7, 9, 20]).ci95


@pytest.mark.parametrize(
    ("n", "phi", "promised"),
    [
        (10, 0.0, 0.94),
        (10, 0.5, 0.885),
        (20, 0.0, 0.945),
        (20, 0.5, 0.92),
        (20, 0.7, 0.885),
        (60, 0.0, 0.95),
        (60, 0.3, 0.945),
        (60, 0.5, 0.94),
        (60, 0.7, 0.92),
        (60, 0.9, 0.88),
        (300, 0.0, 0.95),
        (300, 0.7, 0.94),
        (300, 0.9, 0.925),
    ],
)
def test_the_block_bootstrap_covers_the_mean_of_a_series(
    n: int, phi: float, promised: float, record_property: Record
) -> None:
    coverage = np.mean([covers(block_bootstrap_ci(series), 0) for series in ar1(generator(), 250, n, phi)])
    record_property("coverage", float(coverage))
    assert coverage >= promised - allowance(promised, 250)


def test_autocorrelation_widens_the_interval_of_a_series() -> None:
    rng = generator()
    independent = spread(block_bootstrap_ci(ar1(rng, 1, 300, 0.0)[0]))
    dependent = spread(block_bootstrap_ci(ar1(rng, 1, 300, 0.8)[0]))
    assert dependent > 2 * independent


def test_a_short_series_has_no_interval_and_a_constant_one_no_width() -> None:
    assert block_bootstrap_ci([1, 2, 3]) == MeanEstimate(2, None, 3, "too few intervals")
    assert block_bootstrap_ci([5.0] * 20) == MeanEstimate(5, (5, 5), 20, "constant")


def test_a_series_without_noise_has_an_interval() -> None:
    assert covers(block_bootstrap_ci(np.arange(50.0)), 24.5)
    assert covers(block_bootstrap_ci([0.0, 1.0] * 25), 0.5)


@pytest.mark.parametrize("n", [10, 60])
def test_the_mean_of_a_level_that_moves_is_covered(n: int) -> None:
    ramp = np.linspace(-20, 20, n)
    coverage = np.mean([covers(moving_mean_ci(series + ramp), 0) for series in ar1(generator(), 250, n, 0.0)])
    assert coverage >= 0.95 - allowance(0.95, 250)


def test_how_a_level_moves_is_no_error_of_its_mean() -> None:
    (noise,) = ar1(generator(), 1, 60, 0.0)
    step = np.where(np.arange(60) < 20, 0.0, 30.0)
    assert spread(moving_mean_ci(noise + step)) < 3 * spread(moving_mean_ci(noise))
    assert spread(block_bootstrap_ci(noise + step)) > 10 * spread(block_bootstrap_ci(noise))
    assert moving_mean_ci([1, 2, 3]) == MeanEstimate(2, None, 3, "too few intervals")
    assert moving_mean_ci([5.0] * 20) == MeanEstimate(5, (5, 5), 20, "differences")


def test_a_long_series_keeps_its_blocks_few() -> None:
    found = block_bootstrap_ci(ar1(generator(), 1, 100_000, 0.5)[0])
    assert spread(found) == pytest.approx(2 * 1.96 * math.sqrt(3 / 100_000), rel=0.15)


@settings(deadline=None)
@given(st.lists(rates, min_size=1, max_size=20), st.floats(1e-3, 1e3))
def test_jains_index_lies_between_one_tenant_and_all_and_has_no_unit(
    values: list[float], factor: float
) -> None:
    found = jain_index(values)
    assert 1 / len(values) - 1e-12 <= found <= 1 + 1e-12
    assert jain_index([value * factor for value in values]) == pytest.approx(found)


def test_jains_index_of_known_shares() -> None:
    assert jain_index([5, 5, 5]) == pytest.approx(1)
    assert jain_index([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain_index([0, 0]) == 1
    assert jain_index([1e-300, 1e-300]) == pytest.approx(1)


def test_r_squared_tells_how_straight_a_line_is() -> None:
    nodes = [0, 1, 2, 3]
    assert r_squared(nodes, [10, 20, 30, 40]) == pytest.approx(1)
    assert r_squared(nodes, [40, 30, 20, 10]) == pytest.approx(1), "downwards as well"
    assert r_squared(nodes, [1, -1, -1, 1]) == pytest.approx(0)
    assert r_squared(nodes, [0, 2, 2, 4.5]) == pytest.approx(6.75**2 / (5 * 10.1875))
    assert r_squared([1, 2], [5, 9]) is None, "a line goes through any two"
    assert r_squared(nodes, [7, 7, 7, 7]) is None
    with pytest.raises(ValueError, match="one of each"):
        r_squared(nodes, [1, 2])


@settings(deadline=None)
@given(st.lists(rates, min_size=1, max_size=20), st.floats(1e-3, 1e3))
def test_a_geometric_mean_lies_within_its_values_and_scales(values: list[float], factor: float) -> None:
    found = geometric_mean(values)
    assert min(values) * (1 - 1e-9) <= found <= max(values) * (1 + 1e-9)
    assert geometric_mean([value * factor for value in values]) == pytest.approx(found * factor)


def test_geometric_means_of_extreme_values_stay_finite() -> None:
    assert geometric_mean([1e300] * 50) == pytest.approx(1e300)
    assert geometric_mean([2, 8]) == pytest.approx(4)
    assert geometric_mean([0, 8]) == 0


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(0, 200))
def test_wilsons_interval_is_scipys(successes: int, more: int) -> None:
    trials = successes + more
    low, high = wilson_interval(successes, trials)
    if trials == 0:
        assert (low, high) == (0, 1)
    else:
        reference = binomtest(successes, trials).proportion_ci(method="wilson")
        assert (low, high) == pytest.approx((reference.low, reference.high), abs=1e-12)
        assert low <= successes / trials <= high


def test_no_violation_in_a_hundred_checks_leaves_four_per_cent_possible() -> None:
    assert wilson_interval(0, 100) == pytest.approx((0, 0.037), abs=5e-4)


def test_reads_that_come_in_clusters_count_as_fewer() -> None:
    alike = np.asarray([10, 0] * 20), np.full(40, 10)
    low, high = clustered_interval(*alike)
    assert (low, high) == pytest.approx(wilson_interval(20, 40), abs=0.01), "each cluster is one draw"
    apart = np.asarray([5] * 40), np.full(40, 10)
    assert clustered_interval(*apart) == pytest.approx(wilson_interval(200, 400)), "never more than there are"
    none = np.zeros(40, int), np.full(40, 10)
    assert clustered_interval(*none) == pytest.approx(wilson_interval(0, 400))
    assert clustered_interval(*none, whole_clusters=True) == pytest.approx(wilson_interval(0, 40))
    assert clustered_interval(np.zeros(0, int), np.zeros(0, int)) == (0, 1)


def test_the_interval_of_clusters_covers_the_share_that_it_is_of() -> None:
    rng, missed = generator(), 0
    for _ in range(400):
        shares = rng.beta(1, 9, 60)
        low, high = clustered_interval(rng.binomial(20, shares), np.full(60, 20))
        missed += not low <= 0.1 <= high
    assert missed / 400 < 0.05 + allowance(0.05, 400)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_autocorrelation_and_effective_size_of_an_ar1_series_are_the_known_ones(phi: float) -> None:
    series = ar1(generator(), 1, 20_000, phi)[0]
    assert autocorrelation(series, 3) == pytest.approx([1, phi, phi**2, phi**3], abs=0.03)
    assert effective_sample_size(series) == pytest.approx(20_000 * (1 - phi) / (1 + phi), rel=0.2)


def test_autocorrelation_is_the_one_of_the_definition() -> None:
    x = generator().standard_normal(37)
    y = x - x.mean()
    direct = [float(y[: 37 - lag] @ y[lag:] / (y @ y)) for lag in range(37)]
    assert autocorrelation(x) == pytest.approx(direct, abs=1e-12)


def test_a_constant_series_is_worth_all_its_values() -> None:
    assert autocorrelation([3, 3, 3]).tolist() == [1, 0, 0]
    assert effective_sample_size([3, 3, 3]) == 3
    assert block_length([3, 3, 3, 3, 3]) == 1


def test_negative_autocorrelation_earns_no_bonus() -> None:
    assert effective_sample_size(ar1(generator(), 1, 500, -0.7)[0]) <= 500
    assert effective_sample_size([1.0]) == 1


def test_blocks_grow_with_autocorrelation() -> None:
    rng = generator()
    lengths = [np.median([block_length(x) for x in ar1(rng, 50, 1000, phi)]) for phi in (0.0, 0.5, 0.9)]
    assert lengths[0] < lengths[1] < lengths[2]
    # Politis and White's own value for AR(1), (2 (2φ / (1 - φ²))² 3/4 n)^(1/3), is 14 and 51 here.
    assert lengths[1] == pytest.approx(13.9, rel=0.35)
    assert lengths[2] == pytest.approx(51.3, rel=0.35)


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]], [1.0, math.nan], [math.inf]])
@pytest.mark.parametrize(
    "function",
    [
        mean_ci,
        block_bootstrap_ci,
        moving_mean_ci,
        autocorrelation,
        effective_sample_size,
        jain_index,
        geometric_mean,
    ],
)
def test_values_that_are_no_numbers_are_refused(function: Callable[[object], object], values: object) -> None:
    with pytest.raises(ValueError, match="allowed"):
        function(values)


def test_arguments_out_of_range_are_refused_with_what_is_allowed() -> None:
    with pytest.raises(ValueError, match="allowed: 0 ≤ successes"):
        wilson_interval(3, 2)
    with pytest.raises(ValueError, match="allowed: between 0 and 1"):
        wilson_interval(1, 2, confidence=1)
    with pytest.raises(ValueError, match="allowed"):
        jain_index([-1, 2])
    with pytest.raises(ValueError, match="allowed"):
        geometric_mean([-1, 2])
