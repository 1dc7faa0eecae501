"""The section on lag: planted lags whose distribution, and so whose curve of stale reads, is known."""

from __future__ import annotations

import dataclasses

import pytest
from report_evaluated import lag_run, marker
from report_pages import html, run, section, view

from nephoscope.evaluators.lag.samples import LagSamples
from nephoscope.evaluators.lag.section import LagSection
from nephoscope.report.build import build_view
from nephoscope.report.kit.run import Run


def part() -> LagSection:
    found = section(view("lag"), LagSection)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("after", "share"), [(0.0, 1.0), (0.5, 1.0), (1.0, 0.99), (10.0, 0.9), (99.5, 0.01), (200, 0)]
)
def test_a_read_is_stale_as_often_as_lags_are_longer(after: float, share: float) -> None:
    even = LagSamples.of(Run(run("lag"))).beside("even")
    found = even.stale(after)
    assert found.value == pytest.approx(share)
    assert found.ci95 is not None
    assert found.ci95[0] <= share <= found.ci95[1]
    assert found.ci95[1] - found.ci95[0] < 0.15


def test_what_was_not_seen_is_stale_for_ever() -> None:
    idle = LagSamples.of(Run(run("lag"))).beside("idle")
    assert idle.stale(0.5).value == 1.0
    assert idle.stale(1.5).value == pytest.approx(0.1)
    assert idle.stale(1e9).value == pytest.approx(0.1)


def test_the_curve_is_that_of_the_planted_lags() -> None:
    curve = part().charts[0]
    assert curve.id == "lag-stale"
    even = next(line for line in curve.lines if line.name == "even")
    for after, stale in even.data:
        assert after is not None
        # The lags are 1, 2 … 100 ms, each twice; coordinates are rounded to five digits.
        if abs(after - round(after)) > 1e-3:
            assert stale == pytest.approx(max(0.0, 100.0 - int(after)), abs=1e-6)


def test_the_table_has_round_times_and_their_intervals() -> None:
    found = part()
    assert found.after_ms == (1, 2, 5, 10, 20, 50, 100, 200)
    even = found.stale[0]
    assert even.load == "even"
    assert even.shares[3].value == pytest.approx(0.9)
    assert found.stale[1].shares[-1].value == pytest.approx(0.1)


def test_rows_are_by_load_and_kind() -> None:
    rows = {(row.load, row.kind): row for row in part().rows}
    insert = rows["even", "insert"]
    assert (insert.count, insert.unseen, insert.p50, insert.max) == (66, 0, 51.0, 99.0)
    assert insert.mean.value == pytest.approx(51.0)
    assert insert.mean.ci95 == pytest.approx((51.0, 51.0))
    assert insert.half_width == pytest.approx(0.05)
    assert rows["idle", "delete"].unseen == 6


def test_the_statement_is_of_the_loads_that_count() -> None:
    assert part().statement == (
        "Half of the commits were seen on the read-only endpoint within 50.5 ms, and 99 % within 99.0 ms. "
        "A read 100 ms after a write is stale in 0 % of cases (95 %: 0 % to 1.88 %)."
    )


def test_several_replicas_have_a_row_each() -> None:
    given = lag_run()
    import pyarrow as pa  # noqa: PLC0415

    rows = [*given.probes.to_pylist(), *(marker(1.0 + n, "insert", 7.0, node="ro2") for n in range(8))]
    found = section(
        build_view(dataclasses.replace(given, probes=pa.Table.from_pylist(rows, given.probes.schema))),
        LagSection,
    )
    assert found is not None
    nodes = {(row.load, row.kind, row.node): row.count for row in found.rows}
    assert nodes["even", "insert", "ro2"] == 8
    assert nodes["even", "insert", "ro"] == 66
    assert "drawn by lot" in found.charts[0].note


def test_the_servers_own_view_stands_on_the_same_axis() -> None:
    course, lag, behind = part().timeline
    assert (lag.id, lag.lines[0].name, lag.lines[0].data) == ("lag-replay-lag-ms", "node2", ((5.0, 1.5),))
    assert behind.lines[0].data == ((5.0, 4096.0), (25.0, 8192.0))
    assert behind.message == "At most: node2 8,192 bytes."
    assert (behind.x.low, behind.x.high) == (course.x.low, course.x.high)
    given = lag_run()
    without = section(
        build_view(dataclasses.replace(given, system_metrics=given.system_metrics.slice(0, 0))), LagSection
    )
    assert without is not None
    assert [chart.id for chart in without.timeline] == ["lag-course"]


def test_more_markers_than_can_be_drawn_keep_the_longest() -> None:
    given = lag_run()
    import pyarrow as pa  # noqa: PLC0415

    rows = [marker(n * 0.003, "insert", 900.0 if n == 1234 else 1.0) for n in range(3000)]
    found = section(
        build_view(dataclasses.replace(given, probes=pa.Table.from_pylist(rows, given.probes.schema))),
        LagSection,
    )
    assert found is not None
    drawn = found.timeline[0].lines[0].data
    assert len(drawn) <= 2000
    assert max(y for _, y in drawn if y is not None) == 900.0
    assert found.timeline[0].note.startswith("Each point is the longest lag within ")


def test_a_run_without_markers_has_no_section() -> None:
    assert section(view("sweep"), LagSection) is None
    assert 'id="lag"' not in html("sweep")
    assert "10 % of cases" not in html("sweep")
