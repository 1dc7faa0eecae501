"""Actions that never return, promotions that fail, systems that do not come back: a run ends, and says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from postgres_lab import Lab, lab_with_database, server_of, wait_until_gone

from commands import Ended, call, finish, start, wait_for
from databases import query
from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.evaluators.acting import act_beside
from nephoscope.store import FILES, StoredRun
from nephoscope.systems.machine import processes
from sample_studies import Tables, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.long

PATIENCE_S = 120.0
FAILED = "exit code 1, one message; what was measured is kept and reported, and nothing is left running"
HANGS = "trap '' TERM INT HUP; echo $$ > '{pids}'; sleep 3600 & echo $! >> '{pids}'; wait; sleep 3600"
"""A command that never ends, and that does not care for any signal which can be refused."""


@pytest.fixture(scope="module")
def database() -> Iterator[Lab]:
    with lab_with_database() as lab:
        yield lab


@contextmanager
def postgres(database: Lab) -> Iterator[tuple[str, int]]:
    """A server of one's own: its URL, and its process."""
    lab = Lab()
    try:
        lab.take_database_of(database)
        with lab.provider(settings={"fsync": False}) as provider:
            yield provider.start().rw[0], server_of(provider).pid
    finally:
        lab.close()


def study_of(system: Tables, measure: Tables) -> Tables:
    return {
        "study": {"name": "endless"},
        "system": system,
        "workload": {"name": "tpcb", "scale": 1},
        "load": {
            "interval": "100ms",
            "connect_timeout": "2s",
            "statement_timeout": "1s",
            "drain_timeout": "1s",
        },
        "measure": [{"evaluator": "failover", "before": "1s", "after": "3s", "warmup": "200ms", **measure}],
    }


def small(**measure: Any) -> Tables:
    return {"mix": "SELECT", "concurrency": 2, "repetitions": 1, **measure}


def run(folder: Path, tables: Tables) -> Ended:
    with start("run", write_study(folder, tables), cwd=folder) as process:
        return finish(process, PATIENCE_S)


def kept(folder: Path, ended: Ended, status: str = "failed", least: int = 100) -> StoredRun:
    """Check that a run has ended as it should, and that its directory is whole."""
    assert ended.code == 1, ended.out
    assert "Traceback" not in ended.err + ended.out
    run = StoredRun(folder / "runs" / "latest")
    assert run.manifest["status"] == status
    assert "<html" in (run.folder / FILES.report).read_text()
    assert int(run.intervals.column("committed").to_numpy().sum()) >= least
    return run


def absent(run: StoredRun) -> Any:
    return json.loads((run.folder / FILES.scores).read_text())["absent"]


@pytest.mark.survives(
    part="actions",
    fault="a hook that never returns, and refuses every signal",
    promise=f"it is killed with all it has started when `action_limit` is over: {FAILED}",
    on="PostgreSQL",
)
def test_a_hook_that_never_returns_is_given_up(tmp_path: Path, database: Lab) -> None:
    pids = tmp_path / "pids"
    with postgres(database) as (url, _):
        hooks = {"restart": HANGS.format(pids=pids), "timeout": "1h"}
        tables = study_of({"provider": "url", "rw": url, "hooks": hooks}, small(action_limit="2s"))
        begun = time.monotonic()
        ended = run(tmp_path, tables)
    message = "the fault restart did not end within 2 s, and was given up"
    assert ended.err.count(message) == 1
    assert time.monotonic() - begun < 30
    stored = kept(tmp_path, ended)
    assert absent(stored)["F"] == message
    wait_until_gone([int(pid) for pid in pids.read_text().split()])


@pytest.mark.survives(
    part="actions",
    fault="Ctrl-C while a hook does not return",
    promise="it is killed with all it has started; the run ends whole, is scored and reported; exit code 1",
    on="PostgreSQL",
)
def test_a_hook_that_never_returns_does_not_hold_up_an_interruption(tmp_path: Path, database: Lab) -> None:
    pids = tmp_path / "pids"
    with postgres(database) as (url, _):
        hooks = {"restart": HANGS.format(pids=pids), "timeout": "1h"}
        tables = study_of({"provider": "url", "rw": url, "hooks": hooks}, small())
        with start("run", write_study(tmp_path, tables), cwd=tmp_path) as process:
            wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 2, "the hook runs", process)
            process.send_signal(signal.SIGINT)
            ended = finish(process, 30)
    kept(tmp_path, ended, "interrupted")
    wait_until_gone([int(pid) for pid in pids.read_text().split()])


NEVER_RETURNS = """
import sys, time
from nephoscope.cli import app as cli
from nephoscope.systems.sim import Sim
Sim.act = lambda *_, **__: time.sleep(10**6)
sys.argv = ["nephoscope", "run", "study.toml"]
cli.main()
"""


@pytest.mark.survives(
    part="actions",
    fault="an action of somebody else's provider that never returns, and cannot be cancelled",
    promise=f"it is given up when `action_limit` is over, and ends with the process: {FAILED}",
    on="the simulated database",
)
def test_an_action_that_cannot_be_cancelled_keeps_no_run_from_its_end(tmp_path: Path) -> None:
    write_study(
        tmp_path, study_of({"provider": "sim", "plan": "latency=constant(1ms)"}, small(action_limit="1s"))
    )
    ended = subprocess.run(
        [sys.executable, "-c", NEVER_RETURNS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    stored = kept(tmp_path, Ended(ended.returncode, ended.stdout, ended.stderr))
    assert absent(stored)["F"] == "the fault restart did not end within 1 s, and was given up"


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "blocked"])
@pytest.mark.survives(
    part="actions",
    fault="a promotion that fails: the replica is killed before it, or stands still in it",
    promise=f"{FAILED}, neither of the servers",
    on="a PostgreSQL cluster",
)
def test_a_promotion_that_fails_ends_the_run(tmp_path: Path, ready_lab: Lab, stop: signal.Signals) -> None:
    system = {"provider": "embedded-postgres", "data": str(ready_lab.folder), "replicas": 1}
    tables = study_of(system, small(fault="crash", before="3s", action_limit="4s"))
    replica = ready_lab.folder / "node2" / "data" / "postmaster.pid"
    with start("run", write_study(tmp_path, tables), cwd=tmp_path) as process:
        events = tmp_path / "runs" / "latest" / "events.jsonl"
        wait_for(
            lambda: events.is_file() and '"crash of rw"' in events.read_text(), "the failure comes", process
        )
        servers = processes.family(int(replica.read_text().split()[0]))
        for pid in servers:
            # A server that is killed may take others with it.
            with suppress(ProcessLookupError):
                os.kill(pid, stop)
        ended = finish(process, PATIENCE_S)
    stored = kept(tmp_path, ended)
    wait_until_gone(servers)
    assert stored.manifest["reason"] == absent(stored)["F"]


@pytest.mark.parametrize("fault", ["kill", "node-loss"])
@pytest.mark.survives(
    part="actions",
    fault="a system that does not come back: its server is killed, and nobody starts it",
    promise=f"F and R are absent, for that reason; {FAILED}",
    on="PostgreSQL",
)
def test_a_system_that_does_not_come_back_has_no_score(tmp_path: Path, database: Lab, fault: str) -> None:
    with postgres(database) as (url, pid):
        hooks = {"kill": f"kill -9 {pid}"} | ({"start": "true"} if fault == "kill" else {})
        tables = study_of({"provider": "url", "rw": url, "hooks": hooks}, small(fault=fault))
        ended = run(tmp_path, tables)
    assert ended.err.count(f"3 s after the {fault} the system could not be read") == 1
    stored = kept(tmp_path, ended)
    for score in ("F", "R"):
        assert "the service did not come back" in absent(stored)[score]


# --- replicas, allocations, tenants


def events_of(folder: Path) -> str:
    journal = folder / "runs" / "latest" / "events.jsonl"
    return journal.read_text() if journal.is_file() else ""


@contextmanager
def replicated(lab: Lab, **system: Any) -> Iterator[tuple[str, str]]:
    """A primary and a replica: their URLs."""
    with lab.provider(replicas=1, settings={"fsync": False}, **system) as provider:
        found = provider.start()
        yield found.rw[0], found.ro[0]


def lag_study(rw: str, ro: str, **measure: Any) -> Tables:
    lag = {"evaluator": "lag", "duration": "4s", "limit": "1s", "repetitions": 1, "concurrency": 2}
    loads = [{"name": "busy", "mix": "TPCB"}]
    tables = study_of({"provider": "url", "rw": rw, "ro": ro}, {})
    return {**tables, "measure": [{**lag, "loads": loads, **measure}]}


@pytest.mark.parametrize("synchronous", ["off", "remote_apply"])
@pytest.mark.survives(
    part="actions",
    fault="a replica that never catches up: its replay is paused while the lag is measured, commits wait for it or not",
    promise="the run ends within its limits, is scored and reported; it says that C is a lower bound, or that markers"
    " could not be committed",
    on="a PostgreSQL cluster",
)
def test_a_replica_that_never_catches_up_ends_no_run(
    tmp_path: Path, ready_lab: Lab, synchronous: str
) -> None:
    with replicated(ready_lab, synchronous=synchronous) as (rw, ro):
        with start("run", write_study(tmp_path, lag_study(rw, ro)), cwd=tmp_path) as process:
            # Half-way through what counts, so that there is something to keep.
            wait_for(lambda: '"lag, busy"' in events_of(tmp_path), "the lag is measured", process)
            time.sleep(1.5)
            query(ro, "SELECT pg_wal_replay_pause()")
            begun = time.monotonic()
            ended = finish(process, PATIENCE_S)
        assert time.monotonic() - begun < 90
    assert ended.code == 0, ended.err
    stored = StoredRun(tmp_path / "runs" / "latest")
    scores = json.loads((stored.folder / FILES.scores).read_text())
    assert scores["scores"]["C"]["detail"]["replicas"] == 1
    told = " ".join(scores["warnings"])
    expected = "C is a lower bound" if synchronous == "off" else "could not be committed"
    assert expected in told
    assert "<html" in (stored.folder / FILES.report).read_text()
    assert int(stored.intervals.column("committed").to_numpy().sum()) > 100


@pytest.mark.survives(
    part="actions",
    fault="a replica whose replay is paused before the lag is measured",
    promise=f"it is waited for 30 s: {FAILED}",
    on="a PostgreSQL cluster",
)
def test_a_replica_that_stands_still_from_the_start_ends_the_run(tmp_path: Path, ready_lab: Lab) -> None:
    with replicated(ready_lab) as (rw, ro):
        study = write_study(tmp_path, lag_study(rw, ro))
        loaded = call("load", study)
        assert loaded.code == 0, loaded.err
        wait_for(lambda: query(ro, "SELECT to_regclass('pgbench_history')") != [[None]], "the replica has it")
        query(ro, "SELECT pg_wal_replay_pause()")
        with start("run", study, cwd=tmp_path) as process:
            ended = finish(process, PATIENCE_S)
    assert "were not to be seen there within 30 s" in ended.err
    assert absent(kept(tmp_path, ended, least=0))["C"] == "no load was measured whole"


@pytest.mark.survives(
    part="actions",
    fault="a hook for the allocation that never returns once the load runs",
    promise="it is given up when `action_limit` is over, with a warning; E1 is of what was known of the allocation",
    on="the simulated database",
)
def test_an_allocation_that_is_never_told_does_not_hold_up_the_patterns(tmp_path: Path) -> None:
    pids, asked = tmp_path / "pids", tmp_path / "asked"
    told = json.dumps({"vcores": 2, "memory_gb": 8, "storage_gb": 10})
    command = f"[ -e '{asked}' ] && {{ {HANGS.format(pids=pids)}; }}; touch '{asked}'; echo '{told}'"
    elasticity = {
        "evaluator": "elasticity",
        "patterns": ["single-peak"],
        "mixes": ["SELECT"],
        "tau": 2,
        "slot": "1s",
        "rest": "0s",
        "window": "3s",
        "action_limit": "1s",
    }
    hooks = {"allocation": command, "timeout": "1h"}
    tables = study_of({"provider": "url", "rw": "sim://?latency=constant(1ms)", "hooks": hooks}, {})
    ended = run(tmp_path, {**tables, "measure": [elasticity]})
    assert ended.code == 0, ended.err
    stored = StoredRun(tmp_path / "runs" / "latest")
    scores = json.loads((stored.folder / FILES.scores).read_text())
    message = "telling the allocation did not end within 1 s, and was given up"
    assert any(message in warning for warning in scores["warnings"])
    (pattern,) = scores["scores"]["E1"]["detail"]["patterns"]
    for slot in pattern["slots"]:
        assert slot["end_s"] - slot["start_s"] == pytest.approx(1.0, abs=0.2)
    wait_until_gone([int(pid) for pid in pids.read_text().split()])


@pytest.mark.survives(
    part="actions",
    fault="a database that stands still for ever while tenants are measured",
    promise="every slot ends when it should, and the run with the last; what was measured before is kept and reported",
    on="the simulated database",
)
def test_tenants_of_a_database_that_stands_still_for_ever_come_to_an_end(tmp_path: Path) -> None:
    tenancy = {
        "evaluator": "tenancy",
        "mix": "SELECT",
        "patterns": [],
        "custom": {"both": [[2, 2], [2, 2]]},
        "slot": "2s",
        "warmup": "1s",
    }
    tables = study_of({"provider": "url", "rw": "sim://?latency=constant(1ms)&stall=2s%2B3600s"}, {})
    tables |= {"measure": [tenancy], "tenants": {"number": 2}}
    begun = time.monotonic()
    ended = run(tmp_path, tables)
    assert time.monotonic() - begun < 60
    assert ended.code == 0, ended.err
    stored = StoredRun(tmp_path / "runs" / "latest")
    assert "<html" in (stored.folder / FILES.report).read_text()
    assert int(stored.intervals.column("committed").to_numpy().sum()) > 100


# --- the wait itself


class Provider:
    """Something that goes on until it is cancelled, if that helps at all."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()


def means_of(provider: Provider) -> Any:
    return SimpleNamespace(load=SimpleNamespace(pump_for=time.sleep), provider=provider)


def test_what_is_given_up_may_bring_the_system_back_before_it_is_cancelled() -> None:
    provider = Provider()
    done: list[str] = []

    def pause_and_resume(given_up: threading.Event) -> None:
        given_up.wait(3600)
        done.append("resumed")

    with pytest.raises(MeasurementError, match=r"^the pause did not end within 0\.1 s, and was given up$"):
        act_beside(means_of(provider), pause_and_resume, "the pause", 0.1)
    assert done == ["resumed"]
    assert not provider.cancelled.is_set()


def test_what_does_not_end_is_cancelled() -> None:
    provider = Provider()
    with pytest.raises(MeasurementError, match="given up"):
        act_beside(means_of(provider), lambda _: provider.cancelled.wait(3600), "it", 0.1)
    assert provider.cancelled.is_set()
    assert "action" not in [thread.name for thread in threading.enumerate()]


def test_what_an_action_returns_or_raises_is_passed_on() -> None:
    means = means_of(Provider())
    assert act_beside(means, lambda _: 7, "it", 60) == 7

    def fail(_: threading.Event) -> None:
        raise ZeroDivisionError

    with pytest.raises(MeasurementError, match=r"^it failed: ZeroDivisionError\(\)$"):
        act_beside(means, fail, "it", 60)


def test_an_answer_that_does_not_come_is_given_up_with_its_connection(database: Lab) -> None:
    with postgres(database) as (url, _):
        admin = _engine.Admin(url, answer_timeout_s=0.5)
        begun = time.monotonic()
        with pytest.raises(MeasurementError, match="no answer within the time limit"):
            admin.query("SELECT pg_sleep(5)")
        assert time.monotonic() - begun < 4
        with pytest.raises(MeasurementError, match="was given up"):
            admin.query("SELECT 1")
        admin.close()
