"""How a MariaDB that this tool starts is set up: for an honest measurement, and for its machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nephoscope.systems.machine.capacity import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.systems.cluster.product import SettingValue
    from nephoscope.systems.machine.capacity import Machine

OURS = frozenset(
    {
        # where the server listens and who may come in
        "bind_address",
        "port",
        "socket",
        "skip_networking",
        "skip_name_resolve",
        "skip_grant_tables",
        "init_file",
        "extra_port",
        # where its files are
        "basedir",
        "datadir",
        "log_bin",
        "log_bin_index",
        "log_basename",
        "log_error",
        "pid_file",
        "relay_log",
        "relay_log_index",
        "tmpdir",
        "slave_load_tmpdir",
        "user",
        # who follows whom, and who waits for whom
        "server_id",
        "gtid_domain_id",
        "gtid_strict_mode",
        "log_slave_updates",
        "read_only",
        "skip_slave_start",
        "rpl_semi_sync_master_enabled",
        "rpl_semi_sync_master_timeout",
        "rpl_semi_sync_master_wait_point",
        "rpl_semi_sync_slave_enabled",
    }
)
"""Settings that this tool needs for itself: a study cannot have them."""

_SIZED_BY_THE_MACHINE = ("innodb_buffer_pool_size",)

_MIB = 1 << 20
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SIZE = re.compile(r"(\d+)([KMGTPE]?)", re.IGNORECASE)


def check_settings(settings: Mapping[str, SettingValue]) -> None:
    """Check what can be checked without a server.

    Raises:
        ValueError: a name is none, or is one of :data:`OURS`, or a value cannot be written down.

    """
    for name, value in settings.items():
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not the name of a MariaDB setting: they are written in lower case, with underscores"
            )
        if name in OURS:
            raise ValueError(f"{name} cannot be set: embedded-mariadb sets it itself")
        if not str(value).isprintable():
            raise ValueError(f"{name} has a value with control characters")


def sane_settings(machine: Machine, storage_bytes: int) -> dict[str, SettingValue]:
    """Choose the settings of a server that has this machine for itself, on a file system of this size."""
    return {
        # An acknowledged commit is on the disk, in the engine's log and in the binary log. Any figure without
        # that is another database's figure.
        "innodb_flush_log_at_trx_commit": 1,
        "sync_binlog": 1,
        "innodb_doublewrite": True,
        # Pages are cached once: by the buffer pool, which therefore has half of the memory. Beyond 8 GB little
        # is gained, and we share the machine with the load that we produce.
        "innodb_flush_method": "O_DIRECT",
        "innodb_buffer_pool_size": _whole(_within(machine.memory_bytes / 2, 64 * _MIB, 8 * GIB)),
        # A server that comes back begins with an empty buffer pool, whatever the run before has read.
        "innodb_buffer_pool_dump_at_shutdown": False,
        "innodb_buffer_pool_load_at_startup": False,
        # A large log spreads the writing of pages; the file takes its whole size from the beginning.
        "innodb_log_file_size": _whole(_within(storage_bytes / 100, 64 * _MIB, GIB)),
        # The default suits a disk that turns.
        "innodb_io_capacity": 2000,
        "innodb_io_capacity_max": 4000,
        # Concurrency is what studies vary: a high one must fail by its figures, not by a refusal.
        "max_connections": 500,
        "max_allowed_packet": 64 * _MIB,
        # The binary log as every managed service writes it, since all of them replicate; an hour of it is kept.
        "binlog_format": "ROW",
        "max_binlog_size": 256 * _MIB,
        "binlog_expire_logs_seconds": 3600,
        # What the log has are rows: no function can make replicas differ, and whoever owns a table may have triggers.
        "log_bin_trust_function_creators": True,
        # Costs processor time of every statement, and nothing here reads it.
        "performance_schema": False,
        # The same text and times on every machine.
        "character_set_server": "utf8mb4",
        "default_time_zone": "+00:00",
        "lc_messages": "en_US",
    }


def replication_settings() -> dict[str, SettingValue]:
    """Choose the settings of the nodes of a cluster, beside those that suit the machine."""
    return {
        # A replica whose primary has stood still notices it, and asks again.
        "slave_net_timeout": 10,
        # A replica that applies one transaction after another falls behind a primary that commits them in groups.
        "slave_parallel_threads": 4,
        "slave_parallel_mode": "optimistic",
    }


def semi_sync_settings() -> dict[str, SettingValue]:
    """Choose the settings of nodes of which one replica at least has each commit before the client knows of it."""
    return {
        # Before the commit shows: what nobody else has, no session has seen.
        "rpl_semi_sync_master_wait_point": "AFTER_SYNC",
        # The longest there is: a wait that ends by itself would be a commit that one node has.
        "rpl_semi_sync_master_timeout": 4294967295,
    }


def memory_settings(machine: Machine) -> dict[str, SettingValue]:
    """Choose the settings that follow from the cores and the memory of a machine."""
    sizes = sane_settings(machine, 0)
    return {name: sizes[name] for name in _SIZED_BY_THE_MACHINE}


def configuration(settings: Mapping[str, SettingValue], reach: Mapping[str, SettingValue]) -> str:
    """Write the whole option file of a server; ``reach`` are those of :data:`OURS`."""
    lines = [f"{name} = {_written(value)}" for name, value in (dict(settings) | dict(reach)).items()]
    return "\n".join(
        [
            "# Written by nephoscope at every start; change system.settings instead.",
            "[mariadbd]",
            *lines,
            "",
        ]
    )


def assigned(value: SettingValue | None) -> str:
    """Write a value for ``SET GLOBAL``, which, unlike an option file, knows no units of size."""
    match value:
        case None:
            return "DEFAULT"
        case bool():
            return "ON" if value else "OFF"
        case int() | float():
            return repr(value)
    if size := _SIZE.fullmatch(value):
        return str(int(size[1]) << 10 * " KMGTPE".index(size[2].upper() or " "))
    quoted = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}'"


def _written(value: SettingValue) -> str:
    match value:
        case bool():
            return "ON" if value else "OFF"
        case int() | float():
            return repr(value)
        case _:
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'


def _within(amount: float, least: float, most: float) -> float:
    return min(max(amount, least), most)


def _whole(amount: float) -> int:
    """Round down to whole MiB."""
    return int(amount / _MIB) * _MIB
