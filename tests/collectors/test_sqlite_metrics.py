"""What is read of a SQLite file beside a load: figures of planted pages and frames, and locks that stay held."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from commands import call
from nephoscope import _engine
from nephoscope.collectors import sqlite
from nephoscope.store import StoredRun

if TYPE_CHECKING:
    from pathlib import Path

PAGE = 4096
_MIB = 1 << 20
_TAKE = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"


def test_pages_and_frames_are_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "some.db"
    load = _engine.Admin(f"sqlite://{file}?journal_mode=wal&page_size={PAGE}&wal_autocheckpoint=0")
    collector = _engine.Admin(f"sqlite://{file}")
    load.query("CREATE TABLE filler (bytes blob)")
    load.query(f"INSERT INTO filler VALUES (zeroblob({100 * PAGE}))")
    full = sqlite.read(collector).levels
    assert full["pages"] > 100
    assert full["free_pages"] == 0
    assert full["wal_frames"] > 100
    assert full["wal_checkpointed_frames"] == 0, "reading does not checkpoint"
    assert full["wal_file_mb"] == pytest.approx(full["wal_frames"] * (PAGE + 24) / _MIB, rel=0.01)
    load.query("DELETE FROM filler")
    load.query("PRAGMA wal_checkpoint(PASSIVE)")
    empty = sqlite.read(collector).levels
    assert empty["free_pages"] >= 100
    assert empty["wal_checkpointed_frames"] == empty["wal_frames"] > full["wal_frames"]
    assert empty["data_mb"] == empty["pages"] * PAGE / _MIB
    collector.close()
    load.close()


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_reading_takes_no_lock_from_the_load_and_stands_in_no_way(tmp_path: Path, journal: str) -> None:
    file = tmp_path / "some.db"
    load = _engine.Admin(f"sqlite://{file}?journal_mode={journal}")
    collector = _engine.Admin(f"sqlite://{file}", answer_timeout_s=0.5)
    load.query("CREATE TABLE some (id integer)")
    levels = sqlite.read(collector).levels
    assert ("pages" in levels) == (journal == "wal")
    load.query("BEGIN IMMEDIATE")
    load.query("INSERT INTO some VALUES (1)")
    for _ in range(3):
        assert sqlite.read(collector).levels["data_mb"] > 0
    # A lock that a closed descriptor has released would be free for another process.
    other = subprocess.run(
        [sys.executable, "-c", _TAKE, str(file)], capture_output=True, text=True, check=False
    )
    assert "database is locked" in other.stderr
    load.query("COMMIT")
    collector.close()
    load.close()
    assert sqlite3.connect(file).execute("SELECT count(*) FROM some").fetchone() == (1,)


def test_a_run_has_the_metrics_of_its_file_and_no_wait_events(tmp_path: Path) -> None:
    study = tmp_path / "small.toml"
    study.write_text(f"""study.name = "small"
[system]
provider = "embedded-sqlite"
data = "{tmp_path / "data"}"
settings = {{ begin = "immediate" }}
[workload]
name = "tpcb"
[load]
interval = "100ms"
[[measure]]
evaluator = "load"
[[measure.phases]]
duration = "2500ms"
concurrency = 2
mix = "TPCB"
""")
    ended = call("run", study, "--out", tmp_path / "runs")
    assert ended.code == 0, ended.err
    run = StoredRun(tmp_path / "runs" / "latest")
    found: dict[str, list[float]] = {}
    for row in run.system_metrics.to_pylist():
        if row["source"] == "server:rw":
            found.setdefault(row["metric"], []).append(row["value"])
    assert {"data_mb", "wal_file_mb", "pages", "free_pages", "wal_frames"} <= found.keys()
    assert max(found["wal_frames"]) > 0
    assert max(found["process_written_bytes_per_s"]) > PAGE
    assert not [metric for metric in found if metric.startswith("wait:")]
    assert 'id="waits"' not in (run.folder / "report.html").read_text()
