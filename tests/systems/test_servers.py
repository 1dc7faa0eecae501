"""A server of each product: what begins it, what ends it, and what an earlier run left."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from typing import TYPE_CHECKING

import pytest
from postgres_lab import (
    Lab,
    expect,
    needs_root,
    owners_of,
    send,
    server_of,
    users_of,
    wait_for,
    wait_until_gone,
)

from nephoscope.errors import InputError, MeasurementError
from nephoscope.settings.resources import Resources
from nephoscope.systems.cluster import server as cluster_server
from nephoscope.systems.machine.account import server_accounts
from nephoscope.systems.machine.capacity import this_machine
from nephoscope.systems.machine.folders import LOCK_FILE

if TYPE_CHECKING:
    from products import Words

ORDINARY = pytest.mark.parametrize("ordinary", [False, True], ids=["ourselves", "ordinary user"])

_THOUSAND_ROWS = (
    "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 1000) SELECT n FROM t"
)


def test_is_sized_by_the_machine_or_as_the_study_says(full_lab: Lab) -> None:
    machine = this_machine()
    with full_lab.provider() as provider:
        resources = provider.start().resources
    assert resources is not None
    assert (resources.nodes, resources.vcores, resources.iops, resources.network_gbps) == (
        1,
        machine.cores,
        0,
        0,
    )
    assert resources.memory_gb == pytest.approx(machine.memory_bytes / 2**30)
    assert resources.storage_gb == pytest.approx(shutil.disk_usage(full_lab.base).total / 2**30)
    declared = Resources(vcores=1, memory_gb=2, storage_gb=3)
    with full_lab.provider(resources=declared) as provider:
        assert provider.start().resources == declared


@needs_root
def test_root_drops_its_privileges(full_lab: Lab, words: Words) -> None:
    with full_lab.provider() as provider:
        system = provider.start()
        owners = owners_of(users_of(full_lab.folder))
    assert system.facts["privileges_dropped"] is True
    assert {system.facts["user"]} <= {"postgres", "nobody"}
    assert owners
    assert 0 not in owners.values()
    assert (full_lab.folder / words.password_file).stat().st_uid == 0


def test_stop_may_be_called_at_any_time(full_lab: Lab) -> None:
    provider = full_lab.provider()
    provider.stop()
    provider.start()
    with pytest.raises(MeasurementError, match="started already"):
        provider.start()
    provider.stop()
    provider.stop()
    assert not users_of(full_lab.folder)


@pytest.mark.parametrize(
    ("then", "code"),
    [("os._exit(7)", 7), ("raise ValueError", 1), ("provider.__class__.stop = lambda self: None", 0)],
    ids=["exit without clean-up", "exception", "never stopped"],
)
def test_the_server_ends_with_a_parent_that_ends_otherwise(full_lab: Lab, then: str, code: int) -> None:
    process = full_lab.holding(f"os.dup2(os.open(os.devnull, os.O_WRONLY), 2); sys.stdin.readline(); {then}")
    running = users_of(full_lab.folder) - {process.pid}
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == code
    wait_until_gone(running)


def test_a_forked_child_of_the_parent_does_not_keep_the_server(full_lab: Lab) -> None:
    process = full_lab.holding(
        "child = os.fork(); child and print('forked', child, flush=True); time.sleep(60)"
    )
    child = int(expect(process, "forked")[0])
    try:
        running = users_of(full_lab.folder) - {process.pid, child}
        send(process, signal.SIGKILL)
        wait_until_gone(running)
    finally:
        os.kill(child, signal.SIGKILL)


@ORDINARY
@pytest.mark.parametrize("after_s", [0.05, 0.2, 0.4])
def test_an_interrupted_start_leaves_nothing(new_lab: Lab, after_s: float, *, ordinary: bool) -> None:
    process = new_lab.holder("sys.stdin.read()", ordinary=ordinary)
    time.sleep(after_s)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of the foreground group
    assert process.wait(60) == 0
    assert process.stdout is not None
    assert process.stdout.read().endswith("interrupted\n")
    assert not users_of(new_lab.folder)


def test_the_server_ends_when_its_supervisor_is_killed(
    full_lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    provider = full_lab.provider()
    provider.start()
    running = users_of(full_lab.folder)
    os.kill(server_of(provider)._process._supervisor.pid, signal.SIGKILL)
    wait_until_gone(running)
    provider.stop()
    assert "ended before it was stopped" in caplog.text
    with full_lab.provider() as again:
        again.start()


def test_recovers_what_was_committed_before_a_crash(
    full_lab: Lab, words: Words, caplog: pytest.LogCaptureFixture
) -> None:
    with full_lab.provider() as provider:
        provider.start()
        words.run(provider, f"CREATE TABLE kept AS {_THOUSAND_ROWS}")
        running = users_of(full_lab.folder)
        os.kill(server_of(provider).pid, signal.SIGKILL)
        wait_until_gone(running)
    assert "ended before it was stopped" in caplog.text
    with full_lab.provider() as provider:
        provider.start()
        assert words.run(provider, "SELECT sum(n) FROM kept") == "500500"
    assert words.recovered in (full_lab.folder / "server.log").read_text()


def test_the_next_run_waits_for_the_server_of_one_that_was_killed(full_lab: Lab, words: Words) -> None:
    process = full_lab.holding()
    send(process, signal.SIGKILL)
    with full_lab.provider() as provider:
        provider.start()
        assert words.run(provider, "SELECT 1") == "1"


def test_a_second_process_is_told_who_has_the_folder(full_lab: Lab, words: Words) -> None:
    process = full_lab.holding(f"sys.stdin.readline(); print('still', {words.code('SELECT 1')}, flush=True)")
    with pytest.raises(MeasurementError) as caught, full_lab.provider() as provider:
        provider.start()
    message = str(caught.value)
    assert str(full_lab.folder) in message
    assert f"process {process.pid} (python" in message
    assert "system.data can name another folder" in message
    assert process.stdin is not None
    process.stdin.close()
    assert expect(process, "still") == ["1"]


def test_two_servers_in_one_process_need_two_folders(full_lab: Lab, words: Words) -> None:
    with full_lab.provider() as first:
        first.start()
        with (
            pytest.raises(MeasurementError, match=f"process {os.getpid()} "),
            full_lab.provider() as second,
        ):
            second.start()
        assert words.run(first, "SELECT 1") == "1"


def test_a_damaged_database_is_refused(new_lab: Lab) -> None:
    (new_lab.folder / "data").mkdir(parents=True)
    (new_lab.folder / LOCK_FILE).touch()
    account = server_accounts()[0]
    os.chown(new_lab.folder / "data", account.uid, account.gid)
    with (
        pytest.raises(InputError, match=r"damaged database.*remove the folder"),
        new_lab.provider() as provider,
    ):
        provider.start()


@needs_root
def test_a_folder_that_the_servers_user_cannot_reach_is_refused(new_lab: Lab) -> None:
    new_lab.folder = new_lab.base / "closed" / "server"
    new_lab.folder.parent.mkdir(mode=0o700)
    with pytest.raises(InputError, match="out of reach for user"), new_lab.provider() as provider:
        provider.start()


def test_a_port_that_somebody_took_is_changed_for_another(
    full_lab: Lab, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = cluster_server.free_port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = [taken.getsockname()[1], taken.getsockname()[1], real()]
        monkeypatch.setattr(cluster_server, "free_port", iter(ports).__next__)
        with full_lab.provider() as provider:
            assert provider.start().facts["port"] == ports[-1]
        monkeypatch.setattr(cluster_server, "free_port", lambda: ports[0])
        monkeypatch.setattr(cluster_server, "_PORTS_TRIED", 2)
        with (
            pytest.raises(MeasurementError, match=rf"(?s)2 free ports.*{words.port_taken}"),
            full_lab.provider() as provider,
        ):
            provider.start()
    assert not users_of(full_lab.folder)


def test_a_wait_that_is_too_long_ends_with_the_log(
    full_lab: Lab, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_server, "_READY_S", 0.0)
    monkeypatch.setattr(words.server, "_says_ready", lambda *_: False)
    with pytest.raises(MeasurementError, match="was not ready within 0 s"), full_lab.provider() as provider:
        provider.start()
    assert not users_of(full_lab.folder)


@ORDINARY
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_a_server_ends_with_a_parent_that_is_killed_by_a_signal(
    full_lab: Lab, words: Words, number: signal.Signals, *, ordinary: bool
) -> None:
    process = full_lab.holding(ordinary=ordinary)
    running = users_of(full_lab.folder) - {process.pid}
    assert len(running) >= words.least_processes
    assert send(process, number) == -number
    wait_until_gone(running)


def test_a_server_left_running_is_ended(full_lab: Lab, words: Words) -> None:
    with full_lab.provider() as provider:
        provider.start()
        server = server_of(provider)
        command, account = server._serving(), server.account
    with server.folder.opened_log() as output:
        left = full_lab.background(
            command, user=account.uid if account.other else None, cwd="/", output=output
        )
    wait_for(lambda: server._says_ready(left.pid))
    with full_lab.provider() as provider:
        provider.start()
        assert left.wait(10) == 0
        assert words.run(provider, "SELECT 1") == "1"
