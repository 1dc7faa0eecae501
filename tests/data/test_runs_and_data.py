"""What runs leave behind in the record of their data, and what runs at the same time know of each other."""

from __future__ import annotations

import json
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from postgres_lab import password_of

from commands import Ended, call, finish, start, wait_for
from databases import Server, query, running_server, study_of
from sample_studies import phases, write_study

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

BRIEF = phases({"duration": "1s", "mix": "RW", "concurrency": 2})
ENDLESS = phases({"duration": "600s", "mix": "RW", "concurrency": 1})
LABELS = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'nephoscope % run %'"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server(max_connections=150) as server:
        yield server


@pytest.fixture
def url(server: Server) -> str:
    return server.new_database()


def checked(study: Path) -> tuple[Ended, dict[str, str], set[str]]:
    """Check the data: the command's end, the verdicts by name, and their reasons."""
    ended = call("check", study, "--json")
    results = json.loads(ended.out)
    return ended, {one["name"]: one["verdict"] for one in results}, {one["detail"] for one in results}


def warnings_of(run: Path) -> list[str]:
    found: list[str] = json.loads((run / "scores.json").read_text())["warnings"]
    return [warning for warning in found if "same server" in warning]


@contextmanager
def going_on(study: Path, folder: Path, url: str) -> Iterator[subprocess.Popen[str]]:
    """Let a run go on in a process of its own; give it when others can see it."""
    with start("run", study, "--out", folder, cwd=folder.parent) as process:
        wait_for(lambda: query(url, LABELS) != [["0"]], "the run is seen", process)
        yield process


@pytest.mark.parametrize(
    ("on_connect", "message"),
    [(["SELECT nothing"], "nothing"), (["SELECT 1/0"], "division by zero")],
)
def test_a_run_that_cannot_start_leaves_the_data_as_it_was(
    url: str, tmp_path: Path, on_connect: list[str], message: str
) -> None:
    study = write_study(tmp_path, study_of(url, BRIEF))
    assert call("load", study).code == 0
    tables = study_of(url, phases({"duration": "1s", "mix": "RW", "concurrency": 2}))
    tables["load"] |= {"on_connect": on_connect}
    failed = call("run", write_study(tmp_path, tables, "other.toml"), "--out", tmp_path / "runs")
    assert (failed.code, message in failed.err) == (1, True), failed.err
    assert (tmp_path / "runs" / "latest").exists(), "its data was ready"
    ended, found, _ = checked(study)
    assert (ended.code, set(found.values())) == (0, {"holds"})


def test_a_run_without_a_transaction_leaves_the_data_as_it_was(url: str, tmp_path: Path) -> None:
    idle = phases({"duration": "1s", "mix": "RW", "rate": 0.01})
    study = write_study(tmp_path, study_of(url, idle))
    ended = call("run", study, "--out", tmp_path / "runs")
    assert ended.code == 0, ended.err
    manifest = json.loads((tmp_path / "runs" / "latest" / "manifest.json").read_text())
    assert manifest["totals"]["started"] == 0
    ended, found, _ = checked(study)
    assert (ended.code, set(found.values())) == (0, {"holds"})


def test_while_a_run_goes_on_its_data_is_neither_judged_nor_replaced(url: str, tmp_path: Path) -> None:
    study = write_study(tmp_path, study_of(url, ENDLESS))
    with going_on(study, tmp_path / "runs", url) as process:
        run = (tmp_path / "runs" / "latest").resolve().name
        ended, found, reasons = checked(study)
        assert (ended.code, found["credit_is_paid"]) == (3, "unknown")
        assert f"the run {run} goes on: check again when it has ended" in reasons
        refused = call("load", study, "--force")
        assert refused.code == 1
        assert f"the data of sales is in use: run {run} goes on; wait for its end" in refused.err
        process.send_signal(signal.SIGINT)
        assert finish(process).code == 1
    ended, found, _ = checked(study)
    assert (ended.code, found.pop("order_totals"), set(found.values())) == (0, "not checked", {"holds"})
    assert call("load", study, "--force").code == 0


def test_runs_at_the_same_time_warn_of_each_other_by_name(server: Server, url: str, tmp_path: Path) -> None:
    """Also where they are in two databases: they share the server."""
    long = study_of(url, ENDLESS)
    long["study"]["name"] = "long"
    for name, place in (("same", url), ("other", server.new_database())):
        brief = study_of(place, phases({"duration": "3s", "mix": "RW", "concurrency": 1}))
        brief["study"]["name"] = name
        study = write_study(tmp_path, brief, f"{name}.toml")
        assert call("load", study).code == 0
    with going_on(write_study(tmp_path, long), tmp_path / "long", url) as process:
        for name in ("same", "other"):
            ended = call("run", tmp_path / f"{name}.toml", "--out", tmp_path / name)
            assert ended.code == 0, ended.err
            first = ended.out.index("warning: at work on the same server at the same time: run ")
            assert first < ended.out.index("TPS"), "it is told before anything is measured"
        process.send_signal(signal.SIGINT)
        finish(process)
    runs = {name: (tmp_path / name / "latest").resolve() for name in ("long", "same", "other")}
    of_long = "at the same time: run {}; throughput and latency are those of a shared server"
    for name in ("same", "other"):
        (warning,) = warnings_of(runs[name])
        assert of_long.format(runs["long"].name) in warning
    for warning, name in zip(warnings_of(runs["long"]), ("same", "other"), strict=True):
        assert of_long.format(runs[name].name) in warning


def test_a_killed_run_is_not_taken_for_one_at_the_same_time(url: str, tmp_path: Path) -> None:
    with going_on(write_study(tmp_path, study_of(url, ENDLESS)), tmp_path / "killed", url) as process:
        process.send_signal(signal.SIGKILL)
        finish(process)
    wait_for(lambda: query(url, LABELS) == [["0"]], "its sessions are gone")
    study = write_study(tmp_path, study_of(url, phases({"duration": "3s", "mix": "RW", "concurrency": 1})))
    ended = call("run", study, "--out", tmp_path / "runs")
    assert ended.code == 0, ended.err
    assert "same server" not in ended.out
    assert warnings_of(tmp_path / "runs" / "latest") == []
    killed = (tmp_path / "killed" / "latest").resolve().name
    ended, _, reasons = checked(study)
    assert ended.code == 3
    assert any(reason.startswith(f"the run {killed} did not end") for reason in reasons)


def test_the_command_that_is_named_has_the_settings_and_no_password(url: str, tmp_path: Path) -> None:
    study = write_study(tmp_path, study_of("postgresql://nobody@localhost/none", BRIEF))
    settings = ["--set", f"system.rw={url}", "--set", "workload.scale=0.001"]
    ended = call("check", study, *settings)
    assert ended.code == 1
    password = password_of(url)
    assert password
    assert password not in ended.err
    assert ended.err.endswith("--set workload.scale=0.001\n")
    assert f"load it with: nephoscope load {study} --set " in ended.err
