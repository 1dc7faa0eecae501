"""The search for the highest rate within a latency limit, and how arrivals are counted: no load, no clock."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope import _engine
from nephoscope.evaluators.bracket import MOST_STEPS, Bracketed, SearchBounds, highest_rate
from nephoscope.evaluators.slo.shares import LimitCounter, WithinLimit, certain_interval

if TYPE_CHECKING:
    from collections.abc import Callable

BOUNDS = SearchBounds(start=100.0, least=10.0, most=1600.0, precision=0.05, repetitions=2)
MS = 1_000_000


class Asked:
    """A system that holds up to a rate, and what it was asked."""

    def __init__(self, holds: Callable[[float, int], bool]) -> None:
        self._holds = holds
        self.steps: list[tuple[float, int]] = []

    def __call__(self, rate: float, repetition: int) -> bool:
        self.steps.append((rate, repetition))
        return self._holds(rate, repetition)


def known() -> tuple[float | None, float | None]:
    """A rate is certain for either end."""
    return 1.0, 2.0


def up_to(most: float) -> Asked:
    return Asked(lambda rate, _: rate <= most)


def test_a_rate_is_bracketed_by_doubling_narrowed_and_confirmed() -> None:
    asked = up_to(330)
    found = highest_rate(BOUNDS, asked, known)
    assert [rate for rate, _ in asked.steps[:3]] == [100, 200, 400]
    assert asked.steps[3] == (282.84, 0)
    assert asked.steps[-2:] == [(found.rate, 1), (found.rate, 2)]
    assert found.rate is not None
    assert found.beyond is not None
    assert found.rate <= 330 < found.beyond <= 1.05 * found.rate


def test_a_start_that_is_too_high_is_halved() -> None:
    asked = up_to(30)
    found = highest_rate(BOUNDS, asked, known)
    assert [rate for rate, _ in asked.steps[:3]] == [100, 50, 25]
    assert found.rate is not None
    assert 30 / 1.05 < found.rate <= 30


def test_where_nothing_holds_the_lowest_rate_is_the_last() -> None:
    asked = up_to(0)
    assert highest_rate(BOUNDS, asked, known) == Bracketed(None, 10.0)
    assert [rate for rate, _ in asked.steps] == [100, 50, 25, 12.5, 10]


def test_where_everything_holds_the_highest_rate_is_confirmed() -> None:
    asked = up_to(1e9)
    assert highest_rate(BOUNDS, asked, known) == Bracketed(1600.0, None)
    assert asked.steps == [(rate, 0) for rate in (100, 200, 400, 800, 1600)] + [(1600, 1), (1600, 2)]


def test_a_rate_that_does_not_hold_again_is_beyond_and_the_search_goes_on_below() -> None:
    """The system holds 330 for once, and 250 again and again."""
    asked = Asked(lambda rate, repetition: rate <= (330 if repetition == 0 else 250))
    found = highest_rate(BOUNDS, asked, known)
    assert found.rate is not None
    assert found.beyond is not None
    assert 250 / 1.06 < found.rate <= 250 < found.beyond <= 1.05 * found.rate
    # The rates between were each tried again before the search went below them.
    failed = [rate for rate, repetition in asked.steps if repetition and rate > 250]
    assert failed == sorted(failed, reverse=True) != []


def test_a_system_that_confirms_nothing_is_given_up() -> None:
    asked = Asked(lambda _, repetition: repetition == 0)
    bounds = SearchBounds(start=100.0, least=0.001, most=1e8, precision=0.01, repetitions=1)
    assert highest_rate(bounds, asked, known).rate is None
    assert len(asked.steps) == MOST_STEPS


def test_rates_outwards_are_measured_until_both_ends_are_certain() -> None:
    """The system holds 100; below 60 and above 210 that is certain."""
    asked = up_to(100)

    def certain() -> tuple[float | None, float | None]:
        rates = [rate for rate, _ in asked.steps]
        return (
            max((rate for rate in rates if rate < 60), default=None),
            min((rate for rate in rates if rate > 210), default=None),
        )

    bounds = replace(BOUNDS, precision=1.0)
    assert highest_rate(bounds, asked, certain) == Bracketed(100.0, 200.0)
    assert asked.steps == [
        *((rate, 0) for rate in (100.0, 200.0)),
        *((100.0, repetition) for repetition in (1, 2)),
        *((rate, 0) for rate in (70.711, 50.0, 282.84)),
    ]
    # No further than the bounds.
    for most, last in ((250.0, 250.0), (200.0, 50.0)):
        again = up_to(100)
        asked = again
        highest_rate(replace(bounds, most=most), again, certain)
        assert again.steps[-1] == (last, 0)


def test_an_interval_has_no_ends_that_contradict_each_other() -> None:
    assert certain_interval({}) == (None, None)
    assert certain_interval({50: "held", 100: "held", 150: "not known", 200: "not held"}) == (100, 200)
    assert certain_interval({50: "held", 100: "not held", 200: "held", 400: "not held"}) == (50, 400)
    assert certain_interval({100: "not held", 200: "held"}) == (None, None)


@given(
    truth=st.floats(1.0, 1e5),
    start=st.floats(10.0, 1000.0),
    precision=st.floats(0.01, 1.0),
    repetitions=st.integers(1, 4),
)
def test_the_result_brackets_the_truth_within_the_precision(
    truth: float, start: float, precision: float, repetitions: int
) -> None:
    bounds = SearchBounds(start=start, least=10, most=10_000, precision=precision, repetitions=repetitions)
    asked = up_to(truth)
    found = highest_rate(bounds, asked, known)
    if truth < bounds.least:
        assert found == Bracketed(None, bounds.least)
    elif truth >= bounds.most:
        assert found == Bracketed(bounds.most, None)
    else:
        assert found.rate is not None
        assert found.beyond is not None
        assert found.rate <= truth < found.beyond <= found.rate * (1 + precision) + 1e-9
        assert asked.steps[-repetitions:] == [(found.rate, number + 1) for number in range(repetitions)]
    assert all(bounds.least <= rate <= bounds.most for rate, _ in asked.steps)


# --- counting arrivals


def times(*groups: tuple[float, int]) -> _engine.Histogram:
    """A histogram of latencies: each so many ms long, so often."""
    histogram = _engine.Histogram()
    for ms, count in groups:
        histogram.record(round(ms * MS), count)
    return histogram


def counted(*intervals: tuple[_engine.Histogram | None, int, float | None], arrivals: int) -> WithinLimit:
    """Count intervals of half a second: latencies, other arrivals, and how late the client was."""
    counter = LimitCounter(0.020, rate=100.0)
    for place, (latency, others, lag_s) in enumerate(intervals):
        counter.add(place / 2, latency, others, lag_s)
    return counter.counted(arrivals, 0)


def test_failed_and_unfinished_arrivals_are_not_within_the_limit() -> None:
    found = counted((times((5, 97), (30, 1)), 2, None), arrivals=100)
    assert (found.count, found.share) == (100, 0.97)
    assert found.outcome(0.97) == "held"
    assert found.outcome(0.98) == "not held"


def test_a_system_that_stands_still_has_no_sample_and_does_not_hold() -> None:
    found = counted((None, 0, None), (None, 0, None), arrivals=100)
    assert found.share == 0
    assert found.outcome(0.5) == "not held"
    # As many as arrive within the limit may be on their way at any moment.
    assert counted((times((5, 100)), 0, None), arrivals=105).share == 1


def test_nothing_is_known_of_a_rate_without_arrivals() -> None:
    found = counted((None, 0, None), arrivals=0)
    assert found.share is None
    assert found.outcome(0.99) == found.certainty(0.99) == "not known"


def test_what_the_clients_own_lateness_can_explain_is_not_known() -> None:
    late = (times((5, 90), (25, 10)), 0, 0.006)
    found = counted(late, arrivals=100)
    assert (found.share, found.excused_share) == (0.9, 1.0)
    assert found.outcome(0.99) == "not known"
    # It reaches into the next interval, and no further.
    after = (times((5, 90), (25, 10)), 0, None)
    assert counted(late, after, arrivals=200).excused_share == 1.0
    assert counted(late, after, after, arrivals=300).excused_share == pytest.approx(1 - 10 / 300)
    # Unless the queue has not emptied: even the fastest transaction waits.
    queued = (times((12, 90), (25, 10)), 0, None)
    assert counted(late, after, queued, arrivals=300).excused_share == pytest.approx(1 - 10 / 300)
    assert counted(late, queued, queued, arrivals=300).excused_share == 1.0
    # A lateness that is too short explains nothing.
    assert counted((times((5, 90), (25, 10)), 0, 0.003), arrivals=100).outcome(0.99) == "not held"


def test_a_share_is_certain_by_its_interval_over_clusters_of_a_second() -> None:
    even = WithinLimit((100,) * 10, (99, 100) * 5, (99, 100) * 5)
    assert even.certainty(0.98) == "held"
    assert even.certainty(0.995) == "not known"
    assert even.certainty(0.9999) == "not held"
    # The same share, all of it lost in one second, says less.
    uneven = WithinLimit((100,) * 10, (95, *(100,) * 9), (95, *(100,) * 9))
    assert uneven.share == even.share
    assert uneven.ci95[0] < even.ci95[0]
    assert uneven.certainty(0.98) == "not known"


def test_intervals_of_a_second_are_one_cluster() -> None:
    found = counted(*[(times((5, 50)), 0, None)] * 4, arrivals=200)
    assert found.arrivals == (100, 100)
    assert WithinLimit.of_all([found, found]).arrivals == (100,) * 4
