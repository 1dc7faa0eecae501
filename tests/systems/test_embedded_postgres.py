"""Real servers of both versions, as root and as an ordinary user, through crashes and kills."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import replace
from typing import Any

import pytest
from postgres_lab import (
    ROOT,
    Lab,
    expect,
    query,
    query_url,
    send,
    server_of,
    users_of,
    wait_for,
    wait_until_gone,
)

from nephoscope.systems.machine import supervised
from nephoscope.systems.postgres.folder import TRAITS
from nephoscope.systems.postgres.server import PostgresServer

ORDINARY = pytest.mark.parametrize("ordinary", [False, True], ids=["ourselves", "ordinary user"])


# --- a server for a study


@pytest.mark.parametrize("version", [18, 16])
def test_gives_a_server_on_loopback_and_leaves_nothing_running(lab: Lab, version: int) -> None:
    with lab.provider(version=version) as provider:
        system = provider.start()
        psql = server_of(provider).install.program("psql")
        port = system.facts["port"]
        assert re.fullmatch(
            rf"postgresql://postgres:[\w-]{{30,}}@127\.0\.0\.1:{port}/nephoscope", system.rw[0]
        )
        assert query_url(system, "SHOW server_version", psql) == system.facts["server_version"]
        assert system.facts["server_version"].startswith(f"{version}.")
        assert query_url(system, "SHOW listen_addresses", psql) == "127.0.0.1"
        assert query_url(system, "SHOW unix_socket_directories", psql) == ""
        assert query_url(system, "SHOW fsync", psql) == "on"
        assert query_url(system, "SHOW synchronous_commit", psql) == "on"
        running = users_of(lab.folder)
        assert server_of(provider).pid in running
        assert len(running) > 5
    assert not users_of(lab.folder)


def test_keeps_the_database_but_not_what_alter_system_set(ready_lab: Lab) -> None:
    with ready_lab.provider() as provider:
        provider.start()
        query(provider, "CREATE TABLE kept AS SELECT 42 AS answer")
        query(provider, "ALTER SYSTEM SET work_mem = '77MB'")
    with ready_lab.provider() as provider:
        provider.start()
        assert query(provider, "SELECT answer FROM kept") == "42"
        assert query(provider, "SHOW work_mem") == "4MB"


def test_takes_settings_of_every_kind(common_lab: Lab) -> None:
    wanted: dict[str, Any] = {
        "work_mem": "33MB",
        "max_connections": 77,
        "seq_page_cost": 0.5,
        "autovacuum": False,
        "synchronous_commit": False,
        "cluster_name": "it's a \\ name",
    }
    with common_lab.provider(settings=wanted, database="other-name") as provider:
        system = provider.start()
        assert system.rw[0].endswith("/other-name")
        shown = {name: query(provider, f"SHOW {name}") for name in wanted}
    assert shown == {
        "work_mem": "33MB",
        "max_connections": "77",
        "seq_page_cost": "0.5",
        "autovacuum": "off",
        "synchronous_commit": "off",
        "cluster_name": "it's a \\ name",
    }
    assert system.facts["settings"].items() >= wanted.items()


@pytest.mark.parametrize("version", [18, 16])
def test_an_ordinary_user_runs_it_as_himself(lab: Lab, version: int) -> None:
    process = lab.holder("pass", ordinary=True, version=version)
    user, dropped = expect(process, "ready")
    assert dropped == "False"
    assert process.wait(60) == 0
    if ROOT:
        assert user == "nobody"
    assert not users_of(lab.folder)


# --- nothing is left running


BUSY = """
import subprocess
psql = provider._server.install.program("psql")
for sql in ("SELECT pg_sleep(600)", "SELECT sum(g) FROM generate_series(1, 1e12::bigint) g"):
    subprocess.Popen([psql, "-X", "-d", system.rw[0], "-c", sql], stderr=subprocess.DEVNULL)
while provider._server.psql("SELECT count(*) FROM pg_stat_activity WHERE state = 'active'") != "3":
    time.sleep(0.01)
print("busy", flush=True)
sys.stdin.read()
"""


@ORDINARY
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_the_server_ends_with_a_parent_that_is_killed(
    ready_lab: Lab, number: signal.Signals, *, ordinary: bool
) -> None:
    process = ready_lab.holding(BUSY, ordinary=ordinary)
    expect(process, "busy")
    running = users_of(ready_lab.folder) - {process.pid}
    assert len(running) > 7
    assert send(process, number) == -number
    wait_until_gone(running)


def test_a_parent_killed_during_initdb_leaves_nothing_and_the_next_start_works(lab: Lab) -> None:
    process = lab.holder("pass")
    wait_for((lab.folder / "data.new" / "base").exists)
    send(process, signal.SIGKILL)
    with lab.provider() as provider:
        provider.start()
        assert not (lab.folder / "data.new").exists()
    assert not users_of(lab.folder)


def test_ctrl_c_does_not_reach_the_server(ready_lab: Lab) -> None:
    process = ready_lab.holding(
        "import select\n"
        "def hear(*_): print('heard', provider._server.psql('SELECT 1'), flush=True)\n"
        "signal.signal(signal.SIGINT, hear)\n"
        "print('waiting', flush=True)\n"
        # Not a read: a signal that comes just before one begins is heard when it ends.
        "while not select.select([sys.stdin], [], [], 0.1)[0]: pass"
    )
    expect(process, "waiting")
    os.killpg(process.pid, signal.SIGINT)
    assert expect(process, "heard") == ["1"]


def test_a_server_that_hears_no_signal_is_killed(ready_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    ignored = signal.SIGWINCH
    monkeypatch.setattr(PostgresServer, "traits", replace(TRAITS, stages=((ignored, 0.2), (ignored, 0.2))))
    provider = ready_lab.provider()
    provider.start()
    provider.stop()
    assert not users_of(ready_lab.folder)
    with ready_lab.provider() as again:  # and takes care of the shared memory that the killed one left
        again.start()


def test_a_supervisor_that_hangs_is_killed_and_the_server_ends(
    ready_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised, "_GRACE_S", 0.2)
    monkeypatch.setattr(PostgresServer, "traits", replace(TRAITS, stages=()))
    provider = ready_lab.provider()
    provider.start()
    os.kill(server_of(provider)._process._supervisor.pid, signal.SIGSTOP)
    provider.stop()
    assert not users_of(ready_lab.folder)


def test_a_supervisor_that_is_told_to_end_ends_the_server_first(ready_lab: Lab) -> None:
    provider = ready_lab.provider()
    provider.start()
    running = users_of(ready_lab.folder)
    os.kill(server_of(provider)._process._supervisor.pid, signal.SIGTERM)
    wait_until_gone(running)
    provider.stop()
    assert "database system is shut down" in (ready_lab.folder / "server.log").read_text()
