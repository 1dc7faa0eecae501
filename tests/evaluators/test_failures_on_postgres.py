"""Failures of a real cluster, read back by probes beside the load; those of a known length are cases of calibration."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from commands import Ended, finish, start
from nephoscope.cli.live import LineView, VisibleConsole
from nephoscope.store import StoredRun
from sample_studies import write_study

if TYPE_CHECKING:
    from pathlib import Path

    from postgres_lab import Lab


def measured(lab: Lab, folder: Path, measure: dict[str, Any], **system: Any) -> StoredRun:
    return ended_run(lab, folder, measure, **system)[1]


def ended_run(
    lab: Lab, folder: Path, measure: dict[str, Any], *options: str, **system: Any
) -> tuple[Ended, StoredRun]:
    tables = {
        "study": {"name": "cluster"},
        "system": {"provider": "embedded-postgres", "data": str(lab.folder), "replicas": 1, **system},
        "workload": {"name": "tpcb", "scale": 1},
        "load": {"interval": "100ms"},
        "measure": [{"concurrency": 2, "repetitions": 1, **measure}],
    }
    with start("run", write_study(folder, tables), *options, cwd=folder) as process:
        ended = finish(process)
    assert ended.code == 0, ended.err
    return ended, StoredRun(folder / "runs" / "latest")


def scores(run: StoredRun) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run.folder / "scores.json").read_text())
    return found


def test_a_crash_is_survived_by_promotion(ready_lab: Lab, tmp_path: Path) -> None:
    measure = {"evaluator": "failover", "fault": "crash", "before": "2s", "after": "8s", "mix": "TPCB"}
    run = measured(ready_lab, tmp_path, measure)
    found = scores(run)
    assert 0 < found["scores"]["F"]["value"] < 8
    (failure,) = found["scores"]["F"]["detail"]["failures"]
    assert failure["failed_probes"] > 0
    assert failure["errors"]
    assert [e["action"] for e in run.events if e["event"] in ("fault", "action")] == ["kill", "promote"]


def test_the_errors_of_a_planned_failure_are_told_as_expected(ready_lab: Lab, tmp_path: Path) -> None:
    measure = {"evaluator": "failover", "mix": "TPCB", "warmup": "200ms", "before": "1s", "after": "4s"}
    ended, run = ended_run(ready_lab, tmp_path, measure)
    assert not [line for line in ended.out.splitlines() if line.startswith("error (")], ended.out
    (told,) = re.findall(r"^expected errors, by the restart of rw: (.+)$", ended.out, re.MULTILINE)
    counts: Counter[str] = Counter()
    for event in run.events:
        if event["event"] == "error":
            counts[event["class"]] += event["count"]
    assert told == ", ".join(f"{name} {count:,}" for name, count in counts.items())
    ended, run = ended_run(ready_lab, tmp_path, measure, "--json")
    told_to_machines = [json.loads(line) for line in ended.out.splitlines()]
    assert {event["planned"] for event in told_to_machines if event["event"] == "error"} == {"restart of rw"}


def test_what_no_failure_brings_is_told_as_an_error_even_then(capsys: pytest.CaptureFixture[str]) -> None:
    view = LineView(VisibleConsole(width=160))
    record = {"class": "connection_lost", "count": 3, "transaction": "t", "message": "gone"}
    view.expect("kill of ro")
    view.error(record)
    view.error({**record, "class": "other", "message": "a bug"})
    view.error(record)
    view.expect(None)
    view.error(record)
    assert capsys.readouterr().out.splitlines() == [
        "error (other) in t: a bug",
        "expected errors, by the kill of ro: connection_lost 6",
        "error (connection_lost) in t: gone",
    ]


@pytest.mark.alone
def test_under_a_rate_the_throughput_is_as_steady_as_the_rate(ready_lab: Lab, tmp_path: Path) -> None:
    measure = {"evaluator": "failover", "mix": "SELECT", "rate": 300, "before": "2s", "after": "6s"}
    found = scores(measured(ready_lab, tmp_path, measure))
    (failure,) = found["scores"]["F"]["detail"]["failures"]
    assert failure["tps_before"] == pytest.approx(300, rel=0.05)
    assert failure["failed_probes"] > 0
    assert failure["load"] == "open"
    # Who arrived meanwhile was served afterwards, and nobody waits from then on.
    assert 0 < found["scores"]["R"]["value"] < 4
    assert found["scores"]["R"]["detail"]["resolution_s"] == 0.5


@pytest.mark.alone
def test_the_primarys_own_account_of_its_replica_is_told(ready_lab: Lab, tmp_path: Path) -> None:
    loads = [{"name": "writes", "mix": "TPCB"}]
    measure = {"evaluator": "lag", "loads": loads, "duration": "6s", "concurrency": 1}
    score = scores(measured(ready_lab, tmp_path, measure, replica_delay="100ms"))["scores"]["C"]
    (view,) = score["detail"]["server_view"]["writes"].values()
    assert view["bytes_behind"]["max"] > 0
    assert view["replay_lag_ms"]["max"] > 90
    # Beside writes a replica may be later than planted, and never earlier.
    assert score["value"] > 0.9 * 3 * 0.1


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
