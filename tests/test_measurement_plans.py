"""How long and how often to measure: planted warm-ups, noises and differences between repetitions are read back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter
from scipy.special import stdtrit

from nephoscope.statistics import plan_measurement, warm_up_length

LENGTH = 600


def repetitions(
    number: int,
    seed: int,
    *,
    noise: float = 0.05,
    between: float = 0.01,
    phi: float = 0.0,
    warm_up: float = 0.0,
) -> list[np.ndarray]:
    """Make TPS of intervals about 1000: noise as AR(1), a level of each repetition, an exponential rise at first."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(number):
        innovations = random.normal(0, noise * np.sqrt(1 - phi**2), LENGTH + 100)
        own = lfilter([1.0], [1.0, -phi], innovations)[100:]
        rise = 0.5 * np.exp(-np.arange(LENGTH) / warm_up) if warm_up else 0.0
        made.append(1000 * (1 + own + random.normal(0, between) - rise))
    return made


@pytest.mark.parametrize("rise", [10, 30, 60])
def test_a_planted_warm_up_is_found(rise: int) -> None:
    found = [warm_up_length(repetitions(5, seed, warm_up=rise)) for seed in range(20)]
    known = [cut for cut in found if cut is not None]
    assert len(known) == len(found)
    # After 2 time constants 7 % of the level are lacking; after 6 nothing that could be seen in this noise.
    assert 2 * rise <= np.median(known) <= 6 * rise


def test_without_a_warm_up_little_is_cut() -> None:
    cuts = [warm_up_length(repetitions(5, seed)) for seed in range(40)]
    assert np.median([LENGTH if cut is None else cut for cut in cuts]) <= 0.1 * LENGTH


def test_what_never_becomes_steady_is_not_known() -> None:
    rising = [np.linspace(0, 1000, LENGTH)] * 3
    assert warm_up_length(rising) is None
    assert warm_up_length([[1.0, 2.0, 3.0]] * 3) is None
    assert warm_up_length([[5.0] * 100] * 2) == 0


@pytest.mark.parametrize("phi", [0.0, 0.7])
def test_planted_noises_are_read_back(phi: float) -> None:
    plans = [plan_measurement(repetitions(10, seed, phi=phi), 0.01, 50) for seed in range(40)]
    between = np.sqrt(np.mean([plan.between**2 for plan in plans if plan]))
    within = np.sqrt(np.mean([plan.within**2 for plan in plans if plan]))
    assert between == pytest.approx(0.01, rel=0.2)
    # An AR(1) series is worth n (1 - φ) / (1 + φ) independent values.
    assert within == pytest.approx(0.05 / np.sqrt(LENGTH * (1 - phi) / (1 + phi)), rel=0.2)


def test_as_many_repetitions_as_planned_have_the_wanted_precision() -> None:
    plan = plan_measurement(repetitions(200, 1), 0.005, 50)
    assert plan is not None
    assert plan.repetitions is not None
    # 1 % between repetitions, and 5 % over the root of the window within.
    spread = np.hypot(0.01, 0.05 / np.sqrt(plan.window))
    assert plan.repetitions == pytest.approx((2.05 * spread / 0.005) ** 2, rel=0.15)
    halves = []
    for seed in range(200):
        means = [one[: plan.window].mean() / 1000 for one in repetitions(plan.repetitions, 1000 + seed)]
        halves.append(stdtrit(len(means) - 1, 0.975) * np.std(means, ddof=1) / np.sqrt(len(means)))
    assert np.mean(halves) == pytest.approx(0.005, rel=0.15)
    assert plan.repetitions_at_most is not None
    assert plan.repetitions <= plan.repetitions_at_most <= 1.6 * plan.repetitions


def test_the_window_is_longer_where_a_repetition_is_dearer() -> None:
    series = repetitions(10, 3)
    windows = [plan.window for cost in (0, 10, 1000) if (plan := plan_measurement(series, 0.01, cost))]
    assert windows == sorted(windows)
    assert windows[0] < windows[-1]


def test_few_repetitions_hardly_know_their_spread() -> None:
    plan = plan_measurement(repetitions(3, 5), 0.01, 50)
    assert plan is not None
    assert plan.repetitions is not None
    assert plan.repetitions_at_most is None or plan.repetitions_at_most > 5 * plan.repetitions


def test_what_is_equal_takes_two() -> None:
    plan = plan_measurement([[7.0] * 100] * 3, 0.01, 10)
    assert plan is not None
    assert (plan.warm_up, plan.within, plan.between, plan.window) == (0, 0.0, 0.0, 100)
    assert (plan.repetitions, plan.repetitions_at_most) == (2, 2)
    assert plan_measurement([[0.0] * 100] * 3, 0.01, 10) is None


@pytest.mark.parametrize(
    ("series", "precision", "overhead"),
    [([[1.0]], 0.1, 0.0), ([[1.0], []], 0.1, 0.0), ([[1.0]] * 2, 0.0, 1.0)],
)
def test_what_says_nothing_is_refused(series: list[list[float]], precision: float, overhead: float) -> None:
    with pytest.raises(ValueError, match="allowed"):
        plan_measurement(series, precision, overhead)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.floats(0, 1e6, allow_nan=False), min_size=25, max_size=60), min_size=2, max_size=6),
    st.floats(0.001, 1),
    st.floats(0, 1000),
)
def test_whatever_was_measured_has_a_plan(
    series: list[list[float]], precision: float, overhead: float
) -> None:
    plan = plan_measurement(series, precision, overhead)
    if plan is not None:
        assert 1 <= plan.window <= 60
        assert plan.repetitions is None or 2 <= plan.repetitions <= 10_000
        assert plan.repetitions is not None or plan.repetitions_at_most is None
