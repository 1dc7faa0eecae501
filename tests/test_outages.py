"""Outages and recoveries that are planted in made-up probes and intervals, and must be found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.evaluators.outages import Probes, Throughput, find_outages, recovered_at

RATE = 200.0
RESPONSE_S = 0.001


def planted(down_s: float, up_s: float, kind: str, seconds: float = 10.0) -> Probes:
    """Probes at 200/s of a service that is away from one time to another: it refuses, or it stands still."""
    due = np.arange(0, seconds, 1 / RATE)
    end = due + RESPONSE_S
    away = (end > down_s) & (due < up_s)
    if kind == "stands still":
        return Probes.of(due, np.where(away, up_s + RESPONSE_S, end), np.ones(len(due), bool))
    return Probes.of(due, end, ~away)


@pytest.mark.parametrize("kind", ["refuses", "stands still"])
@given(
    down_s=st.floats(min_value=1, max_value=3),
    length_s=st.floats(min_value=0.15, max_value=5),
)
def test_an_outage_is_found_to_within_a_probe(kind: str, down_s: float, length_s: float) -> None:
    up = down_s + length_s
    found = find_outages(planted(down_s, up, kind), down_s, 10.0)
    assert len(found) == 1
    assert found[0].back_s is not None
    assert found[0].back_s - down_s == pytest.approx(length_s, abs=1 / RATE + 2 * RESPONSE_S)
    assert found[0].last_success_s is not None
    assert found[0].last_success_s <= down_s + RESPONSE_S
    assert found[0].failed + found[0].late > 0
    assert found[0].gap_s == pytest.approx(1 / RATE + (RESPONSE_S if kind == "refuses" else 0))


def test_no_interruption_reads_as_none() -> None:
    due = np.arange(0, 10, 1 / RATE)
    hiccup = np.where((due > 3) & (due < 3.03), 0.05, RESPONSE_S)
    assert find_outages(Probes.of(due, due + hiccup, np.ones(len(due), bool)), 2.0, 10.0) == []


def test_a_probe_that_was_not_sent_while_another_was_being_served_prolongs_no_outage() -> None:
    refused = planted(2.0, 3.0, "refuses")
    first = int(np.searchsorted(refused.due_s, 3.0))
    # The first that is served makes a connection for 12 ms; the two that are due meanwhile are not sent.
    end, ok, sent = refused.end_s.copy(), refused.ok.copy(), np.ones(len(refused.ok), bool)
    end[first] = refused.due_s[first] + 0.012
    for missing in (first + 1, first + 2):
        end[missing], ok[missing], sent[missing] = refused.due_s[missing], False, False
    (found,) = find_outages(Probes.of(refused.due_s, end, ok, sent), 2.0, 10.0)
    assert found.back_s == pytest.approx(3.012)
    assert found.gap_s == pytest.approx(0.017)
    # Where the one that was under way failed, they were not served either.
    ok[first] = False
    (found,) = find_outages(Probes.of(refused.due_s, end, ok, sent), 2.0, 10.0)
    assert found.back_s == pytest.approx(3.015 + RESPONSE_S)


def test_a_success_of_a_node_that_was_not_yet_gone_is_no_recovery() -> None:
    probes = planted(2.0, 5.0, "refuses")
    probes.ok[np.searchsorted(probes.due_s, 2.5)] = True
    (found,) = find_outages(probes, 2.0, 10.0)
    assert found.back_s == pytest.approx(5.0, abs=0.01)


def test_a_hiccup_long_after_is_an_outage_of_its_own() -> None:
    probes = planted(2.0, 3.0, "refuses")
    probes.ok[np.searchsorted(probes.due_s, 8.0)] = False
    first, second = find_outages(probes, 2.0, 10.0)
    assert first.back_s == pytest.approx(3.0, abs=0.01)
    assert second.first_bad_s == pytest.approx(8.0, abs=0.01)


def test_what_was_before_the_fault_does_not_count() -> None:
    probes = planted(1.0, 1.5, "refuses")
    assert find_outages(probes, 2.0, 10.0) == []


def test_a_service_that_does_not_come_back_has_no_return() -> None:
    (found,) = find_outages(planted(4.0, 99.0, "refuses"), 4.0, 10.0)
    assert found.back_s is None


def test_samples_may_come_in_any_order() -> None:
    probes = planted(2.0, 3.0, "refuses")
    order = np.random.default_rng(1).permutation(len(probes.due_s))
    shuffled = Probes.of(probes.due_s[order], probes.end_s[order], probes.ok[order])
    assert find_outages(shuffled, 2.0, 10.0) == find_outages(probes, 2.0, 10.0)


def course(*levels: tuple[float, float], interval: float = 0.1) -> Throughput:
    """Intervals of a load that has a level for some seconds each."""
    tps = np.concatenate([np.full(round(seconds / interval), level) for level, seconds in levels])
    starts = np.arange(len(tps)) * interval
    return Throughput.of(starts.tolist(), (starts + interval).tolist(), (tps * interval).tolist())


@given(half_s=st.floats(min_value=0.5, max_value=6), away_s=st.floats(min_value=0, max_value=3))
def test_a_recovery_is_found_to_within_an_interval(half_s: float, away_s: float) -> None:
    throughput = course((1000, 5), (0, away_s), (500, half_s), (1000, 10))
    back = 5 + round(away_s / 0.1) * 0.1
    found = recovered_at(throughput, 1000, back, 2.0)
    assert found is not None
    assert found - back == pytest.approx(half_s, abs=0.1 + 1e-6)


def test_a_throughput_that_never_fell_has_recovered_at_once() -> None:
    assert recovered_at(course((1000, 20)), 1000, 5.03, 2.0) == 5.03


def test_a_short_peak_is_no_recovery() -> None:
    throughput = course((1000, 5), (500, 1), (1000, 0.5), (500, 2), (1000, 5))
    assert recovered_at(throughput, 1000, 5.0, 2.0) == pytest.approx(8.5)


def test_a_throughput_that_does_not_come_back_has_no_recovery() -> None:
    assert recovered_at(course((1000, 5), (900, 10)), 1000, 5.0, 2.0) is None


def test_a_measurement_that_ends_too_soon_proves_no_recovery() -> None:
    assert recovered_at(course((1000, 5), (0, 2), (1000, 1)), 1000, 7.0, 2.0) is None


def test_a_mean_takes_whole_intervals_only() -> None:
    assert course((1000, 5), (0, 5)).mean(4.05, 6.05) == pytest.approx(450, abs=30)
    assert course((1000, 5)).mean(7, 9) == 0.0


def test_noise_within_the_window_is_no_absence() -> None:
    rough = [(900.0, 0.1), (1100.0, 0.1)] * 50
    throughput = course((1000, 5), (0, 2), *rough)
    assert recovered_at(throughput, 1000, 7.0, 2.0) is None
    assert recovered_at(throughput, 1000, 7.0, 2.0, window_s=1.0) == 7.0


@given(half_s=st.floats(min_value=1, max_value=6))
def test_a_recovery_over_a_window_is_found_to_within_it(half_s: float) -> None:
    throughput = course((1000, 5), (500, half_s), (1000, 10))
    found = recovered_at(throughput, 1000, 5.0, 2.0, window_s=0.5)
    assert found is not None
    assert found - 5.0 == pytest.approx(half_s, abs=0.15)
