"""The executor of storage requests beside fio: the same requests and depth, io_uring, the page cache."""

from __future__ import annotations

import json
import resource
import shutil
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benches.results import Bar, Result, at_most, result
from benches.servers import timed
from nephoscope import _engine
from nephoscope.storage.corpus import OPERATIONS, PROCESSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

RATE = 20_000
SECONDS = 5
TURNS = 5
DEPTH = 64
PAGES = 16_384
PAGE = 4096
WRITE_SHARE = 0.1
_BAR_CPU = 1.1
_BAR_LATENESS_MS = 1.0


def execute(folder: Path) -> Iterator[Result]:
    """Client CPU per request, and lateness at 20,000 a second; skipped where there is no fio."""
    if shutil.which("fio") is None:
        print("storage-execute: skipped, there is no fio (tests/tools/system-packages installs it)")
        return
    columns = _requests(RATE * SECONDS)
    ours, theirs = folder / "ours.bin", folder / "fio.bin"
    theirs.write_bytes(np.random.default_rng(2).bytes(PAGES * PAGE))
    target = _engine.StorageTarget(f"file://{ours}?direct=off", overwrite=False)
    native = {name: column.tobytes() for name, column in columns.items()}
    target.prepare([native])
    (folder / "idle.iolog").write_text(_iolog({name: column[:1] for name, column in columns.items()}, theirs))
    (folder / "requests.iolog").write_text(_iolog(columns, theirs))
    cpu: list[tuple[float, float]] = []
    late: list[tuple[float, float]] = []
    for _ in range(TURNS):
        found = _ours(target, native)
        peer = _fio(folder, columns["time_us"])
        cpu.append((found[0], peer[0]))
        late.append((found[1], peer[1]))
    told = ", ".join(f"{one:.1f} against {other:.1f}" for one, other in cpu)
    yield result(
        "CPU per storage request executed, 20,000 a second",
        "fio, read_iolog, io_uring",
        [one / other for one, other in cpu],
        at_most(_BAR_CPU),
        f"(µs: {told})",
    )
    fast = [(_fastest(target, native), _fio_cpu(folder, "--replay_no_stall=1")) for _ in range(TURNS)]
    told = ", ".join(f"{one:.1f} against {other:.1f}" for one, other in fast)
    yield result(
        "CPU per storage request executed, as fast as they go",
        "fio, read_iolog, replay_no_stall, io_uring",
        [one / other for one, other in fast],
        at_most(_BAR_CPU),
        f"(µs: {told})",
    )
    told = ", ".join(f"{one:.3g} against {other:.3g}" for one, other in late)
    within: Bar = (
        f"p99 ≤ {_BAR_LATENESS_MS:g} ms",
        lambda _ratio: statistics.median(one for one, _ in late) <= _BAR_LATENESS_MS,
    )
    yield result(
        "lateness of storage requests, p99, 20,000 a second",
        "fio, read_iolog, io_uring",
        [one / max(other, 1e-3) for one, other in late],
        within,
        f"(ms, fio's to the millisecond: {told})",
    )


def _requests(count: int) -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(1)
    writes = random.random(count) < WRITE_SHARE
    read, write = OPERATIONS.index("read"), OPERATIONS.index("write")
    return {
        "time_us": np.sort(random.integers(0, count * 1_000_000 // RATE, count)),
        "segment": np.zeros(count, np.uint32),
        "offset": random.integers(0, PAGES, count).astype(np.uint64) * PAGE,
        "bytes": np.full(count, PAGE, np.uint32),
        "operation": np.where(writes, write, read).astype(np.uint8),
        "process": np.full(count, PROCESSES.index("backend"), np.uint8),
        "latency_us": np.full(count, np.nan, np.float32),
    }


def _iolog(columns: Mapping[str, NDArray[Any]], file: Path) -> str:
    words = [OPERATIONS[operation] for operation in columns["operation"]]
    each = zip(
        columns["time_us"].tolist(), words, columns["offset"].tolist(), columns["bytes"].tolist(), strict=True
    )
    lines = [f"{at} {file} {word} {offset} {size}" for at, word, offset, size in each]
    head = ["fio version 3 iolog", f"0 {file} add", f"0 {file} open"]
    return "\n".join([*head, *lines, f"{columns['time_us'][-1]} {file} close"]) + "\n"


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _fastest(target: _engine.StorageTarget, native: Mapping[str, bytes]) -> float:
    """CPU per request in µs where all are due at once."""
    return _ours(target, native, speed=1e9, give_up_s=3600, wait_s=0)[0]


def _ours(
    target: _engine.StorageTarget, native: Mapping[str, bytes], wait_s: float = SECONDS, **options: float
) -> tuple[float, float]:
    """CPU per request in µs, of this whole process; the lateness's 99th percentile in ms."""
    begun = _own_cpu()
    execution = target.execute(native, json.dumps({"depth": DEPTH, "interval_s": 3600, **options}))
    time.sleep(wait_s)
    late = _engine.Histogram()
    done = 0
    while (text := execution.next(60.0)) is not None:
        record = json.loads(text)
        for series in record.get("series", ()):
            late.add(_engine.Histogram.decode(series["lateness"]))
        done = record.get("done", done)
    if done != RATE * SECONDS:
        raise RuntimeError(f"{done} of {RATE * SECONDS} requests were executed")
    return (_own_cpu() - begun) * 1e6 / done, late.quantile(0.99) / 1e6


def _fio(folder: Path, intended_us: NDArray[np.int64]) -> tuple[float, float]:
    """CPU per request in µs; the lateness's 99th percentile in ms."""
    cpu = _fio_cpu(folder)
    # Its log of latencies takes time of its own.
    timed([*_command(folder, "requests.iolog"), f"--write_lat_log={folder / 'took'}"])
    logged = np.array(
        [line.split(",")[:2] for line in (folder / "took_lat.1.log").read_text().splitlines()], np.int64
    )
    # A line has the time of the end in ms, and the latency in ns.
    starts = np.sort(logged[:, 0] - logged[:, 1] / 1e6)
    # It logs a few less than it executes.
    due = intended_us[np.linspace(0, len(intended_us) - 1, len(starts)).astype(int)]
    late = starts - due / 1e3
    return cpu, float(np.quantile(late, 0.99))


def _fio_cpu(folder: Path, *options: str) -> float:
    """CPU per request in µs, without what fio needs to begin and end."""
    idle = timed(_command(folder, "idle.iolog")).cpu
    return (timed([*_command(folder, "requests.iolog"), *options]).cpu - idle) * 1e6 / (RATE * SECONDS)


def _command(folder: Path, iolog: str) -> list[str]:
    options = [f"--iodepth={DEPTH}", "--ioengine=io_uring", "--direct=0", "--thread", "--output=/dev/null"]
    return ["fio", "--name=replay", f"--read_iolog={folder / iolog}", *options]
