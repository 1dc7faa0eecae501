"""What is asked of a load over time: ramps, transitions of mix and access, changes by several threads."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.settings.courses import STEPS, LoadCourse, described, load_of, steps
from nephoscope.settings.loads import (
    HotspotAccess,
    LatestAccess,
    Load,
    RampSetting,
    UniformAccess,
    ZipfianAccess,
    mix_between,
    skew_between,
)

SHARES = st.floats(0, 1)
MIXES = st.dictionaries(st.sampled_from("abcd"), st.floats(0.01, 1000), min_size=1)


@given(MIXES, MIXES, SHARES)
def test_each_transactions_share_moves_in_a_straight_line(
    before: dict[str, float], after: dict[str, float], share: float
) -> None:
    moved = mix_between(before, after, share)
    assert sum(moved.values()) == pytest.approx(1)
    for name in {*before, *after}:
        old, new = (mix.get(name, 0) / sum(mix.values()) for mix in (before, after))
        assert moved[name] == pytest.approx(old + (new - old) * share)


def test_the_skew_moves_between_distributions_of_one_kind() -> None:
    assert skew_between(ZipfianAccess(theta=0.5), ZipfianAccess(theta=0.9), 0.25) == ZipfianAccess(theta=0.6)
    assert skew_between(UniformAccess(), ZipfianAccess(theta=0.8), 0.5) == ZipfianAccess(theta=0.4)
    assert skew_between(ZipfianAccess(theta=0.8), UniformAccess(), 1.0) == ZipfianAccess(theta=0.0)
    assert skew_between(LatestAccess(k=10), LatestAccess(k=20), 0.44) == LatestAccess(k=14)
    moved = skew_between(HotspotAccess(keys=0.2, accesses=0.8), HotspotAccess(keys=0.1, accesses=0.9), 0.5)
    assert moved.model_dump() == pytest.approx({"distribution": "hotspot", "keys": 0.15, "accesses": 0.85})
    with pytest.raises(ValueError, match="one kind"):
        skew_between(LatestAccess(k=10), ZipfianAccess(), 0.5)


def test_a_ramp_and_a_transition_are_asked_for_as_time_goes_by() -> None:
    course = LoadCourse()
    course.add(0.0, Load(rate=100.0, mix={"a": 1.0}, access=UniformAccess()))
    assert not course.moves
    ramp = RampSetting(**{"from": 100.0, "to": 300.0, "over": 4.0})
    course.add(10.0, Load(rate=ramp, mix={"b": 1.0}, access=ZipfianAccess(theta=0.8), transition=2.0))
    assert course.moves
    assert course.at(9.9).mix == {"a": 1.0}
    halfway = course.at(11.0)
    assert (halfway.rate, halfway.mix, halfway.access) == (
        150.0,
        {"a": 0.5, "b": 0.5},
        ZipfianAccess(theta=0.4),
    )
    after = course.at(15.0)
    assert (after.rate, after.mix) == (300.0, {"a": 0.0, "b": 1.0})
    # Told of late, as another thread may do: it lies before the ramp.
    course.add(5.0, Load(concurrency=4.0))
    assert (course.at(6.0).rate, course.at(6.0).concurrency) == (None, 4.0)
    assert course.at(12.0).rate == 200.0


def test_the_steps_of_a_transition_are_what_the_course_says() -> None:
    before = Load(rate=1.0, mix={"a": 3.0, "b": 1.0})
    load = Load(mix={"b": 1.0}, transition=8.0)
    course = LoadCourse()
    course.add(0.0, before)
    course.add(20.0, load)
    taken = list(steps(before, load))
    assert len(taken) == STEPS
    assert taken[-1][1].mix == {"a": 0.0, "b": 1.0}
    for (offset, step), (following, _) in itertools.pairwise(taken):
        assert step.mix == pytest.approx(course.at(20.0 + (offset + following) / 2).mix)
    with pytest.raises(ValueError, match="there is none"):
        list(steps(Load(), load))


def test_what_an_event_tells_of_a_load_is_read_as_that_load() -> None:
    load = Load(
        rate=RampSetting(**{"from": 1.0, "to": 2.0}),
        mix={"a": 1.0},
        access=ZipfianAccess(theta=0.7),
        transition=3.0,
    )
    read = load_of(described(load, 5.0))
    assert read.rate == RampSetting(**{"from": 1.0, "to": 2.0, "over": 5.0})
    assert (read.mix, read.access, read.transition) == (load.mix, load.access, load.transition)
    assert load_of({"access": {"distribution": "unheard of"}}) == Load()
