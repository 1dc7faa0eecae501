"""The page of several runs: the radar's scale, its words, and that a browser draws it in silence."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import pytest
from report_html import Page
from report_pages import run
from report_runs import ATTACK

from browser import CHROMIUM, browse_page
from nephoscope.report import radar, several
from nephoscope.report.page import render_several
from nephoscope.scoring.definitions import PERFECT
from nephoscope.tables.model import of_texts

if TYPE_CHECKING:
    from pathlib import Path

    from nephoscope.report.several import SeveralView

BEST = {"P": 1000.0, "E1": 100.0, "R": 1.0, "F": 0.1, "E2": 5.0, "C": 0.001, "T": 10.0, "O": 9.0}


def made(*scores: dict[str, float], name: str = "run") -> SeveralView:
    given = [
        (
            f"{name}{place}",
            run("sweep"),
            {**(run("sweep").scores or {}), "scores": {k: {"value": v} for k, v in of.items()}},
        )
        for place, of in enumerate(scores)
    ]
    return several.build(
        given, [of_texts("overall", "All", ["run", "P"], [["a", "1"]])], ["another scale"], ["a note"]
    )


def far(point: tuple[float, float]) -> float:
    return math.hypot(*point) / radar.RADIUS


def test_the_best_is_at_the_rim_and_the_others_at_their_logarithm() -> None:
    worse = {**BEST, "P": 500.0, "R": 10.0, "C": 0.002}
    drawn = radar.build([("a", BEST), ("b", worse)])
    assert drawn is not None
    assert [ring.label for ring in drawn.rings] == ["best", "1/2", "1/5"]
    best, other = drawn.shapes
    assert [far(dot) for dot in best.dots] == pytest.approx([1.0] * 7, abs=1e-3)
    at = dict(zip(PERFECT, map(far, other.dots), strict=True))
    assert at["P"] == pytest.approx(1 - math.log10(2), abs=1e-3)
    assert at["R"] == pytest.approx(0.0, abs=1e-3)
    assert at["C"] == pytest.approx(1 - math.log10(2), abs=1e-3)
    assert at["T"] == pytest.approx(1.0, abs=1e-3)
    assert "the centre is 10 times worse" in drawn.note


@pytest.mark.parametrize(("ratio", "rings"), [(1.1, 4), (1.99, 4), (9.0, 4), (11.0, 3), (4e5, 7)])
def test_the_scale_reaches_to_the_worst(ratio: float, rings: int) -> None:
    drawn = radar.build([("a", BEST), ("b", {**BEST, "P": 1000.0 / ratio})])
    assert drawn is not None
    assert len(drawn.rings) == rings - 1
    assert all(far(dot) >= -1e-9 for shape in drawn.shapes for dot in shape.dots)
    radii = [ring.r for ring in drawn.rings]
    assert radii == sorted(radii, reverse=True)


def test_a_score_of_one_run_only_is_not_drawn() -> None:
    drawn = radar.build([("a", BEST), ("b", {key: BEST[key] for key in ("P", "R", "F")})])
    assert drawn is not None
    assert {spoke.key for spoke in drawn.spokes if spoke.known} == {"P", "R", "F"}
    assert len(drawn.shapes[0].dots) == 3
    assert drawn.shapes[0].path.count("M") == 1, "only R and F are neighbours"
    assert radar.build([("a", BEST), ("b", {"P": 1.0, "R": 1.0})]) is None
    assert radar.build([("a", {}), ("b", {})]) is None


def test_what_has_no_logarithm_has_no_place() -> None:
    drawn = radar.build([("a", BEST), ("b", {**BEST, "E2": -1.0, "F": 0.0})])
    assert drawn is not None
    assert {spoke.key for spoke in drawn.spokes if not spoke.known} == {"E2"}
    # A time of 0 is as short as can be told: a microsecond, here 100,000 times shorter than the other.
    assert "100,000 times worse" in drawn.note


def test_the_statement_names_the_highest_o_and_how_sure_that_is() -> None:
    assert made(BEST, {**BEST, "O": 8.5}).statement == (
        "The highest O is that of run0, 9; the lowest that of run1, 8.500; how sure that is is not known, for one of "
        "them has no interval."
    )
    for half, said in ((0.1, "do not overlap."), (0.3, "overlap, so chance may have made the order.")):
        runs = [
            (name, run("sweep"), {"scores": {"O": {"value": o, "ci95": [o - half, o + half]}}})
            for name, o in (("a", 9.0), ("b", 8.5))
        ]
        assert several.build(runs, [], [], []).statement.endswith(f"8.500; their 95 % intervals {said}")
    assert made(BEST, {"P": 1.0}).statement.startswith("Only run0 has an O")
    assert made({"P": 1.0, "C": 1.0}, {"P": 2.0}).statement == (
        "2 runs, none with an O; scores that all of them have: P."
    )


def test_throughput_is_drawn_where_two_runs_have_a_mix() -> None:
    charts = made(BEST, BEST).charts
    assert [chart.title for chart in charts] == ["Throughput of RO", "Throughput of RW", "Throughput of WO"]
    assert [line.name for line in charts[0].lines if line.legend] == ["run0", "run1"]
    assert len(charts[0].lines[0].whiskers) == len(charts[0].lines[0].data) == 7


def test_the_page_has_tables_warnings_and_notes() -> None:
    page = Page(render_several(made(BEST, BEST)))
    assert "another scale" in page.visible
    assert "a note" in page.visible
    assert page.one("table-overall").all("tr")
    ids = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    assert all(link.attributes["href"][1:] in ids for link in page.all("a"))


def test_names_cannot_break_out_of_the_page() -> None:
    html = render_several(made(BEST, BEST, name=ATTACK))
    usual = render_several(made(BEST, BEST))
    # The chart library has such texts of its own.
    assert [html.count(tag) for tag in ("<img", "<script")] == [
        usual.count(tag) for tag in ("<img", "<script")
    ]


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_draws_it_in_silence(tmp_path: Path) -> None:
    page, console = browse_page(
        render_several(made(BEST, {**BEST, "P": 1.0})), "several", tmp_path, "--dump-dom"
    )
    assert console == []
    assert page.count('<div class="chart" role="img"') == 3
    assert page.count("<svg") >= 4
    assert "NaN" not in page.split("<script")[0]


@pytest.mark.parametrize(
    "damaged", [{}, {"scores": 3, "points": 4}, {"scores": {"P": None}, "points": [None, {"concurrency": 3}]}]
)
def test_damaged_scores_give_a_page(damaged: Any) -> None:
    given = dataclasses.replace(run("sweep"))
    assert "</html>" in render_several(
        several.build([("a", given, damaged), ("b", given, damaged)], [], [], [])
    )
