"""Shares of patterns, and what is read off a time line of allocations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.errors import InputError
from nephoscope.evaluators.elasticity.allocations import AllocationTimeline, Answer
from nephoscope.evaluators.elasticity.patterns import PATTERNS, ParetoSettings, sessions
from nephoscope.scoring.prices import DEFAULT_PRICE_BOOK, load_price_book
from nephoscope.settings.resources import Resources
from nephoscope.study.reading import make_study
from sample_studies import sim_study

BOOK = load_price_book(DEFAULT_PRICE_BOOK)


def resources(vcores: float, nodes: int = 1) -> Resources:
    return Resources(nodes=nodes, vcores=vcores, memory_gb=2 * vcores, storage_gb=9)


def timeline(*steps: tuple[float, float]) -> AllocationTimeline:
    return AllocationTimeline([(at, resources(vcores)) for at, vcores in steps])


# --- patterns


def test_the_paper_s_patterns_at_its_tau_are_the_paper_s_numbers() -> None:
    assert {name: [sessions(share, 110) for share in shares] for name, shares in PATTERNS.items()} == {
        "single-peak": [0, 110, 0],
        "large-spike": [11, 88, 11],
        "single-valley": [44, 22, 44],
        "zero-valley": [55, 0, 55],
    }


def test_only_a_share_of_nothing_has_no_session() -> None:
    assert [sessions(share, 3) for share in (0.0, 0.01, 0.5, 1.0)] == [0, 1, 2, 3]


@given(st.integers(0, 2**63 - 1), st.integers(1, 20), st.floats(0.5, 10))
def test_drawn_shares_add_up_to_one_and_are_the_same_again(seed: int, slots: int, shape: float) -> None:
    drawn = ParetoSettings(seed=seed, slots=slots, shape=shape).shares()
    assert len(drawn) == slots
    assert math.fsum(drawn) == pytest.approx(1)
    assert drawn == ParetoSettings(seed=seed, slots=slots, shape=shape).shares()


def test_a_draw_follows_the_law_of_pareto() -> None:
    drawn = ParetoSettings(seed=3, slots=1000, shape=2.0).shares()
    least, ordered = min(drawn), sorted(drawn)
    # P(X > x) = (least / x) ** 2: the median is √2 times the least, and a hundredth is above 10 times.
    assert ordered[500] / least == pytest.approx(math.sqrt(2), rel=0.06)
    assert 3 <= sum(share > 10 * least for share in drawn) <= 20


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"patterns": ["two-peaks"]}, "measure.0.patterns.0: input should be 'single-peak', 'large-spike'"),
        ({"patterns": [{"name": "mine"}]}, "measure.0.patterns.0.shares: it is missing"),
        ({"patterns": [{"slots": 0}]}, "measure.0.patterns.0.slots: input should be greater"),
        ({"patterns": [{"slot": 2}]}, "there is no such key; allowed are slots, shape, seed"),
        ({"patterns": [{"name": "none", "shares": [0, 0]}]}, "a pattern needs a slot with a load"),
        ({"patterns": ["single-peak", "single-peak"]}, "the same twice"),
        ({"patterns": [{"seed": 1}, {"seed": 1, "slots": 4}]}, "two patterns have the same name"),
        ({"slot": 0}, "a slot needs a length above 0"),
        ({"window": "2m"}, "the window of 120 s is shorter than the pattern single-peak"),
        ({"tau": 0}, "measure.0.tau"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_study(sim_study({"evaluator": "elasticity", **settings}), "study")


# --- allocations


def test_a_time_line_holds_from_its_steps_on_and_before_the_first() -> None:
    line = timeline((10, 1), (20, 4), (25, 4), (30, 2))
    assert [line.vcores(at) for at in (0, 10, 19.9, 20, 29, 30, 99)] == [1, 1, 1, 4, 4, 2, 2]
    assert line.changes(0, 100) == [20, 30], "a step that changes nothing is none"
    assert (line.changes(20, 30), line.changes(20.1, 30)) == ([20], [])
    assert [(length, one.vcores) for length, one in line.pieces(15, 32)] == [(5, 1), (10, 4), (2, 2)]
    assert line.full == 4


def test_nodes_count_as_often_as_there_are() -> None:
    line = AllocationTimeline([(0, resources(2)), (5, resources(2, nodes=3))])
    assert (line.vcores(4), line.vcores(5), line.full) == (2, 6, 6)


def test_cost_is_that_of_cpu_and_memory_over_the_time() -> None:
    line = timeline((0, 1), (600, 3))
    assert BOOK.per_hour is not None
    per_hour = BOOK.per_hour.vcore + 2 * BOOK.per_hour.memory_gb
    assert line.cost(0, 1200, BOOK) == pytest.approx(per_hour * (1 * 600 + 3 * 600) / 3600)


def test_an_oscillation_is_a_turn() -> None:
    assert timeline((0, 1), (1, 2), (2, 4), (3, 8)).oscillations(0.5, 9) == 0
    assert timeline((0, 1), (1, 4), (2, 3), (3, 3.5)).oscillations(0.5, 9) == 2
    assert timeline((0, 1), (1, 4), (2, 3)).oscillations(1.5, 9) == 0


@given(
    st.lists(st.integers(0, 32).map(lambda quarters: quarters / 4), min_size=1, max_size=6),
    st.floats(0, 8),
    st.floats(0, 20),
    st.floats(0.1, 20),
)
def test_provisioning_is_within_its_bounds(
    vcores: list[float], demand: float, start: float, length: float
) -> None:
    line = timeline(*((3.0 * place, level) for place, level in enumerate(vcores)))
    found = line.provisioning(start, start + length, demand)
    assert 0 <= found.under_time + found.over_time <= 1 + 1e-9
    assert (found.over_area > 1e-6) <= (found.over_time > 0)
    balance = sum(seconds * (one.vcores - demand) for seconds, one in line.pieces(start, start + length))
    if line.full:
        areas = found.over_area - found.under_area
        assert areas == pytest.approx(balance / length / line.full, abs=1e-6)


# --- allocations that were asked for


def asked(
    *answers: tuple[float, float], changes: tuple[float, ...] = (), took: float = 0.1
) -> AllocationTimeline:
    return AllocationTimeline.asked(
        [Answer(at, at + took, resources(vcores)) for at, vcores in answers], changes
    )


def test_a_change_lies_between_the_last_question_of_before_and_the_answer_that_has_it() -> None:
    line = asked((0, 1), (1, 1), (2, 8), (3, 8), (7, 1))
    (up, down) = (line.last_step(0, 3), line.last_step(3, 9))
    assert up is not None
    assert down is not None
    assert (up.low_s, up.high_s, up.gap_s) == pytest.approx((1, 2.1, 1.1))
    assert up.time_s == pytest.approx(1.55)
    assert (down.low_s, down.high_s, down.gap_s) == pytest.approx((3, 7.1, 4.1))
    assert [line.vcores(at) for at in (1.5, 1.6, 5.0, 5.1)] == [1, 8, 8, 1]
    assert line.answers == 5


def test_what_may_have_come_before_or_after_a_change_of_load_follows_it() -> None:
    step = asked((0, 1), (1, 8), changes=(0.4,)).last_step(0.4, 9)
    assert step is not None
    assert (step.low_s, step.high_s, step.gap_s) == pytest.approx((0.4, 1.1, 1.1))


def test_the_gap_is_the_longest_within_a_stretch_and_up_to_its_end() -> None:
    line = asked((0, 1), (1, 1), (5, 1), (6, 1))
    assert [line.gap(*stretch) for stretch in ((0, 1), (5.5, 6), (0, 6), (5.5, 9))] == pytest.approx(
        [1.1, 1.1, 4.1, 3.0]
    )
    assert timeline((0, 1), (50, 2)).gap(0, 100) == 0, "of a provider with a time line of its own"


@given(st.lists(st.integers(1, 8), min_size=2, max_size=12), st.floats(0, 0.99))
def test_the_cost_lies_between_its_extremes_wherever_the_changes_were(
    levels: list[int], share: float
) -> None:
    line = asked(*((float(at), float(vcores)) for at, vcores in enumerate(levels)))
    end = len(levels) + 1.0
    least, most = (line.extreme(BOOK, dearest=dearest).cost(0, end, BOOK) for dearest in (False, True))
    # The truth: each change somewhere between the two readings, which are made when the question comes.
    truth = [(0.0, float(levels[0]))]
    truth += [(at - 1 + share, float(vcores)) for at, vcores in enumerate(levels) if at]
    assert least - 1e-12 <= timeline(*truth).cost(0, end, BOOK) <= most + 1e-12
    assert least - 1e-12 <= line.cost(0, end, BOOK) <= most + 1e-12
