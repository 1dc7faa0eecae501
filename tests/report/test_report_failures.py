"""The section on failures: time lines, words and table of planted failures."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from report_evaluated import FAILURES, failover_run
from report_pages import html, run, section, view

from nephoscope.evaluators.failover.section import FailureSection
from nephoscope.report.build import build_view
from nephoscope.report.page import render


def charts() -> Any:
    part = section(view("failover"), FailureSection)
    assert part is not None
    return part.charts


def test_the_statement_has_the_range_and_what_was_lost() -> None:
    part = section(view("failover"), FailureSection)
    assert part is not None
    assert part.statement == (
        "3 failures (crash of rw): the service was back after 0 ms to 2 s; it did not come back after 1 of them, "
        "and the load was served as before 0 ms to 3 s after that; of 1,800 acknowledged commits of the probe 2 were "
        "lost."
    )


def test_each_failure_is_drawn_from_its_fault_on() -> None:
    first, unnoticed, endless = charts()
    assert [(rule.x, rule.label) for rule in first.rules] == [
        (0.0, "fault"),
        (0.25, "kill done"),
        (1.75, "promote done"),
        (2.0, "service back"),
        (5.0, "TPS back"),
    ]
    assert [(span.start, span.end, span.label) for span in first.spans] == [
        (-10.0, 0.0, "before"),
        (0.0, 2.0, "outage"),
        (2.0, 5.0, "recovery"),
        (5.0, 18.0, "after"),
    ]
    assert [span.label for span in unnoticed.spans] == ["before", "after"]
    assert [(span.end, span.label) for span in endless.spans] == [(0.0, "before"), (18.0, "outage")]


def test_probes_stand_where_they_were_due() -> None:
    first, unnoticed, endless = charts()
    rugs = {line.name: [x for x, _ in line.data] for line in first.lines if line.style == "rug"}
    assert rugs["probe failed"] == pytest.approx([n / 50 for n in range(100)])
    assert rugs["probe late"] == pytest.approx([2 + n / 50 for n in range(25)])
    assert not [line for line in unnoticed.lines if line.style == "rug"]
    assert len(next(line.data for line in endless.lines if line.style == "rug")) == 900


def test_the_throughput_is_that_of_the_intervals() -> None:
    tps = charts()[0].lines[0]
    given = run("failover").intervals.to_pydict()
    first = sum(
        committed
        for start, committed in zip(given["start_s"], given["committed"], strict=True)
        if start == pytest.approx(2.0)
    )
    assert len(tps.data) == 57
    assert tps.data[0] == pytest.approx((-10.0, 2 * first), rel=1e-4)


def test_an_interval_without_a_row_is_zero() -> None:
    given = failover_run()
    starts = given.intervals.column("start_s").to_pylist()
    kept = [place for place, start in enumerate(starts) if start is not None and not 12.0 <= start < 14.0]
    part = section(
        build_view(dataclasses.replace(given, intervals=given.intervals.take(kept))), FailureSection
    )
    assert part is not None
    tps = dict(part.charts[0].lines[0].data)
    assert [tps[x] for x in (0.0, 0.5, 1.0, 1.5)] == [0.0] * 4
    assert (tps[2.0] or 0) > 0


def test_the_table_says_what_did_not_end() -> None:
    part = section(view("failover"), FailureSection)
    assert part is not None
    assert [row.outage_s for row in part.rows] == [2.0, 0.0, None]
    assert [row.interrupted for row in part.rows] == [True, False, True]
    assert part.rows[0].errors == "40 connection lost, 3 read-only"
    page = html("failover")
    assert "did not end" in page
    assert "no interruption" in page
    assert "as resolved: fault crash · roles rw · before 10s." in page


def test_medians_and_what_came_later_stand_below_the_table() -> None:
    given = failover_run()
    later = {"node": "rw1", "began_s": 20.0, "back_s": 22.5, "failed_probes": 500, "late_probes": 1}
    told = {**FAILURES[0], "recovery_resolution_s": 0.5, "tps_back_s": 14.2, "later": [later]}
    roles = {"rw": {"mean": 2.0, "median": 1.9, "values": [1.9, 1.9, 2.2]}}
    score = {"value": 2.0, "unit": "s", "ci95": [1.5, 2.5], "repetitions": 3, "detail": {"roles": roles}}
    details = {"failover": {"0": {"fault": "kill", "late_s": 0.1, "failures": [told]}}}
    given = dataclasses.replace(
        given, scores={**(given.scores or {}), "details": details, "scores": {"F": score}}
    )
    part = section(build_view(given), FailureSection)
    assert part is not None
    assert part.medians == ("F, outage of rw: mean 2 s, median 1.90 s",)
    assert part.later == (
        "kill of rw, repetition 1: rw1 was interrupted again 8 s after the fault, for 2.50 s",
    )
    # A recovery that is not told apart, and an interval by both ends.
    page = render(build_view(given))
    assert "&lt; 0.50</td>" in page
    assert ">(1.5 … 2.5)<" in page
    assert "was served as before less than 500 ms later" in part.charts[0].message


def test_a_run_whose_scores_have_no_details_is_read_from_f() -> None:
    given = failover_run()
    score = {"value": 2.0, "unit": "s", "ci95": None, "repetitions": 1}
    detail = {"fault": "kill", "failures": [FAILURES[0]]}
    scores = {**(given.scores or {}), "details": {}, "scores": {"F": {**score, "detail": detail}}}
    part = section(build_view(dataclasses.replace(given, scores=scores)), FailureSection)
    assert part is not None
    assert [row.name for row in part.rows] == ["kill of rw, repetition 1"]
    assert part.outage.value == 2.0


def test_more_failures_than_can_be_drawn_are_in_the_table() -> None:
    given = failover_run()
    told = {"fault": "crash", "late_s": 0.1, "failures": [FAILURES[0]] * 14}
    scores = {**(given.scores or {}), "details": {"failover": {"0": told}}}
    part = section(build_view(dataclasses.replace(given, scores=scores)), FailureSection)
    assert part is not None
    assert (len(part.charts), len(part.rows)) == (12, 14)
    assert part.note == "2 more failures are in the table only."


@pytest.mark.parametrize(
    "damaged",
    [None, [], {"0": 3}, {"0": {"failures": 3}}, {"0": {"failures": [None, {"injected_s": "x"}]}},
     {"0": {"failures": [{"injected_s": 1e9}]}}, {"0": {"failures": [{"injected_s": 12.0}]}}],
)  # fmt: skip
def test_damaged_scores_give_a_page(damaged: Any) -> None:
    given = failover_run()
    scores = {**(given.scores or {}), "details": {"failover": damaged}}
    assert "</html>" in render(build_view(dataclasses.replace(given, scores=scores)))


def test_a_run_without_failures_has_no_section() -> None:
    assert section(view("sweep"), FailureSection) is None
    assert 'id="failures"' not in html("sweep")
