"""Times that are lower bounds: the estimates of Kaplan and Meier, against figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.statistics import Survival, expected, wilson_interval


def test_without_censoring_it_is_the_plain_share() -> None:
    values = [5.0, 1.0, 2.0, 2.0]
    of = Survival.of(values, [False] * 4)
    assert [of.longer(t) for t in (0.5, 1.0, 2.0, 4.9, 5.0, 9.0)] == pytest.approx(
        [1, 0.75, 0.25, 0.25, 0, 0]
    )
    assert of.interval(2.0) == pytest.approx(wilson_interval(1, 4))
    assert of.interval(9.0) == pytest.approx(wilson_interval(0, 4))
    assert [of.quantile(share) for share in (0.25, 0.5, 1.0)] == [1.0, 2.0, 5.0]
    assert expected(values, [False] * 4).tolist() == values


def test_what_is_censored_counts_for_as_long_as_it_is_known() -> None:
    # At 1 one of four ends; one is lost sight of at 2; at 3 one of two; the last is still going on at 6.
    values, censored = [1.0, 2.0, 3.0, 6.0], [False, True, False, True]
    of = Survival.of(values, censored)
    assert [of.longer(t) for t in (0.0, 1.0, 2.5, 3.0, 1e9)] == pytest.approx([1, 0.75, 0.75, 0.375, 0.375])
    assert (of.quantile(0.5), of.quantile(0.9)) == (3.0, 6.0)
    found = expected(values, censored)
    assert found.tolist() == pytest.approx([1.0, 4.5, 3.0, 6.0])
    # The area below the curve: 1 + 2 · 0.75 + 3 · 0.375.
    assert found.mean() == pytest.approx(3.625)


def test_all_censored_are_at_least_what_they_are() -> None:
    of = Survival.of([2.0, 3.0], [True, True])
    assert (of.longer(5.0), of.quantile(0.5)) == (1.0, 3.0)
    assert of.interval(5.0) == pytest.approx(wilson_interval(2, 2))
    assert expected([2.0, 3.0], [True, True]).tolist() == [3.0, 3.0]


def test_a_mean_cut_short_by_chance_is_that_of_the_law() -> None:
    random = np.random.default_rng(7)
    times, cuts = random.exponential(10.0, 20_000), random.uniform(0.0, 100.0, 20_000)
    censored = cuts < times
    found = expected(np.minimum(times, cuts), censored)
    assert found.mean() == pytest.approx(10.0, abs=0.3)
    assert np.minimum(times, cuts).mean() < 9.1


@pytest.mark.parametrize(("values", "censored"), [([], []), ([1.0], []), ([float("inf")], [True])])
def test_what_is_no_time_is_refused(values: list[float], censored: list[bool]) -> None:
    with pytest.raises(ValueError, match="allowed"):
        Survival.of(values, censored)
