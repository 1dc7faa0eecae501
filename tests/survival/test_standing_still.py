"""The tool stands still, or its machine's clock is set, while a run goes on: that is told, and no figure hides it."""

from __future__ import annotations

import json
import signal
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commands import finish, start, wait_for
from databases import Server, running_server, study_of
from nephoscope.store import FILES, StoredRun
from sample_studies import phases, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.alone

STOPPED_S = 5.0
RATE = 100
SESSIONS = 4
MIX = {"order_status": 1}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


def open_load(folder: Path, server: Server, duration: str) -> Path:
    tables = study_of(server.new_database(), phases({"duration": duration, "mix": MIX, "rate": RATE}))
    # A time limit shorter than the gap: replies that came in it are not late.
    tables["load"] |= {"sessions": SESSIONS, "statement_timeout": "3s"}
    return write_study(folder, tables)


def journal(folder: Path, name: str) -> list[dict[str, Any]]:
    """Read the whole lines that the newest run has written so far."""
    path = folder / "runs" / "latest" / name
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def metric(run: StoredRun, name: str) -> list[float]:
    rows = run.system_metrics.to_pylist()
    return [row["value"] for row in rows if (row["source"], row["metric"]) == ("client", name)]


@pytest.mark.survives(
    part="tool",
    fault="the tool stops for 5 s (SIGSTOP, as a suspended laptop)",
    promise="the gap is told with its length, in the events, by the command line and in the report; the latency of"
    " what was due in it shows it whole; every session goes on",
    on="PostgreSQL",
)
def test_a_tool_that_stands_still_says_so(tmp_path: Path, server: Server) -> None:
    with start("run", open_load(tmp_path, server, "600s"), cwd=tmp_path) as process:
        wait_for(lambda: len(journal(tmp_path, FILES.interval_journal)) >= 5, "the load is on its way")
        process.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: any(e["event"] == "gap" for e in journal(tmp_path, FILES.events)), "the gap is told")
        read = len(journal(tmp_path, FILES.interval_journal))
        wait_for(lambda: len(journal(tmp_path, FILES.interval_journal)) > read + 20, "the load goes on")
        process.send_signal(signal.SIGINT)
        ended = finish(process)
    run = StoredRun(tmp_path / "runs" / "latest")
    [gap] = [event for event in run.events if event["event"] == "gap"]
    assert STOPPED_S - 0.2 <= gap["stopped_s"] < STOPPED_S + 10
    assert gap["suspended_s"] < 1
    words = f"nephoscope itself did not run for {gap['stopped_s']:.1f} s, from {gap['time_s']:.1f} s on"
    assert f"warning: {words}" in ended.out
    assert f"! {words}" in ended.out
    assert words[1:] in (run.folder / FILES.report).read_text()
    # Nobody's time is forgotten: what was due while the tool stood still waited from then on.
    intervals = run.intervals.to_pylist()
    assert max(row["latency_max_ms"] or 0 for row in intervals) > (STOPPED_S - 0.5) * 1000
    arrivals, last_s = sum(metric(run, "arrivals")), max(row["end_s"] for row in intervals)
    assert arrivals > (last_s - 1) * RATE * 0.95
    assert metric(run, "connected")[-5] == SESSIONS
    assert sum(row["failed"] for row in intervals) == 0
    assert "✓ every transaction is accounted for" in ended.out


@pytest.mark.survives(
    part="tool",
    fault="the machine's clock is set forward by an hour",
    promise="no duration and no interval sees it; the manifest's times of day fit together; it is told",
    on="PostgreSQL, libfaketime",
)
def test_a_clock_that_is_set_changes_no_figure(tmp_path: Path, server: Server) -> None:
    libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not libraries:
        pytest.skip("there is no libfaketime")
    stamp = tmp_path / "stamp"
    stamp.write_text("+0\n")
    environment = {
        "LD_PRELOAD": str(libraries[0]),
        "FAKETIME_TIMESTAMP_FILE": str(stamp),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    study = open_load(tmp_path, server, "3s")
    with start("run", study, cwd=tmp_path, environment=environment) as process:
        wait_for(lambda: len(journal(tmp_path, FILES.interval_journal)) >= 5, "the load is on its way")
        stamp.write_text("+3600\n")
        ended = finish(process)
    assert ended.code == 0, ended.err
    run = StoredRun(tmp_path / "runs" / "latest")
    intervals = run.intervals.to_pylist()
    assert all(0 < row["end_s"] - row["start_s"] < 0.1 + 1e-6 for row in intervals)
    ends = [row["end_s"] for row in intervals]
    assert ends == sorted(ends)
    assert max(ends) < 60
    assert all(0 <= row["time_s"] < 60 for row in run.system_metrics.to_pylist())
    assert not [event for event in run.events if event["event"] == "gap"]
    origin, finished = (datetime.fromisoformat(run.manifest["clock"][key]) for key in ("origin", "finished"))
    assert 3 <= (finished - origin).total_seconds() < 60
    assert "the machine's clock was set by +3,600 s" in ended.out
