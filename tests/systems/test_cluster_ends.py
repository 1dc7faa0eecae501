"""A cluster of each product from beginning to end: how its replicas follow, what fails, and what the next run finds."""

from __future__ import annotations

import contextlib
import itertools
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest
from postgres_lab import (
    ROLES_MOVE,
    Lab,
    copies,
    expect,
    password_of,
    send,
    users_of,
    wait_for,
    wait_until_gone,
)

from databases import query
from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.settings.actions import Action

if TYPE_CHECKING:
    from products import Words


def test_a_single_server_keeps_its_address_without_a_front(full_lab: Lab) -> None:
    with full_lab.provider() as provider:
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


def test_a_front_without_replicas_takes_some_later(full_lab: Lab, words: Words) -> None:
    with full_lab.provider(front=True) as provider:
        system = provider.start()
        assert system.ro == ()
        assert Action.PROMOTE not in provider.actions()
        provider.act(Action.ADD_NODE)
        assert Action.PROMOTE in provider.actions()
        [url] = provider.endpoints("ro")
        assert words.is_replica(url)


def test_nothing_can_be_done_to_what_was_not_started(full_lab: Lab) -> None:
    provider = full_lab.provider(replicas=1)
    with pytest.raises(MeasurementError, match="has not been started"):
        provider.act(Action.RESTART)
    assert dict(provider.nodes()) == {}
    assert provider.allocation() == ()


def test_a_replica_shows_commits_after_the_delay_that_was_asked_for(full_lab: Lab, words: Words) -> None:
    with full_lab.provider(replicas=1, replica_delay=words.delay_s) as provider:
        system = provider.start()
        query(system.rw[0], "CREATE TABLE late (value int)")
        before = time.monotonic()
        query(system.rw[0], "INSERT INTO late VALUES (1)")
        shown = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'late'"
        wait_for(lambda: query(system.ro[0], shown) == [["1"]])
        wait_for(lambda: query(system.ro[0], "SELECT count(*) FROM late") == [["1"]])
        assert time.monotonic() - before >= words.least_delay_s


def test_a_cluster_with_a_paused_node_ends_in_good_order(full_lab: Lab, words: Words) -> None:
    provider = full_lab.provider(replicas=1)
    provider.start()
    provider.act(Action.PAUSE)
    provider.stop()
    assert not users_of(full_lab.folder)
    assert words.ended in (full_lab.folder / "server.log").read_text()


@pytest.mark.parametrize("action", ["nodes()", "act(Action.PAUSE)", "act(Action.KILL)"])
def test_a_cluster_ends_with_a_parent_that_is_killed(full_lab: Lab, action: str) -> None:
    process = full_lab.holding(
        "from nephoscope.settings.actions import Action\n"
        f"provider.{action}\n"
        "print('done', flush=True); sys.stdin.read()",
        replicas=1,
    )
    expect(process, "done")
    running = users_of(full_lab.folder) - {process.pid}
    assert len(running) >= 2
    send(process, signal.SIGKILL)
    wait_until_gone(running)


def test_a_node_that_cannot_be_added_leaves_the_cluster_as_it_was(
    full_lab: Lab, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    with full_lab.provider(replicas=1) as provider:
        system = provider.start()
        monkeypatch.setattr(words.node, "COPY_S", 0.0)
        with pytest.raises(MeasurementError, match=f"{words.copied_by} did not end within 0 s"):
            provider.act(Action.ADD_NODE)
        assert len(provider.nodes()) == len(provider.allocation()) + 1 == 2
        assert words.keeps_log_for(system.rw[0], ["node2"])
        assert not users_of(full_lab.folder / "node3")


def test_a_cluster_comes_back_as_it_was_whoever_was_promoted(
    full_lab: Lab, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    with full_lab.provider(replicas=2) as provider:
        system = provider.start()
        query(system.rw[0], "CREATE TABLE kept AS SELECT 42 AS answer")
        provider.act(Action.PROMOTE, node="node2")
        query(system.rw[0], "INSERT INTO kept VALUES (43)")
    made = copies(monkeypatch)
    with full_lab.provider(replicas=2) as provider:
        system = provider.start()
        assert not made
        assert dict(provider.nodes()) == {"node1": "rw", "node2": "ro", "node3": "ro"}
        for url in (*system.rw, *system.ro):
            assert query(url, "SELECT answer FROM kept ORDER BY 1") == [["42"], ["43"]]
        provider.act(Action.KILL)
        provider.act(Action.PROMOTE, node="node3")
        query(system.rw[0], "INSERT INTO kept VALUES (44)")
    with (
        full_lab.provider() as provider
    ):  # alone it has all of it as well, and keeps no log for those not there
        [url] = provider.start().rw
        assert query(url, "SELECT answer FROM kept ORDER BY 1") == [["42"], ["43"], ["44"]]
        assert words.keeps_log_for(url, [])


def test_a_run_that_is_killed_after_a_promotion_loses_nothing(full_lab: Lab, words: Words) -> None:
    process = full_lab.holding(
        "from nephoscope.settings.actions import Action\n"
        "provider.act(Action.PROMOTE)\n"
        f"{words.code('CREATE TABLE kept AS SELECT 42 AS answer')}\n"
        "print('done', flush=True); sys.stdin.read()",
        replicas=1,
    )
    expect(process, "done")
    send(process, signal.SIGKILL)
    with full_lab.provider(replicas=1) as provider:
        system = provider.start()
        for url in (*system.rw, *system.ro):
            assert query(url, "SELECT answer FROM kept") == [["42"]]


def test_roles_move_for_an_ordinary_user(new_lab: Lab, words: Words) -> None:
    process = new_lab.holding(ROLES_MOVE, ordinary=True, replicas=1)
    assert expect(process, "moved") == [words.back, words.back]
    assert process.wait(60) == 0
    assert not users_of(new_lab.folder)


def test_the_password_is_in_files_of_the_server_and_of_ours_alone(full_lab: Lab, words: Words) -> None:
    with full_lab.provider(replicas=1) as provider:
        system = provider.start()
        password = password_of(system.rw[0])
        provider.act(Action.PROMOTE)
        assert query(system.rw[0], "SELECT 1") == [["1"]]
        assert password not in str([provider, vars(provider), system, provider.nodes()])
    holding = [
        file
        for file in full_lab.folder.rglob("*")
        if file.is_file() and file.name != "server.log" and password.encode() in file.read_bytes()
    ]
    assert {file.name for file in holding} == words.password_files
    assert {file.stat().st_mode & 0o777 for file in holding} == {0o600}


def test_a_killed_primary_loses_nothing_that_was_acknowledged(full_lab: Lab, words: Words) -> None:
    acknowledged: list[int] = []

    def write(url: str) -> None:
        session = _engine.Admin(url)
        with contextlib.suppress(MeasurementError):
            for value in itertools.count(1):
                session.query(f"INSERT INTO seen VALUES ({value}) RETURNING value")
                acknowledged.append(value)
        session.close()

    with full_lab.provider(replicas=2, synchronous=words.synchronous) as provider:
        [rw] = provider.start().rw
        query(rw, "CREATE TABLE seen (value int PRIMARY KEY)")
        for _ in range(2):
            query(rw, "DELETE FROM seen")
            acknowledged.clear()
            with ThreadPoolExecutor(1) as threads:
                writer = threads.submit(write, rw)
                wait_for(lambda: len(acknowledged) > 50)
                provider.act(Action.KILL)
                writer.result(20)
            provider.act(Action.PROMOTE)
            found = [int(row[0] or 0) for row in query(rw, "SELECT value FROM seen ORDER BY value")]
            assert found in (acknowledged, [*acknowledged, len(acknowledged) + 1])
            query(rw, "INSERT INTO seen VALUES (0)")
            for url in provider.endpoints("ro"):
                wait_for(partial(_has, url, [0, *found]))


def _has(url: str, values: list[int]) -> bool:
    return [int(row[0] or 0) for row in query(url, "SELECT value FROM seen ORDER BY value")] == values
