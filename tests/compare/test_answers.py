"""Answers: how often each is given of planted losses, and what keeps it from being given."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from nephoscope.results.answers import EXIT_CODES, decide
from nephoscope.results.compare import Compared, Figure, Said, compare_sets
from nephoscope.statistics import compare
from planted_runs import run
from sample_studies import phases, sim_study, throughput, write_study
from simulated import allowance, generator

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from nephoscope.results.answers import Answer
    from nephoscope.store import StoredRun

RUNS = 5


def compared(rng: np.random.Generator, loss: float) -> Compared:
    """Sets of runs that scatter by 1 % from run to run; TPS and p95 are both worse by a loss."""
    figures = []
    for name, level, higher in (("TPS", 1000 * (1 - loss), True), ("p95", 5 * (1 + loss), False)):
        base = (1000 if higher else 5) * (1 + 0.01 * rng.standard_normal(RUNS))
        candidate = level * (1 + 0.01 * rng.standard_normal(RUNS))
        found = compare(list(base), list(candidate), higher_is_better=higher, comparisons=2)
        figures.append(Figure(name, "", base.mean(), candidate.mean(), found, higher_is_better=higher))
    return Compared(figures, [], [])


@pytest.mark.parametrize(
    ("loss", "answer", "least", "most"),
    [
        # A margin of 5 %: what equals its baseline is called slower in less than 2.5 % of cases, and is mostly cleared.
        (0.00, "slower", 0.0, 0.025),
        (0.00, "not slower", 0.9, 1.0),
        (0.01, "not slower", 0.9, 1.0),
        (0.02, "not slower", 0.5, 1.0),
        # What is worse by the margin is cleared in less than 2.5 % of cases for each figure, and both have to be.
        (0.05, "not slower", 0.0, 0.025),
        (0.05, "slower", 0.9, 1.0),
        (0.10, "slower", 0.99, 1.0),
    ],
)
def test_answers_are_right_as_often_as_they_say(
    loss: float, answer: Answer, least: float, most: float
) -> None:
    rng = generator()
    rounds = 600
    share = sum(decide(compared(rng, loss), 0.05).answer == answer for _ in range(rounds)) / rounds
    assert least - allowance(least, rounds) <= share <= most + allowance(most, rounds)


def sets(folder: Path, **changed: Any) -> tuple[list[StoredRun], list[StoredRun]]:
    def several(name: str, **values: Any) -> list[StoredRun]:
        return [run(folder / name / str(at), noise=0.005, repetitions=2, **values) for at in range(4)]

    return several("base"), several("new", **changed)


def test_a_set_of_runs_has_its_spread_from_run_to_run(tmp_path: Path) -> None:
    base, new = sets(tmp_path, tps=800)
    found = compare_sets(base, new, ["TPS"])
    assert [figure.name for figure in found.figures] == ["SELECT c=2 TPS", "SELECT c=8 TPS"]
    first = found.figures[0].comparison
    assert first.repetitions == (4, 4)
    assert first.relative == pytest.approx(-0.2, abs=0.02)
    assert not found.notes
    assert decide(found, 0.05).answer == "slower"
    # One run of them against several: its spread is theirs.
    alone = compare_sets(base, new[:1], ["TPS"])
    assert alone.notes == [
        "the candidate has one run: its spread is the other side's, or that of its intervals"
    ]
    assert decide(alone, 0.05).answer == "slower"


def test_what_keeps_an_answer_from_being_given(tmp_path: Path) -> None:
    base, new = sets(tmp_path)
    found = compare_sets(base, new, ["TPS", "p95"])
    assert decide(found, 0.2).answer == "not slower"
    lacking = replace(found, lacking=["only in the baseline: SELECT c=16"])
    assert decide(lacking, 0.2).answer == "cannot tell"
    problem = replace(found, said=[Said("candidate", "problem", "the client was the limit")])
    assert decide(problem, 0.2).answer == "cannot tell"
    assert decide(problem, 0.2).reasons == ["candidate: the client was the limit"]


@pytest.mark.parametrize(
    ("slower", "bound", "answer"),
    [
        (1.0, "candidate", "cannot tell"),
        (1.0, "baseline", "not slower"),
        (2.0, "candidate", "slower"),
        (2.0, "baseline", "cannot tell"),
    ],
)
def test_a_lower_bound_decides_one_way_only(slower: float, bound: str, answer: Answer) -> None:
    values = [1.0, 1.001, 0.999, 1.002]
    found = compare(values, [slower * value for value in values], higher_is_better=False)
    assert decide(Compared([Figure("p95", "ms", 1, slower, found, (bound,))], [], []), 0.05).answer == answer


def test_the_commands_end_with_the_answers_exit_code(tmp_path: Path) -> None:
    sets(tmp_path, tps=800)
    base, new, xml = tmp_path / "base", tmp_path / "new", tmp_path / "junit.xml"
    slower = call("compare", base, new, "--margin", "5%", "--junit", xml)
    assert slower.code == EXIT_CODES["slower"] == 4
    assert "✗ slower" in slower.out
    suite = ET.parse(xml).getroot()  # noqa: S314 - ours
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "2", "0")
    told = call("compare", base, new, "--margin", "30%", "--json")
    assert (told.code, json.loads(told.out)["answer"]) == (0, "not slower")
    assert {figure["answer"] for figure in json.loads(told.out)["figures"]} == {"not slower"}
    lines = call("compare", base, new, "--margin", "0%", "--figure", "p50", "--format", "markdown").out
    assert "- cannot tell whether it is slower by more than 0 %" in lines
    # Without a margin it only compares.
    assert call("compare", base, new).code == 0


def test_a_gate_runs_the_study_and_decides(tmp_path: Path) -> None:
    measured = throughput(concurrency=[4], repetitions=3)
    base = write_study(tmp_path, sim_study(measured, planted="latency=constant(2ms)"))
    slow = "sim://?latency=constant(40ms)"
    assert call("run", base, "--out", tmp_path / "base").code == 0
    found = call("gate", base, "--baseline", tmp_path / "base", "--out", tmp_path / "new", "--url", slow)
    assert found.code == EXIT_CODES["slower"], found.out + found.err
    same = ("--margin", "90%", "--figure", "tps")
    assert call("compare", tmp_path / "base", tmp_path / "base", *same).code == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--margin", "5"), '--margin 5: expected a share from 0 % to 100 %, such as "5%"'),
        (("--margin", "101%"), "--margin 101%: expected a share"),
        (
            ("--figure", "speed"),
            "--figure speed: there is no such figure; figures are TPS, p50, p95, p99, client CPU",
        ),
        (("--junit", "here.xml"), "--junit writes answers: it needs --margin"),
    ],
)
def test_wrong_words_are_refused(tmp_path: Path, words: tuple[str, ...], complaint: str) -> None:
    refused = call("compare", tmp_path, tmp_path, *words)
    assert refused.code == 2
    assert complaint in refused.err


def test_a_folder_of_runs_of_several_studies_is_no_set(tmp_path: Path) -> None:
    run(tmp_path / "runs" / "one", repetitions=1)
    run(tmp_path / "runs" / "two", repetitions=2)
    refused = call("compare", tmp_path / "runs", tmp_path / "runs")
    assert refused.code == 2
    assert "holds runs of several studies, one and two among them" in refused.err


def test_a_gate_of_several_scales_is_refused_before_it_runs(tmp_path: Path) -> None:
    tables = sim_study(phases({"concurrency": 1}))
    tables["workload"] = {**tables["workload"], "scales": [1, 2], "load": "always"}
    study = write_study(tmp_path, tables)
    refused = call("gate", study, "--baseline", tmp_path / "none", "--out", tmp_path / "new")
    assert refused.code == 2
    assert "allowed: workload.scale" in refused.err
    assert not (tmp_path / "new").exists()
