"""A corpus from a captured grid: the run directory of its loads, and what the server's processes recorded meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.storage.corpus import OPERATIONS, CapturedRun, CorpusMeta, CorpusWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.store import Phase, StoredRun

View = Literal["log", "page"]

CLOCKS = "clocks"
"""The event that has both clocks at one moment."""
_FEW_READS = 0.01
"""A corpus with a smaller share of reads says little about them."""


RECORDED = "recorded"
"""The event that says where a server has left its I/O."""


@dataclass(frozen=True)
class Recorded:
    """What a server has left of its I/O."""

    records: Path
    """The folder of the preload library's files."""
    relations: Mapping[str, str]
    """The names of relations by the paths of their first files."""
    log: Path | None = None
    """The folder of the log, where this tool can read it."""

    @classmethod
    def of(cls, run: StoredRun) -> Self:
        """Read it from a run that has just ended. Raises ``MeasurementError``."""
        told = [event for event in run.events if event.get("event") == RECORDED]
        if not told:
            raise MeasurementError("the server did not record its I/O")
        log = told[-1]["log"]
        relations = {str(path): str(name) for path, name in told[-1]["relations"].items()}
        return cls(Path(told[-1]["records"]), relations, None if log is None else Path(log))


@dataclass(frozen=True)
class Captured:
    """What a corpus holds, in figures."""

    folder: Path
    runs: int
    requests: int
    reads: int
    transactions: int
    segments: int
    flushes: int | None
    """How often the log was flushed between the server's start and its end; None where the log is not read."""
    warnings: Sequence[str]


class _ViewOfRun(Protocol):
    def __call__(
        self, from_ns: int, to_ns: int, relations: Mapping[str, str], segments: _engine.StorageSegments
    ) -> dict[str, bytes]: ...


def write_corpus(
    folder: Path,
    run: StoredRun,
    phases: Sequence[Phase],
    recorded: Recorded,
    *,
    view: View,
    segment_bytes: int,
    settings: Mapping[str, Any],
) -> Captured:
    """Write the corpus of a captured grid; its runs are these phases of a stored run.

    ``settings`` are those of the server that were needed for it.

    Raises:
        InputError: the folder is not empty, or the run has other intervals than seconds.
        MeasurementError: what was recorded cannot be read, or the corpus cannot be written.

    """
    if not phases:
        raise MeasurementError(
            "no cell of the grid was measured to its end: there is nothing to make a corpus of"
        )
    clocks = _clocks(run)
    recording = _engine.StorageRecording(recorded.records)
    flushes, of_run = None, recording.page_view
    if view == "log":
        log_view = _engine.StorageLogView(recording, recorded.log, clocks.pairs)
        flushes, of_run = log_view.flushes, log_view.of_run
    segments = _engine.StorageSegments(segment_bytes)
    warnings = _incomplete(recording)
    with CorpusWriter(folder) as writer:
        sums = _write_runs(
            writer, run, phases, clocks.origin_ns, recorded=recorded, of_run=of_run, segments=segments
        )
        writer.segments(segments)
        runs = [_captured_run(number, phase) for number, phase in enumerate(phases)]
        source = {
            **_source(run),
            "settings": dict(settings),
            "calls": recording.calls,
            "lost_calls": recording.lost,
        }
        writer.finish(CorpusMeta(view=view, segment_bytes=segment_bytes, source=source, runs=runs))
    if sums.reads < _FEW_READS * max(sums.requests, 1):
        warnings.append(
            f"of {sums.requests:,} requests {sums.reads:,} are reads: the server's cache holds (nearly) the whole "
            "database; a larger scale or a smaller cache makes it read"
        )
    return Captured(
        folder,
        len(phases),
        sums.requests,
        sums.reads,
        sums.transactions,
        len(segments.table()[0]),
        flushes,
        warnings,
    )


@dataclass
class _Sums:
    requests: int = 0
    reads: int = 0
    transactions: int = 0


def _write_runs(
    writer: CorpusWriter,
    run: StoredRun,
    phases: Sequence[Phase],
    origin_ns: int,
    *,
    recorded: Recorded,
    of_run: _ViewOfRun,
    segments: _engine.StorageSegments,
) -> _Sums:
    sums, read = _Sums(), OPERATIONS.index("read")
    for number, phase in enumerate(phases):
        begin = origin_ns + round(phase.start_s * 1e9)
        end = begin + _seconds(phase) * 1_000_000_000
        columns = of_run(begin, end, recorded.relations, segments)
        writer.requests(number, columns)
        operations = np.frombuffer(columns["operation"], np.uint8)
        sums.requests += len(operations)
        sums.reads += int(np.count_nonzero(operations == read))
        counted = transactions_of(run, phase)
        sums.transactions += sum(counted["count"].to_pylist())
        rows = len(counted["count"])
        writer.write("transactions", {"run": pa.array(np.full(rows, number, np.int32)), **counted})
    return sums


def _seconds(phase: Phase) -> int:
    return round(float(phase.labels["planned_s"]))


def transactions_of(run: StoredRun, phase: Phase) -> dict[str, Any]:
    """Count the transactions that ended in each second of a phase, by type, as columns of the corpus.

    Raises:
        InputError: an interval of the run reaches across the end of a second.

    """
    table = run.intervals.filter(pc.field("phase") == phase.number)
    start = table["start_s"].to_numpy() - phase.start_s
    end = table["end_s"].to_numpy() - phase.start_s
    # Times are stored in microseconds.
    second = np.floor(start + 1e-3).astype(np.int32)
    if len(end) and float(np.max(end - second)) > 1 + 1e-3:
        raise InputError("a corpus counts by the second: load.interval has to be 1s, or to divide it")
    inside = (second >= 0) & (second < _seconds(phase))
    rows = pa.table(
        {
            "second": second,
            "type": table["transaction"],
            "count": table["committed"].to_numpy() + table["aborted"].to_numpy(),
        }
    ).filter(pa.array(inside))
    summed = rows.group_by(["second", "type"]).aggregate([("count", "sum")]).sort_by("second")
    return {
        "second": summed["second"].cast(pa.int32()).combine_chunks(),
        "type": summed["type"].combine_chunks(),
        "count": summed["count_sum"].combine_chunks(),
    }


@dataclass(frozen=True)
class _Clocks:
    origin_ns: int
    """When the load began, on the monotonic clock."""
    pairs: list[tuple[int, int]]
    """The monotonic clock and the time of day, in ns."""


def _clocks(run: StoredRun) -> _Clocks:
    told = [event for event in run.events if event.get("event") == CLOCKS]
    if not told:
        raise MeasurementError("the run does not say when it was: it ended before its first cell did")
    pairs = sorted((int(event["monotonic_ns"]), int(event["realtime_ns"])) for event in told)
    return _Clocks(int(told[0]["origin_ns"]), pairs)


def _captured_run(number: int, phase: Phase) -> CapturedRun:
    labels = phase.labels
    return CapturedRun(
        run=number,
        seconds=_seconds(phase),
        mix=str(labels["mix"]),
        weights={name: float(weight) for name, weight in labels["weights"].items() if weight > 0},
        target_tps=float(labels["rate"]),
        replicate=int(labels["repetition"]),
    )


def _source(run: StoredRun) -> dict[str, Any]:
    """Tell where the corpus comes from; a manifest holds no secret."""
    manifest = run.manifest
    system, workload = manifest.get("system", {}), manifest.get("workload", {})
    return {
        "nephoscope": manifest.get("nephoscope"),
        "study": manifest.get("study"),
        "run": run.name,
        "provider": system.get("provider"),
        "server": system.get("facts", {}).get("server_version"),
        "workload": workload.get("name"),
        "scale": workload.get("scale"),
        "host": manifest.get("host", {}),
    }


def _incomplete(recording: _engine.StorageRecording) -> list[str]:
    warnings = []
    if recording.lost:
        warnings.append(f"{recording.lost:,} calls could not be recorded, because a file could not grow")
    for process, error in recording.ended:
        warnings.append(f"the recording of process {process} ended early, with error {error}")
    return warnings
