"""The sections on scale-out and on parameters: planted figures, their words, charts and tables."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from report_pages import html, section, view
from report_scaling import parameters_run, scaled, scaleout_run, value

from nephoscope.evaluators.scaleout.section import ScaleOutSection
from nephoscope.evaluators.sweep.section import ParameterSection
from nephoscope.report.build import build_view
from nephoscope.report.page import render

if TYPE_CHECKING:
    from nephoscope.evaluators.sweep.section import ParameterEntry


def scaleout(*entries: Any, **scores: Any) -> ScaleOutSection:
    given = scaleout_run()
    details = {"scaleout": {str(place): entry for place, entry in enumerate(entries)}}
    whole = {**(given.scores or {}), "details": details, **scores}
    found = section(build_view(dataclasses.replace(given, scores=whole)), ScaleOutSection)
    assert found is not None
    return found


def swept(*values: Any, **more: Any) -> ParameterEntry:
    given = parameters_run()
    entry = {"parameter": "work_mem", "before": "4MB", "values": list(values), **more}
    whole = {**(given.scores or {}), "details": {"sweep": {"4": entry}}}
    found = section(build_view(dataclasses.replace(given, scores=whole)), ParameterSection)
    assert found is not None
    [only] = found.entries
    return only


def parameters() -> ParameterSection:
    found = section(view("parameters"), ParameterSection)
    assert found is not None
    return found


# --- scale-out --------------------------------------------------------------------------------------------------


def test_each_mix_says_what_a_node_brought() -> None:
    part = section(view("scaleout"), ScaleOutSection)
    assert part is not None
    [entry] = part.entries
    assert entry.statement == (
        "In RO each read-only node added 2,900 TPS on average; the second brought 45 % of what the first did. "
        "In RW each read-only node added 150 TPS on average; the second took 200 TPS away. "
        "A node served between 2.50 s and 3.50 s after the call for it."
    )
    spread = "reads are spread over the node that takes writes and all read-only nodes"
    assert part.note == f"E2 is 1.525 ± 0.12, in 1,000 TPS per node; {spread}."


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ((100.0,), "Nothing was measured beyond 0 read-only nodes: 100 TPS."),
        ((100.0, 150.0), "The one read-only node that came added 50 TPS."),
        ((100.0, 90.0), "The one read-only node that came took 10 TPS away."),
        (
            (100.0, 200.0, 396.0),
            "Each read-only node added 148 TPS on average; the second brought 196 % of what the first did.",
        ),
        (
            (100.0, 90.0, 400.0),
            "Each read-only node added 150 TPS on average; the first took 10 TPS away, the last added 310 TPS.",
        ),
        (
            (100.0, 200.0, 250.0, 260.0),
            (
                "Each read-only node added 53.33 TPS on average; "
                "the second brought 50 % of what the first did, the third brought 10 %."
            ),
        ),
        (
            (100.0, 200.0, 250.0, 260.0, 280.0),
            (
                "Each read-only node added 45 TPS on average; "
                "the second brought 50 % of what the first did, the last brought 20 %."
            ),
        ),
    ],
)
def test_the_words_fit_the_course(rates: tuple[float, ...], said: str) -> None:
    [entry] = scaleout(scaled(("RO", rates)) | {"added": []}).entries
    assert entry.statement == said


def test_the_ideal_goes_on_as_the_first_step() -> None:
    [entry] = scaleout(scaled(("RO", (100.0, 300.0, 400.0, 450.0)), ("RW", (100.0, 90.0, 95.0)))).entries
    [ideal] = [line for line in entry.chart.lines if line.name == "ideal"]
    assert ideal.data == ((0.0, 100.0), (3.0, 700.0))
    assert ideal.dash == "dashed"
    assert entry.chart.x.ticks == ((0.0, "0"), (1.0, "1"), (2.0, "2"), (3.0, "3"))
    points = next(line for line in entry.chart.lines if line.style == "points")
    assert points.whiskers == (
        (0.0, 98.0, 102.0),
        (1.0, 294.0, 306.0),
        (2.0, 392.0, 408.0),
        (3.0, 441.0, 459.0),
    )


def test_two_steps_have_no_ideal() -> None:
    [entry] = scaleout(scaled(("RO", (100.0, 300.0)))).entries
    assert [line.name for line in entry.chart.lines] == ["RO", "RO"]
    assert "Dashed" not in entry.chart.note


def test_the_table_has_what_came_and_when() -> None:
    [entry] = scaleout(scaled(("RO", (100.0, 300.0, 200.0)))).entries
    rows = [(row.nodes, row.tps.value, row.gain, row.of_first, row.serve_s) for row in entry.rows]
    assert rows == [(0, 100, None, None, None), (1, 300, 200, 1.0, 2.5), (2, 200, -100, -0.5, 3.5)]
    assert entry.mixes[0].scale_up == 2.0


def test_an_absent_e2_says_why_and_what_was_measured_is_shown() -> None:
    part = scaleout(scaled(("RO", (100.0,))), scores={}, absent={"E2": "a node did not come"})
    assert part.note == "E2 is absent: a node did not come."
    assert len(part.entries[0].rows) == 1


def test_several_entries_are_told_apart() -> None:
    part = scaleout(scaled(("RO", (100.0, 300.0))), scaled(("RO", (50.0, 60.0))))
    assert [entry.chart.id for entry in part.entries] == ["scaleout-0", "scaleout-1"]
    assert part.entries[1].chart.title == "Throughput over read-only nodes, entry 1 of [[measure]]"


# --- parameters -------------------------------------------------------------------------------------------------


def test_the_best_p_and_the_highest_tps_are_named() -> None:
    buffers, words = parameters().entries
    assert buffers.statement == (
        "Of 3 values of shared_buffers: in RO 512MB has the best P (600,000 TPS per $/min) and 2GB the highest TPS "
        "(30,000); "
        "in RW 128MB has the best P (400,000 TPS per $/min) and 2GB the highest TPS "
        "(9,100)."
    )
    assert words.statement == (
        "Of 2 values of wal_sync_method, fdatasync has the best P (250,000 TPS per $/min) and the highest TPS "
        "(5,000). Every value costs the same, so P only follows the TPS."
    )


def test_what_intervals_do_not_tell_apart_is_said() -> None:
    tps, p = parameters().entries[0].charts
    assert tps.message == "RO: highest at 2GB; RW: highest at 2GB, its interval overlaps with that of 512MB."
    assert p.message == "RO: highest at 512MB; RW: highest at 128MB."


def test_sizes_stand_by_their_size_and_words_in_the_order_of_the_study() -> None:
    buffers, words = parameters().entries
    axis = buffers.charts[0].x
    mb = 2.0**20
    assert axis.scale == "log2"
    assert [label for _, label in axis.ticks] == ["128MB", "512MB", "2GB"]
    assert [at for at, _ in axis.ticks] == pytest.approx([128 * mb, 512 * mb, 2048 * mb], rel=1e-4)
    assert words.charts[0].x.ticks == ((0.0, "fsync"), (1.0, "fdatasync"))
    names = [(line.name, line.color) for line in words.charts[0].lines if line.style == "line"]
    assert names == [("RW, 4 sessions", "c0"), ("RW, 16 sessions", "c1")]
    assert [row.color for row in words.rows] == ["c0", "c1"] * 2


@pytest.mark.parametrize(
    ("values", "scale", "places"),
    [
        ((64, 8, 16), "log2", (64, 8, 16)),
        ((2, 3, 4), "linear", (2, 3, 4)),
        (("200ms", "1s"), "log2", (0.2, 1)),
        ((0, 8), "linear", (0, 1)),
        ((True, False), "linear", (0, 1)),
        (("1GB", "10s"), "linear", (0, 1)),
        (("1024MB", "1GB"), "linear", (0, 1)),
        (("on",), "linear", (0,)),
    ],
)
def test_only_numbers_of_one_kind_have_a_scale(values: Any, scale: str, places: Any) -> None:
    axis = swept(*(value(one, 0.1, RW={8.0: 100.0}) for one in values)).charts[0].x
    assert (axis.scale, tuple(at for at, _ in axis.ticks)) == (scale, places)


def test_a_line_goes_through_ascending_sizes() -> None:
    entry = swept(*(value(one, 0.1, RW={8.0: 100.0 + one}) for one in (64, 8, 16)))
    assert entry.charts[0].lines[0].data == ((8.0, 108.0), (16.0, 116.0), (64.0, 164.0))
    assert [row.value for row in entry.rows] == ["64", "8", "16"]


def test_without_resources_there_is_no_p() -> None:
    entry = swept(value("1MB", None, RW={8.0: 100.0}), value("2MB", None, RW={8.0: 200.0}))
    assert entry.statement == (
        "Of 2 values of work_mem, 2MB has the highest TPS (200). There is no P: no resources are declared."
    )
    assert [chart.title for chart in entry.charts] == ["TPS over work_mem"]


def test_a_single_value_is_told_as_it_is() -> None:
    entry = swept(value("1MB", 0.5, RW={8.0: 100.0}))
    assert entry.statement == "With work_mem at 1MB: 100 TPS, 200 TPS per $/min."


def test_the_table_has_cost_and_what_the_server_said() -> None:
    rows = [row for row in parameters().entries[0].rows if row.mix == "RO"]
    assert [(row.value, row.held, row.cost_per_minute) for row in rows] == [
        ("128MB", "", 0.02),
        ("512MB", "", 0.03),
        ("2GB", "2097152kB", 0.06),
    ]
    assert [(row.most_tps, row.most_p) for row in rows] == [(False, False), (False, True), (True, False)]
    assert {row.set_s for row in rows} == {2.0}
    assert "Before the sweep shared_buffers was 256MB." in html("parameters")
    assert "as resolved: parameter shared_buffers" in html("parameters")


# --- both -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("evaluator", ["scaleout", "sweep"])
@pytest.mark.parametrize(
    "damaged",
    [
        None,
        [],
        {"0": 3},
        {"0": {"mixes": 3, "values": 3}},
        {"0": {"mixes": {"RO": {"steps": [None, {"nodes": "x"}, {"nodes": 1, "tps": None}]}}}},
        {"0": {"mixes": {"RO": {"steps": [{"nodes": 1, "tps": 5.0}]}}, "added": [None, {"serve_s": "x"}]}},
        {"0": {"values": [None, {"value": 3, "mixes": {"RO": {"points": [None, {}], "tps": 3.0}}}]}},
        {"0": {"parameter": None, "values": [{"mixes": {"RO": 3}}, {"mixes": 4}]}},
    ],
)
def test_damaged_scores_give_a_page(evaluator: str, damaged: Any) -> None:
    given = scaleout_run()
    scores = {**(given.scores or {}), "details": {evaluator: damaged}}
    assert "</html>" in render(build_view(dataclasses.replace(given, scores=scores)))


def test_a_run_without_either_has_neither_section() -> None:
    assert (section(view("sweep"), ScaleOutSection), section(view("sweep"), ParameterSection)) == (None, None)
    assert 'id="scaleout"' not in html("sweep")
    assert 'id="parameters"' not in html("sweep")
