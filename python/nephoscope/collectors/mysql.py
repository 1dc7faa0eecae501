"""Metrics of a MySQL or MariaDB server, by its status variables ("Server Status Variables" in either's manual)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.collectors.server import ServerReading
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
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
_REQUESTS, _LOG = "innodb_buffer_pool_read_requests", "innodb_os_log_written"
_ASKED = sorted(
    {*_LEVELS.values(), *(name for names in _COUNTERS.values() for name in names), _REQUESTS, _LOG}
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
    counters["wal_mb"] = found.get(_LOG, 0) / _MIB
    return ServerReading({metric: found[name] for metric, name in _LEVELS.items()}, counters)
