"""A workload of verbs alone on FerretDB, by MongoDB's protocol and as a user: loaded, run, recorded, loaded anew."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commands import call
from nephoscope import _engine
from nephoscope.dialects import KEYED
from nephoscope.store import StoredRun
from nephoscope.systems.cluster.server import free_port
from sample_studies import write_study

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sample_studies import Tables

_PROGRAM = Path(__file__).parent.parent.parent / ".ferretdb" / "ferretdb"
_PASSWORD = "ferret-s3cret"
_STARTS_WITHIN_S = 60.0
_ROWS = 100

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    if not _PROGRAM.exists():
        pytest.skip("there is no FerretDB: `make .ferretdb/ferretdb` builds it, which takes Go")
    port = free_port()
    user = ["--test-enable-new-auth", "--setup-database=admin", "--setup-username=me"]
    with tempfile.TemporaryDirectory() as folder:
        words = [
            str(_PROGRAM), "--handler=sqlite", f"--sqlite-url=file:{folder}/", f"--state-dir={folder}",
            f"--listen-addr=127.0.0.1:{port}", "--debug-addr=-", "--telemetry=disable", "--log-level=ERROR",
            *user, f"--setup-password={_PASSWORD}",
        ]  # fmt: skip
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                end = time.monotonic() + _STARTS_WITHIN_S
                while not _listens(port):
                    assert time.monotonic() < end, "FerretDB does not start"
                    time.sleep(0.01)
                yield f"mongodb://me:{_PASSWORD}@127.0.0.1:{port}/bench?authSource=admin"
            finally:
                server.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(autouse=True)
def emptied(url: str) -> Iterator[None]:
    yield
    admin = _engine.Admin(url)
    for table in ("usertable", "nephoscope_data"):
        KEYED["mongodb"].drop(lambda words: admin.query(words)[1], table)
    admin.close()


def _study(url: str, measure: Tables, **load: object) -> Tables:
    return {
        "study": {"name": "kv"},
        "system": {"provider": "url", "rw": url},
        "workload": {"name": "ycsb", "scale": _ROWS / 1000, "options": {"max_scan_length": 5}},
        "load": {"interval": "100ms", **load},
        "measure": [measure],
    }


def _throughput(*mixes: str) -> Tables:
    return {
        "evaluator": "throughput",
        "mixes": list(mixes),
        "concurrency": [2],
        "warmup": "100ms",
        "duration": "400ms",
        "repetitions": 1,
    }


def _found(url: str, command: str) -> dict[str, str | None]:
    """Run a command without a cursor; give the parts of its answer by name."""
    admin = _engine.Admin(url)
    try:
        return {str(name): value for name, value in admin.query(command)[1]}
    finally:
        admin.close()


def _count(url: str) -> int:
    """How many documents the collection has."""
    return int(_found(url, '{"count": "usertable"}')["n"] or 0)


def test_ycsb_runs_and_its_rows_are_those_that_it_tells(tmp_path: Path, url: str) -> None:
    study = write_study(tmp_path, _study(url, _throughput("A", "B", "C", "D", "E", "F")))
    ended = call("run", study, "--out", tmp_path / "runs")
    assert ended.code == 0, ended.out + ended.err
    assert "every transaction is accounted for" in ended.out
    admin = _engine.Admin(url)
    record = KEYED["mongodb"].read(lambda words: admin.query(words)[1], "nephoscope_data", "ycsb")
    admin.close()
    sure, uncertain = json.loads(json.loads(record or "[]")[2])["tallies"]["inserted"]
    assert sure > 0
    assert uncertain == 0
    assert _count(url) == _ROWS + sure
    run = StoredRun(tmp_path / "runs" / "latest")
    assert not any(row["other"] for row in run.intervals.to_pylist())
    for file in (tmp_path / "runs").rglob("*"):
        assert not file.is_file() or _PASSWORD.encode() not in file.read_bytes(), file


def test_the_data_is_loaded_once_and_anew_by_force(tmp_path: Path, url: str) -> None:
    study = write_study(tmp_path, _study(url, _throughput("SIX")))
    assert "loaded 100 rows" in call("load", study).out
    assert "already loaded" in call("load", study).out
    assert "loaded 100 rows" in call("load", study, "--force").out
    assert _count(url) == _ROWS
    checked = call("check", study)
    assert "invariants are SQL, which mongodb does not have" in checked.out + checked.err


def test_what_is_not_nephoscopes_is_left_alone(tmp_path: Path, url: str) -> None:
    _found(url, '{"insert": "usertable", "documents": [{"_id": "mine"}]}')
    ended = call("load", write_study(tmp_path, _study(url, _throughput("A"))))
    assert ended.code == 1
    assert "the collection usertable is there and was not made by nephoscope" in ended.err
    assert _count(url) == 1


def test_registers_of_consistency_are_read_and_written_by_verbs(tmp_path: Path, url: str) -> None:
    measure: Tables = {
        "evaluator": "consistency",
        "readers": 2,
        "read_interval": "5ms",
        "write_interval": "50ms",
        "duration": "1s",
        "limit": "1s",
    }
    study = write_study(tmp_path, _study(url, measure, consistency="majority"))
    ended = call("run", study, "--out", str(tmp_path / "runs"))
    assert ended.code == 0, ended.out + ended.err
    scores = json.loads((tmp_path / "runs" / "latest" / "scores.json").read_text())
    (found,) = scores["details"]["consistency"]["0"]["situations"]
    assert found["writes"]["acknowledged"] > 5
    assert all(of["violations"] == 0 for of in found["guarantees"].values())


@pytest.mark.parametrize(
    ("level", "code"),
    [("read local write majority", 0), ("read majority write local", 2), ("quorum", 2)],
)
def test_a_level_is_one_that_mongodb_has(tmp_path: Path, url: str, level: str, code: int) -> None:
    study = write_study(tmp_path, _study(url, _throughput("C"), consistency=level))
    ended = call("run", study, "--out", tmp_path / "runs")
    assert ended.code == code, ended.err
    if code:
        told = f"load.consistency: mongodb has no {level!r}; allowed are local, majority, linearizable, and"
        assert told in ended.err
