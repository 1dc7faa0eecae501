"""Grids of loads that are captured on real servers: what a corpus has is what was done."""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from commands import call, finish, start, wait_for
from databases import HAS_MARIADB, NO_MARIADB
from nephoscope import _engine
from nephoscope.storage import capturing
from nephoscope.storage.capturing import Recorded
from nephoscope.storage.corpus import OPERATIONS, PROCESSES, Corpus
from nephoscope.store import StoredRun
from nephoscope.systems.machine.account import server_accounts
from nephoscope.systems.machine.folders import cache_folder
from nephoscope.systems.postgres.install import find_install
from sample_studies import write_study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

READ, WRITE = OPERATIONS.index("read"), OPERATIONS.index("write")
SMALL = {
    "embedded-postgres": {"shared_buffers": "2MB", "autovacuum": False},
    "embedded-mariadb": {"innodb_buffer_pool_size": "8M", "innodb_log_file_size": "16M"},
}


@contextlib.contextmanager
def place() -> Iterator[Path]:
    """A folder that every user can reach, without a space in its name, on a disk: else MariaDB maps its log."""
    folder = Path(tempfile.mkdtemp(prefix="nephoscope-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def study(folder: Path, provider: str = "embedded-postgres", **grid: Any) -> dict[str, Any]:
    brief = {"rates": [40, 80], "mixes": ["TPCB"], "duration": "2s", "warm_up": "300ms", "pause": "300ms"}
    return {
        "study": {"name": "grid"},
        "system": {
            "provider": provider,
            "data": str(folder / "server"),
            "settings": SMALL[provider],
        },
        "workload": {"name": "tpcb", "scale": 1},
        # One session: each commit is flushed alone.
        "load": {"interval": "500ms", "sessions": 1, "threads": 1},
        "measure": [{"evaluator": "capture", "replicates": 1, **brief, **grid}],
    }


@dataclass(frozen=True)
class Done:
    said: str
    corpus: Corpus
    run: StoredRun


def captured(folder: Path, tables: Mapping[str, Any], *words: str) -> Done:
    file = write_study(folder, dict(tables))
    ended = call("storage", "capture", file, "--out", folder / "corpus", "--runs", folder / "runs", *words)
    assert ended.code == 0, ended.err
    return Done(ended.out + ended.err, Corpus(folder / "corpus"), StoredRun(folder / "runs" / "latest"))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    with place() as folder:
        yield captured(tmp_path_factory.mktemp("grid"), study(folder))


def ended_in(run: StoredRun) -> list[int]:
    """How many transactions ended in each measured phase, by the run directory."""
    table = run.intervals.to_pydict()
    totals: Counter[int] = Counter()
    for phase, committed, aborted in zip(table["phase"], table["committed"], table["aborted"], strict=True):
        totals[phase] += committed + aborted
    return [totals[phase.number] for phase in run.phases if phase.kind == "measure"]


def test_transactions_are_those_of_the_run(done: Done) -> None:
    table = done.corpus.table("transactions").to_pydict()
    found = [
        sum(count for run, count in zip(table["run"], table["count"], strict=True) if run == number)
        for number in range(2)
    ]
    assert found == ended_in(done.run)
    assert set(table["second"]) == {0, 1}
    assert set(table["type"]) == {"tpcb_like"}
    source = done.corpus.meta.source
    assert source["settings"]["full_page_writes"] is False
    assert (source["workload"], source["provider"], source["lost_calls"]) == ("tpcb", "embedded-postgres", 0)
    asked = [(run.target_tps, run.mix, run.weights, run.seconds) for run in done.corpus.runs]
    assert sorted(asked) == [(40.0, "TPCB", {"tpcb_like": 1.0}, 2), (80.0, "TPCB", {"tpcb_like": 1.0}, 2)]


def test_each_commit_is_a_flush_of_its_own(done: Done) -> None:
    """With one session no two commits share a flush: the log's own segment has one request for each."""
    segments = {row["segment"]: row["name"] for row in done.corpus.table("segments").to_pylist()}
    assert "page view" not in done.said
    for run, transactions in zip(done.corpus.runs, ended_in(done.run), strict=True):
        columns = done.corpus.requests(run.run)
        of_log = [segments[number] == "log" for number in columns["segment"]]
        commits = np.array(of_log) & (columns["operation"] == WRITE)
        # Those that were on their way at either end of the phase.
        assert abs(int(commits.sum()) - transactions) <= 3, (run, transactions)
        written = {segments[number] for number in columns["segment"][columns["operation"] == WRITE]}
        assert {
            "log",
            "pgbench_accounts",
            "pgbench_tellers",
            "pgbench_branches",
            "pgbench_history",
        } <= written


def test_reads_are_in_both_views_and_pages_in_one(done: Done) -> None:
    recorded = Recorded.of(done.run)
    recording = _engine.StorageRecording(recorded.records)
    segments = _engine.StorageSegments(16 << 20)
    columns = recording.page_view(0, 2**63, recorded.relations, segments)
    operation = np.frombuffer(columns["operation"], np.uint8)
    assert recording.lost == 0
    view = _engine.StorageLogView(recording, recorded.log, [])
    of_log = view.of_run(0, 2**63, recorded.relations, segments)
    names = np.array(segments.table()[0])
    reads = names[np.frombuffer(columns["segment"], np.uint32)[operation == READ]]
    log_reads = np.frombuffer(of_log["operation"], np.uint8) == READ
    assert int(np.sum(reads != "pg_wal")) == int(log_reads.sum()) > 100
    # A page that is written to make room is in the page view alone.
    assert set(np.frombuffer(columns["bytes"], np.uint32)[operation == WRITE]) >= {8192}
    syncs = names[np.frombuffer(columns["segment"], np.uint32)[operation == OPERATIONS.index("sync")]]
    assert view.flushes is not None
    assert 200 < view.flushes <= int(np.sum(syncs == "pg_wal"))


def dumped(log: Path, first: str) -> Iterator[tuple[int, str, list[str]]]:
    """What the server's own program says: the length of each record, what it is, and the relations of its blocks."""
    install = find_install(18, server_accounts("PostgreSQL")[0], cache_folder())
    command: list[str | Path] = [install.program("pg_waldump"), "-p", log, "-s", first]
    # It ends with an error where the log ends.
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    for line in said.splitlines():
        if found := re.search(r"len \(rec/tot\): +\d+/ *(\d+),.*? desc: (\w+)", line):
            yield int(found[1]), found[2], re.findall(r"blkref #\d+: rel (\S+)", line)


def test_the_redo_of_each_relation_is_what_pg_waldump_says(done: Done) -> None:
    recorded = Recorded.of(done.run)
    assert recorded.log is not None
    recording = _engine.StorageRecording(recorded.records)
    segments = _engine.StorageSegments(16 << 20)
    view = _engine.StorageLogView(recording, recorded.log, [])
    columns = view.of_run(0, 2**63, {}, segments)
    written = np.frombuffer(columns["operation"], np.uint8) == WRITE
    names = [name.partition(":")[0] for name in segments.table()[0]]
    sums: Counter[str] = Counter()
    for number, size in zip(
        np.frombuffer(columns["segment"], np.uint32)[written].tolist(),
        np.frombuffer(columns["bytes"], np.uint32)[written].tolist(),
        strict=True,
    ):
        sums[names[number]] += size
    alone: Counter[str] = Counter()
    shared: Counter[str] = Counter()
    total = 0
    assert view.first is not None
    for size, what, relations in dumped(recorded.log, view.first):
        if what == "FPI_FOR_HINT":
            continue
        total += size
        touched = {_path(relation) for relation in relations} or {"log"}
        (alone if len(touched) == 1 else shared).update(dict.fromkeys(touched, size))
    assert sums.total() == total > 100_000
    for name in set(sums) | set(alone):
        assert alone[name] <= sums[name] <= alone[name] + shared[name], name


def _path(relation: str) -> str:
    tablespace, database, number = relation.split("/")
    return f"global/{number}" if tablespace == "1664" else f"base/{database}/{number}"


def test_a_corpus_without_reads_is_told(done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    phases = [phase for phase in done.run.phases if phase.kind == "measure"][:1]
    recorded = Recorded.of(done.run)

    def corpus(name: str) -> capturing.Captured:
        return capturing.write_corpus(
            tmp_path / name, done.run, phases, recorded, view="page", segment_bytes=2**20, settings={}
        )

    found = corpus("some")
    assert (found.runs, found.flushes, found.warnings) == (1, None, [])
    monkeypatch.setattr(capturing, "_FEW_READS", 0.999)
    found = corpus("few")
    assert "the server's cache holds (nearly) the whole database" in found.warnings[0]


def test_background_work_is_told_from_the_sessions(done: Done) -> None:
    made = {
        PROCESSES[place] for run in done.corpus.runs for place in done.corpus.requests(run.run)["process"]
    }
    assert "backend" in made
    assert "unknown" not in made


def test_each_mix_settles_first_and_the_server_vacuums_before_each_cell(tmp_path: Path) -> None:
    with place() as folder:
        tables = study(folder, rates=[30, 60], settle="1s", warm_up="0s", vacuum=True)
        tables["system"]["settings"] |= {"log_statement": "all"}
        done = captured(tmp_path, tables)
        log = [line for file in folder.rglob("*.log") for line in file.read_text().splitlines()]
    phases = [(phase.name, phase.kind) for phase in done.run.phases]
    assert phases[0] == ("TPCB settle", "warm_up")
    # The load rests until the vacuum has ended, which may take several phases.
    kinds = [kind for kind, _ in itertools.groupby(kind for _, kind in phases[1:])]
    assert kinds[:4] == ["pause", "measure"] * 2
    assert kinds.count("measure") == 2
    assert done.run.phases[0].end_s - done.run.phases[0].start_s == pytest.approx(1.0, abs=0.2)
    # What the server was told since the load began: the settling load, then a vacuum and a cell, twice.
    told = [
        "vacuum" if "statement: VACUUM" in line else "load"
        for line in log
        if "statement: VACUUM" in line or "UPDATE pgbench_tellers" in line
    ]
    assert [kind for kind, _ in itertools.groupby(told)] == ["load", "vacuum"] * 2 + ["load"]
    assert told.count("vacuum") == 2


@pytest.mark.skipif(not HAS_MARIADB, reason=NO_MARIADB)
def test_mariadb_has_reads_and_the_writes_of_its_log(tmp_path: Path) -> None:
    with place() as folder:
        done = captured(tmp_path, study(folder, "embedded-mariadb", rates=[40]))
    table = done.corpus.table("transactions").to_pydict()
    assert sum(table["count"]) == ended_in(done.run)[0]
    segments = {row["segment"]: row["name"] for row in done.corpus.table("segments").to_pylist()}
    columns = done.corpus.requests(0)
    written = Counter(segments[number] for number in columns["segment"][columns["operation"] == WRITE])
    assert set(written) == {"ib_logfile0"}
    assert written["ib_logfile0"] >= ended_in(done.run)[0] - 3
    assert "embedded-mariadb" in str(done.corpus.meta.source)


def test_an_interrupted_capture_keeps_the_runs_that_are_whole(tmp_path: Path) -> None:
    with place() as folder:
        file = write_study(tmp_path, study(folder, rates=[30], replicates=20, duration="1s"))
        arguments = ("storage", "capture", str(file), "--out", "corpus", "--view", "page")
        with start(*arguments, cwd=tmp_path) as process:
            events = tmp_path / "runs" / "latest" / "events.jsonl"
            wait_for(
                lambda: events.exists() and events.read_text().count('"kind": "measure"') >= 3,
                "three cells",
                process,
            )
            process.send_signal(signal.SIGINT)
            ended = finish(process)
    assert ended.code == 1, ended.err
    assert "interrupted" in ended.err
    corpus = Corpus(tmp_path / "corpus")
    assert 1 <= len(corpus.runs) < 20
    assert all(len(corpus.requests(run.run)["time_us"]) > 0 for run in corpus.runs)
    assert corpus.meta.view == "page"


def refused(folder: Path, tables: Mapping[str, Any], *words: str) -> str:
    file = write_study(folder, dict(tables))
    ended = call("storage", "capture", file, "--runs", folder / "runs", *words)
    assert (ended.code, ended.out) == (2, "")
    assert not (folder / "runs").exists()
    return ended.err


def test_what_cannot_be_captured_is_refused(tmp_path: Path) -> None:
    tables = study(tmp_path)
    load: Sequence[dict[str, Any]] = [
        {"evaluator": "load", "phases": [{"duration": "1s", "mix": "TPCB", "concurrency": 1}]}
    ]
    assert 'the evaluator "capture" 0 times' in refused(tmp_path, tables | {"measure": load})
    elsewhere = {"provider": "url", "rw": "sim://?latency=constant(2ms)"}
    assert "cannot be recorded" in refused(tmp_path, tables | {"system": elsewhere})
    assert "load.interval has to be 1s" in refused(tmp_path, tables | {"load": {"interval": "300ms"}})
    assert "--segment 4MX: expected a size" in refused(tmp_path, tables, "--segment", "4MX")
    assert "4096 bytes at the least" in refused(tmp_path, tables, "--segment", "1kB")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert "not empty" in refused(tmp_path, tables, "--out", str(tmp_path / "full"))
    grid = [{"evaluator": "capture", "rates": [10], "mixes": ["TPCB"], "duration": "1500ms"}]
    assert "whole seconds" in refused(tmp_path, tables | {"measure": grid})
