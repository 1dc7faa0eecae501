"""The section on scores: how they were measured, what is absent, and the terms that add up to O."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import pytest
from report_pages import run, view
from report_scaling import scaled

from nephoscope.cli.printing import run_markdown
from nephoscope.report.build import build_view
from nephoscope.report.page import render
from nephoscope.scoring.definitions import PERFECT
from nephoscope.scoring.formulas import Score, o_score
from nephoscope.tables.columns import RunFigures

if TYPE_CHECKING:
    from nephoscope.report.view import Scores
    from nephoscope.scoring.definitions import ScoreName
    from nephoscope.scoring.formulas import Absent

VALUES: dict[ScoreName, float] = {"P": 1e6, "E1": 1e5, "R": 3.0, "F": 0.5, "E2": 0.5, "C": 1e-7, "T": 2e4}


def all_scores(**details: dict[str, Any]) -> dict[str, Any]:
    given: dict[ScoreName, Score | Absent] = {
        name: Score(
            value=VALUES[name],
            unit="s" if name in ("R", "F", "C") else "",
            ci95=(0.9 * VALUES[name], 1.1 * VALUES[name]),
            repetitions=3,
            detail=details.get(name, {}),
        )
        for name in PERFECT
    }
    given["O"] = o_score(given)
    return {name: score.model_dump(mode="json") for name, score in given.items()}


def scores_with(found: dict[str, Any], **more: Any) -> tuple[Scores, str]:
    given = run("sweep")
    made = build_view(dataclasses.replace(given, scores={**(given.scores or {}), "scores": found, **more}))
    return made.scores, render(made)


def test_the_terms_add_up_to_o() -> None:
    part, page = scores_with(all_scores(), absent={})
    *terms, total = part.terms
    assert [term.key for term in terms] == list(PERFECT)
    assert math.fsum(term.value for term in terms) == pytest.approx(total.value)
    assert terms[0].value == pytest.approx(6.0)
    assert next(term.value for term in terms if term.key == "R") == pytest.approx(-math.log10(3))
    assert "What makes up O" in page
    assert "C is shorter than can be told apart: it counts as 0.00100 ms." in page


def test_each_bar_begins_where_the_last_one_ended() -> None:
    *terms, total = scores_with(all_scores(), absent={})[0].terms
    at = terms[0].zero
    for term in terms:
        end = at + math.copysign(term.width, term.value)
        assert min(at, end) == pytest.approx(term.left)
        at = end
    assert at == pytest.approx(total.zero + total.width)
    assert all(0 <= term.left <= 1 and term.left + term.width <= 1 + 1e-9 for term in (*terms, total))


def test_an_o_without_an_interval_says_why_beside_it() -> None:
    given: dict[ScoreName, Score | Absent] = {
        name: Score.model_validate(all_scores()[name]) for name in PERFECT
    }
    given["E2"] = Score(value=0.5, unit="", ci95=(-0.1, 1.1), repetitions=3)
    o = o_score(given).model_dump(mode="json")
    part, page = scores_with({**all_scores(), "O": o}, absent={})
    why = "that of E2 reaches below 0 (-0.1 … 1.1), where there is no logarithm"
    (row,) = (row for row in part.rows if row.key == "O")
    assert row.how.endswith(f"; no interval: {why}")
    assert why in page
    of_lag = run("lag").scores or {}
    shown = RunFigures("lag", run("lag"), {**of_lag, "scores": {**of_lag["scores"], "O": o}})
    assert f"- O has no interval: {why}" in run_markdown(shown)


def test_without_an_o_there_are_no_terms() -> None:
    assert view("sweep").scores.terms == ()


def test_the_statement_names_what_is_there_and_what_is_not() -> None:
    said = view("sweep").scores.statement
    assert said.startswith("Measured: P ")
    assert said.endswith("TPS per $/min. Absent: E1, R, F, E2, C, T, O.")
    assert view("killed").scores.statement == "No score was measured in this run."


def test_each_score_says_how_it_was_measured() -> None:
    failures = {"fault": "crash", "failures": [{"role": "rw"}, {"role": "rw"}]}
    found = all_scores(
        P={"mixes": {"RW": {"tps": 1.0}}, "tps_of": "peak", "cost_per_minute": 0.05},
        E1={"patterns": [{"pattern": "single-peak", "window_s": 600}]},
        F=failures,
        R=failures,
        E2=scaled(("RO", (1.0, 2.0, 3.0)), ("RW", (1.0, 2.0, 3.0))),
        C={"replicas": 2, "counted": ["IUD", "a"]},
    )
    found["X"] = {"value": 1.0, "detail": {"delta": 1000, "steps": [1, 2]}}
    tenancy = {"tenants": ["a", "b"], "share": "schema", "patterns": {"high_contention": {}}}
    part, _ = scores_with(found, absent={}, details={"tenancy": tenancy})
    assert {row.key: row.how for row in part.rows} == {
        "P": "the highest mean TPS of RW, at $0.0500 a minute",
        "E1": "single-peak; cost over 10 min",
        "R": "2 × crash of rw",  # noqa: RUF001 - times
        "F": "2 × crash of rw",  # noqa: RUF001
        "E2": "RO, RW; read-only nodes: 0 and 2 more",
        "X": "delta 1,000",
        "C": "insert + update + delete beside IUD, a; replicas: 2",
        "T": "high contention; 2 tenants, each a schema",
        "O": "scale factor 1, weights all 1; its interval takes for granted: no scores are independent: it is the"
        " widest that any correlation of their errors gives",
    }


@pytest.mark.parametrize(
    "damaged",
    [None, 3, {"O": {"value": 5.0, "detail": {"terms": 7}}}, {"C": {"value": 1.0, "detail": {"counted": 4}}}],
)
def test_damaged_scores_give_a_page(damaged: Any) -> None:
    assert "</html>" in scores_with(damaged)[1]
