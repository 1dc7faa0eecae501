"""Policies as functions: what they decide, and what holds of every one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephoscope.systems.cluster.scaling import Levels, PolicyName, Sample, Scaling

POLICIES = get_args(PolicyName)
QUARTERS = Levels(least=0.25, most=2.0, step=0.25)
EQUAL = pytest.approx

vcores = st.floats(0.01, 16).map(lambda value: round(value, 3))


def scaling(policy: str, levels: Levels = QUARTERS) -> Scaling:
    return Scaling(
        policy=policy,  # type: ignore[arg-type]
        levels=levels,
        scale_up=0.8,
        scale_down=0.4,
        step_time_s=10,
        pause_after_s=60,
    )


def sample(given: float, used: float, held_s: float = 1000.0, idle_s: float = 0.0) -> Sample:
    return Sample(given=given, used=used, held_s=held_s, idle_s=idle_s)


@st.composite
def levels(draw: Any) -> Levels:
    least = draw(vcores)
    return Levels(least=least, most=round(least + draw(st.floats(0, 8)), 3), step=draw(vcores))


@st.composite
def situations(draw: Any) -> tuple[Scaling, Sample]:
    """A policy, and a system that has one of its levels."""
    of = draw(levels())
    up = draw(st.floats(0.05, 1))
    one = Scaling(
        policy=draw(st.sampled_from(POLICIES)),
        levels=of,
        scale_up=up,
        scale_down=up * draw(st.floats(0, 0.99)),
        step_time_s=draw(st.floats(0, 100)),
        pause_after_s=draw(st.floats(0.1, 100)),
    )
    has = of.covering(of.least + draw(st.floats(0, 8)))
    used = draw(st.floats(0, 1.2)) * has
    return one, sample(has, used, draw(st.floats(0, 200)), draw(st.floats(0, 200)))


# --- levels


def test_levels_are_whole_steps_above_the_least_and_the_most() -> None:
    of = Levels(least=0.1, most=0.5, step=0.15)  # 0.1, 0.25, 0.4, 0.5
    assert [of.covering(value) for value in (0, 0.1, 0.11, 0.25, 0.3, 0.45, 9)] == EQUAL(
        [0.1, 0.1, 0.25, 0.25, 0.4, 0.5, 0.5]
    )
    assert [of.above(value) for value in (0.1, 0.25, 0.4, 0.5)] == EQUAL([0.25, 0.4, 0.5, 0.5])
    assert [of.below(value) for value in (0.5, 0.4, 0.25, 0.1)] == EQUAL([0.4, 0.25, 0.1, 0.1])


@given(levels(), st.floats(0, 30))
def test_a_level_covers_what_is_asked_for_and_is_the_least_that_does(of: Levels, wanted: float) -> None:
    level = of.covering(wanted)
    assert of.least <= level <= of.most
    assert level >= min(wanted, of.most) - 1e-6
    if level > of.least:
        assert of.below(level) < wanted + 1e-6
    assert of.above(level) == of.most or of.above(level) > level
    assert of.below(level) == of.least or of.below(level) < level


# --- each policy


@pytest.mark.parametrize("policy", ["immediate", "pause-and-resume"])
def test_immediate_doubles_where_it_is_full_and_fits_where_it_is_not(policy: str) -> None:
    one = scaling(policy)
    assert one.next(sample(0.5, 0.4)) == 1.0
    assert one.next(sample(0.25, 0.25, held_s=0.1)) == 0.5
    assert one.next(sample(1.5, 1.5)) == 2.0
    assert one.next(sample(1.0, 0.79)) == 1.0
    assert one.next(sample(1.0, 0.4)) == 1.0
    # 0.39 / 0.6 = 0.65: three quarters
    assert one.next(sample(1.0, 0.39)) == 0.75
    assert one.next(sample(2.0, 0.0, held_s=0.1)) == 0.25


def test_gradual_down_goes_up_at_once_and_down_by_a_step_for_each_step_time() -> None:
    one = scaling("gradual-down")
    assert one.next(sample(0.5, 0.5, held_s=0.0)) == 1.0
    assert one.next(sample(2.0, 0.0, held_s=9.9)) == 2.0
    assert one.next(sample(2.0, 0.0, held_s=10.0)) == 1.75
    assert one.next(sample(0.25, 0.0)) == 0.25


def test_stepwise_goes_one_step_either_way_for_each_step_time() -> None:
    one = scaling("stepwise")
    assert one.next(sample(0.5, 0.5, held_s=9.9)) == 0.5
    assert one.next(sample(0.5, 0.5, held_s=10.0)) == 0.75
    assert one.next(sample(2.0, 0.0, held_s=10.0)) == 1.75
    assert one.next(sample(2.0, 2.0)) == 2.0


def test_only_pause_and_resume_pauses_and_only_when_nobody_has_been_there_long_enough() -> None:
    for policy in POLICIES:
        lonely = scaling(policy).next(sample(1.0, 0.0, idle_s=60.0))
        assert (lonely == 0) == (policy == "pause-and-resume")
    assert scaling("pause-and-resume").next(sample(1.0, 0.7, idle_s=59.9)) == 1.0


# --- what holds of all


@given(situations())
def test_what_is_given_is_within_the_bounds_or_a_pause(situation: tuple[Scaling, Sample]) -> None:
    one, known = situation
    given_next = one.next(known)
    pauses = one.policy == "pause-and-resume" and known.idle_s >= one.pause_after_s
    assert given_next == 0 if pauses else one.levels.least <= given_next <= one.levels.most


@given(situations(), st.floats(0, 1))
def test_who_uses_more_is_never_given_less(situation: tuple[Scaling, Sample], share: float) -> None:
    one, known = situation
    assert one.next(replace(known, used=share * known.used)) <= one.next(known)


@given(situations())
def test_full_never_shrinks_and_empty_never_grows(situation: tuple[Scaling, Sample]) -> None:
    one, known = situation
    awake = replace(known, idle_s=0.0)
    assert one.next(replace(awake, used=awake.given)) >= awake.given
    assert one.next(replace(awake, used=0.0)) <= awake.given


@given(situations())
def test_small_steps_are_small_and_not_too_early(situation: tuple[Scaling, Sample]) -> None:
    one, known = situation
    change = one.next(known) - known.given
    if one.policy == "gradual-down":
        assert change >= -one.levels.step - 1e-6
        assert change >= 0 or known.held_s >= one.step_time_s - 1e-6
    if one.policy == "stepwise":
        assert abs(change) <= one.levels.step + 1e-6
        assert change == 0 or known.held_s >= one.step_time_s - 1e-6


@given(situations(), st.floats(0.01, 20))
@settings(max_examples=200)
def test_a_load_that_stays_the_same_is_followed_to_rest(
    situation: tuple[Scaling, Sample], demand: float
) -> None:
    """Each level is kept long enough, and the load uses what it wants and is let use: then it ends, and covers it."""
    one, known = situation
    wide = replace(one, scale_up=0.8, scale_down=0.2)
    has, seen = known.given, set()
    while has not in seen:
        seen.add(has)
        has = wide.next(sample(has, min(demand, has), held_s=1e9))
    assert has == wide.next(sample(has, min(demand, has), held_s=1e9)), "it does not swing"
    assert min(demand, has) < 0.8 * has or has == one.levels.most


@given(situations(), levels())
def test_bounds_that_have_changed_hold_at_once(situation: tuple[Scaling, Sample], other: Levels) -> None:
    one, known = situation
    awake = replace(known, idle_s=0.0)
    moved = replace(one, levels=other, policy="immediate")
    assert other.least <= moved.next(awake) <= other.most
