"""A real Redis with replicas: YCSB and stale reads on it, roles that move without losing what was acknowledged."""

from __future__ import annotations

import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from databases import redis_program
from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.store import StoredRun
from nephoscope.systems.redis.embedded import EmbeddedRedis, EmbeddedRedisSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("redis")]


@pytest.fixture
def redis() -> str:
    return redis_program()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder that the server's user can enter."""
    path = Path(tempfile.mkdtemp(prefix="nephoscope-test-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def _started(folder: Path, **others: object) -> EmbeddedRedis:
    given = {"data": str(folder / "redis"), "replicas": 2, **others}
    return EmbeddedRedis(EmbeddedRedisSettings.model_validate(given))


def _ask(url: str, command: str) -> Any:
    admin = _engine.Admin(url)
    try:
        return admin.query(command)[1][0][0]
    finally:
        admin.close()


def _write(url: str, first: int, replicas: int) -> None:
    """Write ten keys, each acknowledged by so many replicas."""
    admin = _engine.Admin(url)
    try:
        for number in range(first, first + 10):
            admin.query(f"SET key{number} {number}")
        assert int(str(admin.query(f"WAIT {replicas} 10000")[1][0][0])) >= replicas
    finally:
        admin.close()


def _keys(url: str, count: int) -> int:
    return sum(_ask(url, f"EXISTS key{number}") == "1" for number in range(count))


def test_roles_move_and_what_was_acknowledged_stays(folder: Path) -> None:
    with _started(folder) as redis:
        redis.start()
        (url,) = redis.endpoints("rw")
        _write(url, 0, 0)
        planned = redis.act(Action.PROMOTE)
        # Whichever has received most by then is taken.
        assert planned.node in ("node2", "node3")
        assert planned.detail["planned"] is True
        assert redis.nodes() == {"node1": "ro", "node2": "ro", "node3": "ro"} | {planned.node: "rw"}
        assert _keys(url, 10) == 10, "the old primary sends all before it ends"
        _write(url, 10, 1)
        redis.act(Action.KILL)
        crashed = redis.act(Action.PROMOTE)
        assert crashed.detail["planned"] is False
        assert _keys(url, 20) == 20, "the replica that has received most is the one that is taken"
        assert redis.act(Action.ADD_NODE).detail == {"how": "PSYNC"}
        redis.act(Action.RESTART)
        _write(url, 20, 3)
        assert [_keys(each, 30) for each in redis.endpoints("ro")] == [30, 30, 30]
        with pytest.raises(MeasurementError, match="READONLY"):
            _ask(redis.endpoints("ro")[0], "SET key0 1")
        writer = redis.nodes()
    with _started(folder, replicas=0) as redis:
        (url,) = redis.start().rw
        assert _keys(url, 30) == 30, (
            f"the folder of the first node has the data, wherever it was written: {writer}"
        )


def test_settings_of_a_study_and_of_a_running_system(folder: Path) -> None:
    with _started(folder, replicas=1, settings={"save": "3600 1", "maxmemory": "100mb"}) as redis:
        system = redis.start()
        settings: Any = system.facts["settings"]
        assert (settings["appendfsync"], settings["maxmemory"]) == ("always", "100mb")
        (url,), (reader,) = redis.endpoints("rw"), redis.endpoints("ro")
        assert redis.act(Action.SET, settings={"maxmemory": "200mb"}).detail == {"restarted": []}
        assert redis.act(Action.SET, settings={"io-threads": 2}).detail == {"restarted": ["node2", "node1"]}
        for each in (url, reader):
            info = _ask(each, "INFO memory")
            assert f"maxmemory:{200 << 20}" in info
            assert "io_threads_active" in _ask(each, "INFO server")
        for wrong, why in (
            ({"maxmemory": "much"}, "must be a memory value"),
            ({"no-such": 1}, "Redis has no setting no-such"),
            ({"requirepass": "x"}, "embedded-redis sets it itself"),
        ):
            with pytest.raises(MeasurementError, match=why):
                redis.act(Action.SET, settings=wrong)
        assert f"maxmemory:{200 << 20}" in _ask(url, "INFO memory"), "what was refused has changed nothing"
        # The password stands where only the server's user, or we, can read it.
        password = (folder / "redis" / "password").read_text().strip()
        for file in (folder / "redis").rglob("*"):
            if file.is_file() and password.encode() in file.read_bytes():
                assert file.name in {"password", "secret.conf"}
                assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_ycsb_and_stale_reads_on_a_primary_and_its_replicas(tmp_path: Path, folder: Path) -> None:
    study = tmp_path / "redis.toml"
    study.write_text(f"""[study]
name = "redis"
[system]
provider = "embedded-redis"
data = "{folder / "redis"}"
replicas = 2
[workload]
name = "ycsb"
[load]
interval = "100ms"
consistency = "wait 2"
[[measure]]
evaluator = "throughput"
mixes = ["A", "E"]
concurrency = [4]
warmup = "100ms"
duration = "600ms"
repetitions = 1
[[measure]]
evaluator = "consistency"
readers = 3
read_interval = "5ms"
write_interval = "50ms"
limit = "2s"
loads = [{{ name = "idle" }}, {{ name = "A", mix = "A" }}]
concurrency = 2
duration = "2s"
warmup = "100ms"
""")
    ended = call("run", study, "--out", tmp_path / "runs")
    assert ended.code == 0, ended.out + ended.err
    run = StoredRun(tmp_path / "runs" / "latest")
    assert sum(row["committed"] for row in run.intervals.to_pylist()) > 100
    assert "every transaction is accounted for" in ended.out
    scores: Any = run.scores
    for found in scores["details"]["consistency"]["1"]["situations"]:
        assert found["writes"]["acknowledged"] > 15, found["writes"]
        # A write is acknowledged when both replicas have it.
        assert {name: of["violations"] for name, of in found["guarantees"].items()} == dict.fromkeys(
            found["guarantees"], 0
        )
        assert found["guarantees"]["read_your_writes"]["checks"] > 100, found["guarantees"]


def test_what_redis_does_not_have_is_refused(tmp_path: Path) -> None:
    study = tmp_path / "redis.toml"
    for key, value, why in (
        ("database", '"other"', "system.database"),
        ("replica_delay", '"1s"', "system.replica_delay"),
        ("synchronous", '"on"', "system.synchronous"),
        ("settings", '{ dir = "/tmp" }', "dir cannot be set: embedded-redis sets it itself"),
        ("settings", '{ MaxMemory = "1gb" }', "they are written as in redis.conf"),
        ("version", '"1.0"', "system.version is 1.0, and this machine has Redis"),
    ):
        study.write_text(f"""[study]
name = "redis"
[system]
provider = "embedded-redis"
{key} = {value}
[workload]
name = "ycsb"
[[measure]]
evaluator = "throughput"
concurrency = [1]
mixes = ["A"]
""")
        ended = call("run", study, "--out", tmp_path / "runs")
        assert (ended.code, why in ended.err) == (2, True), ended.err
        assert not (tmp_path / "runs").exists()
