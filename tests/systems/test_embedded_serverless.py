"""A real server that is scaled by its quota, pauses, and wakes up when somebody connects."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from groups_lab import needs_groups, place, processes_of, serverless, use_of
from postgres_lab import ROOT, owners_of, read_if_there, server_of, users_of, wait_for, wait_until_gone
from pydantic import ValidationError

from commands import call, finish, start
from commands import wait_for as wait_long_for
from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.settings.resources import Resources
from nephoscope.systems.cluster import serverless as cluster_serverless
from nephoscope.systems.machine.capacity import Machine
from nephoscope.systems.machine.control_group import groups_of
from nephoscope.systems.machine.group_guard import members
from nephoscope.systems.postgres.serverless import EmbeddedServerlessSettings
from sample_studies import throughput, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postgres_lab import Lab

    from nephoscope.systems.base import System
    from nephoscope.systems.postgres.serverless import EmbeddedServerless

pytestmark = [needs_groups, pytest.mark.alone]

RESET = "reset|closed"
SPIN = "SELECT count(*) FROM generate_series(1, 2000000)"


@contextlib.contextmanager
def busy(system: System, sessions: int = 2) -> Iterator[list[str]]:
    """Keep a server busy from several sessions; gives what went wrong."""
    ended, errors = threading.Event(), list[str]()

    def spin() -> None:
        try:
            admin = _engine.Admin(system.rw[0])
            while not ended.is_set():
                admin.query(SPIN)
            admin.close()
        except MeasurementError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=spin) for _ in range(sessions)]
    for thread in threads:
        thread.start()
    try:
        yield errors
    finally:
        ended.set()
        for thread in threads:
            thread.join(60)


def ask(system: System, sql: str = "SELECT 1") -> str:
    """Ask on a connection of one's own, which is closed then."""
    admin = _engine.Admin(system.rw[0])
    try:
        rows = admin.query(sql)[1]
        return str(rows[0][0]) if rows else ""
    finally:
        admin.close()


def servers_in(folder: Path) -> set[int]:
    """Find the processes of PostgreSQL that work on a folder, wherever they are."""
    return {
        pid for pid in users_of(folder) if read_if_there(Path(f"/proc/{pid}/comm")).startswith(b"postgres")
    }


def given(provider: EmbeddedServerless) -> list[float]:
    return [step.resources.vcores for step in provider.allocation()]


def asleep(provider: EmbeddedServerless) -> bool:
    return bool(given(provider)) and given(provider)[-1] == 0


# --- the quota and the group


def test_the_server_is_limited_whatever_it_starts_and_nothing_else_is(ready_lab: Lab) -> None:
    with serverless(ready_lab, min_vcores=0.2, max_vcores=0.2) as provider:
        system = provider.start()
        assert provider._group is not None
        with busy(system, 3):
            wait_for(lambda: len(processes_of(provider)) >= 10)
            time.sleep(0.5)
            assert use_of(provider._group, 1.0) < 1.15 * 0.2 + 0.01
        for action in (None, Action.RESTART, Action.KILL):
            if action is not None:
                provider.act(action)
            if action is Action.KILL:
                assert processes_of(provider) == set()
                provider.act(Action.START)
            assert ask(system) == "1"
            wait_for(lambda: servers_in(ready_lab.folder) == processes_of(provider) != set())
            inside = processes_of(provider)
            assert not ROOT or os.getuid() not in owners_of(inside).values()
            assert server_of(provider).pid in inside
        folders = provider._group.folders
    assert not [folder for folder in folders if folder.exists()]
    assert users_of(ready_lab.base) == set()


def test_two_beside_each_other_have_groups_of_their_own(ready_lab: Lab) -> None:
    (ready_lab.base / "second").mkdir()
    with (
        serverless(ready_lab) as one,
        serverless(ready_lab, data=ready_lab.base / "second" / "server") as other,
    ):
        one.start()
        other.start()
        assert one._group is not None
        assert other._group is not None
        assert set(one._group.folders).isdisjoint(other._group.folders)
        assert not processes_of(one) & processes_of(other)
        other.stop()
        assert processes_of(one)


def test_a_second_run_on_the_same_folder_leaves_the_group_of_the_first_alone(ready_lab: Lab) -> None:
    with serverless(ready_lab) as one:
        one.start()
        with (
            serverless(ready_lab) as other,
            pytest.raises(MeasurementError, match="is in use by process"),
        ):
            other.start()
        assert server_of(one).pid in processes_of(one)


# --- scaling


@pytest.mark.parametrize("policy", ["immediate", "gradual-down", "stepwise", "pause-and-resume"])
def test_each_policy_goes_up_under_load_and_down_after_it(ready_lab: Lab, policy: str) -> None:
    with serverless(ready_lab, policy=policy, step_time=0.5, pause_after=1.0) as provider:
        system = provider.start()
        assert given(provider) == [0.5]
        admin = _engine.Admin(system.rw[0])  # somebody is there: no pause
        wait_for(lambda: given(provider)[-1] == 0.1)
        calm = len(given(provider))
        with busy(system) as errors:
            wait_for(lambda: given(provider)[-1] == 0.5)
        busy_until = len(given(provider))
        wait_for(lambda: given(provider)[-1] == 0.1)
        admin.close()
        assert errors == []
        line = given(provider)
        rises = [pair for pair in pairwise(line) if pair[1] > pair[0]]
        falls = [pair for pair in pairwise(line) if pair[1] < pair[0]]
        assert len(line) > busy_until > calm
        # On a machine that has more to do than this, the server may seem to want less for a moment.
        for before, after in rises:
            assert after == pytest.approx(before + 0.1 if policy == "stepwise" else min(2 * before, 0.5))
        for before, after in falls:
            assert policy not in {"gradual-down", "stepwise"} or after == pytest.approx(before - 0.1)
        times = [step.time_ns for step in provider.allocation()]
        kept = [(later - earlier) / 1e9 for earlier, later in pairwise(times)]
        if policy == "stepwise":
            assert min(kept) >= 0.5
        if policy == "gradual-down":
            assert (
                min(seconds for seconds, pair in zip(kept, pairwise(line), strict=True) if pair in falls)
                >= 0.5
            )
        memory = [step.resources.memory_gb for step in provider.allocation()]
        assert memory == pytest.approx([2 * vcores for vcores in given(provider)])
        if policy == "pause-and-resume":
            wait_for(lambda: asleep(provider))
        else:
            time.sleep(1.5)
            assert not asleep(provider)


# --- to zero and back


def test_a_pause_ends_the_server_and_the_next_connection_wakes_it(ready_lab: Lab) -> None:
    with serverless(ready_lab, policy="pause-and-resume", pause_after=0.5) as provider:
        system = provider.start()
        ask(system, "CREATE TABLE IF NOT EXISTS kept AS SELECT 7 AS seven")
        for _ in range(2):
            wait_for(lambda: asleep(provider))
            assert processes_of(provider) == set()
            assert provider._group is not None
            assert use_of(provider._group, 0.5) == 0
            began = _engine.monotonic_ns()
            assert ask(system, "SELECT seven FROM kept") == "7"
            woken = next(step for step in provider.allocation() if step.time_ns >= began)
            assert woken.resources.vcores == 0.1
            assert processes_of(provider)
        paused = [step.resources for step in provider.allocation() if step.resources.vcores == 0]
        assert {resources.memory_gb for resources in paused} == {0}
        assert {resources.storage_gb for resources in paused} == {
            system.resources and system.resources.storage_gb
        }


def test_all_who_come_while_it_sleeps_are_served(ready_lab: Lab) -> None:
    with serverless(ready_lab, policy="pause-and-resume", pause_after=0.5) as provider:
        system = provider.start()
        wait_for(lambda: asleep(provider))
        answers = list[str]()
        threads = [threading.Thread(target=lambda: answers.append(ask(system))) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert answers == ["1"] * 12
        assert given(provider).count(0) == 1


@pytest.mark.survives(
    part="server",
    fault="clients that come just as the server pauses",
    promise="each is served, by the server that goes on or by the one that wakes up",
    on="PostgreSQL, embedded-serverless",
)
def test_who_comes_at_the_moment_of_a_pause_is_served(ready_lab: Lab) -> None:
    draw = random.Random(7)  # noqa: S311 - moments, not secrets
    with serverless(
        ready_lab, policy="pause-and-resume", pause_after=0.1, period=0.05, min_vcores=0.3
    ) as provider:
        system = provider.start()
        for _ in range(40):
            time.sleep(draw.uniform(0.05, 0.3))
            assert ask(system) == "1"
        assert given(provider).count(0) > 5, "it did pause"


def test_who_is_connected_keeps_it_awake(ready_lab: Lab) -> None:
    with serverless(ready_lab, policy="pause-and-resume", pause_after=0.4) as provider:
        system = provider.start()
        admin = _engine.Admin(system.rw[0])
        time.sleep(1.5)
        assert not asleep(provider)
        assert admin.query("SELECT 1")[1] == [["1"]]
        admin.close()
        wait_for(lambda: asleep(provider))


@pytest.mark.survives(
    part="server",
    fault="a paused server that does not start again",
    promise="who waits for it is reset, and the allocation is told no more, with the reason",
    on="PostgreSQL, embedded-serverless",
)
def test_a_server_that_does_not_wake_up_is_told(ready_lab: Lab) -> None:
    with serverless(ready_lab, policy="pause-and-resume", pause_after=0.3) as provider:
        system = provider.start()
        wait_for(lambda: asleep(provider))
        version = ready_lab.folder / "data" / "PG_VERSION"
        version.rename(version.with_name("gone"))
        with pytest.raises(MeasurementError, match=RESET):
            ask(system)
        assert provider._autoscaler is not None
        provider._autoscaler._thread.join(10)
        with pytest.raises(MeasurementError, match=r"the autoscaler has failed: .* damaged database"):
            provider.allocation()
        with pytest.raises(MeasurementError, match=RESET):
            ask(system)
        version.with_name("gone").rename(version)


# --- what can be done to it


def test_what_can_be_done_to_it(ready_lab: Lab) -> None:
    with serverless(ready_lab) as provider:
        system = provider.start()
        none = {Action.PROMOTE, Action.ADD_NODE, Action.REMOVE_NODE}
        assert provider.actions() == set(Action) - none
        for action in none:
            with pytest.raises(MeasurementError, match=f"embedded-serverless cannot {action}"):
                provider.act(action)
        done = provider.act(Action.SET, settings={"work_mem": "5MB"})
        assert (done.node, ask(system, "SHOW work_mem")) == (None, "5MB")
        provider.act(Action.PAUSE)
        provider.act(Action.RESUME)
        assert ask(system) == "1"
        provider.act(Action.STOP)
        with pytest.raises(MeasurementError, match=RESET):
            ask(system)
        provider.act(Action.START)
        assert ask(system) == "1"


def test_resize_changes_the_most_that_it_may_have(ready_lab: Lab) -> None:
    with serverless(ready_lab) as provider:
        system = provider.start()
        size = Resources(vcores=0.3, memory_gb=1.5, storage_gb=10)
        provider.act(Action.RESIZE, resources=size)
        assert max(given(provider)[1:]) <= 0.3
        with busy(system):
            wait_for(lambda: provider.allocation()[-1].resources == size)
            time.sleep(0.6)
            assert given(provider)[-1] == 0.3
        for wrong, message in (
            ({"vcores": 99.0}, "max_vcores: the machine has"),
            ({"vcores": 0.05}, "it is 0.1"),
            ({"nodes": 2}, "the one node"),
        ):
            with pytest.raises(MeasurementError, match=message):
                provider.act(Action.RESIZE, resources=size.model_copy(update=wrong))
        with pytest.raises(MeasurementError, match="resize needs resources"):
            provider.act(Action.RESIZE)


def test_an_action_wakes_what_has_paused(ready_lab: Lab) -> None:
    with serverless(ready_lab, policy="pause-and-resume", pause_after=0.3) as provider:
        system = provider.start()
        wait_for(lambda: asleep(provider))
        provider.act(Action.SET, settings={"work_mem": "6MB"})
        assert ask(system, "SHOW work_mem") == "6MB"
        wait_for(lambda: asleep(provider))
        provider.act(Action.KILL)
        time.sleep(1.0)
        assert not asleep(provider), "what others have ended has not paused"
        with pytest.raises(MeasurementError, match=RESET):
            ask(system)
        provider.act(Action.START)
        assert ask(system) == "1"


def test_before_its_start_and_after_its_end_it_says_so(ready_lab: Lab) -> None:
    provider = serverless(ready_lab)
    assert provider.allocation() == ()
    with pytest.raises(MeasurementError, match="this embedded-serverless has not been started"):
        provider.act(Action.RESTART)
    provider.stop()
    with provider:
        provider.start()
        with pytest.raises(MeasurementError, match="has been started already"):
            provider.start()
    with pytest.raises(MeasurementError, match="has not been started"):
        provider.endpoints("rw")


# --- what a user may get wrong, and what a machine may lack


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_vcores": 0.1}, "max_vcores is 0.1, which is less than min_vcores"),
        ({"scale_down": 0.9}, "scale_down is 0.9, and must be less than scale_up"),
        ({"period": 0.01}, "period must be 50 ms or more"),
        ({"resources": {"vcores": 1, "memory_gb": 1, "storage_gb": 1}}, "resources follow from max_vcores"),
        ({"min_vcores": 0.001}, "greater than or equal to 0.01"),
        ({"step": 0.0}, "greater than or equal to 0.01"),
        ({"policy": "instant"}, "'immediate', 'gradual-down', 'stepwise' or 'pause-and-resume'"),
        ({"replicas": 1}, "Extra inputs are not permitted"),
    ],
)
def test_wrong_settings_are_told(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        EmbeddedServerlessSettings(**wrong)


def study_of(lab: Lab, **system: Any) -> Path:
    tables = {
        "study": {"name": "serverless"},
        "system": {"provider": "embedded-serverless", "data": str(lab.folder), **system},
        "workload": {"name": "tpcb", "scale": 1},
        "measure": [throughput(duration="30s")],
    }
    return write_study(lab.base, tables)


def test_more_than_the_machine_has_is_refused_before_anything_is_touched(lab: Lab) -> None:
    ended = call("run", study_of(lab, max_vcores=1000.0), "--out", lab.base / "runs")
    assert ended.code == 2
    assert "system.max_vcores: the machine has" in ended.err
    assert not lab.folder.exists()
    assert not (lab.base / "runs").exists()


def test_what_is_missing_is_told_before_anything_is_touched(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    ended = call("run", study_of(lab), "--out", lab.base / "runs")
    assert ended.code == 2
    assert "may not make control groups in" in ended.err
    assert not lab.folder.exists()


def test_a_machine_with_less_than_the_least_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Machine(cores=0.1, memory_bytes=1 << 30)
    monkeypatch.setattr(cluster_serverless, "this_machine", lambda: small)
    with (
        serverless(lab, min_vcores=0.2, max_vcores=None) as provider,
        pytest.raises(InputError, match=r"system\.min_vcores: the machine has 0\.1 processors"),
    ):
        provider.start()


@pytest.mark.survives(
    part="tool",
    fault="the tool is killed (SIGKILL) while its server is limited to a tenth of a processor",
    promise="the server ends, and its control group goes",
    on="PostgreSQL, embedded-serverless",
)
def test_a_killed_run_leaves_neither_a_server_nor_a_group(ready_lab: Lab) -> None:
    study = study_of(ready_lab, min_vcores=0.1, max_vcores=0.1)
    with start("run", study, cwd=ready_lab.base) as process:
        wait_long_for(lambda: members_of(ready_lab.folder), "the server runs in its group")
        inside = members_of(ready_lab.folder)
        process.send_signal(signal.SIGKILL)
        assert finish(process).code == -signal.SIGKILL
    wait_until_gone(inside)
    wait_for(lambda: not groups_of(place(), ready_lab.folder))
    wait_until_gone(users_of(ready_lab.base))


def members_of(folder: Path) -> list[int]:
    """Find who is in the control groups of another process's server."""
    return [pid for group in groups_of(place(), folder) for pid in members(group[0])]
