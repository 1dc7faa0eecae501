"""A workload of verbs alone on a real Redis: loaded, run, recorded, loaded anew."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commands import call
from databases import redis_program
from nephoscope import _engine

if TYPE_CHECKING:
    from collections.abc import Iterator

_STARTS_WITHIN_S = 20.0
_ROWS = 1000


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    program = redis_program()
    path = tmp_path / "s"
    keep = [
        "--port",
        "0",
        "--unixsocket",
        str(path),
        "--dir",
        str(tmp_path),
        "--save",
        "",
        "--appendonly",
        "no",
    ]
    with subprocess.Popen([program, *keep], stdout=subprocess.DEVNULL) as server:
        try:
            end = time.monotonic() + _STARTS_WITHIN_S
            while not _listens(path):
                assert time.monotonic() < end, "Redis does not start"
                time.sleep(0.01)
            yield f"redis:///3?socket={path}"
        finally:
            server.terminate()


def _study(tmp_path: Path, url: str, mixes: list[str], load: str = "") -> str:
    path = tmp_path / "kv.toml"
    path.write_text(f"""[study]
name = "kv"
[system]
provider = "url"
rw = "{url}"
[workload]
name = "ycsb"
[load]
interval = "50ms"
{load}
[[measure]]
evaluator = "throughput"
mixes = {json.dumps(mixes)}
concurrency = [3]
warmup = "100ms"
duration = "300ms"
repetitions = 1
""")
    return str(path)


class _Asked:
    """What is in the database."""

    def __init__(self, url: str) -> None:
        self._admin = _engine.Admin(url)

    def __call__(self, command: str) -> str:
        return str(self._admin.query(command)[1][0][0])


def test_ycsb_runs_on_redis_and_its_rows_are_those_that_it_tells(tmp_path: Path, url: str) -> None:
    study = _study(tmp_path, url, ["A", "B", "C", "D", "E", "F"])
    ended = call("run", study, "--out", str(tmp_path / "runs"))
    assert ended.code == 0, ended.out + ended.err
    assert "every transaction is accounted for" in ended.out
    ask = _Asked(url)
    record = json.loads(json.loads(ask("HGET nephoscope_data ycsb"))[2])
    sure, uncertain = record["tallies"]["inserted"]
    assert sure > 0
    assert uncertain == 0
    assert int(ask("ZCARD usertable")) == _ROWS + sure
    assert int(ask("DBSIZE")) == _ROWS + sure + 2, "a hash for each key, the keys, and the record"


def test_the_data_is_loaded_once_and_anew_by_force(tmp_path: Path, url: str) -> None:
    study = _study(tmp_path, url, ["SIX"])
    assert "loaded 1,000 rows" in call("load", study).out
    assert "already loaded" in call("load", study).out
    ended = call("run", study, "--out", str(tmp_path / "runs"))
    assert ended.code == 0, ended.out + ended.err
    ask = _Asked(url)
    ask("SET other text")
    assert "loaded 1,000 rows" in call("load", study, "--force").out
    assert (ask("ZCARD usertable"), ask("DBSIZE"), ask("GET other")) == ("1000", "1003", "text")
    checked = call("check", study)
    assert "invariants are SQL, which redis does not have" in checked.out + checked.err


def test_what_is_not_nephoscopes_is_left_alone(tmp_path: Path, url: str) -> None:
    ask = _Asked(url)
    ask("SET usertable text")
    ended = call("load", _study(tmp_path, url, ["A"]))
    assert ended.code == 1
    assert "the key usertable is there and was not made by nephoscope" in ended.err
    assert ask("GET usertable") == "text"


def test_registers_of_consistency_are_read_and_written_by_verbs(tmp_path: Path, url: str) -> None:
    study = _study(tmp_path, url, ["A"])
    head = Path(study).read_text().partition("[[measure]]")[0]
    settings = 'readers = 2\nread_interval = "5ms"\nwrite_interval = "50ms"\nduration = "2s"\nlimit = "1s"\n'
    Path(study).write_text(f'{head}[[measure]]\nevaluator = "consistency"\n{settings}')
    ended = call("run", study, "--out", str(tmp_path / "runs"))
    assert ended.code == 0, ended.out + ended.err
    scores = json.loads((tmp_path / "runs" / "latest" / "scores.json").read_text())
    (found,) = scores["details"]["consistency"]["0"]["situations"]
    assert found["writes"]["acknowledged"] > 15
    assert set(found["guarantees"]) == {
        "monotonic_reads", "read_your_writes", "monotonic_writes", "writes_follow_reads",
    }  # fmt: skip
    assert all(of["violations"] == 0 and of["checks"] > 50 for of in found["guarantees"].values())
    assert _Asked(url)("ZCARD nephoscope_probe_marker") == "0", "they are gone"


def test_a_level_or_a_workload_that_redis_does_not_have_is_refused(tmp_path: Path, url: str) -> None:
    ended = call("run", _study(tmp_path, url, ["A"], 'consistency = "quorum"'))
    assert (ended.code, "load.consistency: redis has no 'quorum'" in ended.err) == (2, True)
    study = _study(tmp_path, url, ["RO"])
    ended = call("run", study, "--set", "workload.name=sales")
    assert (ended.code, "redis has no SQL" in ended.err) == (2, True), ended.err
    assert _Asked(url)("DBSIZE") == "0", "nothing was touched"
