"""Metrics of a MySQL or MariaDB server, by its status variables ("Server Status Variables" in either's manual)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.collectors.server import ServerReading
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope import _engine

_MIB = 1 << 20

_LEVELS = {
    "connections": "threads_connected",
    "active": "threads_running",
    "waiting_for_locks": "innodb_row_lock_current_waits",
}
_COUNTERS = {
    "commits": ("handler_commit",),
    "rollbacks": ("handler_rollback",),
    "blocks_read": ("innodb_buffer_pool_reads",),
    "rows_read": ("innodb_rows_read",),
    "rows_written": ("innodb_rows_inserted", "innodb_rows_updated", "innodb_rows_deleted"),
}
_MAYBE = {
    "io_reads": "innodb_data_reads",
    "io_writes": "innodb_data_writes",
    "io_fsyncs": "innodb_data_fsyncs",
    "io_read_bytes": "innodb_data_read",
    "io_written_bytes": "innodb_data_written",
    "row_lock_waits": "innodb_row_lock_waits",
    "row_lock_wait_ms": "innodb_row_lock_time",
    "log_waits": "innodb_log_waits",
    "buffer_waits": "innodb_buffer_pool_wait_free",
}
"""Counters that a product or a version may lack; then they are left out."""
LOOK_EVERY = 2
"""InnoDB renews its table of transactions only if nobody has read it for 100 ms, so every second look is left out."""
_SESSIONS = """SELECT CASE WHEN t.trx_state = 'LOCK WAIT' THEN 'Lock/row' WHEN p.STATE IS NULL OR p.STATE = ''
    THEN 'state/none' ELSE CONCAT('state/', p.STATE) END AS event, COUNT(*)
FROM information_schema.PROCESSLIST p
LEFT JOIN information_schema.INNODB_TRX t ON t.trx_mysql_thread_id = p.ID
WHERE p.COMMAND IN ('Query', 'Execute') AND p.ID <> CONNECTION_ID() GROUP BY event"""
_REQUESTS, _LOG = "innodb_buffer_pool_read_requests", "innodb_os_log_written"
_ASKED = sorted(
    {
        *_LEVELS.values(),
        *_MAYBE.values(),
        *(name for names in _COUNTERS.values() for name in names),
        _REQUESTS,
        _LOG,
    }
)
_NAMES = ", ".join(f"'{name}'" for name in _ASKED)
_STATUS = f"SHOW GLOBAL STATUS WHERE variable_name IN ({_NAMES})"


def read(admin: _engine.Admin) -> ServerReading:
    """Read the server's metrics. Raises ``MeasurementError``."""
    _, rows = admin.query(_STATUS)
    found = {str(name).lower(): float(value or 0) for name, value in rows}
    if missing := set(_LEVELS.values()) - found.keys():
        raise MeasurementError(f"its status has no {', '.join(sorted(missing))}")
    counters = {metric: sum(found.get(name, 0) for name in names) for metric, names in _COUNTERS.items()}
    counters["blocks_hit"] = max(found.get(_REQUESTS, 0) - counters["blocks_read"], 0)
    counters |= {metric: found[name] for metric, name in _MAYBE.items() if name in found}
    counters["wal_mb"] = found.get(_LOG, 0) / _MIB
    return ServerReading({metric: found[name] for metric, name in _LEVELS.items()}, counters)


def look(admin: _engine.Admin, timeout_s: float) -> Mapping[str, float] | None:
    """Count the statements at work by the state of their thread; ``Lock/row`` wait for a lock of InnoDB.

    The state says what a thread does, and not whether it has a processor. Raises ``MeasurementError``, without the
    privilege PROCESS, too.
    """
    _, rows = admin.query(_SESSIONS, answer_timeout_s=timeout_s)
    return {str(event): float(count or 0) for event, count in rows}
