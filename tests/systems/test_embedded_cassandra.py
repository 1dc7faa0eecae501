"""A real ring of three Cassandra nodes: YCSB at its levels, nodes that come, go and end."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commands import call, finish, start, wait_for
from nephoscope import _engine
from nephoscope.calibration.base import Measured
from nephoscope.calibration.consistency import FarApart, late_measure, read_late_node
from nephoscope.calibration.planted import Planted
from nephoscope.collectors import cassandra
from nephoscope.errors import InputError, MeasurementError
from nephoscope.measuring.measurement import run_study
from nephoscope.measuring.silence import Silence
from nephoscope.results.tables import tables_of
from nephoscope.settings.actions import Action
from nephoscope.store import StoredRun
from nephoscope.study.reading import make_study
from nephoscope.systems.base import System
from nephoscope.systems.cassandra.embedded import EmbeddedCassandra, EmbeddedCassandraSettings
from nephoscope.systems.cassandra.install import jars_folder
from nephoscope.tables.columns import RunFigures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# Four Java machines, one of which joins under load, keep two processors busy by themselves.
pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.alone, pytest.mark.timeout(1500)]

_ROWS = 1000


def _settings(folder: Path, **others: object) -> EmbeddedCassandraSettings:
    return EmbeddedCassandraSettings.model_validate({"data": str(folder), "database": "tests", **others})


@pytest.fixture(scope="module")
def ring() -> Iterator[EmbeddedCassandra]:
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    if not jars_folder().exists():
        pytest.skip(f"there are no jars of Cassandra in {jars_folder()}")
    folder = Path(tempfile.mkdtemp(prefix="nephoscope-test-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        # What is sent to the last node passes a proxy, for one of the tests. A node that has a row reads it itself.
        others = {"replica_delay": "1ms", "settings": {"dynamic_snitch": False}}
        with EmbeddedCassandra(_settings(folder / "ring", **others)) as provider:
            provider.start()
            yield provider
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _url(ring: EmbeddedCassandra) -> str:
    (url,) = ring.endpoints("rw")
    return url


def _ask(ring: EmbeddedCassandra, cql: str) -> str:
    admin = _engine.Admin(_url(ring))
    try:
        return str(admin.query(cql)[1][0][0])
    finally:
        admin.close()


def _study(tmp_path: Path, url: str, mixes: list[str], level: str | None) -> str:
    path = tmp_path / "kv.toml"
    path.write_text(f"""[study]
name = "kv"
[system]
provider = "url"
rw = "{url}"
[workload]
name = "ycsb"
[load]
interval = "100ms"
{f'consistency = "{level}"' if level else ""}
[[measure]]
evaluator = "throughput"
mixes = {json.dumps(mixes)}
concurrency = [3]
warmup = "100ms"
duration = "600ms"
repetitions = 1
""")
    return str(path)


def _reads(ring: EmbeddedCassandra, keyspace: str) -> list[tuple[int, int]]:
    """Tell for each node how many reads of YCSB's table it has coordinated, and how many it has answered itself."""
    found = []
    for url in cassandra.nodes(_url(ring)).values():
        admin = _engine.Admin(url)
        counts = []
        for view in ("coordinator_read_latency", "local_read_latency"):
            told = admin.query(f"SELECT table_name, keyspace_name, count FROM system_views.{view}")[1]
            counts += [
                sum(int(count or 0) for table, of, count in told if (of, table) == (keyspace, "usertable"))
            ]
        admin.close()
        found.append((counts[0], counts[1]))
    return found


def _apart(ring: EmbeddedCassandra, keyspace: str, routing: str) -> str:
    """Make a keyspace each of whose rows is on one node alone; give its URL."""
    admin = _engine.Admin(_url(ring))
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    admin.query(f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}")
    admin.close()
    return f"{_url(ring).replace('/tests', f'/{keyspace}')}?routing={routing}"


def test_a_token_aware_session_asks_the_node_that_has_the_row(
    tmp_path: Path, ring: EmbeddedCassandra
) -> None:
    grown = {}
    for routing in ("fixed", "token-aware"):
        study = _study(tmp_path, _apart(ring, "apart", routing), ["C"], None)
        assert call("load", study).code == 0
        before = _reads(ring, "apart")
        ended = call("run", study, "--out", str(tmp_path / routing))
        assert ended.code == 0, ended.out + ended.err
        after = _reads(ring, "apart")
        grown[routing] = [(new[0] - old[0], new[1] - old[1]) for new, old in zip(after, before, strict=True)]
        committed = _totals(StoredRun(tmp_path / routing / "latest"))["committed"]
        assert sum(coordinated for coordinated, _ in grown[routing]) >= committed > 20
    # Whoever coordinates a read of a row that is on one node alone has it, or asks another.
    assert all(coordinated == answered > 0 for coordinated, answered in grown["token-aware"]), grown
    assert not all(coordinated == answered for coordinated, answered in grown["fixed"]), grown


def test_token_aware_sessions_go_on_without_a_node_and_with_it_again(
    tmp_path: Path, ring: EmbeddedCassandra
) -> None:
    url = f"{_url(ring)}?routing=token-aware"
    study = _study(tmp_path, url, ["C"], "ONE")
    assert call("load", study).code == 0
    longer = ("--set", "measure.0.duration=12s", "--set", "measure.0.concurrency=[6]")
    with start("run", study, *longer, "--out", str(tmp_path / "killed"), cwd=tmp_path) as process:
        wait_for((tmp_path / "killed" / "latest" / "intervals.jsonl").exists, "the load has begun", process)
        time.sleep(2)
        ring.act(Action.KILL, node="node3")
        try:
            ended = finish(process, 120)
        finally:
            ring.act(Action.START, node="node3")
    assert ended.code == 0, ended.out + ended.err
    rows = StoredRun(tmp_path / "killed" / "latest").intervals.to_pylist()
    lost = sum(row["connection_lost"] for row in rows)
    # At most what each session had on its way to the node, and a connection that had not been told of its end.
    assert 1 <= lost <= 2 * 6, lost
    assert sum(row["failed"] for row in rows) == lost
    last = max(row["start_s"] for row in rows)
    assert sum(row["committed"] for row in rows if row["start_s"] > last - 2) > 100
    before = _reads(ring, "tests")
    assert call("run", study, "--out", str(tmp_path / "again")).code == 0
    after = _reads(ring, "tests")
    assert after[2][0] > before[2][0], "the node that is back is asked again"


def _await(what: Callable[[], bool], otherwise: str) -> None:
    """Wait for what gossip tells: it takes a moment."""
    end = time.monotonic() + 120
    while not what():
        assert time.monotonic() < end, otherwise
        time.sleep(0.2)


def _totals(run: StoredRun) -> Mapping[str, int]:
    names = ("committed", "failed", "shutting_down", "statement_timeout", "connection_lost", "other")
    return {name: sum(row[name] for row in run.intervals.to_pylist()) for name in names}


def _check_metrics(ring: EmbeddedCassandra, run: StoredRun) -> None:
    """Each node tells of itself, and of no wait events."""
    rows = [row for row in run.system_metrics.to_pylist() if row["source"].startswith("server:")]
    hosts = _url(ring).partition("://")[2].partition("/")[0].split(",")
    assert {row["source"] for row in rows} == {f"server:rw@{host}" for host in hosts}
    assert not [row for row in rows if row["metric"].startswith("wait:")]
    for host in hosts:
        reads = [
            row["value"]
            for row in rows
            if (row["source"], row["metric"]) == (f"server:rw@{host}", "coordinator_reads_per_s")
        ]
        assert max(reads) > 0, host
    assert 'id="time-waits-' not in (run.folder / "report.html").read_text()


def test_a_node_counts_what_it_coordinated_and_others_do_not(ring: EmbeddedCassandra) -> None:
    near, far = (_engine.Admin(url) for url in list(cassandra.nodes(_url(ring)).values())[:2])
    near.query("CREATE TABLE IF NOT EXISTS counted (id int PRIMARY KEY, size int)")
    before = [cassandra.read(node).counters for node in (near, far)]
    for number in range(7):
        near.query(f"INSERT INTO counted (id, size) VALUES ({number}, 1)")
    for number in range(5):
        near.query(f"SELECT size FROM counted WHERE id = {number}")
    after = [cassandra.read(node).counters for node in (near, far)]
    grown = [{name: new[name] - old[name] for name in new} for new, old in zip(after, before, strict=True)]
    counted = ("coordinator_reads", "coordinator_writes")
    assert [[node[name] for name in counted] for node in grown] == [[5, 7], [0, 0]]
    # The statements above and those of the reading itself.
    assert grown[0]["requests"] >= 5 + 7
    # Each row is on each node.
    assert grown[1]["mutations"] >= 7
    assert grown[0]["internode_sent_bytes"] > 0
    connected = [_engine.Admin(next(iter(cassandra.nodes(_url(ring)).values()))) for _ in range(3)]
    levels = cassandra.read(near).levels
    assert levels["connections"] >= len(connected) + 1
    assert levels["data_mb"] > 0
    for one in (near, far, *connected):
        one.close()


def test_ycsb_runs_on_a_ring_at_each_of_its_levels(tmp_path: Path, ring: EmbeddedCassandra) -> None:
    assert set(ring.nodes()) == {"node1", "node2", "node3"}
    studies = [(["A", "B", "C", "D", "E", "F"], None), (["A"], "ONE"), (["A"], "read ONE write QUORUM")]
    for mixes, level in studies:
        ended = call("run", _study(tmp_path, _url(ring), mixes, level), "--out", str(tmp_path / "runs"))
        assert ended.code == 0, ended.out + ended.err
        assert "every transaction is accounted for" in ended.out
        if len(mixes) > 1:  # long enough for some samples
            _check_metrics(ring, StoredRun(tmp_path / "runs" / "latest"))
    record = json.loads(
        json.loads(_ask(ring, "SELECT record FROM nephoscope_data WHERE workload = 'ycsb'"))[2]
    )
    sure, uncertain = record["tallies"]["inserted"]
    assert sure > 0
    assert _ROWS + sure <= int(_ask(ring, "SELECT count(*) FROM usertable")) <= _ROWS + sure + uncertain
    manifest = json.loads((tmp_path / "runs" / "latest" / "manifest.json").read_text())
    assert "read ONE write QUORUM" in json.dumps(manifest)


_OWN = """local w = workload "own"
w:describe "CQL beside the verbs"
w:table("things", { rows = 20, key = "id", columns = {
  { "id", serial() }, { "size", integer(1, 9) }, { "name", letters(5, 5) } } })
w:transaction("grow", function(tx, pick)
  local id = pick.things()
  local found = tx:read("things", id)
  tx:exec("resize", { id = id, size = found.size + 1 })
  if tx:one("sized", { id = id }).name ~= found.name then error("another row") end
end)
w:mix("ALL", { grow = 1 })
"""
_CQL = """-- name: resize
UPDATE things SET size = :size WHERE id = :id
-- name: sized
SELECT size, name FROM things WHERE id = :id
"""


def test_a_workload_has_statements_of_cql_beside_its_verbs(tmp_path: Path, ring: EmbeddedCassandra) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "workload.lua").write_text(_OWN)
    (folder / "statements.sql").write_text(_CQL)
    study = _study(tmp_path, _url(ring), ["ALL"], "QUORUM")
    ended = call("run", study, "--set", f"workload.name={folder}", "--out", str(tmp_path / "runs"))
    assert ended.code == 0, ended.out + ended.err
    totals = _totals(StoredRun(tmp_path / "runs" / "latest"))
    assert totals["committed"] > 0, totals
    assert totals["failed"] == 0, totals
    assert int(_ask(ring, "SELECT max(size) FROM things")) > 9


def test_the_data_is_loaded_once_and_anew_by_force(tmp_path: Path, ring: EmbeddedCassandra) -> None:
    study = _study(tmp_path, _url(ring), ["C"], None)
    call("load", study)
    assert "already loaded" in call("load", study).out
    assert "loaded 1,000 rows" in call("load", study, "--force").out
    assert _ask(ring, "SELECT count(*) FROM usertable") == "1000"
    checked = call("check", study)
    assert "invariants are SQL, which cassandra does not have" in checked.out + checked.err


def test_what_is_not_nephoscopes_is_left_alone(tmp_path: Path, ring: EmbeddedCassandra) -> None:
    admin = _engine.Admin(_url(ring))
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    admin.query(f"CREATE KEYSPACE others WITH replication = {replication}")
    admin.query("CREATE TABLE others.usertable (precious int PRIMARY KEY)")
    admin.close()
    url = _url(ring).replace("/tests", "/others")
    ended = call("load", _study(tmp_path, url, ["A"], None))
    assert ended.code == 1
    assert "the table usertable is there and was not made by nephoscope" in ended.err
    assert _ask(ring, "SELECT count(*) FROM others.usertable") == "0"


def test_a_level_or_a_workload_that_cassandra_does_not_have_is_refused(
    tmp_path: Path, ring: EmbeddedCassandra
) -> None:
    ended = call("run", _study(tmp_path, _url(ring), ["A"], "read ONE write MOST"))
    assert (ended.code, "cassandra has no 'read ONE write MOST'" in ended.err) == (2, True), ended.err
    study = _study(tmp_path, _url(ring), ["RO"], None)
    ended = call("run", study, "--set", "workload.name=sales")
    assert (ended.code, "cassandra has no SQL" in ended.err) == (2, True), ended.err


def _refused_at_all(tmp_path: Path, url: str) -> bool:
    """Whether reads at the level of all are refused at once; none may be answered."""
    runs = tmp_path / "all"
    ended = call("run", _study(tmp_path, url, ["C"], "ALL"), "--out", str(runs))
    if not runs.exists():
        assert ended.code == 1, ended.out + ended.err
        return False  # the data was looked for at that level too
    totals = _totals(StoredRun(runs / "latest"))
    assert totals["committed"] == 0, totals
    return totals["shutting_down"] > 0


def test_a_quorum_outlives_a_node_and_all_does_not(tmp_path: Path, ring: EmbeddedCassandra) -> None:
    url = _url(ring)
    assert call("load", _study(tmp_path, url, ["C"], None)).code == 0
    ring.act(Action.KILL, node="node3")
    try:
        # The others notice after some seconds; until then whoever asks it waits for the node that has ended.
        _await(lambda: _refused_at_all(tmp_path, url), "the others do not notice that a node has ended")
        ended = call("run", _study(tmp_path, url, ["C"], "QUORUM"), "--out", str(tmp_path / "quorum"))
        assert ended.code == 0, ended.out + ended.err
        assert _totals(StoredRun(tmp_path / "quorum" / "latest"))["committed"] > 0
    finally:
        ring.act(Action.START, node="node3")
    assert call("run", _study(tmp_path, url, ["C"], "QUORUM"), "--out", str(tmp_path / "again")).code == 0


class _Running(Planted):
    """The ring that runs already: a study neither starts nor stops it."""

    def start(self) -> System:
        return System(rw=self.endpoints("rw"))

    def stop(self) -> None:
        pass


def _measured(ring: EmbeddedCassandra, tmp_path: Path, measure: Mapping[str, Any], provider: Any) -> Measured:
    study = {
        "study": {"name": "ring"},
        "system": {"provider": "embedded-cassandra"},
        "workload": {"name": "ycsb"},
        "load": {"interval": "100ms"},
        "measure": [measure],
    }
    outcome = run_study(
        make_study(study, "ring"), tmp_path / "runs", Silence(), wrap=lambda _: provider(ring, {})
    )
    assert outcome.status == "measured", outcome.reason
    return Measured(StoredRun(outcome.folder), outcome.scores)


def test_a_node_joins_and_leaves_under_load_with_its_data(tmp_path: Path, ring: EmbeddedCassandra) -> None:
    assert call("load", _study(tmp_path, _url(ring), ["C"], None)).code == 0
    before = _ask(ring, "SELECT count(*) FROM usertable")
    measure = {
        "evaluator": "scaleout",
        "nodes": 1,
        "mixes": ["C"],
        "concurrency": 6,
        # The first connections to a node that has just started take their time.
        "warmup": "2s",
        "duration": "1s",
    }
    measured = _measured(ring, tmp_path, measure, _Running)
    detail = measured.score("E2")["detail"]
    assert [step["nodes"] for step in detail["mixes"]["C"]["steps"]] == [3, 4]
    assert (detail["adds"], detail["from_nodes"]) == ("rw", 3)
    [added], [removed] = detail["added"], detail["removed"]
    assert (added["node"], added["nodes"], removed["node"], removed["nodes"]) == ("node4", 4, "node4", 3)
    # Each row is on three of the nodes: the fourth had a part, and its leaving gave that back.
    assert added["serve_s"] >= added["took_s"] > 1
    assert added["moved_bytes"] > 0
    assert removed["moved_bytes"] > 0
    for one in (added, removed):
        clients = one["clients"]
        assert clients["seconds"] >= one["took_s"] > 0
        assert clients["tps"] > 0
        # Who was at the node that left has lost what was on its way, and found another one.
        assert clients["failed"] <= 6 * 3, clients
        assert clients["failed"] <= sum(clients["errors"].values()), "what is tried again has not failed"
        assert clients["latency_ms"]["max"] >= clients["latency_ms"]["p99"] > 0
    assert added["clients"]["failed"] == 0
    [changes] = [
        table
        for table in tables_of([RunFigures("run", measured.run, dict(measured.scores))])
        if table.name == "scaleout_changes"
    ]
    assert [row["change"] for row in changes.rows] == ["added node4", "removed node4"]
    assert "node4 removed" in (measured.run.folder / "report.html").read_text()
    assert [allocation.resources.nodes for allocation in ring.allocation()] == [3, 4, 3]
    with pytest.raises(MeasurementError, match="node1 cannot be removed"):
        ring.act(Action.REMOVE_NODE, node="node1")
    assert set(ring.nodes()) == {"node1", "node2", "node3"}
    assert _ask(ring, "SELECT count(*) FROM usertable") == before
    _await(lambda: _ask(ring, "SELECT count(*) FROM system.peers") == "2", "node4 is still known")


class _Apart(FarApart):
    """The same of a ring that runs already."""

    def start(self) -> System:
        return System(rw=self.endpoints("rw"), ro=self.endpoints("ro"))

    def stop(self) -> None:
        pass


def test_a_late_node_is_stale_at_one_and_not_at_quorum(tmp_path: Path, ring: EmbeddedCassandra) -> None:
    node: Any = ring._started().node("node3")
    node.server.delay(0.2)
    try:
        measured = _measured(ring, tmp_path, late_measure(8.0), _Apart)
    finally:
        node.server.delay(0.001)
    readings = list(read_late_node(measured, 200.0))
    assert len(readings) == 7
    for reading in readings:
        assert reading.holds, reading


def test_settings_that_are_the_rings_own_are_refused(tmp_path: Path) -> None:
    for wrong, message in (
        ({"settings": {"storage_port": 7000}}, "storage_port cannot be set"),
        ({"settings": {"Heap": 1}}, "is not the name of a setting"),
        ({"heap": "lots"}, "String should match pattern"),
    ):
        with pytest.raises(ValueError, match=message):
            _settings(tmp_path, **wrong)
    with pytest.raises((InputError, MeasurementError), match=r"system\.version is 3\.11|missing"):
        EmbeddedCassandra(_settings(tmp_path, version="3.11")).start()
