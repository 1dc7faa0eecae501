"""The section on streams: what it says, and that damaged scores do not break the page."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from report_pages import run, section

from nephoscope.evaluators.load.section import StreamsSection
from nephoscope.report.build import build_view
from nephoscope.report.page import render

if TYPE_CHECKING:
    from nephoscope.report.view import ReportView


def stream(of: str, tps: float, **told: Any) -> dict[str, Any]:
    given = {"phase": 2, "name": "both <i>", "repetition": 1, "stream": of, "tps": tps, "ci95": [tps, tps]}
    return {
        **given,
        "mix": "RW",
        "concurrency": None,
        "rate": None,
        "latency_ms": {"p50": 1.0, "p99": 9.0},
        **told,
    }


GIVEN = [
    stream("default", 80.0, phase=1, name="alone", rate=80.0),
    stream("default", 60.0, rate=80.0),
    stream("default/2", 2.5, mix="OLAP", concurrency=4.0, latency_ms=None),
]


def view_with(streams: Any) -> ReportView:
    given = run("sweep")
    scores = {**(given.scores or {}), "details": {"load": {"0": {"streams": streams}}}}
    return build_view(dataclasses.replace(given, scores=scores))


def test_each_stream_of_each_phase_has_its_figures() -> None:
    found = section(view_with(GIVEN), StreamsSection)
    assert found is not None
    assert found.statement == "TPS of each stream in both <i>: default (RW) 60, default/2 (OLAP) 2.500."
    assert [(phase.name, len(phase.rows)) for phase in found.phases] == [("alone", 1), ("both <i>", 2)]
    rows = found.phases[1].rows
    assert [(row.mix, row.level, row.tps.value, row.p99_ms) for row in rows] == [
        ("RW", "80/s", 60.0, 9.0),
        ("OLAP", "c = 4", 2.5, None),
    ]


def test_the_page_has_the_section_where_there_are_streams() -> None:
    page = render(view_with(GIVEN))
    assert '<section id="streams">' in page
    assert "both &lt;i&gt;" in page
    assert "both <i>" not in page
    assert '<section id="streams">' not in render(build_view(run("sweep")))


@pytest.mark.parametrize("streams", [None, 3, [None], [{}], [{"latency_ms": 3, "ci95": "x", "tps": "fast"}]])
def test_damaged_scores_do_not_break_the_page(streams: Any) -> None:
    render(view_with(streams))
