"""Metrics of a PostgreSQL server, by its statistics views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.collectors.server import ServerReading
from nephoscope.collectors.waits import CPU
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope import _engine
    from nephoscope.collectors.server import Samples

_MIB = 1 << 20

_SERVER = """SELECT sum(xact_commit), sum(xact_rollback), sum(blks_read), sum(blks_hit),
  sum(tup_returned), sum(tup_inserted) + sum(tup_updated) + sum(tup_deleted),
  (SELECT count(*) FROM pg_stat_get_activity(NULL) WHERE backend_type = 'client backend'),
  (SELECT count(*) FROM pg_stat_get_activity(NULL) WHERE backend_type = 'client backend' AND state = 'active'),
  (SELECT count(*) FROM pg_stat_get_activity(NULL) WHERE wait_event_type = 'Lock'),
  CASE WHEN pg_is_in_recovery() THEN 0 ELSE pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') END
FROM pg_stat_database"""
_REPLICAS = """SELECT application_name,
  CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_flush_lsn(), replay_lsn) END,
  1000 * extract(epoch FROM replay_lag)
FROM pg_stat_replication WHERE state = 'streaming' ORDER BY application_name, pid"""
"""What a primary knows of its replicas; a role without the right to read it sees nulls."""
_SESSIONS = f"""SELECT CASE WHEN query = '<insufficient privilege>' THEN 'hidden'
    WHEN state = 'active' THEN coalesce(wait_event_type || '/' || wait_event, '{CPU}') ELSE 'idle' END, count(*)
FROM pg_stat_get_activity(NULL)
WHERE pid <> pg_backend_pid() AND datid IS NOT NULL AND usesysid IS NOT NULL
  AND coalesce(backend_type, 'client backend') = 'client backend' GROUP BY 1"""
"""The sessions of clients by wait event, by the function behind `pg_stat_activity`: the view's joins with users and
databases take most of its time. A role without the right sees its own sessions only."""
_CHECKPOINTS = {
    "checkpoints": "checkpoints_timed + checkpoints_req",
    "checkpoint_buffers": "buffers_checkpoint",
    "checkpoint_write_ms": "checkpoint_write_time",
}
_CHECKPOINTS_17 = {
    "checkpoints": "num_timed + num_requested",
    "checkpoint_buffers": "buffers_written",
    "checkpoint_write_ms": "write_time",
}
_WAL = {"wal_records": "wal_records", "wal_full_pages": "wal_fpi", "wal_buffers_full": "wal_buffers_full"}
_IO = {"io_reads": "reads", "io_writes": "writes", "io_extends": "extends", "io_evictions": "evictions"}
_IO_BYTES_16 = {"io_read_bytes": "reads * op_bytes", "io_written_bytes": "(writes + extends) * op_bytes"}
_IO_BYTES_18 = {"io_read_bytes": "read_bytes", "io_written_bytes": "write_bytes + extend_bytes"}
_COUNTERS = ("commits", "rollbacks", "blocks_read", "blocks_hit", "rows_read", "rows_written")
_LEVELS = ("connections", "active", "waiting_for_locks")


def read(admin: _engine.Admin) -> ServerReading:
    """Read the server's metrics, and those of its replicas. Raises ``MeasurementError``."""
    _, rows = admin.query(_SERVER)
    _, replicas = admin.query(_REPLICAS)
    if not rows:
        # A server that is no PostgreSQL may answer like this; it is asked again.
        raise MeasurementError("its statistics have no row")
    *cells, wal = (float(cell or 0) for cell in rows[0])
    counters = dict(zip(_COUNTERS, cells, strict=False))
    levels = dict(zip(_LEVELS, cells[len(_COUNTERS) :], strict=True))
    counters |= _more(admin)
    return ServerReading(levels, {**counters, "wal_mb": wal / _MIB}, _behind(replicas))


def look(admin: _engine.Admin, timeout_s: float) -> Mapping[str, float] | None:
    """Count the sessions at work by ``wait_event_type/wait_event``; ``CPU`` are those that wait for nothing.

    None where the server shows other users' sessions only by their number. Raises ``MeasurementError``.
    """
    _, rows = admin.query(_SESSIONS, answer_timeout_s=timeout_s)
    seen = {str(event): float(count or 0) for event, count in rows}
    hidden, idle = seen.pop("hidden", 0.0), seen.pop("idle", 0.0)
    return None if hidden and not (idle or seen) else seen


def _more(admin: _engine.Admin) -> dict[str, float]:
    """Read the counters that not every version has; those that are null for this role are left out."""
    _, rows = admin.query("SHOW server_version_num")
    version = int(rows[0][0] or 0) // 10_000 if rows else 0
    found: dict[str, float] = {}
    for names, view in _views(version):
        asked = ", ".join(f"sum({expression})" for expression in names.values())
        _, rows = admin.query(f"SELECT {asked} FROM {view}")
        if rows:
            cells = zip(names, rows[0], strict=True)
            found |= {metric: float(cell) for metric, cell in cells if cell is not None}
    return found


def _views(version: int) -> list[tuple[Mapping[str, str], str]]:
    """Tell what a major version counts, and in which view (its documentation, "The Cumulative Statistics System")."""
    found: list[tuple[Mapping[str, str], str]] = []
    if version >= 17:  # noqa: PLR2004 - the view is new in it
        found.append((_CHECKPOINTS_17, "pg_stat_checkpointer"))
    elif version:
        found.append((_CHECKPOINTS, "pg_stat_bgwriter"))
    if version >= 18:  # noqa: PLR2004 - the log's I/O moved to pg_stat_io
        found.append((_WAL, "pg_stat_wal"))
        found.append(({"wal_syncs": "fsyncs"}, "pg_stat_io WHERE object = 'wal'"))
        found.append(({**_IO, **_IO_BYTES_18}, "pg_stat_io WHERE object = 'relation'"))
    elif version >= 14:  # noqa: PLR2004 - the view is new in it
        found.append(({**_WAL, "wal_syncs": "wal_sync"}, "pg_stat_wal"))
    if version in (16, 17):
        found.append(({**_IO, **_IO_BYTES_16}, "pg_stat_io WHERE object = 'relation'"))
    return found


def _behind(rows: Sequence[Sequence[str | None]]) -> Samples:
    """Return how far each replica is behind, as the primary sees it: bytes of log, and milliseconds.

    ``replay_lag_ms`` is PostgreSQL's ``replay_lag``: from the flush of recent log on the primary to the replica's word
    that it is replayed (documentation of pg_stat_replication); none where nothing was written lately.
    """
    found: Samples = {}
    for number, (name, distance, lag) in enumerate(rows, start=1):
        source = f"replica:{name or number}"
        if source in found:  # replicas that have not been told apart
            source = f"{source}-{number}"
        values = {"bytes_behind": distance, "replay_lag_ms": lag}
        found[source] = {metric: float(value) for metric, value in values.items() if value is not None}
    return found
