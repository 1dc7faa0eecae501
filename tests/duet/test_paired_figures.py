"""Two systems at the same moments: how often verdicts are false, what is seen of planted losses, what cancels."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.results.answers import decide
from nephoscope.results.compare import Compared, Figure
from nephoscope.statistics import Comparison, Paired, Sums, between_runs, compare, compare_pairs, narrowing
from simulated import allowance, ar1, generator

REPETITIONS, INTERVALS = 5, 30
NOISE = 0.02
"""The standard deviation of each system's own noise in an interval, as a share; neighbours resemble each other."""
STEP = 0.02
"""Of the machine's random walk from one interval to the next, which both systems have in common."""
Rates = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def drift(rng: np.random.Generator, intervals: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.asarray(np.exp(STEP * np.cumsum(rng.standard_normal(intervals))))


def noise(rng: np.random.Generator) -> Rates:
    return np.asarray(np.exp(NOISE * ar1(rng, REPETITIONS, INTERVALS, 0.5)))


def paired(baseline: Rates, candidate: Rates) -> list[Paired]:
    seconds = [1.0] * baseline.shape[1]
    return [
        Paired(Sums(ours, seconds), Sums(theirs, seconds))
        for ours, theirs in zip(baseline, candidate, strict=True)
    ]


def together(rng: np.random.Generator, loss: float) -> Comparison:
    common = drift(rng, REPETITIONS * INTERVALS).reshape(REPETITIONS, INTERVALS)
    ours, theirs = 1000 * common * noise(rng), 1000 * (1 - loss) * common * noise(rng)
    return compare_pairs([paired(ours, theirs)], higher_is_better=True)


def one_after_the_other(rng: np.random.Generator, loss: float) -> Comparison:
    """The same systems on the same machine, compared as `nephoscope compare` does of one run each."""
    common = drift(rng, 2 * REPETITIONS * INTERVALS).reshape(2, REPETITIONS, INTERVALS)
    ours, theirs = (
        list(level * (common[side] * noise(rng)).mean(axis=1))
        for side, level in enumerate((1000, 1000 * (1 - loss)))
    )
    between = between_runs([ours, theirs])
    return compare(ours, theirs, higher_is_better=True, between=between)


def answer(found: Comparison, margin: float) -> str:
    figure = Figure("TPS", "1/s", 1000, 1000, found, higher_is_better=True)
    return decide(Compared([figure], [], []), margin).answer


@pytest.mark.parametrize(
    ("loss", "given", "least", "most"),
    [
        # With a margin of 2 %, of a machine that wanders by a quarter of its speed meanwhile.
        (0.00, "slower", 0.0, 0.025),
        (0.00, "not slower", 0.99, 1.0),
        (0.01, "not slower", 0.5, 1.0),
        (0.02, "not slower", 0.0, 0.035),
        (0.05, "slower", 0.99, 1.0),
    ],
)
def test_a_duet_answers_right_as_often_as_it_says(loss: float, given: str, least: float, most: float) -> None:
    rng, rounds = generator(), 250
    share = sum(answer(together(rng, loss), 0.02) == given for _ in range(rounds)) / rounds
    assert least - allowance(least, rounds) <= share <= most + allowance(most, rounds)


def test_verdicts_between_equal_systems_are_seldom_false_and_one_after_the_other_sees_far_less() -> None:
    rng, rounds = generator(), 250
    equal = [together(rng, 0.0) for _ in range(rounds)]
    false = sum(found.verdict != "no difference seen" for found in equal) / rounds
    assert false <= 0.05 + allowance(0.05, rounds)
    apart = [one_after_the_other(rng, 0.0) for _ in range(rounds)]
    visible, of_apart = (np.median([found.visible or 0 for found in of]) for of in (equal, apart))
    assert of_apart > 10 * visible
    # 5 % is seen each time at the same moments, and hardly ever one after the other.
    shares = [
        sum(method(rng, 0.05).verdict == "slower" for _ in range(100)) / 100
        for method in (together, one_after_the_other)
    ]
    assert shares[0] > 0.99
    assert shares[1] < 0.3


def test_what_both_have_in_common_cancels() -> None:
    ours = 1000 * drift(generator(), 60).reshape(3, 20)
    found = compare_pairs([paired(ours, 0.95 * ours)], higher_is_better=True)
    assert found.relative == pytest.approx(-0.05)
    assert found.relative_ci95 == pytest.approx((-0.05, -0.05))
    assert (found.verdict, found.repetitions) == ("slower", (3, 3))


def test_repetitions_that_differ_by_more_than_their_intervals_widen_the_interval() -> None:
    rng, rounds = generator(), 250
    shifts = np.exp(0.02 * rng.standard_normal((rounds, REPETITIONS, 1)))
    false = sum(
        compare_pairs([paired(noise(rng), shift * noise(rng))], higher_is_better=True).verdict
        != "no difference seen"
        for shift in shifts
    )
    assert false / rounds <= 0.05 + allowance(0.05, rounds)


def test_of_several_runs_each_is_one_value() -> None:
    ours = np.full((1, 20), 1000.0)
    runs = [paired(ours, ratio * ours) for ratio in (0.9, 0.91, 0.92)]
    found = compare_pairs(runs, higher_is_better=True)
    assert (found.verdict, found.repetitions) == ("slower", (3, 3))
    assert found.relative == pytest.approx(-0.09, abs=0.001)
    assert found.relative_ci95 is not None
    assert found.relative_ci95[0] < -0.11
    assert found.relative_ci95[1] > -0.07
    # More comparisons widen all of them.
    wider = compare_pairs(runs, higher_is_better=True, comparisons=4)
    assert (wider.visible or 0) > 1.5 * (found.visible or 0)


def test_a_mean_latency_is_weighed_by_its_transactions() -> None:
    took, counts = np.tile([2.0, 40.0], 10), np.tile([1.0, 10.0], 10)
    pair = Paired(Sums(took, counts), Sums(1.1 * took, counts))
    found = compare_pairs([[pair]], higher_is_better=False)
    assert pair.baseline.figure() == pytest.approx(42 / 11)
    assert found.relative == pytest.approx(0.1)
    assert found.verdict == "slower"
    assert pair.ratios() == pytest.approx([1.1] * 20)


def test_what_pairs_are_good_for_is_told() -> None:
    rng = generator()
    common = drift(rng, REPETITIONS * INTERVALS).reshape(REPETITIONS, INTERVALS)
    assert (narrowing(paired(common * noise(rng), common * noise(rng))) or 0) > 5
    assert narrowing(paired(noise(rng), noise(rng))) == pytest.approx(1, abs=0.2)
    # What one of them gets, the other one lacks.
    share = noise(rng)
    assert narrowing(paired(share, 2 - share)) == pytest.approx(1 / 2**0.5, abs=0.1)
    assert narrowing(paired(np.zeros((1, 20)), np.ones((1, 20)))) is None


def test_what_cannot_be_told() -> None:
    few, none = np.full((1, 9), 10.0), np.zeros((1, 20))
    found = compare_pairs([paired(few, 1.5 * few)], higher_is_better=True)
    assert (found.verdict, found.ci95) == ("cannot tell", None)
    assert found.note == "fewer than 10 pairs of intervals: the spread is not known"
    nothing = compare_pairs([paired(1 + none, none)], higher_is_better=True)
    assert (nothing.verdict, nothing.relative) == ("cannot tell", None)
    assert paired(none, none)[0].ratios() == [None] * 20
    wild = np.asarray(np.exp(5 * generator().standard_normal((1, 20))))
    assert compare_pairs([paired(wild, wild[:, ::-1])], higher_is_better=True).verdict == "cannot tell"
    for runs, comparisons in (([], 1), ([[]], 1), ([paired(few, few)], 0)):
        with pytest.raises(ValueError, match="allowed: 1 and above"):
            compare_pairs(runs, higher_is_better=True, comparisons=comparisons)
