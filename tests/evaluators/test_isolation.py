"""Isolation: histories of a load on real servers, level by level, and Hermitage's published table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from databases import SERVERS, Server, dialect_of
from nephoscope.scoring.isolation import judge
from nephoscope.store import StoredRun
from sample_studies import write_study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

LEVELS = ["read uncommitted", "read committed", "repeatable read", "serializable"]


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with SERVERS[request.param]() as server:
        yield server


def ran(
    folder: Path, url: str, measure: Mapping[str, Any], **workload: Any
) -> tuple[StoredRun, dict[str, Any]]:
    tables = {
        "study": {"name": "levels"},
        "system": {"provider": "url", "rw": url},
        "workload": {"name": "isolation", **workload},
        "load": {"interval": "100ms", "threads": 2},
        "measure": [dict(measure)],
    }
    ended = call("run", write_study(folder, tables), "--out", folder / "runs")
    assert ended.code == 0, ended.err + ended.out
    run = StoredRun(folder / "runs" / "latest")
    return run, json.loads((run.folder / "scores.json").read_text())


def database_of(server: Server) -> str:
    url = server.new_database()
    return f"{url}?journal_mode=wal&synchronous=off" if url.startswith("sqlite:") else url


def levels_of(server: Server) -> list[str]:
    return ["serializable"] if dialect_of(server.url) == "sqlite" else LEVELS


def anomalies(level: Mapping[str, Any]) -> set[str]:
    return {anomaly["anomaly"] for anomaly in level["anomalies"]}


@pytest.mark.long
def test_each_level_shows_what_it_allows_and_no_more(server: Server, tmp_path: Path) -> None:
    wanted = levels_of(server)
    measure = {"evaluator": "isolation", "isolation": wanted, "duration": "3s", "concurrency": 6}
    run, scores = ran(tmp_path, database_of(server), measure, options={"keys": 2})
    levels = {level["isolation"]: level for level in scores["details"]["isolation"]["0"]["levels"]}
    assert list(levels) == wanted
    assert all(level["committed"] > 20 for level in levels.values())
    # What is found at a level is in its own history: the next begins with keys of its own.
    last = levels["serializable"]
    assert last["answer"] == "not contradicted", last
    assert last["anomalies"] == []
    verdicts = {one["verdict"]: one for one in scores["verdicts"]}
    ok = verdicts["no anomaly of the isolation level was seen"]
    assert ok["level"] == "ok"
    assert 'section id="isolation"' in (run.folder / "report.html").read_text()
    if dialect_of(server.url) == "sqlite":
        return
    weak = levels["read committed"]
    assert weak["answer"] == "not contradicted", weak
    # Balances and counters are read, and written then: at this level one of two such updates is lost.
    assert {"lost update", "wrong total", "counter out of bounds"} & anomalies(weak)
    if dialect_of(server.url) == "postgres":
        # PostgreSQL's read uncommitted is its read committed, and its repeatable read is snapshot isolation.
        assert levels["read uncommitted"]["answer"] == "not contradicted"
        assert levels["repeatable read"]["answer"] == "not contradicted", levels["repeatable read"]
    else:
        # InnoDB's repeatable read writes to other versions than it reads.
        assert levels["repeatable read"]["answer"] == "contradicted"
        assert "lost update" in anomalies(levels["repeatable read"])
        assert verdicts["the isolation level was contradicted"]["level"] == "problem"


def test_a_run_is_checked_again_from_its_file(tmp_path: Path) -> None:
    with SERVERS["sqlite"]() as files:
        measure = {
            "evaluator": "isolation",
            "isolation": "serializable",
            "duration": "700ms",
            "concurrency": 2,
        }
        run, scores = ran(tmp_path, database_of(files), {**measure, "repetitions": 2})
    ended = call("histories", "check", run.folder, "--json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    levels = scores["details"]["isolation"]["0"]["levels"]
    assert [one["committed"] for one in told] == [level["committed"] for level in levels]
    assert [one["strongest"] for one in told] == ["strict serializable"] * 2
    file = run.folder / "histories" / levels[0]["file"]
    for form, kind in (("edn", "list-append"), ("elle-json", "rw-register")):
        out = tmp_path / f"{kind}.{form}"
        ended = call("histories", "export", file, "--form", form, "--kind", kind, "--out", out)
        assert ended.code == 0, ended.err
        assert "operations of other kinds left out" in ended.err
        ended = call("histories", "check", out)
        assert ended.code == 0, ended.out
        assert "no anomaly" in ended.out


def test_a_strangers_history_is_checked(tmp_path: Path) -> None:
    skewed = tmp_path / "history.edn"
    skewed.write_text(
        "{:type :invoke :process 0 :time 1 :value [[:r 1 nil] [:append 2 7]]}\n"
        "{:type :invoke :process 1 :time 2 :value [[:r 2 nil] [:append 1 8]]}\n"
        "{:type :ok :process 0 :time 3 :value [[:r 1 nil] [:append 2 7]]}\n"
        "{:type :ok :process 1 :time 4 :value [[:r 2 nil] [:append 1 8]]}\n"
    )
    ended = call("histories", "check", skewed)
    assert ended.code == 1, ended.err
    assert "G2-item: 1 (write skew" in ended.out
    assert "not contradicted: strong snapshot isolation" in ended.out
    broken = tmp_path / "broken.json"
    broken.write_text(
        '[{"type": "invoke", "process": 0, "value": [["append", 1, 2]]},\n{"type": "done", "process": 0}]'
    )
    ended = call("histories", "check", broken)
    assert ended.code == 2
    assert f"{broken}: line 2: " in ended.err
    assert call("histories", "check", tmp_path).code == 2


def test_a_history_is_judged_by_what_its_level_promises() -> None:
    def history(*found: tuple[str, str, str], **over: Any) -> dict[str, Any]:
        told = [
            {"anomaly": name, "order": order, "times": 2, "forbidden_from": level}
            for name, order, level in found
        ]
        whole = {"committed": 1000, "unknown": 0, "late": 0, "forced": 0, "unordered": 0, "broken": None}
        return {"anomalies": told, "witnesses": [], **whole, **over}

    skew = ("G2-item", "none", "serializable")
    assert judge(history(skew), "serializable").answer == "contradicted"
    assert judge(history(skew), "repeatable read").answer == "not contradicted"
    stale = ("G-single", "real-time", "snapshot isolation")
    assert judge(history(stale), "serializable").answer == "contradicted"
    assert judge(history(stale), "serializable", "session").answer == "not contradicted"
    assert judge(history(unknown=11), "serializable").answer == "not known"
    assert judge(history(late=1), "serializable").answer == "not known"
    assert judge(history(committed=0), "serializable").answer == "not known"
    lone = ("unwritten value", "none", "read uncommitted")
    assert judge(history(lone), "read committed").answer == "contradicted"
    assert judge(history(lone, broken="it was cut"), "read committed") == ("not known", "it was cut", ())


PUBLISHED: Mapping[str, Mapping[str, str]] = {
    "postgres": {
        "read uncommitted": "✓ ✓ ✓ ✓ ✓ — — — — —",
        "read committed": "✓ ✓ ✓ ✓ ✓ — — — — —",
        "repeatable read": "✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ — —",
        "serializable": "✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓",
    },
    "mysql": {
        "read uncommitted": "✓ — — — — — — — — —",
        "read committed": "✓ ✓ ✓ ✓ ✓ — — — — —",
        "repeatable read": "✓ ✓ ✓ ✓ ✓ R/O — R/O — —",
        "serializable": "✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓",
    },
    "sqlite": {"serializable": "✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓"},
}
"""Hermitage's table (its README): MySQL's rows for MariaDB. PostgreSQL's read uncommitted, which is its read committed,
and SQLite are not in it."""
NAMES = ["G0", "G1a", "G1b", "G1c", "OTV", "PMP", "P4", "G-single", "G2-item", "G2"]


@pytest.mark.long
def test_hermitages_published_table_is_reproduced(server: Server, tmp_path: Path) -> None:
    measure = {"evaluator": "hermitage", "isolation": levels_of(server), "limit": "3s"}
    run, scores = ran(tmp_path, database_of(server), measure)
    marks = {"prevented": "✓", "allowed": "—", "prevented for readers": "R/O"}
    found: dict[str, str] = {}
    ways: dict[str, Sequence[str]] = {}
    for level in scores["details"]["hermitage"]["0"]["levels"]:
        assert list(level["anomalies"]) == NAMES
        found[level["isolation"]] = " ".join(marks[one["outcome"]] for one in level["anomalies"].values())
        ways[level["isolation"]] = level["anomalies"]["P4"]["prevented_by"]
    assert found == PUBLISHED[dialect_of(server.url)]
    assert ways["serializable"] == ["error"]
    assert 'section id="hermitage"' in (run.folder / "report.html").read_text()


@pytest.mark.parametrize("evaluator", ["isolation", "hermitage"])
def test_a_level_that_a_system_does_not_have_is_refused(evaluator: str, tmp_path: Path) -> None:
    tables = {
        "study": {"name": "levels"},
        "system": {"provider": "url", "rw": f"sqlite://{tmp_path}/x.db"},
        "workload": {"name": "isolation"},
        "measure": [{"evaluator": evaluator, "isolation": ["read committed"]}],
    }
    ended = call("run", write_study(tmp_path, tables), "--out", tmp_path / "runs")
    assert ended.code == 2
    assert "measure.0.isolation: sqlite has no 'read committed'; it has serializable" in ended.err
