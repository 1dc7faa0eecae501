"""Clusters that fail, that are killed, and that come back: nothing is left running, and nothing is forgotten."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from postgres_lab import Lab, expect, query_url, read_if_there, send, users_of, wait_for, wait_until_gone
from pydantic import ValidationError

from databases import query
from nephoscope.errors import MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.systems.cluster import node as cluster_node
from nephoscope.systems.cluster.node import Node
from nephoscope.systems.machine import processes
from nephoscope.systems.postgres import node as postgres_node
from nephoscope.systems.postgres.embedded import EmbeddedPostgresSettings

if TYPE_CHECKING:
    from nephoscope.systems.cluster.embedded import EmbeddedCluster


def node_of(provider: EmbeddedCluster, name: str) -> Node:
    assert provider._cluster is not None
    return provider._cluster.node(name)


def copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the nodes that are made by a copy from now on."""
    made: list[str] = []
    copy = Node.copy_from

    def noting(node: Node, primary: Any) -> None:
        made.append(node.name)
        copy(node, primary)

    monkeypatch.setattr(Node, "copy_from", noting)
    return made


# --- a single server


def test_a_single_server_keeps_its_address_without_a_front(ready_lab: Lab) -> None:
    with ready_lab.provider() as provider:
        url = provider.start().rw[0]
        assert dict(provider.nodes()) == {"node1": "rw"}
        assert not {Action.PROMOTE, Action.ADD_NODE, Action.REMOVE_NODE} & provider.actions()
        for action in (Action.KILL, Action.START, Action.RESTART, Action.PAUSE, Action.RESUME):
            provider.act(action)
        assert provider.endpoints("rw") == (url,)
        assert query(url, "SELECT 1") == [["1"]]
        for action in (Action.PROMOTE, Action.ADD_NODE, Action.REMOVE_NODE):
            with pytest.raises(MeasurementError, match=r"system\.replicas, system\.front"):
                provider.act(action)
        with pytest.raises(MeasurementError, match=r"system\.front asks for them"):
            provider.front("rw")


def test_a_front_without_replicas_takes_some_later(ready_lab: Lab) -> None:
    with ready_lab.provider(front=True) as provider:
        system = provider.start()
        assert system.ro == ()
        assert Action.PROMOTE not in provider.actions()
        provider.act(Action.ADD_NODE)
        assert Action.PROMOTE in provider.actions()
        [url] = provider.endpoints("ro")
        assert query(url, "SELECT pg_is_in_recovery()") == [["t"]]


def test_nothing_can_be_done_to_what_was_not_started(ready_lab: Lab) -> None:
    provider = ready_lab.provider(replicas=1)
    with pytest.raises(MeasurementError, match="has not been started"):
        provider.act(Action.RESTART)
    assert dict(provider.nodes()) == {}
    assert provider.allocation() == ()


@pytest.mark.parametrize(
    "table",
    [
        {"replicas": -1},
        {"replicas": 17},
        {"synchronous": "on"},
        {"replica_delay": -1},
        {"replicas": 1, "resources": {"nodes": 3, "vcores": 1, "memory_gb": 1, "storage_gb": 1}},
        {"settings": {"synchronous_standby_names": "*"}},
    ],
    ids=str,
)
def test_a_cluster_that_makes_no_sense_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EmbeddedPostgresSettings(**table)


# --- how replicas follow


def test_with_remote_apply_a_commit_is_at_every_replica_that_runs(ready_lab: Lab) -> None:
    with ready_lab.provider(replicas=2, synchronous="remote_apply") as provider:
        system = provider.start()
        query(system.rw[0], "CREATE TABLE seen (value int)")
        for value in range(1, 11):
            query(system.rw[0], f"INSERT INTO seen VALUES ({value})")
            for url in system.ro:
                assert query(url, "SELECT max(value) FROM seen") == [[str(value)]]
        provider.act(Action.KILL, node="node3")  # and who has gone is not waited for
        query(system.rw[0], "INSERT INTO seen VALUES (11)")
        provider.act(Action.PROMOTE, node="node2")
        query(system.rw[0], "INSERT INTO seen VALUES (12)")
        provider.act(Action.START, node="node3")
        query(system.rw[0], "INSERT INTO seen VALUES (13)")
        for url in provider.endpoints("ro"):
            assert query(url, "SELECT max(value) FROM seen") == [["13"]]


def test_a_replica_shows_commits_after_the_delay_that_was_asked_for(ready_lab: Lab) -> None:
    with ready_lab.provider(replicas=1, replica_delay=0.5) as provider:
        system = provider.start()
        query(system.rw[0], "CREATE TABLE late (value int)")
        before = time.monotonic()
        query(system.rw[0], "INSERT INTO late VALUES (1)")
        shown = "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'late')"
        wait_for(lambda: query(system.ro[0], shown) == [["t"]])
        wait_for(lambda: query(system.ro[0], "SELECT count(*) FROM late") == [["1"]])
        assert time.monotonic() - before >= 0.49


# --- nothing is left running


def test_a_cluster_with_a_paused_node_ends_in_good_order(ready_lab: Lab) -> None:
    provider = ready_lab.provider(replicas=1)
    provider.start()
    provider.act(Action.PAUSE)
    provider.stop()
    assert not users_of(ready_lab.folder)
    assert "database system is shut down" in (ready_lab.folder / "server.log").read_text()


@pytest.mark.parametrize("action", ["nodes()", "act(Action.PAUSE)", "act(Action.KILL)"])
def test_a_cluster_ends_with_a_parent_that_is_killed(ready_lab: Lab, action: str) -> None:
    process = ready_lab.holding(
        "from nephoscope.settings.actions import Action\n"
        f"provider.{action}\n"
        "print('done', flush=True); sys.stdin.read()",
        replicas=1,
    )
    expect(process, "done")
    running = users_of(ready_lab.folder) - {process.pid}
    assert len(running) > 7
    send(process, signal.SIGKILL)
    wait_until_gone(running)


def test_a_promotion_that_fails_ends_in_time_and_leaves_no_second_primary(
    ready_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_node, "PROMOTE_S", 0.3)
    with ready_lab.provider(replicas=1) as provider:
        system = provider.start()
        query(system.rw[0], "CREATE TABLE kept AS SELECT 1")
        shown = "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'kept')"
        wait_for(lambda: query(system.ro[0], shown) == [["t"]])  # and holds no lock on anything
        candidate = node_of(provider, "node2").server.pid
        for pid in processes.family(candidate):
            if b"startup" in read_if_there(Path(f"/proc/{pid}/cmdline")):
                os.kill(pid, signal.SIGSTOP)
        with pytest.raises(MeasurementError, match=r"node2 did not become the primary within 0 s"):
            provider.act(Action.PROMOTE)
        assert not processes.family(candidate)
        assert dict(provider.nodes()) == {"node1": "rw", "node2": "ro"}
        provider.act(Action.START, node="node1")
        provider.act(Action.START, node="node2")
        assert query(system.rw[0], "SELECT * FROM kept") == [["1"]]
        assert query(system.ro[0], "SELECT * FROM kept") == [["1"]]
    assert not users_of(ready_lab.folder)


def test_a_node_that_cannot_be_added_leaves_the_cluster_as_it_was(
    ready_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ready_lab.provider(replicas=1) as provider:
        system = provider.start()
        monkeypatch.setattr(postgres_node, "COPY_S", 0.0)
        with pytest.raises(MeasurementError, match="pg_basebackup did not end within 0 s"):
            provider.act(Action.ADD_NODE)
        assert len(provider.nodes()) == len(provider.allocation()) + 1 == 2
        assert query(system.rw[0], "SELECT slot_name FROM pg_replication_slots") == [["node2"]]
        assert not users_of(ready_lab.folder / "node3")


def test_a_replica_that_never_catches_up_is_given_up(ready_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with ready_lab.provider(replicas=1, settings={"recovery_min_apply_delay": "1h"}) as provider:
        system = provider.start()
        query(system.rw[0], "CREATE TABLE late AS SELECT 1")
        monkeypatch.setattr(cluster_node, "CATCH_UP_S", 0.2)
        with monkeypatch.context() as patched:
            patched.setattr(postgres_node, "COPY_S", 0.0)  # the last resort, by which it could
            with pytest.raises(MeasurementError, match="pg_basebackup did not end"):
                provider.act(Action.RESTART, node="node2")
        assert not users_of(ready_lab.folder / "node2")
        assert provider.act(Action.START, node="node2").detail["how"] == "pg_basebackup"
        assert query(system.ro[0], "SELECT * FROM late") == [["1"]]


def shows(url: str, table: str) -> bool:
    return query(url, f"SELECT to_regclass('{table}') IS NOT NULL") == [["t"]]


@pytest.mark.parametrize("rows", [1, 60_000], ids=["in one file of the log", "in the next one"])
def test_a_replica_that_has_more_than_the_new_primary_is_taken_back(
    ready_lab: Lab, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(cluster_node, "FOLLOW_S", 3.0)
    monkeypatch.setattr(cluster_node, "CATCH_UP_S", 30.0)
    with ready_lab.provider(replicas=2) as provider:
        system = provider.start()
        [[sender]] = query(
            system.rw[0], "SELECT pid FROM pg_stat_replication WHERE application_name = 'node3'"
        )
        os.kill(int(sender or 0), signal.SIGSTOP)
        text = f"SELECT repeat('x', 1000) AS text FROM generate_series(1, {rows})"
        query(system.rw[0], f"CREATE TABLE ahead AS {text}")
        wait_for(partial(shows, system.ro[0], "ahead"))
        provider.act(Action.KILL)
        provider.act(Action.PROMOTE, node="node3")
        query(system.rw[0], "CREATE TABLE after AS SELECT 45 AS answer")
        for url in system.ro:
            wait_for(partial(shows, url, "after"))
            assert not shows(url, "ahead")


# --- what an earlier run left behind


def test_a_cluster_comes_back_as_it_was_whoever_was_promoted(
    ready_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ready_lab.provider(replicas=2) as provider:
        system = provider.start()
        query(system.rw[0], "CREATE TABLE kept AS SELECT 42 AS answer")
        provider.act(Action.PROMOTE, node="node2")
        query(system.rw[0], "INSERT INTO kept VALUES (43)")
    made = copies(monkeypatch)
    with ready_lab.provider(replicas=2) as provider:
        system = provider.start()
        assert not made
        assert dict(provider.nodes()) == {"node1": "rw", "node2": "ro", "node3": "ro"}
        for url in (*system.rw, *system.ro):
            assert query(url, "SELECT answer FROM kept ORDER BY 1") == [["42"], ["43"]]
        provider.act(Action.KILL)
        provider.act(Action.PROMOTE, node="node3")
        query(system.rw[0], "INSERT INTO kept VALUES (44)")
    with (
        ready_lab.provider() as provider
    ):  # alone it has all of it as well, and keeps no log for those not there
        [url] = provider.start().rw
        assert query(url, "SELECT answer FROM kept ORDER BY 1") == [["42"], ["43"], ["44"]]
        assert query(url, "SELECT count(*) FROM pg_replication_slots") == [["0"]]


def test_a_run_that_is_killed_after_a_promotion_loses_nothing(ready_lab: Lab) -> None:
    process = ready_lab.holding(
        "from nephoscope.settings.actions import Action\n"
        "provider.act(Action.PROMOTE)\n"
        "provider._server.psql('CREATE TABLE kept AS SELECT 42 AS answer', 'nephoscope')\n"
        "print('done', flush=True); sys.stdin.read()",
        replicas=1,
    )
    expect(process, "done")
    send(process, signal.SIGKILL)
    with ready_lab.provider(replicas=1) as provider:
        system = provider.start()
        for url in (*system.rw, *system.ro):
            assert query(url, "SELECT answer FROM kept") == [["42"]]


ROLES_MOVE = """
from nephoscope.settings.actions import Action
ways = [provider.act(action).detail.get("how") for action in (Action.PROMOTE, Action.KILL, Action.PROMOTE)]
print("moved", *(next(iter(way.values())) for way in ways if way), flush=True)
"""


@pytest.mark.parametrize(("version", "ordinary"), [(16, False), (18, True)], ids=["16", "ordinary user"])
def test_roles_move_in_every_version_and_for_every_user(lab: Lab, version: int, *, ordinary: bool) -> None:
    process = lab.holding(ROLES_MOVE, version=version, ordinary=ordinary, replicas=1)
    assert expect(process, "moved") == ["pg_rewind", "pg_rewind"]
    assert process.wait(60) == 0
    assert not users_of(lab.folder)


@pytest.mark.parametrize("damage", ["pg_control", "not its own", "half rewound"])
def test_a_replica_that_does_not_fit_is_made_anew(
    ready_lab: Lab, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    with ready_lab.provider(replicas=1) as provider:
        provider.start()
    replica = ready_lab.folder / "node2"
    control = replica / "data" / "global" / "pg_control"
    match damage:
        case "pg_control":
            control.unlink()
        case "not its own":
            found = control.read_bytes()
            control.write_bytes(bytes(8) + found[8:])
        case _:
            (replica / "rejoining").touch()
    made = copies(monkeypatch)
    with ready_lab.provider(replicas=1) as provider:
        system = provider.start()
        assert made == ["node2"]
        assert query(system.ro[0], "SELECT pg_is_in_recovery()") == [["t"]]


def test_the_password_is_in_files_of_the_server_and_of_ours_alone(ready_lab: Lab) -> None:
    with ready_lab.provider(replicas=1) as provider:
        system = provider.start()
        password = system.rw[0].split(":")[2].partition("@")[0]
        provider.act(Action.PROMOTE)
        psql = node_of(provider, "node1").server.install.program("psql")
        assert query_url(system, "SELECT 1", psql) == "1"
        assert password not in str([provider, vars(provider), system, provider.nodes()])
    holding = [
        file
        for file in ready_lab.folder.rglob("*")
        if file.is_file() and file.name != "server.log" and password.encode() in file.read_bytes()
    ]
    assert {file.name for file in holding} == {"pgpass", "replication.pgpass"}
    assert {file.stat().st_mode & 0o777 for file in holding} == {0o600}
