"""Availability, MTTF and MTTR of cycles of failure and repair, and what is foretold of them: no clock, only numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.scoring.availability import in_parallel, in_series, steady_availability
from nephoscope.statistics import availability_of_cycles, mean_time
from simulated import allowance, generator

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Draw = Callable[[int], NDArray[np.float64]]

MTTF, MTTR = 10.0, 1.0
RUNS = 2000


def laws(name: str) -> tuple[Draw, Draw]:
    """Laws of the times up and down with means 10 and 1."""
    rng = generator()
    weibull = {"early": 0.7, "worn out": 1.5}
    if name in weibull:
        shape = weibull[name]
        scale = MTTF / math.gamma(1 + 1 / shape)
        return (lambda n: scale * rng.weibull(shape, n)), (lambda n: rng.exponential(MTTR, n))
    if name == "constant repair":
        return (lambda n: rng.exponential(MTTF, n)), (lambda n: np.full(n, MTTR))
    return (lambda n: rng.exponential(MTTF, n)), (lambda n: rng.exponential(MTTR, n))


@pytest.mark.parametrize(
    ("law", "cycles", "coverage"),
    [
        ("exponential", 3, 0.92),
        ("exponential", 5, 0.93),
        ("exponential", 10, 0.93),
        ("exponential", 30, 0.94),
        ("worn out", 5, 0.94),
        ("early", 5, 0.905),
        ("early", 30, 0.925),
        ("constant repair", 10, 0.94),
    ],
)
def test_the_interval_of_an_availability_holds_the_truth_about_as_often_as_it_says(
    law: str, cycles: int, coverage: float
) -> None:
    ups, downs = laws(law)
    held = 0
    for _ in range(RUNS):
        up, down = ups(cycles), downs(cycles)
        found = availability_of_cycles(
            up.sum(), down.sum(), list(zip(up.tolist(), down.tolist(), strict=True))
        )
        assert found.ci95 is not None
        held += found.ci95[0] <= MTTF / (MTTF + MTTR) <= found.ci95[1]
    assert held / RUNS == pytest.approx(coverage, abs=allowance(coverage, RUNS) + 0.005)


@pytest.mark.parametrize(("events", "coverage"), [(2, 0.95), (5, 0.95), (20, 0.925)])
def test_the_interval_of_a_mean_time_holds_the_truth(events: int, coverage: float) -> None:
    rng = generator()
    held = 0
    for _ in range(RUNS):
        times = rng.exponential(MTTF, events)
        found = mean_time(times.sum(), times.tolist())
        assert found.ci95 is not None
        held += found.ci95[0] <= MTTF <= found.ci95[1]
    assert held / RUNS == pytest.approx(coverage, abs=allowance(coverage, RUNS) + 0.005)


def observed(rng: np.random.Generator, seconds: float) -> tuple[list[float], list[float], float, float]:
    """Observe a system for a fixed time: the times that ended, and all time up and down."""
    ups: list[float] = []
    downs: list[float] = []
    at, down_s = 0.0, 0.0
    while True:
        up = rng.exponential(MTTF)
        if at + up >= seconds:
            return ups, downs, seconds - down_s, down_s
        ups.append(up)
        down = rng.exponential(MTTR)
        if at + up + down >= seconds:
            return ups, downs, at + up - sum(downs), seconds - at - up + down_s
        downs.append(down)
        down_s += down
        at += up + down


@pytest.mark.parametrize("seconds", [60.0, 300.0])
def test_what_is_cut_off_at_the_end_of_a_measurement_does_not_spoil_the_intervals(seconds: float) -> None:
    rng = generator()
    held = dict.fromkeys(("availability", "mttf", "mttr"), 0)
    means: list[float] = []
    runs = 0
    while runs < RUNS:
        ups, downs, up_s, down_s = observed(rng, seconds)
        if len(downs) < 2:
            continue
        runs += 1
        share = availability_of_cycles(up_s, down_s, list(zip(ups, downs, strict=False)))
        figures = {"availability": share, "mttf": mean_time(up_s, ups), "mttr": mean_time(down_s, downs)}
        truths = {"availability": MTTF / (MTTF + MTTR), "mttf": MTTF, "mttr": MTTR}
        means.append(figures["mttf"].value or 0.0)
        for name, figure in figures.items():
            assert figure.ci95 is not None
            held[name] += figure.ci95[0] <= truths[name] <= figure.ci95[1]
    for name, count in held.items():
        assert 0.90 <= count / RUNS <= 0.97, (name, count / RUNS)
    # A mean of the times that ended alone would be far too short.
    if seconds > 100:
        assert np.mean(means) == pytest.approx(MTTF, rel=0.06)


times = st.floats(0.001, 1e6)


@given(st.lists(st.tuples(times, times), min_size=1, max_size=30), times)
def test_an_availability_is_a_share_and_lies_in_its_interval(
    cycles: list[tuple[float, float]], cut_off: float
) -> None:
    up_s, down_s = sum(up for up, _ in cycles) + cut_off, sum(down for _, down in cycles)
    found = availability_of_cycles(up_s, down_s, cycles)
    assert found.value is not None
    assert found.value == pytest.approx(up_s / (up_s + down_s))
    if found.ci95 is not None:
        assert 0 <= found.ci95[0] <= found.value + 1e-12
        assert found.value - 1e-12 <= found.ci95[1] <= 1
    assert (found.ci95 is None) == (len(cycles) < 2)


@given(st.lists(times, min_size=2, max_size=30), st.floats(0.1, 1000))
def test_a_mean_time_and_its_interval_are_in_the_unit_of_the_times(values: list[float], unit: float) -> None:
    one = mean_time(sum(values), values)
    other = mean_time(unit * sum(values), [unit * value for value in values])
    assert one.value is not None
    assert one.ci95 is not None
    assert other.ci95 is not None
    assert other.value == pytest.approx(unit * one.value)
    assert other.ci95 == pytest.approx([unit * end for end in one.ci95], rel=1e-6)


def test_what_was_not_seen_is_absent() -> None:
    assert mean_time(60.0, []).value is None
    assert availability_of_cycles(60.0, 0.0, []).value == 1.0
    assert availability_of_cycles(60.0, 0.0, []).ci95 is None, "no failure: nothing says how rare they are"
    assert availability_of_cycles(0.0, 0.0, []).value is None
    assert mean_time(3.0, [3.0]).ci95 is None, "a single one has no spread"
    assert mean_time(4.0, [2.0, 2.0]).ci95 == (2.0, 2.0)
    with pytest.raises(ValueError, match="below 0"):
        mean_time(1.0, [-1.0])
    with pytest.raises(ValueError, match="below 0"):
        availability_of_cycles(-1.0, 0.0, [])


@given(times, times, st.integers(1, 9))
def test_nodes_in_series_are_worse_than_one_and_in_parallel_better(
    mttf: float, mttr: float, nodes: int
) -> None:
    node = steady_availability(mttf, mttr)
    assert in_series([node] * nodes) <= node + 1e-12
    assert node <= in_parallel([node] * nodes) + 1e-12
    assert in_series([node]) == node
    assert in_parallel([node]) == pytest.approx(node)


def test_what_is_foretold_is_what_the_formulas_say() -> None:
    assert steady_availability(99.0, 1.0) == pytest.approx(0.99)
    assert in_series([0.9, 0.9]) == pytest.approx(0.81)
    assert in_parallel([0.9, 0.9, 0.9]) == pytest.approx(0.999)
    assert steady_availability(1.0, 0.0) == 1.0
    with pytest.raises(ValueError, match="not both 0"):
        steady_availability(0.0, 0.0)
