"""Metrics of a SQLite file, which the load's own threads read and write: there is no server, and no wait events.

Only the engine's SQLite may open the file here. POSIX releases all locks of a process on a file when any of its
descriptors of that file is closed (sqlite.org/howtocorrupt.html, section 2.2): sizes are therefore asked of the folder.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from nephoscope.collectors.server import ServerReading

if TYPE_CHECKING:
    from nephoscope import _engine

_MIB = 1 << 20
_PROCESS_IO = "/proc/self/io"
_BYTES = {"rchar": "process_read_bytes", "wchar": "process_written_bytes"}
"""Of the calls of read and write: SQLite's as well as those of the client, whose process it is."""


def read(admin: _engine.Admin) -> ServerReading:
    """Read the file's metrics. Raises ``MeasurementError``."""
    _, rows = admin.query("PRAGMA database_list")
    path = next(file for _, name, file in rows if name == "main")
    return ServerReading({**_sizes(path or ""), **_pages(admin)}, _process())


def _sizes(path: str) -> dict[str, float]:
    """Return the sizes of the file and of its log, in MiB; none of a file that has been moved away."""
    levels = {}
    for metric, file in (("data_mb", path), ("wal_file_mb", f"{path}-wal")):
        with contextlib.suppress(OSError):
            levels[metric] = os.stat(file).st_size / _MIB  # noqa: PTH116 - the folder's entry, nothing is opened
    return levels


def _pages(admin: _engine.Admin) -> dict[str, float]:
    """Count pages, and the frames of the log; nothing without a log, where a reader stands in the way of commits."""
    _, rows = admin.query("PRAGMA wal_checkpoint(NOOP)")
    frames, checkpointed = (float(cell or 0) for cell in rows[0][1:])
    if frames < 0:
        return {}
    levels = {"wal_frames": frames, "wal_checkpointed_frames": checkpointed}
    for metric, pragma in (("pages", "page_count"), ("free_pages", "freelist_count")):
        _, rows = admin.query(f"PRAGMA {pragma}")
        levels[metric] = float(rows[0][0] or 0)
    return levels


def _process() -> dict[str, float]:
    """Return the bytes that this process has read and written since its start; nothing where /proc does not tell."""
    try:
        with open(_PROCESS_IO, encoding="ascii") as file:  # noqa: PTH123 - once a second, kept plain
            fields = dict(line.split(": ", 1) for line in file)
        return {metric: float(fields[name]) for name, metric in _BYTES.items()}
    except (OSError, KeyError):
        return {}
