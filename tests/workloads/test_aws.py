"""A workload of verbs alone on DynamoDB Local, moto and HBase's gateway: loaded, run, recorded, loaded anew."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from aws_servers import dynamodb_local, hbase_gateway, moto, s3_bucket
from commands import call
from nephoscope import _engine
from nephoscope.dialects import KEYED
from nephoscope.store import StoredRun
from sample_studies import write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nephoscope.dialects import Keyed
    from sample_studies import Tables

_ROWS = 100

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def moto_port() -> Iterator[int]:
    with moto() as port:
        yield port


@pytest.fixture(scope="module", params=["dynamodb", "s3", "simpledb", "hbase"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    match request.param:
        case "dynamodb":
            with dynamodb_local() as url:
                yield url
        case "hbase":
            with hbase_gateway() as url:
                yield url
        case "s3":
            yield s3_bucket(request.getfixturevalue("moto_port"), "tests")
        case _:
            port = request.getfixturevalue("moto_port")
            yield f"simpledb://id:secret@us-east-1/below-?endpoint=http://127.0.0.1:{port}"


@pytest.fixture(autouse=True)
def emptied(url: str) -> Iterator[None]:
    yield
    admin = _engine.Admin(url)
    for table in ("usertable", "nephoscope_data"):
        _system(url).drop(lambda words: admin.query(words)[1], table)
    admin.close()


def _system(url: str) -> Keyed:
    return KEYED[url.partition(":")[0]]


def _study(url: str, mixes: list[str], **load: object) -> Tables:
    return {
        "study": {"name": "kv"},
        "system": {"provider": "url", "rw": url},
        "workload": {"name": "ycsb", "scale": _ROWS / 1000, "options": {"max_scan_length": 5}},
        "load": {"interval": "100ms", **load},
        "measure": [
            {
                "evaluator": "throughput",
                "mixes": mixes,
                "concurrency": [2],
                "warmup": "100ms",
                "duration": "600ms",
                "repetitions": 1,
            }
        ],
    }


def _count(url: str) -> int:
    """How many rows the table has."""
    admin = _engine.Admin(url)
    try:
        if url.startswith("s3"):
            return len(admin.query("LIST usertable/")[1])
        if url.startswith("hbase"):
            found = admin.query("GET usertable/*")[1]
            return len(json.loads(str(found[0][0]))["Row"]) if found else 0
        if url.startswith("simpledb"):
            return _items(admin)
        words = 'Scan {"TableName": "usertable", "Select": "COUNT"}'
        return int(json.loads(str(admin.query(words)[1][0][0]))["Count"])
    finally:
        admin.close()


def _items(admin: _engine.Admin) -> int:
    condition = "where itemName() is not null order by itemName() limit 2500"
    words = f"Select SelectExpression={quote(f'select itemName() from `below-usertable` {condition}')}"
    names, page = 0, ""
    while True:
        told = [(str(name), str(text)) for name, text in admin.query(words + page)[1]]
        names += sum(name == "Name" for name, _ in told)
        if (token := dict(told).get("NextToken")) is None:
            return names
        page = f"&NextToken={token}"


def test_ycsb_runs_and_its_rows_are_those_that_it_tells(tmp_path: Path, url: str) -> None:
    study = write_study(tmp_path, _study(url, ["A", "B", "C", "D", "E", "F"]))
    ended = call("run", study, "--out", tmp_path / "runs")
    assert ended.code == 0, ended.out + ended.err
    assert "every transaction is accounted for" in ended.out
    admin = _engine.Admin(url)
    record = _system(url).read(lambda words: admin.query(words)[1], "nephoscope_data", "ycsb")
    admin.close()
    sure, uncertain = json.loads(json.loads(record or "[]")[2])["tallies"]["inserted"]
    assert uncertain == 0
    assert _count(url) == _ROWS + sure
    run = StoredRun(tmp_path / "runs" / "latest")
    assert not any(row["other"] for row in run.intervals.to_pylist())
    for file in (tmp_path / "runs").rglob("*"):
        assert not file.is_file() or b":secret@" not in file.read_bytes(), file


def test_the_data_is_loaded_once_and_anew_by_force(tmp_path: Path, url: str) -> None:
    study = write_study(tmp_path, _study(url, ["SIX"]))
    assert "loaded 100 rows" in call("load", study).out
    assert "already loaded" in call("load", study).out
    assert "loaded 100 rows" in call("load", study, "--force").out
    assert _count(url) == _ROWS
    checked = call("check", study)
    assert "invariants are SQL, which" in checked.out + checked.err


def test_what_is_not_nephoscopes_is_left_alone(tmp_path: Path, url: str) -> None:
    admin = _engine.Admin(url)
    if url.startswith("s3"):
        admin.query("PUT usertable/x {}")
    else:
        _system(url).make(lambda words: admin.query(words)[1], "usertable", [("k", "text")])
    admin.close()
    before = _count(url)
    ended = call("load", write_study(tmp_path, _study(url, ["A"])))
    assert ended.code == 1
    assert "usertable is there and was not made by nephoscope" in ended.err
    assert _count(url) == before


def test_a_level_that_the_system_does_not_have_is_refused(tmp_path: Path, url: str) -> None:
    ended = call("run", write_study(tmp_path, _study(url, ["A"], consistency="quorum")))
    assert (ended.code, "has no 'quorum'" in ended.err) == (2, True), ended.err
    if url.startswith(("dynamodb", "simpledb")):
        strong = write_study(tmp_path, _study(url, ["C"], consistency="strong"))
        ended = call("run", strong, "--out", tmp_path / "runs")
        assert ended.code == 0, ended.err
