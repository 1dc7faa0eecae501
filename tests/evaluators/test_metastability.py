"""Whether goodput returns after a trigger: of planted courses, and of a simulated queue that retries keep full."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import call
from nephoscope.evaluators.metastability.goodput import Interval, Part, judged
from nephoscope.evaluators.metastability.settings import MetastabilitySettings
from sample_studies import sim_study, write_study

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STEP_S = 0.1
RATE = 100
BEFORE, TRIGGER, PATIENCE = 20, 10, 60
"""Intervals."""


def course(first: int, shares: Sequence[float], *, retries: int = 0, lag_s: float = 0.0) -> list[Interval]:
    """Intervals of ten arrivals each, of which a share is good."""
    due = round(RATE * STEP_S)
    return [
        Interval(
            (first + place) * STEP_S,
            (first + place + 1) * STEP_S,
            due,
            round(due * share),
            due,
            retries * due,
            lag_s,
        )
        for place, share in enumerate(shares)
    ]


def step(after: Sequence[float], before: float = 1.0, **of: Any) -> dict[Part, list[Interval]]:
    return {
        "before": course(0, [before] * BEFORE, lag_s=of.get("lag_before_s", 0.0)),
        "trigger": course(BEFORE, [0.0] * TRIGGER),
        "after": course(
            BEFORE + TRIGGER, after, retries=of.get("retries", 0), lag_s=of.get("lag_after_s", 0.0)
        ),
    }


OVER_S = (BEFORE + TRIGGER) * STEP_S


def judge(parts: dict[Part, list[Interval]], over_s: float = OVER_S, **settings: Any) -> Any:
    return judged(parts, over_s, MetastabilitySettings(limit=0.5, **settings))


@given(st.integers(0, PATIENCE - 20))
def test_the_time_of_the_return_is_read_back(down: int) -> None:
    found = judge(step([0.0] * down + [1.0] * (PATIENCE - down)))
    assert found.outcome == "returned"
    assert found.returned_s == pytest.approx(down * STEP_S, abs=STEP_S + 1e-9)


def test_a_short_return_is_none() -> None:
    blinks = ([0.0] * 15 + [1.0] * 5) * 3
    found = judge(step(blinks, retries=3))
    assert (found.outcome, found.returned_s) == ("stayed down", None)
    assert (found.before, found.during) == (1.0, 0.0)
    assert found.after == pytest.approx(0.33, abs=0.04)
    assert (found.attempts_before, found.attempts_after) == (1.0, 4.0)


def test_a_return_that_does_not_last_is_none() -> None:
    assert judge(step([1.0] * 15 + [0.0] * 45)).outcome == "stayed down"


def test_what_was_not_there_before_shows_nothing() -> None:
    assert judge(step([1.0] * PATIENCE, before=0.5)).outcome == "too much before"
    assert judge(step([1.0] * PATIENCE, before=0.5, lag_before_s=0.6)).outcome == "not known"


def test_the_lateness_of_the_client_is_not_the_system() -> None:
    assert judge(step([0.0] * PATIENCE, lag_after_s=0.6)).outcome == "not known"
    assert judge(step([1.0] * PATIENCE, lag_after_s=0.6)).outcome == "returned"


def test_time_counts_from_the_end_of_a_trigger_that_took_longer() -> None:
    late = judge(step([0.0] * 20 + [1.0] * 40), over_s=OVER_S + 1.5)
    assert late.returned_s == pytest.approx(0.5, abs=STEP_S + 1e-9)


@given(st.lists(st.floats(0, 1), max_size=PATIENCE), st.floats(0, 1), st.floats(0, 8))
def test_any_course_has_an_outcome(after: list[float], before: float, over_s: float) -> None:
    found = judge(step(after, before), over_s)
    assert (found.outcome == "returned") == (found.returned_s is not None)


@pytest.mark.light
def test_retries_keep_a_queue_full_that_empties_without_them(tmp_path: Path) -> None:
    """400/s are served: 4 attempts of each of 200/s are twice that, 4 of each of 50/s half of it."""
    measure: dict[str, Any] = {
        "evaluator": "metastability",
        "mix": "SELECT",
        "limit": "100ms",
        "arrivals": "constant",
        "start": 50,
        "least": 50,
        "most": 200,
        "precision": 1.0,
        "trigger": "surge",
        "surge": 12,
        "length": "250ms",
        "rest": "2500ms",
        "warmup": "300ms",
        "before": "600ms",
        "hold": "500ms",
        "patience": "3s",
        "policies": {
            "four": {"attempts": 4, "backoff": 0, "classes": ["statement_timeout", "connection_lost"]}
        },
    }
    load = {"interval": "100ms", "sessions": 400, "statement_timeout": "100ms"}
    tables = sim_study(measure, planted="latency=constant(10ms)&capacity=4", load=load)
    ended = call("run", write_study(tmp_path, tables), "--out", tmp_path / "runs")
    assert (ended.code, ended.err) == (0, "")
    folder = tmp_path / "runs" / "latest"
    scores = json.loads((folder / "scores.json").read_text())
    found = scores["details"]["metastability"]["0"]["policies"]["four"]
    assert 50 <= found["rate"] <= 100, found["steps"]
    assert found["rate"] < found["beyond"] <= 200
    assert found["beyond_outcome"] == "stayed down"
    down = next(of for of in found["steps"] if of["outcome"] == "stayed down")
    assert down["after"] < 0.5
    assert down["attempts_after"] > 2
    assert "Whether goodput returns after a trigger" in ended.out
    page = (folder / "report.html").read_text()
    assert 'id="metastability"' in page
    assert "it stays down for 3 s and more, a rate that was served before" in page


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"patience": "1s"}, "patience must be twice hold or more, 2s"),
        ({"length": "0s"}, "before, length, hold and action_limit must be above 0"),
        (
            {"least": 3, "before": "5s"},
            "before has 15 arrivals at the rate least, and it takes 20: before must be 6.667s",
        ),
        ({"start": 5}, "start (5) must lie between least (10) and most (100000)"),
        ({"policies": {"two": {"attempts": 0}}}, "measure.0.policies.two.attempts"),
        ({"trigger": "flood"}, "measure.0.trigger"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    measure = {"evaluator": "metastability", "mix": "SELECT", **settings}
    ended = call("run", write_study(tmp_path, sim_study(measure)), "--out", tmp_path / "runs")
    assert ended.code == 2
    assert message in ended.err
    assert not (tmp_path / "runs").exists()
