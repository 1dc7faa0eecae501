"""From what the evaluators found to the eight scores of ``scores.json``: O, its floors and weights, actual prices."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from nephoscope.evaluators.base import Measurements
from nephoscope.results.scores import perfect, scores_of
from nephoscope.scoring.definitions import DEFINITIONS, PERFECT
from nephoscope.scoring.formulas import Absent, Score
from nephoscope.scoring.prices import bill, cost, load_price_book
from nephoscope.settings.resources import Resources
from nephoscope.store import StoredRun
from nephoscope.study.reading import make_study
from sample_studies import RESOURCES, Tables, sim_study, throughput, write_study

if TYPE_CHECKING:
    from pathlib import Path

    from nephoscope.scoring.definitions import PerfectName, ScoreName

VALUES: dict[PerfectName, float] = {
    "P": 4e5, "E1": 9e6, "R": 0.5, "F": 0.25, "E2": 3.0, "C": 0.004, "T": 1e5
}  # fmt: skip


def score(name: PerfectName, value: float, **detail: float) -> Score:
    return Score(value=value, unit=DEFINITIONS[name].unit, ci95=(value, value), repetitions=3, detail=detail)


def scored(study: Tables | None = None, **changed: Score | Absent) -> Score | Absent:
    found: dict[ScoreName, Score | Absent] = {name: score(name, value) for name, value in VALUES.items()}
    for name in PERFECT:
        found[name] = changed.get(name, found[name])
    parts = [Measurements(scores={name: one}) for name, one in found.items()]
    tables = sim_study(throughput(), workload={"scale": 2}) | (study or {})
    return perfect(parts, make_study(tables, "test"))["O"]


def expected(**changed: float) -> float:
    of = {str(name): value for name, value in VALUES.items()} | changed
    quotient = of["P"] * of["T"] * of["E1"] * of["E2"] / (of["R"] * of["F"] * of["C"])
    return 2 * math.log10(quotient)


def test_o_is_the_formula_over_what_the_evaluators_found() -> None:
    overall = scored()
    assert isinstance(overall, Score)
    assert overall.value == pytest.approx(expected())
    assert overall.detail["floored"] == {}


def test_a_time_of_zero_counts_as_what_its_evaluator_can_tell_apart() -> None:
    overall = scored(R=score("R", 0.0, resolution_s=0.1), C=score("C", 0.0))
    assert isinstance(overall, Score)
    assert overall.value == pytest.approx(expected(R=0.1, C=1e-6))
    assert overall.detail["floored"] == {"R": 0.1, "C": 1e-6}


def test_a_time_below_its_resolution_leaves_o_open_down_to_a_microsecond() -> None:
    known = {"value": 0.25, "ci95": (0.0, 0.5), "detail": {"resolution_s": 0.5}}
    overall = scored(R=score("R", 0.25).model_copy(update=known))
    assert isinstance(overall, Score)
    assert overall.detail["floored"] == {"R": 0.5}
    assert overall.value == pytest.approx(expected(R=0.5))
    # Every R from half a second down is in it.
    assert overall.ci95 == pytest.approx((expected(R=0.5), expected(R=1e-6)))


def test_weights_are_exponents() -> None:
    overall = scored({"score": {"weights": {"P": 2, "R": 0}}})
    assert isinstance(overall, Score)
    assert overall.value == pytest.approx(expected(R=1.0, P=VALUES["P"] ** 2))


def test_what_is_absent_makes_o_absent_and_a_later_evaluator_may_fill_it() -> None:
    overall = scored(E2=Absent(reason="no node"), C=Absent(reason="no replica"))
    assert overall == Absent(reason="it needs every score, and E2, C are absent")
    assert scored(R=Absent(reason="no fault")) == Absent(reason="it needs every score, and R is absent")
    parts = [
        Measurements(scores={"P": Absent(reason="a course of load")}),
        Measurements(scores={"P": score("P", 7.0)}),
        Measurements(scores={"P": score("P", 8.0)}),
    ]
    found = perfect(parts, make_study(sim_study(), "test"))
    assert isinstance(found["P"], Score)
    assert found["P"].value == 7.0
    assert [name for name in PERFECT if isinstance(found[name], Absent)] == [*PERFECT[1:]]


# --- by the prices that are really paid


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("starred")
    elasticity = {"evaluator": "elasticity", "patterns": ["single-peak"], "mixes": ["SELECT"], "tau": 2}
    elasticity |= {"slot": "300ms", "rest": "0s", "watch": "0s", "window": "20s"}
    tenancy: Tables = {
        "evaluator": "tenancy",
        "mix": "SELECT",
        "patterns": [],
        "custom": {"both": [[1], [1]]},
    }
    tenancy |= {"slot": "500ms", "warmup": "100ms", "alone": False}
    study = sim_study(throughput(), elasticity, tenancy)
    study |= {
        "cost": {"starred": "example-minimum-billing", "held": "1m"},
        "tenants": {"number": 2, "share": "schema"},
    }
    ended = call("run", write_study(folder, study), "--out", folder / "runs")
    assert (ended.code, ended.err) == (0, "")
    run = folder / "runs" / "latest"
    scores: dict[str, Any] = json.loads((run / "scores.json").read_text())
    # Wherever the scores are shown, these are, too.
    assert "P*" in ended.out
    assert "by the price book example-minimum-billing" in (run / "report.html").read_text()
    assert "| P\\* |" in call("report", run, "--format", "markdown").out
    return scores


def test_starred_scores_are_by_the_bill(measured: dict[str, Any]) -> None:
    resources = Resources.model_validate(RESOURCES)
    book = load_price_book("example-minimum-billing")
    dearer = bill(resources, book, 60).per_minute / cost(resources, book).per_minute
    assert dearer > 5
    starred, plain = measured["starred"]["scores"], measured["scores"]
    assert starred["P"]["value"] == pytest.approx(plain["P"]["value"] / dearer)
    assert starred["T"]["value"] == pytest.approx(plain["T"]["value"] / dearer)
    # Cores, memory and IOPS are billed for ten minutes at the least, and the window was 20 s.
    assert starred["E1"]["value"] == pytest.approx(plain["E1"]["value"] / 30)
    assert measured["starred"]["price_book"] == "example-minimum-billing"
    assert measured["starred"]["held_s"] == 60
    assert measured["starred"]["absent"] == {"O": measured["absent"]["O"]}


def starred_study(**usage: float) -> Tables:
    elasticity = {"evaluator": "elasticity", "patterns": ["single-peak"], "mixes": ["SELECT"], "tau": 2}
    elasticity |= {"slot": "300ms", "rest": "0s", "watch": "0s", "window": "20s"}
    cost = {"held": "5m", "starred": "aws-rds-postgresql-us-east-1", "usage": usage}
    return sim_study(throughput(duration="300ms"), elasticity) | {"cost": cost}


def test_starred_scores_by_a_vendors_prices(tmp_path: Path) -> None:
    study = write_study(tmp_path, starred_study(transfer_gb_per_hour=6))
    ended = call("run", study, "--out", tmp_path / "runs")
    assert (ended.code, ended.err) == (0, "")
    run = tmp_path / "runs" / "latest"
    scores = json.loads((run / "scores.json").read_text())
    # Ten minutes of a db.m6g.xlarge and of 100 GB for the five that they were held; half a GB of transfer.
    bill_ = 0.318 / 6 + 100 * 0.115 / 730 / 6 + 0.5 * 0.09
    tps = scores["scores"]["P"]["value"] * scores["scores"]["P"]["detail"]["cost_per_minute"]
    assert scores["starred"]["scores"]["P"]["value"] == pytest.approx(tps / (bill_ / 5))
    assert scores["starred"]["bill"]["total"] == pytest.approx(bill_)
    # E1 counts what is elastic: of RDS the class and IOPS, billed for ten minutes.
    mean_tps = scores["scores"]["E1"]["detail"]["patterns"][0]["mean_tps"]
    assert scores["starred"]["scores"]["E1"]["value"] == pytest.approx(mean_tps / (0.318 / 6))
    assert any("check before use" in warning for warning in scores["warnings"])
    assert "check before use" in ended.out
    # What the run keeps is enough to say the same again.
    assert scores_of(StoredRun(run)) == scores


def test_what_a_book_has_no_price_for_makes_its_starred_scores_absent(tmp_path: Path) -> None:
    study = write_study(tmp_path, starred_study(transfer_gb_per_hour=0))
    assert call("run", study, "--out", tmp_path / "runs").code == 0
    run = tmp_path / "runs" / "latest"
    # An allocation that no class has, told while the pattern went on.
    events = run / "events.jsonl"
    huge = {"event": "allocation", "time_s": 0.0, "resources": RESOURCES | {"vcores": 400}}
    events.write_text(events.read_text() + json.dumps(huge) + "\n")
    scores = scores_of(StoredRun(run))
    assert "no instance class has 400 vCores" in scores["starred"]["absent"]["E1"]
    assert {"P"} <= set(scores["starred"]["scores"])
    assert "E1" in scores["scores"]


def test_without_a_second_price_book_there_are_no_starred_scores(tmp_path: Path) -> None:
    study = write_study(tmp_path, sim_study(throughput(duration="300ms")))
    assert call("run", study, "--out", tmp_path / "runs").code == 0
    assert json.loads((tmp_path / "runs" / "latest" / "scores.json").read_text())["starred"] is None
