"""The engine's threads and Python's lock: neither side waits for the other for ever, and no transaction for a log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 60.0

TALKATIVE = """local w = workload "talkative"
w:transaction("say", function(tx) print("said") tx:exec("nothing") end)
w:mix("all", { say = 1 })
"""

BEGINNING = """
import json, logging, os, sys, time
from nephoscope import _engine
from nephoscope.errors import MeasurementError

said = []
class Kept(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())
logging.basicConfig(level=sys.argv[2], handlers=[Kept()])
run = _engine.Run(sys.argv[1])

def rest(run):
    run.stop()
    while not records or records[-1]["record"] != "end":
        if (record := run.next(1.0)) is not None:
            records.append(json.loads(record))
records = []
"""


def of_a_load(folder: Path, act: str, level: str = "INFO", **changes: Any) -> list[str]:
    """Let a process of its own act while its load logs in each transaction; the lines that it prints."""
    (folder / "workload.lua").write_text(TALKATIVE)
    (folder / "statements.sql").write_text("-- name: nothing\nSELECT 1\n")
    tenant = {
        "name": "one", "rw": ["noop://"], "ro": [], "reads": "rw", "writer_weight": 1.0, "sessions": 2, "backlog": 10,
        "workload": {"folder": str(folder), "scale": 1.0, "data_seed": 1},
    }  # fmt: skip
    load = {"concurrency": 2, "mix": {"say": 1}}
    spec = {
        "seed": 1, "threads": 1, "interval_ms": 100, "statement_mode": "prepared", "pipeline": False,
        "connect_timeout_ms": 5000, "statement_timeout_ms": 5000, "drain_timeout_ms": 1000,
        "retry": {"attempts": 1, "backoff_ms": 1.0, "backoff_max_ms": 1.0}, "on_connect": [],
        "balance": "round-robin", "tenants": [tenant],
        "phases": [{"name": "all", "kind": "measure", "seconds": None, "loads": {"*": load}}], **changes,
    }  # fmt: skip
    program = [sys.executable, "-W", "ignore", "-c", BEGINNING + act, json.dumps(spec), level]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_threads_run_on_the_processors_that_they_are_pinned_to(tmp_path: Path) -> None:
    act = """
from pathlib import Path
for task in sorted(Path("/proc/self/task").iterdir(), key=lambda task: int(task.name)):
    if (name := (task / "comm").read_text().strip()).startswith("load-"):
        print(name, sorted(os.sched_getaffinity(int(task.name))))
rest(run)
"""
    mine = sorted(os.sched_getaffinity(0))
    pinned = [mine[0], mine[-1]]
    told = of_a_load(tmp_path, act, "ERROR", threads=3, cpus=pinned)
    assert sorted(told) == [f"load-{number} [{pinned[number % 2]}]" for number in range(3)]
    told = of_a_load(tmp_path, act, "ERROR", threads=1)
    assert told == [f"load-0 {mine}"]


def test_a_load_that_logs_is_dropped_with_pythons_lock_held(tmp_path: Path) -> None:
    assert of_a_load(tmp_path, "run.next(0.2); del run; print('dropped')") == ["dropped"]


def test_no_transaction_waits_for_pythons_lock(tmp_path: Path) -> None:
    act = """
sys.setswitchinterval(30)
begun = run.elapsed()
while run.elapsed() < begun + 1.5:
    pass
ended = run.elapsed()
rest(run)
held = [r for r in records if r["record"] == "interval" and r["start_s"] > begun + 0.2 and r["end_s"] < ended]
print(len(held), min(sum(s["committed"] for s in r["series"]) for r in held))
"""
    intervals, least = map(int, of_a_load(tmp_path, act)[0].split())
    assert intervals >= 5
    assert least > 0


@pytest.mark.parametrize(("level", "is_made"), [("INFO", True), ("WARNING", False)])
def test_the_reader_writes_what_the_level_lets_through(tmp_path: Path, level: str, *, is_made: bool) -> None:
    act = """
time.sleep(0.5)
rest(run)
print(json.dumps([records[-1]["started"], said.count("said"), [line for line in said if line != "said"]]))
"""
    started, lines, others = json.loads(of_a_load(tmp_path, act, level)[0])
    if not is_made:
        assert (lines, others) == (0, [])
        return
    # The queue is bounded, and tells what it had no room for.
    dropped = sum(int(line.split()[0]) for line in others)
    assert others
    assert all("lines of the log were dropped" in line for line in others)
    assert lines > 0
    assert lines + dropped == started


def test_a_forked_process_neither_uses_nor_awaits_the_load_of_its_parent(tmp_path: Path) -> None:
    act = """
child = os.fork()
if child == 0:
    try:
        run.next(0.1)
    except MeasurementError as error:
        print(error, flush=True)
    del run
    print("dropped", flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
rest(run)
print("ended", records[-1]["complete"])
"""
    refused, *others = of_a_load(tmp_path, act)
    assert "which forked this one" in refused
    assert others == ["dropped", "ended True"]
