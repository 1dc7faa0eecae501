"""Clusters that fail, that are killed, and that come back: nothing is left running, and nothing is forgotten."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from postgres_lab import ROLES_MOVE, Lab, copies, expect, node_of, read_if_there, users_of, wait_for
from pydantic import ValidationError

from databases import query, shows
from nephoscope.errors import MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.systems.cluster import node as cluster_node
from nephoscope.systems.machine import processes
from nephoscope.systems.postgres import node as postgres_node
from nephoscope.systems.postgres.embedded import EmbeddedPostgresSettings

# --- a single server


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


# --- nothing is left running


def test_a_promotion_that_fails_ends_in_time_and_leaves_no_second_primary(
    ready_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_node, "PROMOTE_S", 0.3)
    with ready_lab.provider(replicas=1) as provider:
        system = provider.start()
        query(system.rw[0], "CREATE TABLE kept AS SELECT 1")
        wait_for(lambda: shows(system.ro[0], "kept"))  # and holds no lock on anything
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


def test_roles_move_in_an_older_version(lab: Lab) -> None:
    process = lab.holding(ROLES_MOVE, version=16, replicas=1)
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
