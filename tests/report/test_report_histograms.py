"""Percentiles, bins and tails."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.report.kit.histograms import Buckets, few_beyond

MS = 1_000_000
BUCKETS = st.dictionaries(st.integers(1000, 10**11), st.integers(1, 10**6), min_size=1, max_size=40).map(
    lambda found: sorted(found.items())
)


def test_a_percentile_is_the_smallest_value_that_enough_samples_do_not_exceed() -> None:
    buckets = Buckets([(1 * MS, 50), (2 * MS, 49), (9 * MS, 1)])
    assert [buckets.at(p) for p in (50, 51, 99, 99.5, 100)] == [1.0, 2.0, 2.0, 9.0, 9.0]


@given(BUCKETS)
def test_percentiles_ascend_and_end_at_the_largest(found: list[tuple[int, int]]) -> None:
    buckets = Buckets(found)
    values = [buckets.at(p) or 0.0 for p in (0, 10, 50, 90, 99, 99.9, 100)]
    assert values == sorted(values)
    assert values[-1] == found[-1][0] / MS


@given(BUCKETS)
def test_the_bins_hold_every_sample(found: list[tuple[int, int]]) -> None:
    assert sum(share for _, share in Buckets(found).bins()) == pytest.approx(100)


@given(BUCKETS)
def test_the_tail_ascends_to_the_largest(found: list[tuple[int, int]]) -> None:
    tail = Buckets(found).tail()
    assert [x for x, _ in tail] == sorted({x for x, _ in tail})
    assert [y for _, y in tail] == sorted(y for _, y in tail)
    assert tail[-1][1] == found[-1][0] / MS


def test_a_percentile_of_nothing_is_absent() -> None:
    empty = Buckets([])
    assert empty.at(50) is None
    assert empty.bins() == []
    assert empty.tail() == []
    assert empty.percentiles().p99 is None


def test_a_percentile_is_weak_with_fewer_than_ten_samples_beyond_it() -> None:
    assert few_beyond(99.9, 9_999)
    assert not few_beyond(99.9, 10_001)
    assert not few_beyond(50, 20)


def test_the_bins_are_of_equal_width_on_a_log_axis() -> None:
    middles = [x for x, _ in Buckets([(1 * MS, 1), (100 * MS, 1)]).bins()]
    steps = {round(math.log10(b / a), 9) for a, b in itertools.pairwise(middles)}
    assert steps == {0.05}
