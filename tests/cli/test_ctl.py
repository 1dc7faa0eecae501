"""A running run is steered from another terminal: each change takes effect, and is an event of the run."""

from __future__ import annotations

import contextlib
import json
import socket
import stat
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commands import call, finish, start, wait_for
from nephoscope.measuring.control import ask
from nephoscope.store import StoredRun
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

OPEN = phases(
    {"duration": "60s", "rate": 200, "name": "steady"}, {"duration": "1s", "rate": 50, "name": "after"}
)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A run of an open load that would go on for a minute."""
    study = write_study(tmp_path, sim_study(OPEN, planted="latency=constant(1ms)"))
    with start("run", study, cwd=tmp_path) as process:
        folder = tmp_path / "runs" / "latest"
        for name in ("control", "events.jsonl"):
            wait_for((folder / name).exists, f"the file {name}", process)
        yield folder.resolve(), process


def rates(folder: Path, start_s: float, end_s: float) -> float:
    table = StoredRun(folder).intervals
    starts, ends = (table.column(name).to_numpy() for name in ("start_s", "end_s"))
    inside = (starts >= start_s) & (ends <= end_s)
    seconds = len(np.unique(starts[inside])) * 0.1
    return float(table.column("committed").to_numpy()[inside].sum() / seconds)


def test_what_is_asked_of_a_running_run_takes_effect_and_is_on_record(
    run: tuple[Path, subprocess.Popen[str]],
) -> None:
    folder, process = run
    asked = call("ctl", folder, "--json")
    assert asked.code == 0, asked.err
    state = json.loads(asked.out)
    assert state["asked"]["rate"] == 200
    assert not state["paused"]
    told = call("ctl", folder, "set", "rate=400", "mix=SIMPLE")
    assert (told.code, told.err) == (0, "")
    assert "rate 400; mix simple_update 100%" in told.out
    wait_for(lambda: json.loads(call("ctl", folder, "--json").out)["elapsed_s"] > 4, "some load", process)
    assert "paused" in call("ctl", folder, "pause").out
    assert call("ctl", folder, "pause").code == 2
    assert "paused" not in call("ctl", folder, "resume").out
    assert call("ctl", folder, "resume").code == 2
    assert "stopping" in call("ctl", folder, "stop").out
    ended = finish(process)
    assert ended.code == 1
    kept = StoredRun(folder)
    assert (kept.manifest["status"], kept.manifest["reason"]) == ("interrupted", "stopped by nephoscope ctl")
    steered = [event for event in kept.events if event["event"] == "steered"]
    assert [event["load"] for event in steered] == [
        {"rate": 400.0, "mix": {"simple_update": 1.0}},
        {"rate": 0.0},
        {"rate": 400.0},
    ]
    changed, paused, _ = (event["time_s"] for event in steered)
    assert rates(folder, changed + 0.2, paused - 0.2) == pytest.approx(400, rel=0.02)
    after = kept.intervals.filter(kept.intervals.column("start_s").to_numpy() > changed + 0.2)
    assert set(after.column("transaction").to_pylist()) == {"simple_update"}
    assert not (folder / "control").exists()
    assert call("ctl", folder).code == 2
    # What was steered is no measurement of what the study asks for.
    assert kept.scores is not None
    assert kept.scores["points"] == []
    course = kept.scores["course"]
    assert any(stretch["steered"] for stretch in course)
    assert {stretch["rate"] for stretch in course} >= {200.0, 400.0}


def test_a_change_that_takes_time_leads_there_and_the_next_phase_has_its_own(tmp_path: Path) -> None:
    course = phases({"duration": "4s", "rate": 100}, {"duration": "1s", "rate": 300, "name": "after"})
    study = write_study(tmp_path, sim_study(course, planted="latency=constant(1ms)"))
    with start("run", study, cwd=tmp_path) as process:
        folder = tmp_path / "runs" / "latest"
        wait_for((folder / "control").exists, "the control socket", process)
        told = call("ctl", folder, "set", "rate=500", "mix=SIMPLE", "--over", "2s")
        assert told.code == 0, told.err
        assert finish(process).code == 0
    kept = StoredRun(folder)
    (steered,) = [event for event in kept.events if event["event"] == "steered"]
    begun = steered["time_s"]
    # In the middle of the ramp the rate and the mix are half of the way.
    assert rates(folder, begun + 0.7, begun + 1.3) == pytest.approx(300, rel=0.12)
    last = next(phase for phase in kept.phases if phase.name == "after")
    assert rates(folder, last.start_s, last.end_s) == pytest.approx(300, rel=0.05)
    stretches = kept.scores["course"] if kept.scores else []
    halfway = [one for one in stretches if begun + 0.5 < one["start_s"] < begun + 1.5]
    assert all(0 < one["mix_asked"]["simple_update"] < 1 for one in halfway)
    assert [point["phase"] for point in (kept.scores or {})["points"]] == [last.number]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["set"], "set needs rate, concurrency, mix or access"),
        (["set", "rate=-1"], "rate: Input should be greater than or equal to 0"),
        (["set", "concurrency=4"], "concurrency: the load has a rate; allowed: rate, mix, access"),
        (["set", "mix=NONE"], "tpcb has no mix 'NONE'"),
        (["set", "access=zipf"], "expected uniform, latest-10"),
        (["set", "speed=4"], "expected KEY=VALUE, once for each of rate, concurrency, mix, access"),
        (["set", "rate=10", "--over", "soon"], "over: expected a length of time"),
        (["set", "access=latest-10", "--over", "1s"], "access moves between distributions of one kind"),
        (["pause", "rate=4"], "pause takes no rate"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(
    run: tuple[Path, subprocess.Popen[str]], words: list[str], message: str
) -> None:
    folder, _ = run
    refused = call("ctl", folder, *words)
    assert refused.code == 2, refused.out
    assert message in " ".join(refused.err.split())
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert not [event for event in events if event["event"] == "steered"]


def test_the_socket_belongs_to_its_owner_and_takes_no_rubbish(
    run: tuple[Path, subprocess.Popen[str]],
) -> None:
    folder, process = run
    assert stat.S_IMODE((folder / "control").stat().st_mode) == 0o600
    with contextlib.chdir(folder):
        for rubbish in (b"", b"\n", b"\xff\x00\n", b"[" * 70_000, b'{"do": "explode"}\n'):
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect("control")
                peer.sendall(rubbish)
                peer.shutdown(socket.SHUT_WR)
                answer = json.loads(peer.makefile().readline())
                assert answer["is_input"], rubbish
    assert process.poll() is None
    assert ask(folder, {"do": "status"})["asked"]["rate"] == 200


def test_a_folder_of_any_depth_has_its_socket(tmp_path: Path) -> None:
    deep = tmp_path / ("a" * 100) / ("b" * 100)
    deep.mkdir(parents=True)
    study = write_study(tmp_path, sim_study(OPEN, planted="latency=constant(1ms)"))
    with start("run", study, "--out", deep, cwd=tmp_path) as process:
        wait_for((deep / "latest" / "control").exists, "the control socket", process)
        assert call("ctl", deep / "latest", "stop").code == 0
        assert finish(process).code == 1


def test_what_is_no_run_or_has_ended_cannot_be_steered(tmp_path: Path) -> None:
    assert call("ctl", tmp_path).code == 2
    study = write_study(tmp_path, sim_study(phases({"concurrency": 1, "duration": "200ms"})))
    assert call("run", study, "--out", tmp_path / "runs").code == 0
    ended = call("ctl", tmp_path / "runs" / "latest", "stop")
    assert ended.code == 2
    assert "the run is not running" in " ".join(ended.err.split())
