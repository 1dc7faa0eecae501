"""Metrics of a PostgreSQL server, by its statistics views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.collectors.server import ServerReading
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope import _engine
    from nephoscope.collectors.server import Samples

_MIB = 1 << 20

_SERVER = """SELECT sum(xact_commit), sum(xact_rollback), sum(blks_read), sum(blks_hit),
  sum(tup_returned), sum(tup_inserted) + sum(tup_updated) + sum(tup_deleted),
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND state = 'active'),
  (SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'),
  CASE WHEN pg_is_in_recovery() THEN 0 ELSE pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') END
FROM pg_stat_database"""
_REPLICAS = """SELECT application_name,
  CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_flush_lsn(), replay_lsn) END,
  1000 * extract(epoch FROM replay_lag)
FROM pg_stat_replication WHERE state = 'streaming' ORDER BY application_name, pid"""
"""What a primary knows of its replicas; a role without the right to read it sees nulls."""
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
    return ServerReading(levels, {**counters, "wal_mb": wal / _MIB}, _behind(replicas))


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
