"""The interval of O where its scores share a machine: planted correlations, and how often the truth is inside."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nephoscope.scoring.definitions import PERFECT
from nephoscope.scoring.formulas import Score, o_score, over_repetitions
from nephoscope.tables.given import notes_of_o

if TYPE_CHECKING:
    from nephoscope.scoring.definitions import ScoreName
    from nephoscope.scoring.formulas import Absent

TIMES = ("R", "F", "C")
TRUTH = 0.0
"""All scores are 1 on a machine of its usual speed, up to the mean of what spreads."""
RUNS = 400


def repeated(speeds: np.ndarray, own: np.ndarray, together: int) -> dict[ScoreName, Score | Absent]:
    """Make scores of repetitions: a faster machine has more throughput and shorter times, of the first ``together``."""
    found: dict[ScoreName, Score | Absent] = {}
    for place, name in enumerate(PERFECT):
        shared = speeds if place < together else np.zeros_like(speeds)
        logs = (shared + own[place]) * (-1 if name in TIMES else 1)
        found[name] = over_repetitions(name, [float(10**log) for log in logs])
    return found


def shares_inside(repetitions: int, together: int) -> tuple[float, float]:
    """Return how often O's interval has the truth, and how often that of independent errors has it."""
    random = np.random.default_rng(7)
    inside = [0, 0]
    for _ in range(RUNS):
        speeds = random.normal(0, 0.02, repetitions)
        own = random.normal(0, 0.005, (len(PERFECT), repetitions))
        found = o_score(repeated(speeds, own, together))
        assert isinstance(found, Score)
        assert found.ci95 is not None
        for place, (low, high) in enumerate((found.ci95, found.detail["interval"]["if_independent"])):
            inside[place] += low <= TRUTH <= high
    return inside[0] / RUNS, inside[1] / RUNS


@pytest.mark.parametrize("repetitions", [3, 5])
def test_by_repetition_the_interval_has_the_truth_as_often_as_it_says(repetitions: int) -> None:
    for together in (0, 4, 7):
        by_repetition, independent = shares_inside(repetitions, together)
        # 400 runs: 95 % within three standard errors of 1.1 %.
        assert 0.915 <= by_repetition <= 0.985, together
        if together == 7:
            assert independent < 0.85, "a shared speed makes independent errors too narrow"


def test_without_repetitions_of_all_it_is_the_widest_that_any_correlation_gives() -> None:
    random = np.random.default_rng(11)
    inside = 0
    for _ in range(RUNS):
        # Each score with its own interval of 95 %, of an error that all share.
        error = random.normal(0, 0.01)
        found: dict[ScoreName, Score | Absent] = {}
        for name in PERFECT:
            log = -error if name in TIMES else error
            ends = (10 ** (log - 0.0196), 10 ** (log + 0.0196))
            found[name] = Score(value=10**log, unit="", ci95=ends, repetitions=1)
        overall = o_score(found)
        assert isinstance(overall, Score)
        assert overall.ci95 is not None
        assert overall.detail["interval"]["within_one"] == list(PERFECT)
        inside += overall.ci95[0] <= TRUTH <= overall.ci95[1]
    assert inside / RUNS >= 0.915


def test_a_time_below_its_resolution_or_other_numbers_of_repetitions_are_no_o_of_repetitions() -> None:
    own = np.full((len(PERFECT), 3), 0.0) + np.asarray([0.01, 0.0, -0.01])
    found = repeated(np.zeros(3), own, 0)
    twice: dict[ScoreName, Score | Absent] = {**found, "F": over_repetitions("F", [1.0, 1.1])}
    for overall in (o_score(twice), o_score(found, resolution_s={"R": 1.05})):
        assert isinstance(overall, Score)
        assert "no scores are independent" in overall.detail["interval"]["assumes"]
    overall = o_score(found)
    assert isinstance(overall, Score)
    assert "the O of 3 repetitions" in overall.detail["interval"]["assumes"]
    # What moves each score by the same share moves O seven times as far.
    assert overall.ci95 is not None
    half = 4.303 * 0.07 / math.sqrt(3)
    assert overall.ci95[1] - overall.ci95[0] == pytest.approx(2 * half, rel=1e-3)


def test_o_says_what_its_interval_takes_for_granted() -> None:
    found: dict[ScoreName, Score | Absent] = {
        name: Score(value=1.0, unit="", ci95=(0.9, 1.1), repetitions=1 if name == "P" else 3)
        for name in PERFECT
    }
    overall = o_score(found)
    assert isinstance(overall, Score)
    (note,) = notes_of_o(overall.detail)
    assert note.startswith("O's interval takes for granted: no scores are independent")
    assert note.endswith("; P within a single repetition, which says nothing of how another would differ")
