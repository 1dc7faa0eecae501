"""The highest rate within a latency limit: of a simulated queue whose law is known, and of planted runs."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from scipy.optimize import brentq

from commands import call
from nephoscope.results.scores import scores_of
from nephoscope.store import StoredRun
from sample_studies import Tables, sim_study, write_study
from stored_runs import Step, write_run

if TYPE_CHECKING:
    from pathlib import Path

SERVICE_S, LIMIT_S, PERCENTILE = 0.004, 0.020, 0.95


def slo(**settings: Any) -> Tables:
    brief = {"mixes": ["SELECT"], "limit": "20ms", "start": 64, "least": 32, "most": 512, "precision": 0.2}
    brief |= {"rest": "300ms", "warmup": "500ms", "duration": "3500ms", "repetitions": 2}
    return {"evaluator": "slo", **brief, **settings}


def within_limit(rate: float) -> float:
    """The share of arrivals that an M/D/1 queue serves within the limit.

    Crommelin (Post Office Electrical Engineers' Journal 25, 1932): the wait W for a service time D has
    P(W ≤ t) = (1 - λD) Σ (λ(kD - t))^k / k! · e^(-λ(kD - t)), over k from 0 to t / D.
    """
    wait_s = LIMIT_S - SERVICE_S
    each = [rate * (k * SERVICE_S - wait_s) for k in range(round(wait_s / SERVICE_S) + 1)]
    return (1 - rate * SERVICE_S) * math.fsum(
        x**k / math.factorial(k) * math.exp(-x) for k, x in enumerate(each)
    )


def highest_of(folder: Path) -> dict[str, Any]:
    scores = json.loads((folder / "scores.json").read_text())
    found: dict[str, Any] = scores["details"]["slo"]["0"]["mixes"]["SELECT"]
    return found


@pytest.mark.light
def test_the_interval_holds_the_rate_of_a_queue_whose_law_is_known(tmp_path: Path) -> None:
    truth = float(brentq(lambda rate: within_limit(rate) - PERCENTILE, 50, 240))
    measure = slo(percentile=PERCENTILE, start=80, least=40, duration="3s")
    planted = f"latency=constant({SERVICE_S * 1000:g}ms)&capacity=1"
    tables = sim_study(measure, planted=planted, load={"sessions": 64})
    ended = call("run", write_study(tmp_path, tables), "--out", tmp_path / "runs")
    assert (ended.code, ended.err) == (0, "")
    found = highest_of(tmp_path / "runs" / "latest")
    assert None not in (found["certainly_held"], found["certainly_not_held"]), found["rates"]
    assert found["certainly_held"] < truth < found["certainly_not_held"], found["rates"]
    assert found["ended"] == "narrowed"
    # A rate that held by chance is confirmed by chance once in a while.
    assert found["rate"] < 1.2 * truth
    for of in found["rates"]:
        if of["rate"] < truth:
            assert of["excused_share"] == pytest.approx(within_limit(of["rate"]), abs=0.04)
    for shown in ("The highest rate within a latency limit", "narrowed"):
        assert shown in ended.out
    page = (tmp_path / "runs" / "latest" / "report.html").read_text()
    assert 'id="slo"' in page
    assert "Latency p95 over the rate" in page


# --- planted runs


def step(rate: float, late_ms: float | None = None, **of: Any) -> Step:
    """Four seconds at a rate: of each second the last tenth is late, where that is given."""
    labels = {"mix": "SELECT", "concurrency": None, "rate": rate, "slo": "search", "search": True}
    count = round(rate / 10)
    latency = ([2.0] * 9 + [late_ms or 2.0]) * 4
    return Step({**labels, **of.pop("labels", {})}, [count] * 40, latency, **of)


def confirmed(rate: float, number: int, **of: Any) -> Step:
    labels = {"slo": "confirmation", "search": False, "repetition": number}
    return step(rate, labels=labels, **of)


COURSE = sim_study(slo(start=100, least=50, most=400))


def read(folder: Path, *steps: Step, study: Tables = COURSE) -> dict[str, Any]:
    scores = scores_of(StoredRun(write_run(folder, study, steps)))
    found: dict[str, Any] = scores["details"]["slo"]["0"]["mixes"]["SELECT"]
    return found


CONFIRMED = (confirmed(200, 1), confirmed(200, 2))


def test_rate_interval_and_ending_are_read_off_the_steps(tmp_path: Path) -> None:
    found = read(tmp_path, step(100), step(200), step(400, late_ms=50), *CONFIRMED)
    assert (found["rate"], found["ended"]) == (200, "narrowed")
    assert (found["certainly_held"], found["certainly_not_held"]) == (200, 400)
    assert (found["tps"], found["phases"]) == (200, [3, 4])
    assert [of["outcome"] for of in found["steps"]] == ["held", "held", "not held", "held", "held"]
    assert [of["share"] for of in found["rates"]] == [1.0, 1.0, 0.9]
    assert [of["percentile_ms"] for of in found["rates"]] == pytest.approx([2, 2, 50], rel=0.001)


def test_the_points_are_those_of_the_confirmed_rate(tmp_path: Path) -> None:
    folder = write_run(tmp_path, COURSE, [step(100), step(200), step(400, late_ms=50), *CONFIRMED])
    points = scores_of(StoredRun(folder))["points"]
    assert [(point["rate"], point["goodput"]) for point in points] == [(200, 200), (200, 200)]


@pytest.mark.parametrize(
    "kept", [{"failed_ms": [5.0] * 60}, {"unstarted_ms": [1.0] * 60}], ids=["failed", "unstarted"]
)
def test_overload_cannot_hide_behind_those_that_were_served(tmp_path: Path, kept: dict[str, Any]) -> None:
    found = read(tmp_path, step(100), step(200, **kept))
    assert found["steps"][1]["share"] == pytest.approx(800 / 860)
    assert found["steps"][1]["outcome"] == "not held"


def test_a_rate_whose_confirmation_failed_is_not_reported(tmp_path: Path) -> None:
    failed = confirmed(200, 2, failed_ms=[5.0] * 60)
    found = read(tmp_path, step(100), step(200), step(400, late_ms=50), confirmed(200, 1), failed)
    assert (found["rate"], found["tps"], found["latency_ms"]) == (None, None, None)
    assert found["why"] == "the run ended before a rate was confirmed"
    below = (confirmed(100, 1), confirmed(100, 2))
    again = read(tmp_path / "again", step(100), step(200), confirmed(200, 1), failed, *below)
    assert (again["rate"], again["certainly_held"]) == (100, 100)


def test_both_bounds_are_told_where_the_search_ended_at_one(tmp_path: Path) -> None:
    highest = read(tmp_path / "most", step(400), confirmed(400, 1), confirmed(400, 2))
    assert (highest["rate"], highest["ended"], highest["certainly_not_held"]) == (400, "most", None)
    lowest = read(tmp_path / "least", step(100, late_ms=50), step(50, late_ms=50))
    assert (lowest["rate"], lowest["ended"], lowest["certainly_held"]) == (None, "least", None)
    assert lowest["certainly_not_held"] == 50
    assert "nothing held" in call("report", tmp_path / "least").out


def test_the_page_begins_with_the_confirmed_rate(tmp_path: Path) -> None:
    below = (confirmed(100, 1), confirmed(100, 2))
    steps = (step(100), step(200), confirmed(200, 1), confirmed(200, 2, failed_ms=[5.0] * 60), *below)
    page = (write_run(tmp_path, COURSE, steps) / "report.html").read_text()
    head = page[: page.index('id="verdicts"')]
    assert "SELECT · 100 per s" in head
    assert "200 per s" not in head


def test_a_system_that_changed_has_no_interval(tmp_path: Path) -> None:
    found = read(tmp_path, step(100, late_ms=50), step(200), *CONFIRMED)
    assert (found["certainly_held"], found["certainly_not_held"]) == (None, None)


def test_tables_have_the_rate_and_the_steps(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", COURSE, [step(100), step(200), step(400, late_ms=50), *CONFIRMED])
    ended = call("report", run, "--format", "markdown", "--tables", tmp_path / "tables")
    assert "| SELECT | 20 ms | 99 % | 200 | 200 … 400 |" in ended.out
    assert "| SELECT | 400 | search | 400 | 1,600 | 90.00" in ended.out
    rows = (tmp_path / "tables" / "slo_steps.csv").read_text().splitlines()
    assert len(rows) == 6
    page = (run / "report.html").read_text()
    assert "SELECT 200/s (certainly at 200/s, certainly not at 400/s)" in page
    assert '"dash":"dashed"' in page.replace(" ", "")


WRONG = {
    "start=5000": "start (5000) must lie between least (32) and most (512)",
    "limit=0": "limit: a latency bound must be above 0; it is 0",
    "limit='5s'": "duration must be longer than limit",
    "percentile=0.999": "a phase at the rate least has 112 arrivals, and percentile 0.999 takes 1000 at the least:"
    " duration must be 31.25s or longer, or least higher",
    "precision=0.001": "precision: input should be greater than or equal to 0.01; it is 0.001",
}


@pytest.mark.parametrize("setting", WRONG)
def test_wrong_settings_are_refused(tmp_path: Path, setting: str) -> None:
    ended = call("run", write_study(tmp_path, sim_study(slo())), "--set", f"measure.0.{setting}")
    assert ended.code == 2
    assert WRONG[setting] in " ".join(ended.err.split())
