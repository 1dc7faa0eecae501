"""Outages and recoveries that are planted in made-up probes and intervals, and must be found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.evaluators.outages import (
    RoleProbes,
    Throughput,
    find_outages,
    least_tps,
    most_latency_ms,
    outage_of,
    recovered_at,
    served_as_before,
)

RATE = 200.0
RESPONSE_S = 0.001


def planted(down_s: float, up_s: float, kind: str, seconds: float = 10.0) -> RoleProbes:
    """Probes at 200/s of a service that is away from one time to another: it refuses, or it stands still."""
    due = np.arange(0, seconds, 1 / RATE)
    end = due + RESPONSE_S
    away = (end > down_s) & (due < up_s)
    if kind == "stands still":
        return RoleProbes.of(due, np.where(away, up_s + RESPONSE_S, end), np.ones(len(due), bool))
    return RoleProbes.of(due, end, ~away)


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
    assert find_outages(RoleProbes.of(due, due + hiccup, np.ones(len(due), bool)), 2.0, 10.0) == []


def test_a_probe_that_was_not_sent_while_another_was_being_served_prolongs_no_outage() -> None:
    refused = planted(2.0, 3.0, "refuses")
    first = int(np.searchsorted(refused.due_s, 3.0))
    # The first that is served makes a connection for 12 ms; the two that are due meanwhile are not sent.
    end, ok, sent = refused.end_s.copy(), refused.ok.copy(), np.ones(len(refused.ok), bool)
    end[first] = refused.due_s[first] + 0.012
    for missing in (first + 1, first + 2):
        end[missing], ok[missing], sent[missing] = refused.due_s[missing], False, False
    (found,) = find_outages(RoleProbes.of(refused.due_s, end, ok, sent), 2.0, 10.0)
    assert found.back_s == pytest.approx(3.012)
    assert found.gap_s == pytest.approx(0.017)
    # Where the one that was under way failed, they were not served either.
    ok[first] = False
    (found,) = find_outages(RoleProbes.of(refused.due_s, end, ok, sent), 2.0, 10.0)
    assert found.back_s == pytest.approx(3.015 + RESPONSE_S)


def test_a_success_of_a_node_that_was_not_yet_gone_is_no_recovery() -> None:
    probes = planted(2.0, 5.0, "refuses")
    probes.ok[np.searchsorted(probes.due_s, 2.5)] = True
    (found,) = find_outages(probes, 2.0, 10.0)
    assert found.back_s == pytest.approx(5.0, abs=0.01)


def test_what_interrupts_it_after_it_has_served_again_is_an_outage_of_its_own() -> None:
    probes = planted(2.0, 3.0, "refuses")
    probes.ok[np.searchsorted(probes.due_s, 8.0) + np.arange(2)] = False
    first, second = find_outages(probes, 2.0, 10.0)
    assert first.back_s == pytest.approx(3.0, abs=0.01)
    assert second.first_bad_s == pytest.approx(8.0, abs=0.01)


def test_a_single_probe_that_fails_by_chance_is_no_interruption() -> None:
    probes = planted(2.0, 3.0, "refuses")
    probes.ok[[np.searchsorted(probes.due_s, 0.5), np.searchsorted(probes.due_s, 8.0)]] = False
    (found,) = find_outages(probes, 0.0, 10.0)
    assert found.first_bad_s == pytest.approx(2.0, abs=0.01)
    # One that was waited for longer than a late one is.
    at = np.searchsorted(probes.due_s, 8.0)
    probes.end_s[at] = probes.due_s[at] + 0.15
    assert len(find_outages(probes, 0.0, 10.0)) == 2


@given(rate=st.floats(min_value=1, max_value=500), length_s=st.floats(min_value=2.5, max_value=4))
def test_the_outage_does_not_depend_on_the_rate_of_the_probes(rate: float, length_s: float) -> None:
    due = np.arange(0, 10, 1 / rate)
    (found,) = find_outages(RoleProbes.of(due, due + 0.001, (due < 2) | (due >= 2 + length_s)), 2.0, 10.0)
    assert found.back_s is not None
    assert found.back_s - 2.0 == pytest.approx(length_s + 0.5 / rate, abs=0.5 / rate + 0.002)


def stalled(*stalls: tuple[float, float]) -> RoleProbes:
    """Probes of a service that refuses for a while, several times."""
    due = np.arange(0, 10, 1 / RATE)
    ok = np.ones(len(due), bool)
    for start, end in stalls:
        ok[(due >= start) & (due < end)] = False
    return RoleProbes.of(due, due + RESPONSE_S, ok)


def test_the_outage_of_a_fault_is_its_first_interruption_and_not_the_longest_one() -> None:
    outages = find_outages(stalled((2.0, 3.35), (5.3, 8.0)), 2.0, 10.0)
    outage, later = outage_of([outages], acted_s=3.3)
    assert outage is outages[0]
    assert later == [(0, outages[1])]


def test_where_an_action_makes_others_wait_before_it_strikes_the_failure_is_its_outage() -> None:
    probes = stalled((6.0, 8.5))
    # A hook of 4.5 s looks for the node first, and the machine has work with that for half a second.
    waits = (probes.due_s >= 2.0) & (probes.due_s < 2.5)
    probes.end_s[waits] = 2.5
    outages = find_outages(probes, 2.0, 10.0)
    assert [outage.failed > 0 for outage in outages] == [False, True]
    assert outage_of([outages], acted_s=6.5) == (outages[1], [(0, outages[0])])
    # What fails long after the action is another matter.
    assert outage_of([outages], acted_s=3.0) == (outages[0], [(0, outages[1])])


def test_of_several_endpoints_an_interruption_after_the_action_is_not_the_faults() -> None:
    failed, other = (find_outages(stalled(stall), 2.0, 10.0) for stall in ((2.0, 3.0), (7.0, 9.0)))
    assert outage_of([failed, other], acted_s=3.0) == (failed[0], [(1, other[0])])
    # Both by the fault: the role is back with the last of them.
    assert outage_of([failed, other], acted_s=8.0) == (other[0], [])
    # None by the action itself, which may only ask for something.
    assert outage_of([[], other], acted_s=3.0) == (other[0], [])
    assert outage_of([[], []], acted_s=3.0) == (None, [])


def test_what_was_before_the_fault_does_not_count() -> None:
    probes = planted(1.0, 1.5, "refuses")
    assert find_outages(probes, 2.0, 10.0) == []


def test_a_service_that_does_not_come_back_has_no_return() -> None:
    (found,) = find_outages(planted(4.0, 99.0, "refuses"), 4.0, 10.0)
    assert found.back_s is None


def test_samples_may_come_in_any_order() -> None:
    probes = planted(2.0, 3.0, "refuses")
    order = np.random.default_rng(1).permutation(len(probes.due_s))
    shuffled = RoleProbes.of(probes.due_s[order], probes.end_s[order], probes.ok[order])
    assert find_outages(shuffled, 2.0, 10.0) == find_outages(probes, 2.0, 10.0)


def course(*levels: tuple[float, float], interval: float = 0.1) -> Throughput:
    """Intervals of a load that has a level for some seconds each."""
    tps = np.concatenate([np.full(round(seconds / interval), level) for level, seconds in levels])
    starts = np.arange(len(tps)) * interval
    return Throughput.of(starts.tolist(), (starts + interval).tolist(), (tps * interval).tolist())


def recovered(
    throughput: Throughput, back_s: float, *, least: float = 950.0, hold_s: float = 2.0, window_s: float = 0.0
) -> float | None:
    served = throughput.means(window_s) >= least
    return recovered_at(throughput.start_s, served, back_s, hold_s, float(throughput.end_s[-1]))


@given(half_s=st.floats(min_value=0.5, max_value=6), away_s=st.floats(min_value=0, max_value=3))
def test_a_recovery_is_found_to_within_an_interval(half_s: float, away_s: float) -> None:
    throughput = course((1000, 5), (0, away_s), (500, half_s), (1000, 10))
    back = 5 + round(away_s / 0.1) * 0.1
    found = recovered(throughput, back)
    assert found is not None
    assert found - back == pytest.approx(half_s, abs=0.1 + 1e-6)


def test_a_throughput_that_never_fell_has_recovered_at_once() -> None:
    assert recovered(course((1000, 20)), 5.03) == 5.03


def test_a_short_peak_is_no_recovery() -> None:
    throughput = course((1000, 5), (500, 1), (1000, 0.5), (500, 2), (1000, 5))
    assert recovered(throughput, 5.0) == pytest.approx(8.5)


def test_a_throughput_that_does_not_come_back_has_no_recovery() -> None:
    assert recovered(course((1000, 5), (900, 10)), 5.0) is None


def test_a_measurement_that_ends_too_soon_proves_no_recovery() -> None:
    assert recovered(course((1000, 5), (0, 2), (1000, 1)), 7.0) is None


def test_a_mean_takes_whole_intervals_only() -> None:
    assert course((1000, 5), (0, 5)).mean(4.05, 6.05) == pytest.approx(450, abs=30)
    assert course((1000, 5)).mean(7, 9) == 0.0


def test_noise_within_the_window_is_no_absence() -> None:
    rough = [(900.0, 0.1), (1100.0, 0.1)] * 50
    throughput = course((1000, 5), (0, 2), *rough)
    assert recovered(throughput, 7.0) is None
    assert recovered(throughput, 7.0, window_s=1.0) == 7.0


@given(half_s=st.floats(min_value=1, max_value=6))
def test_a_recovery_over_a_window_is_found_to_within_it(half_s: float) -> None:
    throughput = course((1000, 5), (500, half_s), (1000, 10))
    found = recovered(throughput, 5.0, window_s=0.5)
    assert found is not None
    assert found - 5.0 == pytest.approx(half_s, abs=0.15)


def test_a_noisy_load_has_to_come_back_to_its_own_noise_and_not_to_its_mean() -> None:
    steady = course((1000, 5), (0, 2), (1000, 5))
    assert least_tps(steady, 0.0, 5.0, 0.5) == pytest.approx(950)
    # Half of the windows are far below 95 % of the mean, before the fault as after it.
    before, after = [(1150.0, 0.5), (850.0, 0.5)] * 7, [(1100.0, 0.5), (900.0, 0.5)] * 10
    rough = course(*before, (0, 2), *after)
    least = least_tps(rough, 0.0, 7.0, 0.5)
    assert least == pytest.approx(850, abs=1)
    assert recovered(rough, 9.0, least=950, window_s=0.5) is None
    assert recovered(rough, 9.0, least=least, window_s=0.5) == 9.0


def test_an_open_load_is_back_when_its_backlog_is_gone_and_its_latency_is_what_it_was() -> None:
    # 5 s as ever, 1 s away, 2.5 s in which the backlog drains while the TPS is that of the capacity, then as before.
    starts = np.arange(120, dtype=np.float64) * 0.1
    latency = [2.0 if start < 4.55 or start >= 8.45 else 900.0 for start in starts]
    backlog = np.where((starts >= 5.0) & (starts < 8.5), 300.0, 1.0)
    most_ms = most_latency_ms(latency, starts + 0.5 <= 5.0)
    assert most_ms == pytest.approx(2.0 / 0.95)
    served = served_as_before(latency, backlog, most_ms, 1000.0, 5)
    assert recovered_at(starts, served, 6.0, 2.0, 12.0) == pytest.approx(8.5)
    # The latency alone would do; and so would the backlog.
    for one in (
        served_as_before(latency, np.zeros(120), most_ms, 1000.0, 5),
        served_as_before([2.0] * 120, backlog, most_ms, 1000.0, 5),
    ):
        assert recovered_at(starts, one, 6.0, 2.0, 12.0) == pytest.approx(8.5)
    # Nothing that commits says nothing of its latency.
    silent: list[float | None] = [None if 6.0 <= start < 8.45 else 2.0 for start in starts]
    served = served_as_before(silent, np.zeros(120), most_ms, 1000.0, 5)
    assert recovered_at(starts, served, 6.0, 2.0, 12.0) == pytest.approx(8.5)
    assert not served_as_before([None] * 120, np.zeros(120), None, 0.0, 5).any()


def test_the_band_of_a_noisy_latency_is_as_much_wider_as_it_was_noisy() -> None:
    before = np.ones(9, np.bool_)
    assert most_latency_ms([10.0] * 4 + [14.0] + [10.0] * 4, before) == pytest.approx(14 * 1.4)
    assert most_latency_ms([None] * 9, before) is None
