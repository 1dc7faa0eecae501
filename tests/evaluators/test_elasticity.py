"""What the evaluator of elasticity reads from a simulated database is what was planted in it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from commands import finish, start
from nephoscope.calibration.elasticity import BASE, planted_cost
from nephoscope.evaluators.elasticity.section import build as build_section
from nephoscope.report.build import build_view
from nephoscope.report.kit.run import Run
from nephoscope.scoring.prices import DEFAULT_PRICE_BOOK, Stretch, allocated_cost, load_price_book
from nephoscope.settings.resources import Resources
from nephoscope.store import StoredRun
from nephoscope.tables.columns import seconds
from sample_studies import Tables, sim_study, write_study

if TYPE_CHECKING:
    from pathlib import Path

    from nephoscope.report.kit.charts import TimeChart

pytestmark = pytest.mark.light

SERVICE_S = 0.025
REST_S, SLOT_S, WINDOW_S, WATCH_S = 1.0, 2.0, 60.0, 2.0


def elasticity(**settings: Any) -> Tables:
    brief = {
        "mixes": ["SELECT"],
        "slot": f"{SLOT_S}s",
        "rest": f"{REST_S}s",
        "window": f"{WINDOW_S}s",
        "watch": f"{WATCH_S}s",
        "slo": "60ms",
    }
    return {"evaluator": "elasticity", **brief, **settings}


def planted(allocation: list[tuple[float, float]], **system: Any) -> Tables:
    """A system whose vCores change at times; memory goes with them."""
    steps = [{"at": at, "vcores": vcores, "memory_gb": 4 * vcores} for at, vcores in allocation]
    return {
        "provider": "sim",
        "rw": None,
        "plan": f"latency=constant({SERVICE_S * 1000:g}ms)",
        "resources": BASE,
        "capacity_per_vcore": 2,
        "allocation": steps,
        **system,
    }


# Since the start of the load: slots at 1, 3 and 5 s, the end at 7 s, watched until 9 s.
SPIKE = [(3.6, 4.0), (5.4, 3.0), (5.9, 2.0), (7.5, 1.0)]
# Paused in the valley; it wakes 0.7 s after the load has come back.
VALLEY = [(3.5, 0.0), (5.7, 2.0)]

STUDIES: dict[str, tuple[Tables, Tables]] = {
    "spike": (
        elasticity(patterns=[{"name": "spike", "shares": [0.25, 1.0, 0.25]}], tau=8),
        planted(SPIKE),
    ),
    "valley": (elasticity(patterns=["zero-valley"], tau=8, watch="1s"), planted(VALLEY)),
    "constant": (
        elasticity(
            patterns=["single-peak", {"slots": 2, "seed": 5}],
            tau="search",
            search={"most": 16, "gain": 0.2, "duration": "1s"},
            watch="0s",
            slot="1s",
            rest="300ms",
        ),
        {"provider": "url", "rw": "sim://?latency=constant(50ms)&capacity=4", "resources": BASE},
    ),
    "unknown": (
        elasticity(patterns=["single-peak"], tau=2, slot="300ms", rest="0s", watch="0s"),
        {"provider": "url", "rw": "sim://?latency=constant(5ms)", "resources": None},
    ),
}


@dataclass(frozen=True)
class Measured:
    run: StoredRun
    scores: dict[str, Any]
    out: str

    @property
    def e1(self) -> dict[str, Any]:
        found: dict[str, Any] = self.scores["scores"]["E1"]
        return found

    @property
    def pattern(self) -> dict[str, Any]:
        (found,) = self.e1["detail"]["patterns"]
        assert isinstance(found, dict)
        return found


def _study(measure: Tables, system: Tables) -> Tables:
    tables = sim_study(measure)
    tables["system"] = {key: value for key, value in system.items() if value is not None}
    return tables


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Measured]:
    folders: dict[str, Path] = {name: tmp_path_factory.mktemp(name) for name in STUDIES}
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(
                start("run", write_study(folders[name], _study(*STUDIES[name])), cwd=folders[name])
            )
            for name in STUDIES
        }
        ended = {name: finish(process) for name, process in processes.items()}
        for name, one in ended.items():
            assert (one.code, one.err) == (0, ""), name
        runs = {name: StoredRun(folders[name] / "runs" / "latest") for name in STUDIES}
        return {
            name: Measured(run, json.loads((run.folder / "scores.json").read_text()), ended[name].out)
            for name, run in runs.items()
        }


def starts(measured: Measured) -> list[float]:
    return [slot["start_s"] for slot in measured.pattern["slots"]]


# --- slots


def test_a_pattern_is_one_continuous_course_of_slots(measured: dict[str, Measured]) -> None:
    spike = measured["spike"]
    assert starts(spike) == pytest.approx([1.0, 3.0, 5.0], abs=0.002)
    assert [slot["sessions"] for slot in spike.pattern["slots"]] == [2, 8, 2]
    phases = [(phase.name, phase.kind) for phase in spike.run.phases][:5]
    assert phases == [
        ("spike before", "pause"),
        ("spike slot 1", "measure"),
        ("spike slot 2", "measure"),
        ("spike slot 3", "measure"),
        ("spike after", "pause"),
    ]


def test_tps_of_each_slot_is_what_the_planted_capacity_serves(measured: dict[str, Measured]) -> None:
    # Two at a time until 3.6 s, then eight.
    of_spike = [2 / SERVICE_S, (2 * 0.6 + 8 * 1.4) / SLOT_S / SERVICE_S, 2 / SERVICE_S]
    of_valley = [2 / SERVICE_S, 0.0, 4 * 1.3 / SLOT_S / SERVICE_S]
    for name, tps in (("spike", of_spike), ("valley", of_valley)):
        for slot, planted_tps in zip(measured[name].pattern["slots"], tps, strict=True):
            # Who is in flight at the border of a slot is counted where he ends. A busy machine is late with each
            # round trip, and never early.
            in_flight = (8 if name == "spike" else 4) / SLOT_S
            assert 0.9 * planted_tps - in_flight <= slot["tps"] <= planted_tps + in_flight
        planted_mean = sum(tps) / len(tps)
        assert 0.9 * planted_mean <= measured[name].pattern["mean_tps"] <= 1.001 * planted_mean


def test_e1_is_the_mean_tps_over_the_planted_cost(measured: dict[str, Measured]) -> None:
    for name, steps in (("spike", SPIKE), ("valley", VALLEY)):
        one = measured[name]
        begun = starts(one)[0]
        dollars = planted_cost(begun, begun + WINDOW_S, steps)
        assert one.pattern["cost"] == pytest.approx(dollars, rel=0.005)
        mean = sum(slot["tps"] for slot in one.pattern["slots"]) / 3
        assert one.e1["value"] == pytest.approx(mean / dollars, rel=0.006)
        assert one.e1["unit"] == "TPS per $"
        low, high = one.e1["ci95"]
        assert low <= one.e1["value"] <= high


def test_what_was_not_watched_is_said_to_be_assumed(measured: dict[str, Measured]) -> None:
    entry = measured["spike"].pattern
    assert entry["assumed_s"] == pytest.approx(WINDOW_S - 3 * SLOT_S - WATCH_S, abs=0.01)
    assert "52 s of a window of 60 s were not watched" in measured["spike"].e1["detail"]["assumed"]


# --- transitions


def test_scaling_times_and_costs_are_those_that_were_planted(measured: dict[str, Measured]) -> None:
    one = measured["spike"]
    told = [
        (change["from_sessions"], change["to_sessions"], change["from_vcores"], change["to_vcores"])
        for change in one.pattern["transitions"]
    ]
    assert told == [(0, 2, 1, 1), (2, 8, 1, 4), (8, 2, 4, 2), (2, 0, 2, 1)]
    times = [None, 0.6, 0.9, 0.5]
    for change, planted_s in zip(one.pattern["transitions"], times, strict=True):
        if planted_s is None:
            assert change["scaling_s"] is None
            assert change["scaling_cost"] is None
            continue
        assert change["scaling_s"] == pytest.approx(planted_s, abs=0.02)
        dollars = planted_cost(change["at_s"], change["at_s"] + change["scaling_s"], SPIKE)
        assert change["scaling_cost"] == pytest.approx(dollars, rel=0.005)


def test_too_few_and_too_many_vcores_are_shares_of_time_and_area(measured: dict[str, Measured]) -> None:
    up, down = measured["spike"].pattern["transitions"][1:3]
    # At τ all of 4 vCores are needed, and there was 1 for 0.6 of 2 s.
    assert up["demand_vcores"] == 4
    assert (up["under_time"], up["over_time"]) == pytest.approx((0.3, 0.0), abs=0.01)
    assert (up["under_area"], up["over_area"]) == pytest.approx((0.3 * 3 / 4, 0.0), abs=0.01)
    # At a quarter 1 is needed; there were 4 for 0.4 s, 3 for 0.5 s and 2 for 1.1 s.
    assert down["demand_vcores"] == 1
    assert (down["under_time"], down["over_time"]) == pytest.approx((0.0, 1.0), abs=0.01)
    assert down["over_area"] == pytest.approx((3 * 0.4 + 2 * 0.5 + 1 * 1.1) / 2 / 4, abs=0.01)
    assert [change["oscillations"] for change in measured["spike"].pattern["transitions"]] == [0, 0, 0, 0]


def test_transactions_that_break_the_slo_are_counted_for_each_change(measured: dict[str, Measured]) -> None:
    calm, crowded, *_ = (change["slo_broken"] for change in measured["spike"].pattern["transitions"])
    # Eight at a time where two are served: all wait for 0.1 s, until there is room for all.
    assert crowded >= 0.5 * 2 * 0.6 / SERVICE_S
    assert calm <= 0.2 * 2 * SLOT_S / SERVICE_S


def test_the_wake_up_after_an_idle_slot_is_measured(measured: dict[str, Measured]) -> None:
    *_, wakes, ends = measured["valley"].pattern["transitions"]
    assert (wakes["from_sessions"], wakes["to_sessions"]) == (0, 4)
    assert 0.7 + SERVICE_S - 0.01 <= wakes["wake_up_s"] <= 0.7 + SERVICE_S + 0.25
    assert ends["wake_up_s"] is None


def test_an_idle_slot_has_no_connection_of_the_load(measured: dict[str, Measured]) -> None:
    run = measured["valley"].run
    metrics = run.system_metrics
    rows = zip(*(metrics.column(name).to_pylist() for name in ("time_s", "metric", "value")), strict=True)
    connected = [(time_s, value) for time_s, metric, value in rows if metric == "connected"]
    assert {value for time_s, value in connected if 3.3 < time_s < 5.0} == {0.0}
    assert {value for time_s, value in connected if 1.5 < time_s < 2.9} == {4.0}
    assert not [event for event in run.events if event["event"] == "connection"]


def test_the_interval_of_e1_is_not_that_of_a_level_that_moves(measured: dict[str, Measured]) -> None:
    low, high = measured["spike"].e1["ci95"]
    value = measured["spike"].e1["value"]
    assert 0.4 * value < low < high < 1.6 * value


def test_the_report_has_load_throughput_and_allocation_on_one_time_axis(
    measured: dict[str, Measured],
) -> None:
    shown = build_section(Run(measured["spike"].run))
    assert shown is not None
    load, tps, vcores = shown.charts
    assert load.x == tps.x == vcores.x

    def at(chart: TimeChart, line: int, time_s: float) -> float | None:
        return chart.lines[line].y[next(place for place, x in enumerate(chart.x) if (x or 0) >= time_s)]

    assert [at(load, 0, when) for when in (0.5, 1.5, 4.0, 6.0, 8.0)] == [0, 2, 8, 2, 0]
    assert [at(vcores, 0, when) for when in (0.5, 3.3, 4.0, 5.7, 6.5, 8.5)] == [1, 1, 4, 3, 2, 1]
    assert [at(vcores, 1, when) for when in (0.5, 1.5, 4.0, 6.0, 8.0)] == [0, 1, 4, 1, 0]
    assert (at(tps, 0, 4.5) or 0) > 200
    assert [row.load for row in shown.transitions] == ["0 → 2", "2 → 8", "8 → 2", "2 → 0"]
    assert [row.sessions for row in shown.patterns] == ["2, 8, 2"]
    assert "The allocation: as the provider told it." in shown.note
    assert build_section(Run(measured["unknown"].run)) is None


def test_patterns_do_not_stand_among_mixes(measured: dict[str, Measured]) -> None:
    headline = build_view(measured["constant"].run).headline
    # The steps of the search.
    assert [row.mix for row in headline.mixes] == ["SELECT"]
    assert headline.average is None
    # Where there is nothing else they are what there is to show.
    assert [row.mix for row in build_view(measured["unknown"].run).headline.mixes] == ["single-peak"]


def test_the_summary_has_a_row_for_each_pattern(measured: dict[str, Measured]) -> None:
    title, _, row, *_ = measured["spike"].out.partition("E1-Score: ")[2].splitlines()
    assert title == "TPS per $ over 60 s"
    assert row.split()[:4] == ["spike", "2,", "8,", "2"]
    slowest = max(change["scaling_s"] or 0 for change in measured["spike"].pattern["transitions"])
    assert f" {seconds(slowest)} " in row


# --- without an allocation


def test_a_provider_that_tells_nothing_has_constant_resources(measured: dict[str, Measured]) -> None:
    one = measured["constant"]
    detail = one.e1["detail"]
    assert detail["allocation"].startswith("the provider tells no allocation")
    assert detail["assumed"] is None
    book = load_price_book(DEFAULT_PRICE_BOOK)
    dollars = allocated_cost([Stretch(WINDOW_S, Resources.model_validate(BASE))], book)
    assert [entry["cost"] for entry in detail["patterns"]] == pytest.approx([dollars] * 2)
    assert all(change["scaling_s"] is None for change in detail["patterns"][0]["transitions"])
    assert one.e1["value"] == pytest.approx(
        sum(entry["mean_tps"] for entry in detail["patterns"]) / 2 / dollars
    )


def test_tau_is_searched_for_and_patterns_are_shares_of_it(measured: dict[str, Measured]) -> None:
    one = measured["constant"]
    tau = one.scores["saturation"]["SELECT"]["concurrency"]
    # A machine that is late loses some throughput just at the capacity.
    assert 4 <= tau <= 8
    peak, drawn = one.e1["detail"]["patterns"]
    assert [slot["sessions"] for slot in peak["slots"]] == [0, tau, 0]
    assert drawn["pattern"] == "pareto seed 5"
    assert sum(slot["sessions"] for slot in drawn["slots"]) in (tau, tau + 1)


def test_without_any_resources_e1_is_absent(measured: dict[str, Measured]) -> None:
    assert "tells what the system was given" in measured["unknown"].scores["absent"]["E1"]
    assert len([point for point in measured["unknown"].scores["points"] if point["slot"]]) == 3
