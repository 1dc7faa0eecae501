"""Schedules of failures, and the executors that do them: laws, scripts, and a provider that keeps a diary."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.errors import InputError, MeasurementError
from nephoscope.evaluators.availability.settings import AvailabilitySettings
from nephoscope.evaluators.executors import Executors
from nephoscope.evaluators.schedule import PlannedFailure, length, planned, uniform
from nephoscope.settings.actions import Action
from nephoscope.settings.failures import TimeLaw
from nephoscope.study.reading import make_study
from nephoscope.systems.base import Done
from sample_studies import sim_study


def settings(**of: Any) -> AvailabilitySettings:
    return AvailabilitySettings.model_validate({"duration": "100s", **of})


LAWS = st.one_of(
    st.fixed_dictionaries({"law": st.just("exponential"), "mean": st.floats(1, 50)}),
    st.fixed_dictionaries({"law": st.just("constant"), "mean": st.floats(1, 50)}),
    st.fixed_dictionaries({"law": st.just("weibull"), "mean": st.floats(1, 50), "shape": st.floats(0.3, 5)}),
)


@given(LAWS, LAWS, st.integers(0, 2**62), st.integers(1, 9))
def test_a_drawn_schedule_is_in_order_and_no_target_fails_while_it_is_down(
    mttf: dict[str, Any], mttr: dict[str, Any], seed: int, repetition: int
) -> None:
    of = settings(mttf=mttf, mttr=mttr, seed=seed, targets=["rw", "ro"])
    found = planned(of, repetition)
    assert found == planned(of, repetition), "the same settings and seed give the same failures"
    assert [failure.at_s for failure in found] == sorted(failure.at_s for failure in found)
    for target in ("rw", "ro"):
        of_target = [failure for failure in found if failure.target == target]
        end_s = 0.0
        for failure in of_target:
            assert failure.for_s is not None
            assert failure.up_s is not None
            assert end_s <= failure.at_s < of.duration
            assert failure.at_s == pytest.approx(end_s + failure.up_s)
            end_s = failure.at_s + failure.for_s


@given(st.integers(0, 2**62))
def test_repetitions_targets_and_seeds_have_draws_of_their_own(seed: int) -> None:
    of = settings(mttf=5, mttr=1, seed=seed, targets=["rw", "ro"])
    times = [failure.at_s for repetition in (1, 2) for failure in planned(of, repetition)]
    times += [failure.at_s for failure in planned(settings(mttf=5, mttr=1, seed=seed + 1), 1)]
    assert len(set(times)) == len(times)


@pytest.mark.parametrize(
    ("law", "deviation"),
    [
        (TimeLaw(mean=20.0), 20.0),
        (TimeLaw(law="constant", mean=20.0), 0.0),
        (TimeLaw(law="weibull", mean=20.0, shape=1.0), 20.0),
        (TimeLaw(law="weibull", mean=20.0, shape=0.7), 20.0 * 1.462),
        (TimeLaw(law="weibull", mean=20.0, shape=3.0), 20.0 * 0.363),
    ],
)
def test_times_have_the_mean_and_the_spread_of_their_law(law: TimeLaw, deviation: float) -> None:
    draw = uniform((1, 2, 3))
    times = np.array([length(law, draw()) for _ in range(20_000)])
    assert times.min() >= 0
    assert times.mean() == pytest.approx(20.0, abs=4 * deviation / math.sqrt(len(times)) + 1e-9)
    assert times.std() == pytest.approx(deviation, rel=0.06, abs=1e-9)


def test_a_draw_is_the_same_on_every_machine() -> None:
    times = [failure.at_s for failure in planned(settings(mttf=30, mttr=2), 1)]
    assert times == pytest.approx([12.098283, 35.247153, 84.48114, 86.913352])


def test_a_script_is_done_as_it_stands() -> None:
    script = [
        {"at": "30s", "fault": "restart", "target": "node2"},
        {"at": 10, "for": "2s"},
        {"at": 30, "for": 1},
    ]
    assert planned(settings(script=script), 3) == [
        PlannedFailure(10.0, "kill", "rw", 2.0),
        PlannedFailure(30.0, "restart", "node2", None),
        PlannedFailure(30.0, "kill", "rw", 1.0),
    ]
    assert planned(settings(), 1) == [], "what happens by itself is measured"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"script": [{"at": 1}], "mttf": 3}, "script and mttf exclude each other"),
        ({"mttr": 3}, "mttr goes with mttf"),
        ({"fault": "restart", "mttf": 3, "mttr": 1}, "mttr: a restart has no repair that could wait"),
        ({"fault": "pause", "mttf": 3}, "mttr is missing: how long the pause lasts"),
        ({"script": [{"at": 1, "fault": "pause"}]}, "script.0.for is missing"),
        ({"script": [{"at": 1, "fault": "promote", "for": 1}]}, "script.0.for: a promote has no repair"),
        ({"script": [{"at": 60}]}, "script: a failure at 60 s; the duration is 60 s"),
        (
            {"script": [{"at": 5, "for": 3}, {"at": 8}]},
            "script: rw fails at 8 s, and its failure before that lasts until 8 s",
        ),
        ({"mttf": 0}, "mttf.mean: a mean time must be above 0"),
        ({"mttf": "1ms"}, "more than 1,000 failures are expected"),
        ({"mttf": {"law": "weibull", "mean": 3}}, "shape goes with the law weibull"),
        ({"mttf": {"mean": 3, "shape": 2}}, "shape goes with the law weibull"),
        ({"targets": ["a b"]}, "targets.0: string should match pattern"),
        ({"targets": []}, "targets: it needs at least one entry"),
        ({"duration": 0}, "duration and action_limit must be above 0"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_touched(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        make_study(sim_study({"evaluator": "availability", "mix": "SELECT", **wrong}), "study")
    assert message in str(refused.value)


# --- the executors ------------------------------------------------------------------------------------------------


class Diary:
    """A load on a clock of its own, and a provider whose actions take time on it; both keep what was done."""

    def __init__(self, took_s: float = 0.0, fails: Action | None = None) -> None:
        self.elapsed = 0.0
        self.end = None
        self.origin_ns = 0
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.done: list[tuple[float, str, str | None]] = []
        self._took_s = took_s
        self._fails = fails

    def pump_until(self, moment: float) -> None:
        self.elapsed = max(self.elapsed, moment)

    def pump_for(self, seconds: float) -> None:
        time.sleep(min(seconds, 0.001))

    def note(self, event: str, time_ns: int | None = None, **facts: Any) -> None:
        del time_ns
        self.notes.append((event, facts))

    def nodes(self) -> dict[str, str]:
        return {"node1": "rw", "node2": "ro"}

    def actions(self) -> frozenset[Action]:
        return frozenset(Action)

    def cancel(self) -> None: ...

    def act(self, action: Action, *, node: str | None = None) -> Done:
        if action is self._fails:
            raise MeasurementError(f"{action} does not work")
        self.done.append((round(self.elapsed, 6), str(action), node))
        self.elapsed += self._took_s
        return Done(action=action, node=node, began_ns=0, ended_ns=0)


def execute(diary: Diary, failures: list[PlannedFailure], end_s: float = 100.0) -> Executors:
    means: Any = SimpleNamespace(load=diary, provider=diary, system=None)
    executors = Executors(means, {"measure": 0, "repetition": 1}, 60.0)
    executors.run(failures, 0.0, end_s)
    return executors


def test_failures_and_repairs_are_done_at_their_times() -> None:
    diary = Diary()
    failures = [
        PlannedFailure(1.0, "kill", "rw", 4.0),
        PlannedFailure(2.0, "pause", "ro", 1.0),
        PlannedFailure(7.0, "crash", "rw", None),
    ]
    execute(diary, failures)
    assert diary.done == [
        (1.0, "kill", "node1"),
        (2.0, "pause", "node2"),
        (3.0, "resume", "node2"),
        (5.0, "start", "node1"),
        (7.0, "kill", "node1"),
        (7.0, "promote", None),
    ]
    events = [(event, facts["failure"], facts.get("due_s")) for event, facts in diary.notes]
    assert events == [("fault", 0, 1.0), ("fault", 1, 2.0), ("action", 1, None), ("action", 0, None),
                      ("fault", 2, 7.0), ("action", 2, None)]  # fmt: skip


def test_a_drawn_failure_comes_so_long_after_the_repair_whatever_that_took() -> None:
    diary = Diary(took_s=0.5)
    execute(
        diary, [PlannedFailure(at, "kill", "rw", 1.0, up) for at, up in ((2.0, 2.0), (5.0, 2.0), (8.0, 2.0))]
    )
    assert [at for at, action, _ in diary.done if action == "kill"] == [2.0, 5.5, 9.0]
    ends = [at + 0.5 for at, action, _ in diary.done if action == "start"]
    starts = [at for at, action, _ in diary.done if action == "kill"]
    assert [later - end for end, later in zip(ends, starts[1:], strict=False)] == pytest.approx([2.0, 2.0])
    assert all(later > earlier for earlier, later in pairwise(starts))


def test_what_is_down_at_the_end_is_brought_back() -> None:
    diary = Diary()
    failures = [
        PlannedFailure(1.0, "kill", "rw", 50.0),
        PlannedFailure(2.0, "node-loss", "ro", None),
        PlannedFailure(20.0, "kill", "rw", 1.0),
    ]
    executors = execute(diary, failures, end_s=10.0)
    assert [action for _, action, _ in diary.done] == ["kill", "kill"]
    executors.restore()
    assert [entry[1:] for entry in diary.done[2:]] == [("start", "node1"), ("start", "node2")]


def test_a_node_that_is_down_does_not_fail_again() -> None:
    diary = Diary()
    execute(diary, [PlannedFailure(1.0, "kill", "rw", 5.0), PlannedFailure(2.0, "kill", "node1", 1.0)])
    assert [action for _, action, _ in diary.done] == ["kill", "start"]
    assert [event for event, _ in diary.notes] == ["fault", "failure_skipped", "action"]


def test_an_action_that_fails_ends_the_run_and_what_is_down_is_brought_back() -> None:
    diary = Diary(fails=Action.PAUSE)
    with pytest.raises(MeasurementError, match="pause does not work"):
        execute(diary, [PlannedFailure(1.0, "kill", "rw", 5.0), PlannedFailure(2.0, "pause", "ro", 1.0)])
    assert [entry[1:] for entry in diary.done] == [("kill", "node1"), ("start", "node1"), ("resume", "node2")]
    assert ("fault_failed", "pause does not work") in [
        (event, facts.get("message")) for event, facts in diary.notes
    ]


def test_a_node_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(
        MeasurementError, match="there is no node 'node9' that could fail; nodes are node1, node2"
    ):
        execute(Diary(), [PlannedFailure(1.0, "kill", "node9", None)])
