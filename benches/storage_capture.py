"""What recording a server's I/O costs: a call, beside strace, and the transactions of a server."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benches.client import load_spec, measure
from benches.results import Result, at_most, mean, result
from benches.servers import SCALE, Server, family_cpu, pgbench_tables, server
from nephoscope import _engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TURNS = 9
CALLS = 300_000
CALLS_TRACED = 20_000
PAIRS = 30
SESSIONS = 8
SECONDS = 2.0

# Reads of one byte, which cost least, so that what is added shows best. Time of the processor: the library runs nowhere
# else, and others who use the machine do not count. strace is a process of its own: its cost is time that passes.
_LOOP = """
import os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(file, b"x")
read, calls = os.pread, int(sys.argv[2])
clock = time.perf_counter_ns if sys.argv[3] == "wall" else time.process_time_ns
read(file, 1, 0)
began = clock()
for _ in range(calls):
    read(file, 1, 0)
print((clock() - began) / calls)
"""


def storage_capture(folder: Path) -> Iterator[Result]:
    """Nanoseconds a recorded call, and TPS of TPC-B on a server that records beside one that does not."""
    yield from _calls(folder / "calls")
    with (
        server(folder / "plain", io_method="sync") as plain,
        server(folder / "recording", record_io=True) as recording,
    ):
        for on in (plain, recording):
            pgbench_tables(on)
        yield from _transactions(plain, recording)


def _calls(folder: Path) -> Iterator[Result]:
    for place in ("data", "records"):
        (folder / place).mkdir(parents=True)
    library = folder / "recorder.so"
    library.write_bytes(_engine.storage_preload())
    ours = {
        "LD_PRELOAD": str(library),
        "NEPHOSCOPE_IO_DATA": str((folder / "data").resolve()),
        "NEPHOSCOPE_IO_RECORDS": str(folder / "records"),
    }
    inside, outside = folder / "data" / "file", folder / "file"
    recorded, passed = [], []
    for _ in range(TURNS):
        bare = _loop(inside, CALLS, "processor", {})
        recorded.append(_loop(inside, CALLS, "processor", ours) - bare)
        passed.append(_loop(outside, CALLS, "processor", ours) - _loop(outside, CALLS, "processor", {}))
        for file in (folder / "records").iterdir():
            file.unlink()
    detail = (
        f"+{statistics.median(recorded):.0f} ns a recorded call; +{statistics.median(passed):.0f} ns another"
    )
    yield result("ns a recorded call", "130 ns", [each / 130 for each in recorded], at_most(1.0), detail)
    if shutil.which("strace") is None:
        return
    trace = ("strace", "-f", "-T", "-e", "trace=pread64", "-o", str(folder / "trace"))
    traced = [
        _loop(inside, CALLS_TRACED, "wall", {}, *trace) - _loop(inside, CALLS_TRACED, "wall", {})
        for _ in range(TURNS)
    ]
    detail = f"strace adds {statistics.median(traced) / 1000:.1f} µs"
    ratios = [mine / theirs for mine, theirs in zip(recorded, traced, strict=True)]
    yield result("cost of a recorded call", "strace", ratios, at_most(0.05), detail)


def _loop(file: Path, calls: int, clock: str, environment: Mapping[str, str], *before: str) -> float:
    command = [*before, sys.executable, "-I", "-c", _LOOP, str(file), str(calls), clock]
    done = subprocess.run(
        command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def _transactions(plain: Server, recording: Server) -> Iterator[Result]:
    ratios, costs, without, each = [], [], [], []
    for pair in range(PAIRS):
        # In turns, and each first in every other pair: what drifts hits both.
        order = [recording, plain] if pair % 2 else [plain, recording]
        found = {on.url: _turn(on) for on in order}
        (tps, cost), (tps_recording, cost_recording) = found[plain.url], found[recording.url]
        ratios.append(tps / tps_recording)
        costs.append(cost_recording / cost)
        without.append(tps)
        each.append(cost)
    detail = f"{mean(ratios)}; {statistics.median(without):,.0f} TPS without"
    yield result("TPS of TPC-B without over with recording", "without", ratios, at_most(1.03), detail)
    detail = f"{mean(costs)}; {statistics.median(each):.0f} µs without"
    yield result("server CPU per TPC-B transaction with recording", "without", costs, at_most(1.03), detail)


def _turn(on: Server) -> tuple[float, float]:
    """Run TPC-B; give its TPS, and the microseconds of the server's processors a transaction, warm-up included."""
    spec = load_spec(on.url, "tpcb", SCALE, "TPCB", level={"concurrency": SESSIONS}, seconds=SECONDS)
    used, done = _used(on)
    tps = float(measure(spec)["tps"])
    used_after, done_after = _used(on)
    return tps, (used_after - used) / (done_after - done) * 1e6


_STATE = """
SELECT pg_stat_clear_snapshot(); SELECT pg_stat_force_next_flush();
SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()
"""


def _used(on: Server) -> tuple[float, int]:
    """Tell the processor seconds that a server has used, its ended sessions included, and the commits there were."""
    time.sleep(0.2)  # sessions that have been closed end, and tell what they counted
    commits = on.run("psql", "-Atc", _STATE).split()[-1]
    children = Path(f"/proc/{on.pid}/stat").read_text().rpartition(")")[2].split()[13:15]
    ended = sum(int(ticks) for ticks in children) / os.sysconf("SC_CLK_TCK")
    return family_cpu(on.pid) + ended, int(commits)
