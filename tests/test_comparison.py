"""Comparison: false verdicts by simulation, and what must hold for any numbers.

Every simulation is seeded, so its rates are constants; the bounds say what is promised, and
``record_property`` keeps the rate itself in the test report. The docstrings of the functions quote longer
simulations.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephoscope.statistics import (
    Comparison,
    compare,
)
from simulated import allowance, ar1, generator

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Record = Callable[[str, object], None]

moderate = st.floats(min_value=-1e6, max_value=1e6, allow_subnormal=False)
rates = st.floats(min_value=1e-3, max_value=1e6)


def false_verdicts(a: Floats, b: Floats) -> float:
    return float(
        np.mean(
            [
                compare(x, y, higher_is_better=True).verdict != "no difference seen"
                for x, y in zip(a, b, strict=True)
            ]
        )
    )


@pytest.mark.parametrize("sigma", [0.0, 0.25, 0.5])
@pytest.mark.parametrize(
    ("n", "m"), [(2, 2), (2, 3), (2, 10), (3, 3), (3, 5), (5, 5), (3, 30), (5, 20), (10, 10), (30, 30)]
)
def test_equal_systems_are_rarely_told_apart(n: int, m: int, sigma: float, record_property: Record) -> None:
    rng = generator()
    a, b = rng.standard_normal((1000, n)), rng.standard_normal((1000, m))
    rate = false_verdicts(np.exp(sigma * a), np.exp(sigma * b)) if sigma else false_verdicts(a + 100, b + 100)
    record_property("false verdicts", rate)
    assert rate <= 0.05 + allowance(0.05, 1000)


@pytest.mark.parametrize("m", [2, 5, 10])
def test_one_repetition_against_several_is_held_to_their_spread(m: int, record_property: Record) -> None:
    rng = generator()
    rate = false_verdicts(rng.standard_normal((1000, 1)) + 100, rng.standard_normal((1000, m)) + 100)
    record_property("false verdicts", rate)
    assert rate <= 0.05 + allowance(0.05, 1000)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.7])
@pytest.mark.parametrize("n", [20, 60])
def test_two_equal_runs_are_rarely_told_apart_by_their_series(
    n: int, phi: float, record_property: Record
) -> None:
    rng = generator()
    rate = np.mean(
        [
            compare(
                [a.mean()], [b.mean()], higher_is_better=True, baseline_series=a, candidate_series=b
            ).verdict
            != "no difference seen"
            for a, b in zip(ar1(rng, 200, n, phi), ar1(rng, 200, n, phi), strict=True)
        ]
    )
    record_property("false verdicts", float(rate))
    assert rate <= 0.055 + allowance(0.055, 200)


def test_a_difference_is_found_in_the_direction_of_the_figure() -> None:
    slow, fast = [100.0, 101, 99, 100.5, 99.5], [110.0, 111, 109, 110.5, 109.5]
    assert compare(slow, fast, higher_is_better=True).verdict == "faster"
    assert compare(fast, slow, higher_is_better=True).verdict == "slower"
    assert compare(slow, fast, higher_is_better=False).verdict == "slower"
    assert compare(fast, slow, higher_is_better=False).verdict == "faster"
    found = compare(slow, fast, higher_is_better=True)
    assert found.difference == pytest.approx(10)
    assert found.relative == pytest.approx(0.1)
    assert found.relative_ci95 == pytest.approx((0.0884, 0.1117), abs=5e-4)
    assert (found.repetitions, found.note) == ((5, 5), None)


def test_the_interval_of_a_difference_covers_it() -> None:
    rng = generator()
    found = [
        compare(a, b, higher_is_better=True)
        for a, b in zip(
            100 + 3 * rng.standard_normal((1000, 4)), 110 + 6 * rng.standard_normal((1000, 5)), strict=True
        )
    ]
    inside = np.mean([f.ci95 is not None and f.ci95[0] <= 10 <= f.ci95[1] for f in found])
    relative = np.mean(
        [f.relative_ci95 is not None and f.relative_ci95[0] <= 0.1 <= f.relative_ci95[1] for f in found]
    )
    assert inside >= 0.94
    assert relative >= 0.94


@settings(deadline=None)
@given(st.lists(rates, min_size=2, max_size=8), st.lists(rates, min_size=2, max_size=8))
def test_the_relative_interval_never_contradicts_the_verdict(a: list[float], b: list[float]) -> None:
    found = compare(a, b, higher_is_better=True)
    assert found.ci95 is not None
    if found.relative_ci95 is not None:
        low, high = found.relative_ci95
        assert low <= high
        margin = 1e-9 * max(abs(low), abs(high))
        if found.verdict == "faster":
            assert low > -margin
        elif found.verdict == "slower":
            assert high < margin
        else:
            assert low <= margin
            assert high >= -margin


@settings(deadline=None)
@given(st.lists(rates, min_size=2, max_size=8), st.lists(rates, min_size=2, max_size=8), st.booleans())
def test_sides_that_change_places_turn_the_verdict(a: list[float], b: list[float], higher: bool) -> None:  # noqa: FBT001
    one, other = compare(a, b, higher_is_better=higher), compare(b, a, higher_is_better=higher)
    turned = {"faster": "slower", "slower": "faster", "no difference seen": "no difference seen"}
    assert other.verdict == turned[one.verdict]
    assert one.ci95 is not None
    assert other.ci95 == pytest.approx((-one.ci95[1], -one.ci95[0]))


def test_more_comparisons_side_by_side_need_more_evidence() -> None:
    a, b = [100.0, 101, 99, 100.5], [101.5, 103, 102, 101.6]
    assert compare(a, b, higher_is_better=True).verdict == "faster"
    assert compare(a, b, higher_is_better=True, comparisons=100).verdict == "no difference seen"
    widths = []
    for number in (1, 2, 10):
        ci95 = compare(a, b, higher_is_better=True, comparisons=number).ci95
        assert ci95 is not None
        widths.append(ci95[1] - ci95[0])
    assert all(narrow < wide for narrow, wide in pairwise(widths))


def test_one_run_against_one_is_compared_by_its_series_and_the_note_says_what_that_is_worth() -> None:
    rng = generator()
    a, b = 100 + ar1(rng, 1, 60, 0.3)[0], 110 + ar1(rng, 1, 60, 0.3)[0]
    found = compare([a.mean()], [b.mean()], higher_is_better=True, baseline_series=a, candidate_series=b)
    assert found.verdict == "faster"
    assert found.note is not None
    assert "run to run" in found.note


def test_without_any_spread_no_difference_is_claimed() -> None:
    found = compare([100.0], [200.0], higher_is_better=True)
    assert found == Comparison("no difference seen", 100, None, 1.0, None, (1, 1), found.note)
    assert found.note is not None
    one_short = compare([100.0], [200.0], higher_is_better=True, baseline_series=[100.0] * 40)
    assert one_short.verdict == "no difference seen"


def test_a_run_that_is_unsteady_within_is_not_held_to_the_calm_of_the_other_side() -> None:
    rng = generator()
    calm = [100.0, 100.1, 99.9]
    wild = 90 + 40 * ar1(rng, 1, 40, 0.5)[0]
    by_repetitions = compare(calm, [wild.mean()], higher_is_better=True)
    by_series = compare(calm, [wild.mean()], higher_is_better=True, candidate_series=wild)
    assert by_repetitions.verdict == "slower"
    assert by_series.verdict == "no difference seen"


def test_repetitions_that_agree_exactly_leave_no_doubt() -> None:
    assert compare([5.0, 5.0], [6.0, 6.0], higher_is_better=False).verdict == "slower"
    assert compare([5.0, 5.0], [5.0, 5.0], higher_is_better=False).verdict == "no difference seen"


def test_a_baseline_that_may_be_zero_has_no_relative_interval() -> None:
    assert compare([1.0, 9.0], [5.0, 6.0], higher_is_better=True).relative_ci95 is None
    assert compare([-1.0, -2.0], [5.0, 6.0], higher_is_better=True).relative is None


def test_less_than_one_comparison_is_refused() -> None:
    with pytest.raises(ValueError, match="allowed: 1 and above"):
        compare([1], [1], higher_is_better=True, comparisons=0)
