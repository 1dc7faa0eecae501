"""A parameter that is set to one value after another: planted, by hooks, and on stored runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from nephoscope.errors import InputError
from nephoscope.measuring.measurement import run_study
from nephoscope.measuring.silence import Silence
from nephoscope.results.tables import tables_of
from nephoscope.scoring.prices import cost, load_price_book
from nephoscope.settings.resources import Resources
from nephoscope.store import StoredRun
from nephoscope.study.reading import make_study
from nephoscope.tables.columns import RunFigures
from sample_studies import RESOURCES

if TYPE_CHECKING:
    from pathlib import Path

TPS_OF_ONE = 100.0
"""What one round trip at a time makes that takes 10 ms."""
SLACK = 0.08


def sweep(**settings: Any) -> dict[str, Any]:
    brief = {"parameter": "capacity", "values": [2, 4, 8], "mixes": ["SELECT"], "concurrency": [16]}
    times = {"warmup": "200ms", "duration": "1500ms", "repetitions": 1}
    return {"evaluator": "sweep", **brief, **times, **settings}


def planted(measure: dict[str, Any], *others: dict[str, Any], **system: Any) -> dict[str, Any]:
    sim = {"provider": "sim", "plan": "latency=constant(10ms)&capacity=3", "resources": RESOURCES}
    return {
        "study": {"name": "swept"},
        "system": {**sim, **system},
        "workload": {"name": "tpcb"},
        "load": {"interval": "100ms"},
        "measure": [measure, *others],
    }


def measured(folder: Path, tables: dict[str, Any]) -> tuple[StoredRun, dict[str, Any]]:
    outcome = run_study(make_study(tables, "planted"), folder / "runs", Silence())
    assert outcome.status == "measured", outcome.reason
    return StoredRun(outcome.folder), dict(outcome.scores)


def per_minute(**over: Any) -> float:
    return cost(
        Resources.model_validate({**RESOURCES, **over}), load_price_book("cloudybench-2024")
    ).per_minute


@pytest.mark.light
def test_a_planted_capacity_is_read_back_at_each_value(tmp_path: Path) -> None:
    after = {"evaluator": "load", "phases": [{"duration": "1s", "concurrency": 8, "mix": "SELECT"}]}
    memory = [{"memory_gb": 1}, {"memory_gb": 20}, {}]
    run, found = measured(tmp_path, planted(sweep(resources=memory, repetitions=2), after))
    detail = found["details"]["sweep"]["0"]
    assert (detail["parameter"], detail["before"]) == ("capacity", 3)
    for entry, value, gb in zip(detail["values"], (2, 4, 8), (1, 20, 16), strict=True):
        assert (entry["value"], entry["held"]) == (value, value)
        assert entry["resources"]["memory_gb"] == gb
        assert entry["cost_per_minute"] == pytest.approx(per_minute(memory_gb=gb))
        of = entry["mixes"]["SELECT"]
        [point] = of["points"]
        assert point["tps"] == pytest.approx(value * TPS_OF_ONE, rel=SLACK)
        assert point["p"] == pytest.approx(point["tps"] / per_minute(memory_gb=gb))
        assert (point["repetitions"], point["failed"], of["tps"]) == (2, 0, point["tps"])
        assert point["latency_ms"]["p50"] == pytest.approx(16 / value * 10, rel=0.2)
    last = found["points"][-1]
    assert last["tps"] == pytest.approx(3 * TPS_OF_ONE, rel=SLACK), "it is what it was before"
    assert [e["held"] for e in run.events if e["event"] == "setting"] == [2, 4, 8, 2, 4, 8, 3]
    assert not [e for e in run.events if e["event"] in ("connection", "error")], (
        "nobody was connected meanwhile"
    )


@pytest.mark.light
def test_several_levels_have_a_mean(tmp_path: Path) -> None:
    _, found = measured(tmp_path, planted(sweep(values=[4], concurrency=[2, 16])))
    [entry] = found["details"]["sweep"]["0"]["values"]
    tps = [point["tps"] for point in entry["mixes"]["SELECT"]["points"]]
    assert tps == [pytest.approx(200, rel=SLACK), pytest.approx(400, rel=SLACK)]
    assert entry["mixes"]["SELECT"]["tps"] == pytest.approx(sum(tps) / 2)
    assert entry["mixes"]["SELECT"]["p"] == pytest.approx(sum(tps) / 2 / per_minute())


@pytest.mark.parametrize(
    ("system", "parameter", "why"),
    [
        ({"provider": "url", "rw": "sim://"}, "work_mem", "the provider url cannot set parameters"),
        (
            {"provider": "url", "rw": "sim://", "hooks": {"set": "true"}},
            "work_mem",
            "does not tell what work_mem is",
        ),
        (None, "work_mem", "the simulated database has no parameter work_mem"),
    ],
)
def test_what_cannot_be_set_or_put_back_is_told(
    tmp_path: Path, system: dict[str, Any] | None, parameter: str, why: str
) -> None:
    also = {"evaluator": "load", "phases": [{"duration": "200ms", "concurrency": 1, "mix": "SELECT"}]}
    tables = planted(sweep(parameter=parameter), also)
    tables["system"] = system or tables["system"]
    _, found = measured(tmp_path, tables)
    [warning] = [warning for warning in found["warnings"] if warning.startswith("sweep of")]
    assert why in warning
    assert not found["details"]


@pytest.mark.light
def test_a_value_that_is_refused_ends_it_and_what_was_measured_stays(tmp_path: Path) -> None:
    tables = planted(sweep(values=[5, 0, 7]))
    outcome = run_study(make_study(tables, "planted"), tmp_path / "runs", Silence())
    assert (outcome.status, "capacity, to 1 or more" in str(outcome.reason)) == ("failed", True)
    [entry] = outcome.scores["details"]["sweep"]["0"]["values"]
    assert entry["mixes"]["SELECT"]["tps"] == pytest.approx(500, rel=SLACK)
    *_, last = [e for e in StoredRun(outcome.folder).events if e["event"] == "setting"]
    assert (last["value"], last["held"]) == (3, 3)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"values": [1, 2, 1]}, "the same twice: 1"),
        ({"values": []}, "values"),
        ({"resources": [{"memory_gb": 1}]}, "one for each, or none"),
        ({"parameter": "a; drop table"}, "parameter"),
        ({"limit": 0}, "duration and limit must be above 0"),
    ],
)
def test_what_is_wrong_is_found_before_anything_is_touched(wrong: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        make_study(planted(sweep(**wrong)), "wrong")


def test_a_stored_sweep_is_plain_data(tmp_path: Path) -> None:
    _, found = measured(tmp_path, planted(sweep(values=[4], duration="300ms"), resources=None))
    text = json.dumps(found["details"])
    [entry] = json.loads(text)["sweep"]["0"]["values"]
    assert (entry["cost_per_minute"], entry["mixes"]["SELECT"]["p"]) == (None, None)


def test_two_sweeps_of_a_parameter_are_told_apart(tmp_path: Path) -> None:
    brief = {"duration": "300ms", "warmup": 0}
    run, found = measured(tmp_path, planted(sweep(values=[2], **brief), sweep(values=[4], **brief)))
    told = found["details"]["sweep"]
    assert {place: [entry["value"] for entry in of["values"]] for place, of in told.items()} == {
        "0": [2],
        "1": [4],
    }
    [table] = [table for table in tables_of([RunFigures("run", run, found)]) if table.name == "sweeps"]
    assert [(row["measure"], row["value"]) for row in table.rows] == [(0, "2"), (1, "4")]
    assert table.headings[0] == "measure"
