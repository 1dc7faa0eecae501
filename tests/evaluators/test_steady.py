"""How to measure a load, read from planted repetitions, and from those of a simulated system."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from nephoscope.results.scores import scores_of
from nephoscope.store import StoredRun
from sample_studies import Tables, sim_study, write_study
from stored_runs import INTERVAL_S, Step, write_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

INTERVALS, WARM_UP = 200, 40


def steady(**settings: Any) -> Tables:
    brief = {"mixes": ["SELECT"], "concurrency": 2, "rest": "1s", "repetitions": 6, "precision": 0.02}
    return {"evaluator": "steady", **brief, "duration": f"{INTERVALS * INTERVAL_S:g}s", **settings}


def planted(folder: Path, *, between: float, repetitions: int = 6) -> StoredRun:
    """Plant repetitions whose TPS is half of the later one for the first 40 intervals, and scatters by 2 %."""
    chance = random.Random(7)  # noqa: S311 - no secret is drawn
    steps = []
    for repetition in range(1, repetitions + 1):
        level = 1000 * INTERVAL_S * (1 + chance.gauss(0, between))
        rise = [0.5 if at < WARM_UP else 1.0 for at in range(INTERVALS)]
        counts = [round(level * share * chance.gauss(1, 0.02)) for share in rise]
        labels = {"mix": "SELECT", "concurrency": 2, "repetition": repetition, "search": True}
        steps.append(Step(labels, counts, [2.0] * INTERVALS))
    return StoredRun(write_run(folder, sim_study(steady(repetitions=repetitions)), steps))


def plan_in(scores: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = scores["details"]["steady"]["0"]["mixes"]["SELECT"]
    return found


def test_planted_warm_up_and_differences_are_read_back(tmp_path: Path) -> None:
    run = planted(tmp_path / "run", between=0.03)
    scores = scores_of(run)
    plan = plan_in(scores)
    assert plan["warm_up_s"] == pytest.approx(WARM_UP * INTERVAL_S)
    assert plan["measured"] == 6
    assert 0.01 < plan["between"] < 0.08
    assert plan["within"] == pytest.approx(0.02 / (INTERVALS - WARM_UP) ** 0.5, rel=0.5)
    assert plan["window_s"] < (INTERVALS - WARM_UP) * INTERVAL_S, "repetitions differ: more of them tell more"
    assert plan["repetitions"] > 6
    assert plan["repetitions_at_most"] is None or plan["repetitions_at_most"] > plan["repetitions"]
    assert scores["points"] == [], "the warm-up is in each phase"
    page = (run.folder / "report.html").read_text()
    assert "How to measure this load" in page
    assert "TPS of SELECT since a cold start" in page


def test_without_a_difference_two_whole_windows_are_enough(tmp_path: Path) -> None:
    plan = plan_in(scores_of(planted(tmp_path / "run", between=0.0)))
    assert plan["repetitions"] in (2, 3)
    assert plan["between"] < 0.005


def test_one_repetition_is_no_plan(tmp_path: Path) -> None:
    scores = scores_of(planted(tmp_path / "run", between=0.0, repetitions=6))
    assert scores["warnings"] == []
    folder = tmp_path / "one"
    step = Step({"mix": "SELECT", "concurrency": 2, "search": True}, [100] * INTERVALS, [2.0] * INTERVALS)
    scores = scores_of(StoredRun(write_run(folder, sim_study(steady()), [step])))
    assert "steady: SELECT has no two repetitions with commits that count" in scores["warnings"]


def test_a_simulated_system_is_measured(tmp_path: Path) -> None:
    study = sim_study(steady(duration="3s", rest="200ms", repetitions=2), planted="latency=constant(5ms)")
    ended = call("run", write_study(tmp_path, study), "--out", tmp_path / "runs")
    assert ended.code == 0, ended.err
    assert "warm-up" in ended.out
    plan = plan_in(scores_of(StoredRun(tmp_path / "runs" / "latest")))
    assert plan["measured"] == 2
    # Two sessions of 5 ms each; a busy machine has fewer.
    assert 0 < plan["tps"] < 410


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("repetitions=1", "greater than or equal to 2"),
        ("precision=0", "greater than or equal to 0.001"),
        ("duration=0", "above 0"),
    ],
)
def test_what_cannot_be_measured_is_refused(tmp_path: Path, key: str, said: str) -> None:
    study = write_study(tmp_path, sim_study(steady()))
    ended = call("run", study, "--out", tmp_path / "runs", "--set", f"measure.0.{key}")
    assert ended.code == 2
    assert said in ended.err
