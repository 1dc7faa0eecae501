"""What evaluators read from the simulated database is what was planted in it.

Service times are long against a scheduler's delays, and bounds are wider than what a busy machine does: all runs go on
at once.
"""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from scipy.stats import t as student

from commands import Ended, call, finish, start
from nephoscope.scoring.prices import DEFAULT_PRICE_BOOK, cost, load_price_book
from nephoscope.settings.resources import Resources
from nephoscope.store import StoredRun
from nephoscope.store.protocol import Selection
from sample_studies import RESOURCES, Tables, phases, sim_study, throughput, write_study

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.light

SERVICE_S, CAPACITY = 0.025, 4
PLANTED = f"latency=constant(25ms)&capacity={CAPACITY}"
MOST_TPS = CAPACITY / SERVICE_S
UNLIMITED = "latency=constant(25ms)"
SPREAD = "latency=exponential(25ms)"
"""So that sessions which begin together do not go on in step."""

STUDIES: dict[str, Tables] = {
    "sweep": sim_study(
        throughput(concurrency=[1, 4, 8], duration="1s", repetitions=3, slo="35ms"), planted=PLANTED
    ),
    "search": sim_study(
        throughput(
            concurrency="search", search={"most": 32, "gain": 0.2, "duration": "1200ms"}, duration="1200ms"
        ),
        planted=PLANTED,
    ),
    "flat": sim_study(phases({"concurrency": 11, "duration": "4s"}), planted=SPREAD),
    "rising": sim_study(
        phases({"concurrency": {"from": 2, "to": 20}, "duration": "6s"}, repetitions=2),
        planted=SPREAD,
        load={"interval": "150ms"},
    ),
    "course": sim_study(
        phases(
            {"name": "before", "kind": "warm_up", "concurrency": 2, "duration": "300ms"},
            {"name": "thinking", "concurrency": 4, "think": "75ms", "duration": "1500ms"},
            {"name": "resting", "kind": "pause", "concurrency": 0, "duration": "300ms"},
            {"name": "arriving", "rate": 60, "duration": "1500ms", "mix": "SELECT"},
            {"name": "climbing", "rate": {"from": 20, "to": 100}, "duration": "1500ms"},
            repetitions=2,
        ),
        planted=UNLIMITED,
    ),
    "streams": sim_study(
        {
            "evaluator": "load",
            "phases": [
                {"kind": "warm_up", "duration": "300ms", "streams": [{"mix": "SELECT", "concurrency": 2}]},
                {
                    "name": "both",
                    "duration": "2s",
                    "streams": [
                        {"mix": "SELECT", "rate": 60},
                        {"mix": "TPCB", "concurrency": 4, "think": "75ms"},
                    ],
                },
                {"name": "again", "duration": "2s"},
                {"name": "one", "duration": "1s", "streams": [{"mix": "SELECT", "rate": 40}]},
            ],
        },
        planted=UNLIMITED,
    ),
    "half": sim_study(
        phases({"name": "half climbing", "rate": {"from": 20, "to": 100, "over": "1s"}, "duration": "2s"}),
        planted=UNLIMITED,
    ),
    "overload": sim_study(
        phases({"name": "too much", "rate": 400, "duration": "2s"}),
        planted=PLANTED,
        load={"sessions": 8, "backlog": 50},
    ),
    "outage": sim_study(
        phases({"name": "with an outage", "concurrency": 4, "duration": "3s"}),
        planted=f"{UNLIMITED}&outage=1s%2B1s",
    ),
}


@dataclass(frozen=True)
class Measured:
    ended: Ended
    run: StoredRun

    @property
    def scores(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.run.folder / "scores.json").read_text())
        return found

    def points(self, name: str) -> list[dict[str, Any]]:
        """The points of the phases of a name."""
        phases = {phase.number for phase in self.run.phases if phase.name == name}
        return [point for point in self.scores["points"] if point["phase"] in phases]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Measured]:
    folders: dict[str, Path] = {name: tmp_path_factory.mktemp(name) for name in STUDIES}
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(start("run", write_study(folders[name], tables), cwd=folders[name]))
            for name, tables in STUDIES.items()
        }
        ended = {name: finish(process) for name, process in processes.items()}
    failed = "nephoscope: 1 measured phase cannot count, as sessions were not connected\n"
    for name, one in ended.items():
        assert (one.code, one.err) == ((1, failed) if name == "outage" else (0, "")), name
    return {name: Measured(ended[name], StoredRun(folders[name] / "runs" / "latest")) for name in STUDIES}


# --- the evaluator throughput


def test_a_sweep_reads_the_planted_throughput_and_latency(measured: dict[str, Measured]) -> None:
    points = measured["sweep"].scores["points"]
    assert [(point["concurrency"], point["repetition"]) for point in points] == [
        (level, repetition) for repetition in (1, 2, 3) for level in (1, 4, 8)
    ]
    for point in points:
        # Sessions beyond the capacity wait: Little's law.
        served = min(point["concurrency"], CAPACITY)
        assert point["tps"] == pytest.approx(served / SERVICE_S, rel=0.15)
        planted_ms = 1000 * SERVICE_S * point["concurrency"] / served
        assert planted_ms * 0.99 <= point["latency_ms"]["p50"] <= planted_ms * 1.2
        assert point["goodput"] == pytest.approx(
            0 if served < point["concurrency"] else point["tps"], rel=0.3, abs=20
        )
        assert (point["failed"], point["aborted"], point["dropped"]) == (0, 0, 0)


def test_p_is_the_planted_throughput_by_the_cost(measured: dict[str, Measured]) -> None:
    score = measured["sweep"].scores["scores"]["P"]
    per_minute = cost(Resources.model_validate(RESOURCES), load_price_book(DEFAULT_PRICE_BOOK)).per_minute
    assert score["value"] == pytest.approx(MOST_TPS / per_minute, rel=0.1)
    assert score["repetitions"] == 3


def test_the_interval_of_p_is_student_s_over_the_repetitions(measured: dict[str, Measured]) -> None:
    score = measured["sweep"].scores["scores"]["P"]
    (mix,) = score["detail"]["mixes"].values()
    values = [
        point["tps"] / score["detail"]["cost_per_minute"]
        for point in measured["sweep"].scores["points"]
        if point["concurrency"] == mix["concurrency"]
    ]
    mean = sum(values) / 3
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / 2)
    half = float(student.ppf(0.975, 2)) * deviation / math.sqrt(3)
    assert score["value"] == pytest.approx(mean)
    assert score["ci95"] == pytest.approx([mean - half, mean + half], rel=1e-6, abs=1e-6 * mean)


def test_a_sweep_saturates_at_the_planted_capacity(measured: dict[str, Measured]) -> None:
    found = measured["sweep"].scores["saturation"]["SELECT"]
    # A machine that is late loses some throughput just at the capacity, where no session waits for its turn.
    assert found["concurrency"] in (CAPACITY, 2 * CAPACITY)
    assert found["tps"] == pytest.approx(MOST_TPS, rel=0.1)


def test_a_search_finds_the_planted_capacity(measured: dict[str, Measured]) -> None:
    run = measured["search"]
    assert run.scores["saturation"]["SELECT"]["concurrency"] == CAPACITY
    searched = [phase.labels["concurrency"] for phase in run.run.phases if phase.labels.get("search")]
    # Doubling to beyond the capacity, then halving; a machine that stands still for a moment may cost a step more.
    assert {1, 2, 4, 8} <= set(searched)
    assert len(set(searched)) <= 8
    assert run.scores["scores"]["P"]["detail"]["mixes"]["SELECT"]["concurrency"] == CAPACITY
    assert "SELECT: saturated at 4 sessions (TPS changed by" in run.ended.out


# --- the evaluator load


def test_each_stream_is_read_with_its_own_rate_and_sessions(measured: dict[str, Measured]) -> None:
    one = measured["streams"]
    told = one.scores["details"]["load"]["0"]["streams"]
    assert [(of["name"], of["stream"], of["mix"], of["rate"], of["concurrency"]) for of in told] == [
        *(
            row
            for name in ("both", "again")
            for row in ((name, "default", "SELECT", 60, None), (name, "default/2", "TPCB", None, 4))
        ),
        ("one", "default", "SELECT", 40, None),
    ]
    rates = {(of["name"], of["stream"]): of["tps"] for of in told}
    for name in ("both", "again"):
        assert rates[name, "default"] == pytest.approx(60, abs=2)
        # Each of the seven round trips of a transaction takes as long; then the session thinks.
        assert rates[name, "default/2"] == pytest.approx(4 / (7 * SERVICE_S + 0.075), rel=0.15)
        (point,) = one.points(name)
        assert point["tps"] == pytest.approx(rates[name, "default"] + rates[name, "default/2"])
        assert (point["mix"], point["rate"], point["concurrency"]) == ("SELECT + TPCB", 60, 4)
    assert rates["one", "default"] == pytest.approx(40, abs=2)
    (alone,) = one.points("one")
    # A stream that a phase has no more rests, once its four sessions have ended their transactions.
    assert 0 <= alone["tps"] - rates["one", "default"] <= 4 * 1.01
    assert "Streams: loads side by side" in one.ended.out


def test_a_planted_drift_is_found_with_its_slope(measured: dict[str, Measured]) -> None:
    rising, (flat,) = (measured[name].scores["points"] for name in ("rising", "flat"))
    # From 2 to 20 sessions in 6 s, about a mean of 11.
    planted = (20 - 2) / 6 * 60 / 11
    # One of the two, as a machine that stands still for a moment hides it.
    found = [point for point in rising if point["steady"] is False]
    assert found
    assert any(point["drift_per_minute"] == pytest.approx(planted, rel=0.3) for point in found)
    assert abs(flat["drift_per_minute"]) < planted / 3
    verdicts = {verdict["verdict"]: verdict for verdict in measured["rising"].scores["verdicts"]}
    assert verdicts["not every phase was steady"]["level"] == "warning"
    assert "! not every phase was steady: TPS has a trend in SELECT c=20" in measured["rising"].ended.out


def test_phases_follow_each_other_as_written(measured: dict[str, Measured]) -> None:
    run = measured["course"].run
    names = ["before", "thinking", "resting", "arriving", "climbing"]
    told = [phase for phase in run.phases if "repetition" in phase.labels]
    assert [phase.name for phase in told] == names * 2
    lengths = [0.3, 1.5, 0.3, 1.5, 1.5] * 2
    assert [phase.end_s - phase.start_s for phase in told] == pytest.approx(lengths, abs=0.002)
    assert [phase.labels["repetition"] for phase in told] == [1] * 5 + [2] * 5
    # Warm-up and pause are no points.
    assert len(measured["course"].scores["points"]) == 6
    assert measured["course"].scores["absent"]["P"].startswith("a course of load is no measurement")


@pytest.mark.parametrize(
    ("study", "name", "tps"),
    [
        ("course", "thinking", 4 / (0.025 + 0.075)),
        ("course", "arriving", 60.0),
        ("course", "climbing", 60.0),
        ("half", "half climbing", (1 * 60 + 1 * 100) / 2),
    ],
)
def test_a_phase_has_its_planted_load(
    measured: dict[str, Measured], study: str, name: str, tps: float
) -> None:
    points = measured[study].points(name)
    assert [point["repetition"] for point in points] == ([1, 2] if study == "course" else [1])
    for point in points:
        assert point["tps"] == pytest.approx(tps, rel=0.12)
        assert point["latency_ms"]["p50"] == pytest.approx(25, rel=0.2)


def test_what_arrives_beyond_the_capacity_is_dropped_and_counted(measured: dict[str, Measured]) -> None:
    (point,) = measured["overload"].points("too much")
    arrived, served, waiting = 2 * 400, 2 * MOST_TPS, 50 + 8
    assert point["tps"] == pytest.approx(MOST_TPS, rel=0.1)
    assert point["dropped"] == pytest.approx(arrived - served - waiting, rel=0.1)
    assert point["arrivals"] == arrived
    assert point["unstarted"] - point["dropped"] == pytest.approx(50, abs=2), "who waits at the end"
    # While the backlog is full, 50 wait before them and 8 are served with them.
    served_ns = measured["overload"].run.merged(Selection(phases=frozenset({point["phase"]}))).quantile(0.5)
    assert served_ns / 1e6 == pytest.approx(1000 * waiting / MOST_TPS, rel=0.25)
    # Whoever was dropped at the beginning has waited for all of the phase by its end.
    assert point["latency_ms"]["p99"] == pytest.approx(2000, rel=0.2)
    assert "p99" in point["latency_ms"]["at_least"]
    verdicts = {verdict["verdict"]: verdict for verdict in measured["overload"].scores["verdicts"]}
    assert verdicts["the system did not keep up"]["level"] == "problem"
    assert any("arrivals were dropped" in warning for warning in measured["overload"].scores["warnings"])


def test_an_outage_shows_in_events_and_not_as_a_crash(measured: dict[str, Measured]) -> None:
    run = measured["outage"].run
    states = [event["state"] for event in run.events if event["event"] == "connection"]
    assert "lost" in states
    assert "restored" in states
    starts, counts = (run.intervals.column(name).to_numpy() for name in ("start_s", "committed"))
    assert counts[(starts > 1.05) & (starts < 1.85)].sum() == 0
    assert counts[starts > 2.5].sum() > 20
    scores = measured["outage"].scores
    assert (scores["points"], [one["wanted"] for one in scores["shortfalls"]]) == ([], [4])
    assert "planted outage" in next(e["detail"] for e in scores["verdicts"] if e["level"] == "problem")


def test_the_share_of_what_ran_on_the_read_only_endpoint_is_told(tmp_path: Path) -> None:
    tables = sim_study(
        throughput(mixes=["SELECT", "TPCB", {"select_only": 3, "tpcb_like": 1}], duration="2s")
    )
    tables["system"]["ro"] = ["sim://?latency=constant(2ms)"]
    ended = call("run", write_study(tmp_path, tables), "--out", tmp_path / "runs")
    assert ended.code == 0
    scores = json.loads((tmp_path / "runs" / "latest" / "scores.json").read_text())
    shares = [entry["ro_share"] for entry in scores["scores"]["P"]["detail"]["mixes"].values()]
    assert shares == pytest.approx([1.0, 0.0, 0.75], abs=0.06)
    assert "on ro" in ended.out


def test_nodes_fail_under_the_share_of_the_capacity_that_is_asked_for(tmp_path: Path) -> None:
    failover: Tables = {"evaluator": "failover", "mix": "SELECT", "concurrency": 8, "utilization": 0.5}
    failover |= {"warmup": "300ms", "before": "1s", "after": "3s", "hold": "500ms", "window": "300ms"}
    tables = sim_study({**failover, "repetitions": 1, "probe_rate": 20})
    tables["system"] = {"provider": "sim", "plan": PLANTED, "outage": "300ms", "resources": RESOURCES}
    ended = call("run", write_study(tmp_path, tables), "--out", tmp_path / "runs")
    assert (ended.code, ended.err) == (0, "")
    run = StoredRun(tmp_path / "runs" / "latest")
    (capacity,) = (event for event in run.events if event["event"] == "capacity")
    assert capacity["tps"] == pytest.approx(MOST_TPS, rel=0.15)
    assert capacity["rate"] == pytest.approx(capacity["tps"] / 2)
    assert run.scores is not None
    (failure,) = run.scores["details"]["failover"]["0"]["failures"]
    assert failure["load"] == "open"
    assert failure["tps_before"] == pytest.approx(capacity["rate"], rel=0.1)
    # The capacity is no point of the throughput.
    assert run.scores["points"] == []
