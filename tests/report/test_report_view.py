"""What the page will say of each kind of run."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from report_documents import TAU
from report_html import Page
from report_pages import run, section, view
from report_runs import ATTACK, RUNS, search_run, sweep_run

from nephoscope.evaluators.elasticity.section import ElasticitySection
from nephoscope.evaluators.throughput.section import SweepSection
from nephoscope.report.build import build_view
from nephoscope.report.kit.histograms import Buckets
from nephoscope.report.kit.parts import Estimate
from nephoscope.report.page import render
from nephoscope.store.protocol import Selection


@pytest.mark.parametrize("name", RUNS)
def test_every_run_gives_a_view_without_a_number_that_is_none(name: str) -> None:
    shown = view(name)
    for part in (shown.model_copy(update={"sections": ()}), *(one.part for one in shown.sections)):
        text = json.dumps(part.model_dump(mode="json"), allow_nan=False)
        assert type(part).model_validate_json(text) == part


def test_a_number_that_is_not_finite_is_absent() -> None:
    assert Estimate(value=math.nan).value is None
    assert Estimate(value=math.inf).value is None


def test_a_mix_is_shown_at_the_concurrency_that_it_is_scored_at() -> None:
    rows = {row.mix: row for row in view("sweep").headline.mixes}
    assert {mix: row.load for mix, row in rows.items()} == {
        mix: f"{tau} sessions" for mix, tau in TAU.items()
    }
    assert all(row.repetitions == 3 for row in rows.values())


def test_percentiles_of_repetitions_are_merged_and_never_averaged() -> None:
    found = run("sweep")
    phases = frozenset(
        event["phase"]
        for event in found.events
        if event["event"] == "phase"
        and event["kind"] == "measure"
        and (event["labels"]["mix"], event["labels"]["concurrency"]) == ("RW", 24)
    )
    merged = Buckets(found.histogram(Selection(phases=phases)))
    row = next(row for row in view("sweep").headline.mixes if row.mix == "RW")
    assert (row.latency.p50, row.latency.p99, row.latency.count) == (
        merged.at(50),
        merged.at(99),
        merged.total,
    )


def test_the_average_has_no_percentiles() -> None:
    average = view("sweep").headline.average
    assert average is not None
    assert average.latency.p50 is None
    assert average.p.value == pytest.approx(sum(row.p.value or 0 for row in view("sweep").headline.mixes) / 3)


def test_absent_scores_are_named_with_their_reason() -> None:
    reasons = {score.label: group.reason for group in view("sweep").scores.absent for score in group.scores}
    assert reasons["T"] == "one tenant only"
    assert reasons["R"] == reasons["F"] == "no failure was injected"
    assert set(reasons) == {"E1", "R", "F", "E2", "C", "T", "O"}


def test_a_score_that_is_not_a_number_is_absent() -> None:
    scores = view("failures").scores
    assert scores.rows == ()
    assert scores.absent[0].reason == "no transaction was committed"


def test_the_sweep_marks_saturation_and_says_why_it_stopped() -> None:
    sweep = section(view("sweep"), SweepSection)
    assert sweep is not None
    assert {row.mix: row.concurrency for row in sweep.saturation} == TAU
    assert "p99 grew by 41 %" in sweep.saturation[0].why
    assert [mark.label for mark in sweep.charts[0].marks] == [f"τ {tau}" for tau in TAU.values()]
    assert len(sweep.points) == 3 * 7 * 3
    assert sum(point.steady is False for point in sweep.points) == 1


def test_a_run_at_one_load_has_no_sweep() -> None:
    assert section(view("open_loop"), SweepSection) is None
    assert section(view("hour"), SweepSection) is None


def test_the_steps_of_a_search_are_drawn_and_do_not_count() -> None:
    found = view("search")
    row = found.headline.mixes[0]
    assert (row.load, row.repetitions) == ("2 sessions", 3)
    assert found.latency.groups[0].detail == "2 sessions \N{MIDDLE DOT} 3 \N{MULTIPLICATION SIGN} 5.30 s"
    swept = section(found, SweepSection)
    assert swept is not None
    loads = [point.load for point in swept.points]
    assert (
        loads
        == [*(f"{n} · step of the search" for n in ("1 session", "2 sessions", "4 sessions"))]
        + ["2 sessions"] * 3
    )
    line, repetitions = swept.charts[0].lines[:2]
    assert [x for x, _ in line.data] == [1, 2, 4]
    assert len(repetitions.data) == 3
    assert "Lines join the steps of the search" in swept.charts[0].note


@pytest.mark.parametrize(
    ("seen", "said"), [(True, "RO saturates at τ = 2"), (False, "RO is not known to saturate at 2")]
)
def test_a_load_that_was_the_highest_of_all_is_not_called_saturation(*, seen: bool, said: str) -> None:
    searched = search_run()
    (searched.scores or {})["saturation"]["RO"]["saturated"] = seen
    swept = section(build_view(searched), SweepSection)
    assert swept is not None
    assert swept.charts[0].message.startswith(said)
    signs = {mark.label for chart in swept.charts for mark in chart.marks}
    assert signs == {"τ 2" if seen else "τ ≥ 2"}


def test_warm_up_is_shown_but_does_not_count() -> None:
    row = next(row for row in view("open_loop").headline.mixes)
    committed = sum(
        group.committed for group in view("open_loop").latency.groups[0].rows if group.kind == "all"
    )
    assert committed < view("open_loop").accounting.committed
    assert row.latency.count == committed
    kinds = [band.kind for band in view("open_loop").timeline.axis.bands]
    assert kinds == ["warm_up", "measure", "ramp_down"]


def test_waiting_shows_in_the_latency_and_not_in_the_service_time() -> None:
    rows = {row.kind: row for row in view("open_loop").latency.groups[0].rows}
    assert (rows["all"].percentiles.p99 or 0) > 10 * (rows["service"].percentiles.p99 or 0)
    assert all(row.kind != "service" for group in view("sweep").latency.groups for row in group.rows)


def test_dropped_arrivals_are_told_three_times() -> None:
    given = view("open_loop")
    assert given.accounting.dropped == given.errors.dropped == 1000
    assert any("1,000 of 133,021 arrivals were dropped" in verdict.text for verdict in given.verdicts)
    assert given.timeline.charts[-1].title == "Errors and drops"


def test_verdicts_come_with_the_gravest_first_and_none_twice() -> None:
    levels = [verdict.level for verdict in view("sweep").verdicts]
    assert levels == ["warning", "warning", "note", "ok"]
    warning = next(verdict for verdict in view("sweep").verdicts if "utovacuum" in verdict.text)
    assert warning.time_s == 612.0
    assert view("open_loop").verdicts[0].level == "problem"


def test_a_time_in_which_the_tool_stood_still_is_a_warning_and_a_mark() -> None:
    run = sweep_run(repetitions=1, warm=1, measure=1)
    message = "nephoscope itself did not run for 5.0 s"
    run.events = [*run.events, {"time_s": 7.5, "event": "gap", "stopped_s": 5.0, "message": message}]
    run.scores = {**(run.scores or {}), "warnings": [message]}
    given = build_view(run)
    [told] = [verdict for verdict in given.verdicts if "did not run" in verdict.text]
    assert (told.level, told.time_s) == ("warning", 7.5)
    moments = [(moment.time_s, moment.text) for moment in given.timeline.axis.moments]
    assert moments == [(7.5, "nephoscope did not run")]


def test_the_accounting_identity_is_checked() -> None:
    assert view("sweep").accounting.holds is True
    broken = sweep_run(repetitions=1, warm=1, measure=1)
    totals = dict(broken.manifest["totals"])
    totals["started"] += 1
    broken.manifest = {**broken.manifest, "totals": totals}
    accounting = build_view(broken).accounting
    assert accounting.holds is False
    assert "does not hold" in accounting.note


def test_a_killed_run_shows_what_was_kept() -> None:
    given = view("killed")
    assert given.title.banner is not None
    assert "killed" in given.title.banner.heading
    assert given.accounting.started is None
    assert given.accounting.committed > 0
    assert "warm-up" in given.headline.note
    assert given.headline.mixes[0].tps.value


def test_a_run_without_an_interval_is_a_page_too() -> None:
    given = view("empty")
    assert given.timeline.charts == ()
    assert given.latency.charts == ()
    assert given.verdicts[0].level == "problem"


def test_a_run_of_failures_says_so_and_draws_no_empty_chart() -> None:
    given = view("failures")
    assert [chart.id for chart in given.timeline.charts] == ["time-errors"]
    assert given.latency.charts == ()
    assert given.errors.rows[0].first_message == 'relation "orders" does not exist'
    assert given.errors.rows[0].share == 1.0
    assert any(verdict.text == "No transaction was committed." for verdict in given.verdicts)


def test_errors_are_counted_by_class_with_their_first_message_and_when() -> None:
    rows = view("sweep").errors.rows
    assert [row.count for row in rows] == sorted((row.count for row in rows), reverse=True)
    serialization = rows[0]
    assert serialization.name == "serialization failure"
    assert serialization.code == "40001"
    assert serialization.count == run("sweep").intervals.column("serialization").to_numpy().sum()
    assert (serialization.first_s or 0) < (serialization.last_s or 0)
    assert all(0 <= tick <= 1 for row in rows for tick in row.ticks)


def test_no_errors_is_said_plainly() -> None:
    assert view("tenants").errors.statement.startswith("No errors: none of 2,1")


def test_tenants_are_shown_apart() -> None:
    given = view("tenants")
    assert [group.name for group in given.latency.tenants] == ["alpha", "beta", "gamma"]
    assert (
        sum(group.rows[0].committed for group in given.latency.tenants)
        == given.latency.groups[0].rows[-1].committed
    )
    assert "time-tenants" in [chart.id for chart in given.timeline.charts]


def test_the_slots_of_a_pattern_are_taken_together() -> None:
    (row,) = view("tenants").headline.mixes
    assert row.load == "all 3 parts"


def test_the_shares_of_the_cost_add_up() -> None:
    cost = view("sweep").cost
    assert cost is not None
    assert sum(line.share or 0 for line in cost.lines) == pytest.approx(1)
    assert cost.per_minute == pytest.approx(0.0437, abs=0.00005)
    assert view("open_loop").cost is None


def test_a_long_run_says_how_it_was_shortened() -> None:
    timeline = view("hour").timeline
    assert "Each point covers 10 s" in timeline.note
    assert all(len(chart.x) <= 600 for chart in timeline.charts)


def test_a_chart_over_time_has_a_value_for_each_of_its_points() -> None:
    for name in RUNS:
        given = view(name)
        for chart in (*given.timeline.charts, *given.client.charts, *given.system.charts):
            assert all(len(line.y) == len(chart.x) for line in chart.lines)
            assert any(value is not None for line in chart.lines for value in line.y)


def test_metrics_that_were_zero_throughout_are_named_and_not_drawn() -> None:
    assert "backlog" in view("sweep").client.note
    assert "client-backlog" not in [chart.id for chart in view("sweep").client.charts]
    assert "client-backlog" in [chart.id for chart in view("open_loop").client.charts]


def test_units_of_server_metrics_are_read_from_their_names() -> None:
    titles = {chart.title: chart.unit for chart in view("sweep").system.charts}
    assert titles["WAL"] == "MB per s, server:rw"
    assert titles["CPU"] == "%, host"


def test_a_password_in_a_url_never_reaches_the_view() -> None:
    assert "hunter2" not in view("hostile").model_dump_json()


def test_the_view_keeps_hostile_text_as_it_is() -> None:
    assert view("hostile").title.study == ATTACK


@pytest.mark.parametrize("name", ["failover", "lag"])
def test_failures_and_the_loads_beside_lags_are_not_averaged(name: str) -> None:
    assert view(name).headline.mixes
    assert view(name).headline.average is None


def test_patterns_have_the_stretch_of_time_in_which_they_were_played() -> None:
    part = section(view("elasticity"), ElasticitySection)
    assert part is not None
    assert view("elasticity").timeline.axis.end_s == 180
    for chart in part.charts:
        assert (chart.start_s, chart.end_s) == (60, 74)
        assert all(at is not None and 60 < at < 74 for at in chart.x)
        # As fine as the intervals, though the whole run has more of them than a chart has points.
        assert len(chart.x) == 28
    throughput = next(chart for chart in part.charts if chart.id == "elasticity-tps")
    (line,) = throughput.lines
    assert line.y[0] == line.y[-1] == 0, "what came before the pattern and after it does not count in it"
    assert {chart.start_s for chart in view("elasticity").timeline.charts} == {None}


def test_an_error_is_counted_once_and_a_refused_connection_is_none() -> None:
    given = run("sweep")
    counted = {name: given.intervals.column(name).to_numpy().sum() for name in ("serialization", "deadlock")}
    refused = {"time_s": 20.0, "event": "connection", "state": "refused", "tenant": "default", "count": 456}
    words = {"class": "serialization", "code": "", "message": "the database is starting", "count": 456}
    events = [*given.events, refused, {"time_s": 20.0, "event": "error", "role": "rw", **words}]
    totals = {**given.manifest["totals"], "uncertain": 33}
    made = build_view(
        dataclasses.replace(given, events=events, manifest={**given.manifest, "totals": totals})
    )
    rows = {row.name: row.count for row in made.errors.rows}
    assert rows["serialization failure"] == counted["serialization"]
    assert rows["deadlock"] == counted["deadlock"]
    chart = next(chart for chart in made.timeline.charts if chart.id == "time-errors")
    assert chart.message.startswith(f"{sum(rows.values()):,} errors; ")
    assert made.errors.statement.startswith(f"{sum(rows.values()):,} errors of 4 classes, ")
    assert "456 times a connection could not be made" in made.errors.also
    assert "33 times an attempt ended after its commit was sent" in made.errors.also
    assert {row.state: row.count for row in made.errors.connections} == {
        "lost": 3,
        "restored": 3,
        "refused": 456,
    }
    assert made.accounting.uncertain == 33
    # Events of connections have no role.
    section = Page(render(made)).one("errors").text
    assert "None" not in section
    assert "Tenant" not in section
