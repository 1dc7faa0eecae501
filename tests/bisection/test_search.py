"""The search for a change: how often it is wrong, how often right, and how soon it stops, of planted changes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from nephoscope.statistics import search
from simulated import allowance, generator

if TYPE_CHECKING:
    import numpy as np

    from nephoscope.statistics import Searched

PLACES = 8
NOISE = 0.005
"""How far runs of one version scatter, as a share: a standard deviation."""
LEAST = math.log1p(0.02)
MOST = 60
ROUNDS = 40


def searched(rng: np.random.Generator, change: float, places: int = PLACES) -> tuple[Searched, int, int]:
    """Search for a change at a random place; gives what was found, the place, and the number of measurements."""
    first = int(rng.integers(1, places))
    observed: list[tuple[int, float]] = []
    while True:
        found = search(places, observed, LEAST)
        if found.following is None or len(observed) == MOST:
            return found, first, len(observed)
        level = math.log(1000) + (math.log1p(change) if found.following >= first else 0.0)
        observed.append((found.following, level + NOISE * float(rng.standard_normal())))


@pytest.mark.parametrize(
    ("change", "right", "no_change", "runs"),
    [
        # The change, how often its place is found at least, how often none is told at least, runs at the median.
        (0.00, 0.0, 0.95, 12),
        (0.02, 0.90, 0.0, 16),
        (0.05, 0.95, 0.0, 12),
        (-0.05, 0.95, 0.0, 12),
    ],
)
def test_planted_changes_are_found_as_often_as_the_docs_say(
    change: float, right: float, no_change: float, runs: int
) -> None:
    rng = generator()
    found = [searched(rng, change) for _ in range(ROUNDS)]
    told = [(one, first) for one, first, _ in found if one.answer == "changed"]
    correct = sum(one.chances.index(max(one.chances)) == first for one, first in told if change) / ROUNDS
    wrong = len(told) / ROUNDS - correct
    assert wrong <= 0.05 + allowance(0.05, ROUNDS)
    assert correct >= right - allowance(right, ROUNDS)
    assert sum(one.answer == "no change" for one, _, _ in found) / ROUNDS >= no_change - allowance(
        no_change, ROUNDS
    )
    assert sorted(number for _, _, number in found)[ROUNDS // 2] <= runs


def test_a_change_below_the_least_is_never_told_at_a_wrong_place_often() -> None:
    rng = generator()
    found = [searched(rng, 0.01) for _ in range(ROUNDS)]
    wrong = sum(
        one.answer == "changed" and one.chances.index(max(one.chances)) != first for one, first, _ in found
    )
    assert wrong / ROUNDS <= 0.05 + allowance(0.05, ROUNDS)


def test_the_interval_of_a_change_holds_what_was_planted() -> None:
    rng = generator()
    found = [one for one, _, _ in (searched(rng, 0.05) for _ in range(30))]
    held = sum(
        one.interval is not None and one.interval[0] <= math.log1p(0.05) <= one.interval[1] for one in found
    )
    assert held >= 28


def test_the_ends_are_measured_first_in_turns() -> None:
    observed: list[tuple[int, float]] = []
    for end in (0, 4, 4, 0, 0, 4):
        assert search(5, observed, LEAST).following == end
        observed.append((end, 1.0 + 0.01 * len(observed)))


def test_two_versions_need_no_search_between_them() -> None:
    observed = [(0, 1.0), (1, 2.0), (1, 2.001), (0, 1.001), (0, 0.999), (1, 1.999)]
    found = search(2, observed, LEAST)
    assert (found.answer, found.chances, found.following) == ("changed", (0.0, 1.0), None)
    assert found.difference == pytest.approx(1.0)


def test_a_figure_that_never_scatters_is_decided_too() -> None:
    equal = search(3, [(0, 1.0), (2, 1.0), (2, 1.0), (0, 1.0), (0, 1.0), (2, 1.0)], LEAST)
    assert equal.answer == "no change"
    observed = [(0, 1.0), (2, 2.0), (2, 2.0), (0, 1.0), (0, 1.0), (2, 2.0)]
    assert search(3, observed, LEAST).following == 1
    assert search(3, [*observed, (1, 1.0)], LEAST).chances[2] > 0.95


@pytest.mark.parametrize(
    ("places", "observed", "least"),
    [(1, [], 0.1), (3, [(3, 1.0)], 0.1), (3, [(0, math.nan)], 0.1), (3, [], 0.0)],
)
def test_impossible_searches_are_refused(
    places: int, observed: list[tuple[int, float]], least: float
) -> None:
    with pytest.raises(ValueError, match="places"):
        search(places, observed, least)
