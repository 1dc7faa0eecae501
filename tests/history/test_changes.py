"""Change points: how often one is found where none is planted, and how often a planted one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from nephoscope.statistics import MOST_VALUES, change_points
from simulated import allowance, generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

RUNS = 30
"""Runs of a history, half of them before the planted change."""
NOISE = 0.01
"""How far runs of one system scatter, as a share: a standard deviation."""


def found(shift: float, rounds: int, significance: float = 0.05, law: str = "normal") -> list[list[int]]:
    """Find the change points of histories whose second half is higher by a share."""
    rng = generator()
    levels = np.where(np.arange(RUNS) < RUNS // 2, 1.0, 1 + shift)

    def noise() -> NDArray[np.float64]:
        if law == "lognormal":
            return rng.lognormal(0, 1, RUNS)
        wide = 10.0 if law == "outliers" else 1.0
        return np.where(rng.random(RUNS) < 0.1, wide, 1.0) * rng.standard_normal(RUNS)

    return [
        [point.place for point in change_points(levels * (1 + NOISE * noise()), significance)]
        for _ in range(rounds)
    ]


@pytest.mark.parametrize("law", ["normal", "lognormal", "outliers"])
@pytest.mark.parametrize("significance", [0.05, 0.0125])
def test_where_nothing_changes_a_change_is_seldom_found(law: str, significance: float) -> None:
    rounds = 200
    share = sum(map(bool, found(0.0, rounds, significance, law))) / rounds
    assert share <= significance + allowance(significance, rounds)


@pytest.mark.parametrize(
    ("shift", "least"),
    [(0.01, 0.15), (0.02, 0.90), (0.05, 0.99)],
)
def test_a_planted_change_is_found_as_often_as_the_docs_say(shift: float, least: float) -> None:
    """Of four figures together, as a history of two points has them."""
    rounds = 60
    places = found(shift, rounds, 0.05 / 4)
    share = sum(any(abs(place - RUNS // 2) <= 2 for place in of) for of in places) / rounds
    assert share >= least - allowance(least, rounds)


def test_several_changes_are_found_in_their_order() -> None:
    rng = generator()
    levels = np.repeat([100.0, 110.0, 95.0], 12)
    points = change_points(levels * (1 + 0.005 * rng.standard_normal(len(levels))))
    assert [point.place for point in points] == [12, 24]
    assert all(0 < point.p_value <= 0.05 for point in points)
    # The same series has the same answer.
    again = generator()
    assert change_points(levels * (1 + 0.005 * again.standard_normal(len(levels)))) == points


def test_a_single_outlier_is_no_change() -> None:
    values = [100 + 0.1 * (place % 5) for place in range(30)]
    values[20] = 50.0
    assert change_points(values) == []


def test_a_step_without_noise_is_found_and_a_constant_is_none() -> None:
    assert [point.place for point in change_points([1.0] * 10 + [2.0] * 10)] == [10]
    assert change_points([1.0] * 20) == []
    assert change_points([1.0, 2.0, 1.0, 2.0]) == []


def test_the_longest_series_takes_bounded_memory() -> None:
    rng = generator()
    assert change_points(rng.standard_normal(MOST_VALUES)) == []


@pytest.mark.parametrize("wrong", [[], [1.0, float("nan")], [0.0] * (MOST_VALUES + 1)])
def test_impossible_series_are_refused(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="allowed"):
        change_points(wrong)


@pytest.mark.parametrize("significance", [0.0, 1.0])
def test_impossible_significances_are_refused(significance: float) -> None:
    with pytest.raises(ValueError, match="a significance of"):
        change_points([1.0, 2.0], significance)
