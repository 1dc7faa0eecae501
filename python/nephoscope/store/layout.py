"""Names and columns of the run directory's files."""

from __future__ import annotations

import contextlib
import errno
import math
import secrets
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.files import FOLDER_MODE, check_writable, make_folders

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT = 4
"""The version of the layout, in ``manifest.json``; 1 had no ``inputs`` there, 2 and 3 lack columns of `LATER`."""

FILES = SimpleNamespace(
    study="study.toml",
    manifest="manifest.json",
    intervals="intervals.parquet",
    interval_journal="intervals.jsonl",
    histograms="histograms",
    events="events.jsonl",
    system="system.parquet",
    system_journal="system.jsonl",
    probes="probes.parquet",
    probe_journal="probes.jsonl",
    checks="checks.parquet",
    check_journal="checks.jsonl",
    scores="scores.json",
    report="report.html",
)
"""The files of a run directory."""
HISTORIES = "histories"
"""Its folder of what transactions have observed, a file a history."""

_MIB = 2**20
LIMITS: Mapping[str, int] = {
    FILES.study: 16 * _MIB,
    FILES.manifest: 16 * _MIB,
    FILES.scores: 256 * _MIB,
    FILES.events: 1024 * _MIB,
    FILES.histograms: 4096 * _MIB,
    **dict.fromkeys(
        (FILES.interval_journal, FILES.system_journal, FILES.probe_journal, FILES.check_journal), 4096 * _MIB
    ),
    **dict.fromkeys((FILES.intervals, FILES.system, FILES.probes, FILES.checks, HISTORIES), 2048 * _MIB),
}
"""How many bytes of each file are read at most; of `HISTORIES`, of each in it."""
MOST_ROWS = 10_000_000
"""Rows of a table at most: days of intervals."""
MOST_TABLE_BYTES = 4096 * _MIB
"""Of a table in memory: Parquet packs millions of equal values into a few bytes."""

_COUNTS = [
    "committed",
    "aborted",
    "failed",
    "retried",
    "retries",
    "affected",
    "unstarted",
    "uncertain",
    *_engine.error_classes(),
]
LATER: Mapping[str, Any] = dict.fromkeys(("unstarted", "uncertain", "constraint", "throttled"), 0)
"""Columns that runs of an earlier format lack, and what stands for them."""
_LATENCIES = [f"latency_{name}_ms" for name in ("mean", "p50", "p95", "p99", "max")]

_TEXTS = ["tenant", "role", "transaction"]
_BOUNDS = ["start_s", "end_s"]

_interval_columns: dict[str, pa.DataType] = {
    "phase": pa.int32(),
    **dict.fromkeys(_BOUNDS, pa.float64()),
    **dict.fromkeys(_TEXTS, pa.string()),
    **dict.fromkeys(_COUNTS, pa.int64()),
    **dict.fromkeys(_LATENCIES, pa.float64()),
}
INTERVALS = pa.schema(_interval_columns)
"""The columns of ``intervals.parquet``."""

_system_columns: dict[str, pa.DataType] = {
    "time_s": pa.float64(),
    "source": pa.string(),
    "metric": pa.string(),
    "value": pa.float64(),
}
SYSTEM = pa.schema(_system_columns)
"""The columns of ``system.parquet``."""

_probe_columns: dict[str, pa.DataType] = {
    "time_s": pa.float64(),
    **dict.fromkeys(("probe", "kind", "role", "node"), pa.string()),
    "number": pa.int64(),
    **dict.fromkeys(("sent_s", "end_s"), pa.float64()),
    "outcome": pa.string(),
    **dict.fromkeys(("lower_ms", "upper_ms"), pa.float64()),
    "polls": pa.int64(),
}
PROBES = pa.schema(_probe_columns)
"""The columns of ``probes.parquet``."""

_check_columns: dict[str, pa.DataType] = {
    **dict.fromkeys(_BOUNDS, pa.float64()),
    **dict.fromkeys(("check", "node"), pa.string()),
    "place": pa.float64(),
    **dict.fromkeys(("trials", "hits"), pa.int64()),
}
CHECKS = pa.schema(_check_columns)
"""The columns of ``checks.parquet``."""

_PROBE_OPTIONAL = ("sent_s", "end_s", "lower_ms", "upper_ms")
_CHECK_OPTIONAL = ("node", "place")


def optional_columns(schema: pa.Schema) -> frozenset[str]:
    """Name the columns of a table that may hold nulls."""
    if schema.names == CHECKS.names:
        return frozenset(_CHECK_OPTIONAL)
    return frozenset(_PROBE_OPTIONAL if schema.names == PROBES.names else _LATENCIES)


HISTOGRAM_HEADER = (
    "#[Histogram log format version 1.3]\n"
    "#[Tag=kind|tenant|role|transaction; times in seconds since the start of the load; values in nanoseconds]\n"
    '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
)


_INTEGERS = {pa.int32(): 2**31, pa.int64(): 2**63}


def fits(row: Mapping[str, Any], schema: pa.Schema) -> bool:
    """Whether a journal's row fits the table: a damaged row must not hide the others."""
    optional = optional_columns(schema)
    return all(_is_of(row.get(field.name), field.type, field.name in optional) for field in schema)


def _is_of(value: object, kind: pa.DataType, optional: bool) -> bool:  # noqa: FBT001 - a private predicate
    if value is None:
        return optional
    if kind == pa.string():
        return isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if kind in _INTEGERS:
        return isinstance(value, int) and abs(value) < _INTEGERS[kind]
    return abs(value) < math.inf


def table_of(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Make a table of rows; what a row lacks is null."""
    columns = {field.name: pa.array([row.get(field.name) for row in rows], field.type) for field in schema}
    return pa.table(columns, schema=schema)


_LATEST = "latest"


def histories_of(folder: Path) -> list[Path]:
    """List the histories of a run directory in their order."""
    return sorted((folder / HISTORIES).glob("*.history"), key=lambda file: (len(file.name), file.name))


def new_run_directory(runs: Path, study: str) -> Path:
    """Make the folder of a new run, and let ``latest`` point at it.

    Raises ``MeasurementError`` if it cannot be made.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    try:
        make_folders(runs)
        for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
            folder = runs / f"{stamp}-{study}{suffix}"
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=FOLDER_MODE)
                break
        _point_latest(runs, folder)
    except OSError as error:
        raise MeasurementError(f"no run directory can be made in {runs}: {error.strerror}") from None
    return folder


def check_runs(runs: Path) -> None:
    """Check that run directories can be made in a folder; it is left as it is. Raises ``InputError``."""
    made = [folder for folder in (runs, *runs.parents) if not folder.exists()]
    try:
        make_folders(runs)
        check_writable(runs)
        if (runs / _LATEST).is_dir() and not (runs / _LATEST).is_symlink():
            raise IsADirectoryError(errno.EISDIR, f"{_LATEST} is a folder there, and would be a link")
    except OSError as error:
        raise InputError(f"no run directory can be made in {runs}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):  # another process may have put something there
            for folder in made:
                folder.rmdir()


def _point_latest(runs: Path, folder: Path) -> None:
    """Swap the link in one step: a reader finds the old one or the new one."""
    temporary = runs / f".{secrets.token_hex(8)}.part"
    temporary.symlink_to(folder.name)
    try:
        temporary.replace(runs / _LATEST)
    except OSError:
        temporary.unlink()
        raise
