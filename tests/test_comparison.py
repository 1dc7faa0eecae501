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
    LEAST_BETWEEN,
    Between,
    Comparison,
    between_runs,
    block_means,
    compare,
)
from simulated import allowance, ar1, generator

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Record = Callable[[str, object], None]

CALLED = ("faster", "slower")
moderate = st.floats(min_value=-1e6, max_value=1e6, allow_subnormal=False)
rates = st.floats(min_value=1e-3, max_value=1e6)


def false_verdicts(a: Floats, b: Floats) -> float:
    return float(
        np.mean([compare(x, y, higher_is_better=True).verdict in CALLED for x, y in zip(a, b, strict=True)])
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
            in CALLED
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
    turned = {
        "faster": "slower",
        "slower": "faster",
        "no difference seen": "no difference seen",
        "cannot tell": "cannot tell",
    }
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
    assert found == Comparison("cannot tell", 100, None, 1.0, None, (1, 1), None, found.note)
    assert found.note is not None
    one_short = compare([100.0], [200.0], higher_is_better=True, baseline_series=[100.0] * 40)
    assert one_short.verdict == "cannot tell"


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


# --- the drift between runs


def two_runs(drift: str, rng: np.random.Generator, points: int, n: int) -> tuple[Floats, Floats]:
    """Two runs of one system, one after the other on a machine whose speed moves: (points, repetitions) each."""
    each = points * n
    match drift:
        case "random walk":
            speed = np.cumsum(rng.standard_normal(2 * each)) * 0.05 / np.sqrt(each)
        case "slow":
            speed = 0.05 * ar1(rng, 1, 2 * each, float(np.exp(-1 / each)))[0]
        case _:
            speed = np.repeat(LEAST_BETWEEN * rng.standard_normal(2), each)
    measured = 1000 * np.exp(speed + 0.005 * rng.standard_normal(2 * each))
    # Repetitions outermost, as a run goes through its points.
    first, second = (measured[at : at + each].reshape(n, points).T for at in (0, each))
    return first, second


def called(first: Floats, second: Floats, *, seen_within: bool) -> list[str]:
    between = between_runs([*first, *second]) if seen_within else None
    return [
        compare(a, b, higher_is_better=True, between=between, comparisons=len(first)).verdict
        for a, b in zip(first, second, strict=True)
    ]


@pytest.mark.parametrize("drift", ["random walk", "slow", "a step between the runs"])
@pytest.mark.parametrize(("points", "n"), [(1, 5), (4, 3), (4, 5)])
def test_runs_of_one_system_are_rarely_told_apart_though_the_machine_drifts(
    drift: str, points: int, n: int, record_property: Record
) -> None:
    rng = generator()
    pairs = [two_runs(drift, rng, points, n) for _ in range(300)]
    rates = {
        seen_within: float(
            np.mean([not set(CALLED).isdisjoint(called(*pair, seen_within=seen_within)) for pair in pairs])
        )
        for seen_within in (True, False)
    }
    record_property("false verdicts", rates[True])
    record_property("false verdicts, the drift between runs left out", rates[False])
    assert rates[True] <= 0.05
    if n > 3:
        # The repetitions alone do not see it: without this the test would prove nothing.
        assert rates[False] > 0.1


@pytest.mark.parametrize("drift", ["random walk", "slow", "a step between the runs"])
@pytest.mark.parametrize(("effect", "n", "share"), [(0.5, 3, 0.7), (0.5, 5, 0.95)])
def test_a_real_difference_is_found_on_a_machine_that_drifts(
    drift: str, effect: float, n: int, share: float, record_property: Record
) -> None:
    rng = generator()
    pairs = [two_runs(drift, rng, 4, n) for _ in range(200)]
    found = np.mean(
        [[one == "faster" for one in called(a, b * (1 + effect), seen_within=True)] for a, b in pairs]
    )
    record_property("found", float(found))
    assert found >= share


def test_a_steady_pair_of_runs_shows_small_differences_but_none_below_the_least() -> None:
    steady = np.array([1000.0, 1001, 999])
    between = between_runs([steady, steady])
    assert between is not None
    for factor, verdict in ((1.06, "faster"), (1.02, "no difference seen"), (0.94, "slower")):
        found = compare(steady, steady * factor, higher_is_better=True, between=between)
        assert found.verdict == verdict
        assert found.visible is not None
        assert found.visible >= 1.9 * LEAST_BETWEEN * 1000


def test_how_far_runs_scatter_is_told_by_how_their_repetitions_do() -> None:
    assert between_runs([]) is None
    assert between_runs([[5.0], [7.0]]) is None
    assert between_runs([[5.0, 5.0]]) == Between(LEAST_BETWEEN, float("inf"))
    found = between_runs([[90.0, 110.0], [900.0, 1100.0]])
    assert found is not None
    # Relative variance 0.02 in each, of one degree of freedom; twice that, and the least.
    assert found.share == pytest.approx((0.04 + LEAST_BETWEEN**2) ** 0.5)
    assert found.freedom == pytest.approx(2, rel=0.01)


def test_a_single_repetition_is_cut_into_blocks() -> None:
    assert block_means([1.0] * 9) == []
    assert block_means(np.arange(10.0)) == [0.5, 2.5, 4.5, 6.5, 8.5]


def test_what_would_not_be_seen_if_it_were_twice_as_much_cannot_be_told() -> None:
    found = compare([100.0, 300.0], [200.0, 150.0], higher_is_better=True, comparisons=10)
    assert found.verdict == "cannot tell"
    assert found.visible is not None
    assert found.visible > 200


def test_the_figures_may_be_others_than_the_means_of_the_repetitions() -> None:
    found = compare([2.0, 2.1, 5.7], [2.0, 2.2, 5.6], higher_is_better=False, figures=(2.15, 2.2))
    assert found.difference == pytest.approx(0.05)
    assert found.relative == pytest.approx(0.05 / 2.15)
