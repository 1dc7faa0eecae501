"""A cluster of each product: what each action does to it, as clients see it through endpoints that stay."""

from __future__ import annotations

import itertools
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from postgres_lab import Lab, lab_with_database, node_of, password_of, users_of, wait_for

from databases import query
from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.settings.resources import Resources
from nephoscope.systems.machine.folders import is_alive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from products import Words

    from nephoscope.systems.base import Done
    from nephoscope.systems.cluster.embedded import EmbeddedCluster


class Cluster:
    """A running cluster with a table, and what a client can ask of it."""

    def __init__(self, provider: EmbeddedCluster, words: Words) -> None:
        self.provider = provider
        self.words = words
        self.system = provider.start()
        self._values = itertools.count(1)
        self.written: list[int] = []
        query(self.rw, "CREATE TABLE IF NOT EXISTS written (value bigint PRIMARY KEY)")
        exists = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'written'"
        wait_for(lambda: query(self.system.ro[0], exists) == [["1"]])

    @property
    def rw(self) -> str:
        return self.system.rw[0]

    @property
    def primary(self) -> str:
        return next(name for name, role in self.provider.nodes().items() if role == "rw")

    @property
    def replica(self) -> str:
        return next(name for name, role in self.provider.nodes().items() if role == "ro")

    def act(self, action: Action, **options: Any) -> Done:
        return self.provider.act(action, **options)

    def write(self) -> None:
        value = next(self._values)
        query(self.rw, f"INSERT INTO written VALUES ({value})")
        self.written.append(value)

    def read(self, url: str) -> list[int]:
        return [int(row[0] or 0) for row in query(url, "SELECT value FROM written ORDER BY value")]

    def is_healthy(self) -> bool:
        """Everything written is there at every endpoint, and each node has its role."""
        self.write()
        assert self.read(self.rw) == self.written
        assert not self.words.is_replica(self.rw)
        replicas = self.provider.endpoints("ro")
        for url in replicas:
            wait_for(lambda url=url: self.read(url) == self.written)  # type: ignore[misc]
            assert self.words.is_replica(url)
        wait_for(lambda: self.words.followers(self.rw) == len(replicas))
        return True


@pytest.fixture(scope="module")
def module_lab(words: Words) -> Iterator[Lab]:
    with lab_with_database(words.lab) as lab:
        yield lab


@pytest.fixture(scope="module")
def cluster(module_lab: Lab, words: Words) -> Iterator[Cluster]:
    """One for all tests of this file: each leaves it healthy, with two nodes in whatever roles."""
    with module_lab.provider(replicas=1) as provider:
        yield Cluster(provider, words)
    assert not users_of(module_lab.folder)


def pid_of(cluster: Cluster, node: str) -> int:
    pid: int = node_of(cluster.provider, node).server.pid
    return pid


def test_writes_at_one_endpoint_are_read_at_the_other(cluster: Cluster) -> None:
    assert dict(cluster.provider.nodes()) == {"node1": "rw", "node2": "ro"}
    assert cluster.provider.endpoints("rw") == cluster.system.rw
    assert cluster.provider.endpoints("ro") == cluster.system.ro
    [rw], [ro] = cluster.provider.front("rw"), cluster.provider.front("ro")
    assert f"@{rw.address}/" in cluster.rw
    assert f"@{ro.address}/" in cluster.system.ro[0]
    assert cluster.is_healthy()
    with pytest.raises(MeasurementError, match="read-only"):
        query(cluster.system.ro[0], "INSERT INTO written VALUES (0)")


def test_the_facts_name_all_nodes_and_no_password(cluster: Cluster) -> None:
    facts = cluster.system.facts
    assert set(facts["nodes"]) == {"node1", "node2"}
    assert facts["nodes"]["node1"]["port"] != facts["nodes"]["node2"]["port"]
    assert password_of(cluster.rw) not in str(facts)
    assert facts["endpoints"]["rw"] == [cluster.provider.front("rw")[0].address]


def test_the_machine_is_shared_out_among_the_nodes(cluster: Cluster, module_lab: Lab) -> None:
    with module_lab.provider(data=module_lab.base / "single") as single:
        whole = single.start().resources
    given = cluster.system.resources
    assert given is not None
    assert whole is not None
    assert given.nodes == 2
    assert given.vcores * 2 == pytest.approx(whole.vcores)
    assert given.memory_gb * 2 == pytest.approx(whole.memory_gb)


def test_a_restart_ends_the_node_in_good_order(cluster: Cluster) -> None:
    for node in ("node1", "node2"):
        before = pid_of(cluster, node)
        asked = _engine.monotonic_ns()
        done = cluster.act(Action.RESTART, node=node)
        assert asked <= done.began_ns < done.ended_ns <= _engine.monotonic_ns()
        assert done.node == node
        assert pid_of(cluster, node) != before
        assert not is_alive(before)
        assert cluster.is_healthy()


@pytest.mark.parametrize("action", [Action.KILL, Action.STOP])
def test_a_node_that_has_ended_serves_nobody_until_it_is_started(cluster: Cluster, action: Action) -> None:
    for node, url in ((cluster.primary, cluster.rw), (cluster.replica, cluster.system.ro[0])):
        before = pid_of(cluster, node)
        done = cluster.act(action, node=node)
        assert done.node == node
        assert not is_alive(before)
        with pytest.raises(MeasurementError):
            query(url, "SELECT 1")
        with pytest.raises(MeasurementError, match=f"{node} does not run"):
            cluster.act(Action.RESTART, node=node)
        cluster.act(Action.START, node=node)
        assert cluster.is_healthy()


def test_a_planned_promotion_loses_nothing_and_keeps_the_addresses(cluster: Cluster) -> None:
    addresses = (cluster.provider.endpoints("rw"), cluster.provider.endpoints("ro"))
    old, new = cluster.primary, cluster.replica
    cluster.write()
    done = cluster.act(Action.PROMOTE)
    assert (done.node, done.detail["from"], done.detail["planned"]) == (new, old, True)
    assert 0 < done.detail["promoted_s"] <= (done.ended_ns - done.began_ns) / 1e9
    assert dict(cluster.provider.nodes()) == {new: "rw", old: "ro"}
    assert (cluster.provider.endpoints("rw"), cluster.provider.endpoints("ro")) == addresses
    assert cluster.is_healthy()


@pytest.mark.parametrize("beforehand", [Action.KILL, Action.PAUSE])
def test_a_promotion_over_a_lost_primary_makes_sure_of_its_end(cluster: Cluster, beforehand: Action) -> None:
    cluster.is_healthy()  # all is at the replica: nothing can be lost
    old, pid = cluster.primary, pid_of(cluster, cluster.primary)
    cluster.act(beforehand)
    done = cluster.act(Action.PROMOTE)
    assert not done.detail["planned"]
    assert done.detail["how"] == {old: cluster.words.back}
    assert not is_alive(pid)
    assert cluster.is_healthy()


def test_commits_that_had_not_reached_the_replica_are_taken_back_from_the_old_primary(
    cluster: Cluster,
) -> None:
    cluster.is_healthy()
    cluster.act(Action.STOP, node=cluster.replica)
    replica, kept = cluster.replica, list(cluster.written)
    for _ in range(37):
        cluster.write()
    cluster.act(Action.KILL)
    cluster.act(Action.START, node=replica)
    old = cluster.primary
    done = cluster.act(Action.PROMOTE, node=replica)
    assert done.detail["how"] == {old: cluster.words.again}
    assert cluster.read(cluster.rw) == kept
    cluster.written = kept
    assert cluster.is_healthy()


def answered_ns(session: _engine.Admin) -> int:
    session.query("SELECT 1")
    return _engine.monotonic_ns()


def test_a_paused_node_answers_when_it_goes_on_and_not_before(cluster: Cluster) -> None:
    for node, url in ((cluster.primary, cluster.rw), (cluster.replica, cluster.system.ro[0])):
        session = _engine.Admin(url)
        paused = cluster.act(Action.PAUSE, node=node)
        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(answered_ns, session)
            time.sleep(0.4)
            assert not asked.done()
            resumed = cluster.act(Action.RESUME, node=node)
            at_ns = asked.result(20)
        session.close()
        assert at_ns - paused.ended_ns >= 400_000_000
        assert at_ns >= resumed.began_ns
        assert resumed.ended_ns - paused.began_ns >= 400_000_000
        assert cluster.is_healthy()


def test_a_node_is_added_and_removed_under_load(cluster: Cluster) -> None:
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            cluster.write()

    with ThreadPoolExecutor(1) as threads:
        writer = threads.submit(write)
        try:
            added = cluster.act(Action.ADD_NODE)
        finally:
            over.set()
        writer.result(20)
    assert added.node == "node3"
    [old, new] = cluster.provider.endpoints("ro")
    assert old == cluster.system.ro[0]
    assert cluster.is_healthy()
    cluster.act(Action.PROMOTE, node="node3")  # with a third node that has to follow
    assert cluster.is_healthy()
    cluster.act(Action.PROMOTE, node="node2")
    removed = cluster.act(Action.REMOVE_NODE, node="node3")
    assert cluster.provider.endpoints("ro") == (old,) or cluster.provider.endpoints("ro") == (new,)
    assert len(cluster.provider.nodes()) == 2
    assert cluster.words.keeps_log_for(cluster.rw, ["node1"])
    nodes = [step.resources.nodes for step in cluster.provider.allocation()]
    assert nodes == [2, 3, 2]
    times = [step.time_ns for step in cluster.provider.allocation()]
    assert times[1:] == [added.ended_ns, removed.ended_ns]
    assert cluster.is_healthy()


def test_a_resize_gives_every_node_other_memory(cluster: Cluster) -> None:
    wanted = Resources(vcores=2, memory_gb=0.5, storage_gb=10)
    done = cluster.act(Action.RESIZE, resources=wanted)
    assert set(done.detail["restarted"]) == ({"node1", "node2"} if cluster.words.resize_restarts else set())
    name, value = cluster.words.memory
    for url in (*cluster.provider.endpoints("rw"), *cluster.provider.endpoints("ro")):
        assert cluster.words.shown(url, name) == value
    last = cluster.provider.allocation()[-1]
    assert (last.time_ns, last.resources) == (done.ended_ns, wanted.model_copy(update={"nodes": 2}))
    assert cluster.is_healthy()
    with pytest.raises(MeasurementError, match="resize needs resources"):
        cluster.act(Action.RESIZE)
    with pytest.raises(MeasurementError, match="leaves the 2 nodes"):
        cluster.act(Action.RESIZE, resources=wanted.model_copy(update={"nodes": 3}))


@pytest.mark.parametrize("case", range(3))
def test_a_parameter_is_set_on_every_node(cluster: Cluster, case: int) -> None:
    name, value, restarts = cluster.words.parameters[case]
    done = cluster.act(Action.SET, settings={name: value})
    assert len(done.detail["restarted"]) == restarts
    for url in (*cluster.provider.endpoints("rw"), *cluster.provider.endpoints("ro")):
        assert cluster.words.shown(url, name) == str(value)
    assert cluster.is_healthy()


def test_a_parameter_that_cannot_be_set_changes_nothing(cluster: Cluster) -> None:
    for settings, message in ((None, "set needs settings"), *cluster.words.refused):
        with pytest.raises(MeasurementError, match=message):
            cluster.act(Action.SET, settings=settings)
        assert cluster.is_healthy()


def test_faults_on_the_way_stay_while_roles_move(cluster: Cluster) -> None:
    cluster.is_healthy()
    [proxy] = cluster.provider.front("rw")
    proxy.set(json.dumps({"accept": "refuse"}))
    for _ in range(2):
        with pytest.raises(MeasurementError):
            query(cluster.rw, "SELECT 1")
        cluster.act(Action.PROMOTE)
    proxy.set("{}")
    assert cluster.is_healthy()


def test_what_cannot_be_done_says_why(cluster: Cluster) -> None:
    for action, options, message in [
        (Action.KILL, {"node": "node9"}, "no node node9: nodes are node1, node2"),
        (Action.START, {}, f"{cluster.primary} runs already"),
        (Action.RESUME, {}, f"{cluster.primary} is not paused"),
        (Action.PROMOTE, {"node": cluster.primary}, "is the node that takes writes"),
        (Action.REMOVE_NODE, {"node": cluster.primary}, "is the node that takes writes"),
        (Action.ADD_NODE, {"node": "node7"}, "the next node is node3"),
    ]:
        with pytest.raises(MeasurementError, match=message):
            cluster.act(action, **options)
    replica = cluster.replica
    cluster.act(Action.PAUSE, node=replica)
    for action in (Action.PAUSE, Action.PROMOTE, Action.RESTART):
        with pytest.raises(MeasurementError, match=r"is paused|no read-only node runs"):
            cluster.act(action, node=replica)
    with pytest.raises(MeasurementError, match="no read-only node runs"):
        cluster.act(Action.PROMOTE)
    cluster.act(Action.RESUME, node=replica)
    assert cluster.is_healthy()
