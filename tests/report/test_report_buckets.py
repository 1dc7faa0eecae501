"""Time series are shortened honestly."""

from __future__ import annotations

import numpy as np
import pytest
from report_pages import run
from report_runs import RUNS

from nephoscope.report.kit.buckets import MOST_POINTS, TimeBuckets, bucket_length
from nephoscope.report.kit.run import Run

RECORDED = [name for name in RUNS if name != "empty"]


@pytest.mark.parametrize("name", RECORDED)
def test_no_committed_transaction_is_lost_in_the_buckets(name: str) -> None:
    found = Run(run(name))
    buckets = TimeBuckets.of(found)
    rates = buckets.rate(found.intervals.middle, found.intervals.counts("committed"))
    assert (rates * (buckets.ends - buckets.starts)).sum() == pytest.approx(
        found.intervals.total("committed")
    )


@pytest.mark.parametrize("name", RECORDED)
def test_a_bucket_never_reaches_across_a_phase(name: str) -> None:
    found = Run(run(name))
    for start, end in TimeBuckets.of(found).windows:
        phases = [
            phase for phase in found.phases if phase.start_s < end - 1e-9 and phase.end_s > start + 1e-9
        ]
        assert len(phases) == 1


@pytest.mark.parametrize("name", RECORDED)
def test_the_buckets_cover_the_run_without_a_gap(name: str) -> None:
    found = Run(run(name))
    buckets = TimeBuckets.of(found)
    assert buckets.starts[0] == 0.0
    assert buckets.ends[-1] == pytest.approx(found.end_s)
    assert np.allclose(buckets.ends[:-1], buckets.starts[1:])


def test_an_hour_of_seconds_is_shown_as_some_hundreds_of_points() -> None:
    buckets = TimeBuckets.of(Run(run("hour")))
    assert buckets.length_s == 10.0
    assert buckets.starts.size <= MOST_POINTS


def test_a_short_run_is_shown_interval_by_interval() -> None:
    buckets = TimeBuckets.of(Run(run("open_loop")))
    assert not buckets.merged
    assert buckets.length_s == 0.5


@pytest.mark.parametrize(
    ("span", "interval", "length"), [(60, 1, 1), (601, 1, 2), (3600, 1, 10), (36_000, 1, 60), (100, 0.1, 0.2)]
)
def test_the_length_of_a_bucket_is_a_round_number_of_intervals(
    span: float, interval: float, length: float
) -> None:
    assert bucket_length(span, interval, 600) == pytest.approx(length)


def test_the_largest_of_a_bucket_is_kept() -> None:
    buckets = TimeBuckets(np.array([0.0, 2.0]), np.array([2.0, 4.0]), 2.0, 1.0)
    times, values = np.array([0.5, 1.5, 2.5]), np.array([1.0, 9.0, np.nan])
    assert buckets.reduce(times, values, largest=True) == [9.0, None]
    assert buckets.reduce(times, values, largest=False) == [5.0, None]


def test_what_is_written_at_the_end_of_an_interval_is_about_it() -> None:
    buckets = TimeBuckets(np.array([0.0, 1.0]), np.array([1.0, 2.0]), 1.0, 1.0)
    assert buckets.index(np.array([0.0, 0.5, 1.0, 2.0, 9.0])).tolist() == [0, 0, 0, 1, -1]
