"""How a PostgreSQL that this tool starts is set up: for an honest measurement, and for its machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nephoscope.systems.machine.capacity import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nephoscope.systems.cluster.product import SettingValue
    from nephoscope.systems.machine.capacity import Machine

OURS = frozenset(
    {
        # where the server listens and who may come in
        "listen_addresses",
        "port",
        "unix_socket_directories",
        "unix_socket_group",
        "unix_socket_permissions",
        "hba_file",
        "ident_file",
        # where its files are
        "config_file",
        "data_directory",
        "external_pid_file",
        "include",
        "include_dir",
        "include_if_exists",
        # who follows whom, and who waits for whom
        "primary_conninfo",
        "primary_slot_name",
        "synchronous_standby_names",
        # how its log is read after a failed start
        "logging_collector",
        "log_destination",
        "lc_messages",
    }
)
"""Settings that this tool needs for itself: a study cannot have them."""

_SIZED_BY_THE_MACHINE = (
    "shared_buffers",
    "effective_cache_size",
    "maintenance_work_mem",
    "max_parallel_workers",
)

_MIB = 1 << 20
_NAME = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?")


def check_settings(settings: Mapping[str, SettingValue]) -> None:
    """Check what can be checked without a server.

    Raises:
        ValueError: a name is none, or is one of :data:`OURS`, or a value cannot be written down.

    """
    for name, value in settings.items():
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not the name of a PostgreSQL setting: they are written in lower case"
            )
        if name in OURS:
            raise ValueError(f"{name} cannot be set: embedded-postgres sets it itself")
        if not str(value).isprintable():
            raise ValueError(f"{name} has a value with control characters")


def sane_settings(machine: Machine, storage_bytes: int) -> dict[str, SettingValue]:
    """Choose the settings of a server that has this machine for itself, on a file system of this size."""
    cores = max(1, int(machine.cores))
    return {
        # An acknowledged commit is on the disk. Any figure without that is another database's figure.
        "fsync": True,
        "synchronous_commit": "on",
        "full_page_writes": True,
        # A quarter, as the manual advises: the system's own cache holds the rest. Beyond 4 GB little is
        # gained, and we share the machine with the load that we produce.
        "shared_buffers": _mb(_within(machine.memory_bytes / 4, 16 * _MIB, 4 * GIB)),
        # What both caches can hold together: it only guides the planner towards indexes.
        "effective_cache_size": _mb(max(machine.memory_bytes * 0.6, 32 * _MIB)),
        # Index builds while data is loaded.
        "maintenance_work_mem": _mb(_within(machine.memory_bytes / 16, 64 * _MIB, GIB)),
        # Concurrency is what studies vary: a high one must fail by its figures, not by a refusal.
        "max_connections": 500,
        # The default of 8 worker processes suits 8 cores.
        "max_parallel_workers": cores,
        "max_worker_processes": max(8, cores),
        # A checkpoint falls due by time, not by how fast this system writes: else the faster of two is
        # disturbed more often. A small file system sets a bound; 1 GB is what the default allows.
        "max_wal_size": _mb(_within(storage_bytes / 10, GIB, 8 * GIB)),
        # Files of the log are used again and not made anew in the middle of a measurement.
        "min_wal_size": _mb(_within(storage_bytes / 40, 80 * _MIB, 2 * GIB)),
        "checkpoint_timeout": "15min",
        "checkpoint_completion_target": 0.9,
        # So that a stall in a time series can be told from a checkpoint.
        "log_checkpoints": True,
        # What every managed service writes, since all of them replicate.
        "wal_level": "replica",
        # The default; it trades processor time against volume, and a figure should not hide such a trade.
        "wal_compression": False,
        # Part of the price of PostgreSQL's way of storing rows: a run without it is too good to be true.
        "autovacuum": True,
        # Compiles for some milliseconds once a plan's estimated cost passes a limit: an outlier out of
        # nowhere in short transactions. The packaged build is without it anyway.
        "jit": False,
        # Reads at random cost nearly the same as in sequence from memory and from SSD.
        "random_page_cost": 1.1,
        # The same times and order of text on every machine; messages that we can read.
        "timezone": "UTC",
        "log_timezone": "UTC",
        "datestyle": "iso, mdy",
        "default_text_search_config": "pg_catalog.english",
        "lc_messages": "C",
        "log_destination": "stderr",
        "logging_collector": False,
    }


def replication_settings(max_wal_size: SettingValue) -> dict[str, SettingValue]:
    """Choose the settings of the nodes of a cluster, beside those that suit the machine."""
    return {
        "max_wal_senders": 40,
        "max_replication_slots": 40,
        "hot_standby": True,
        # So that pg_rewind can bring an old primary back.
        "wal_log_hints": True,
        # With the default of 5 s a promotion takes that long: a replica looks for its primary in vain first.
        "wal_retrieve_retry_interval": "100ms",
        # A replica that stays away for longer is made anew, and does not fill the disk of the primary.
        "max_slot_wal_keep_size": max_wal_size,
    }


_FIRST_WITH_IO_METHOD = 18


def recording_settings(version: int) -> dict[str, SettingValue]:
    """Choose the settings of a server that records its I/O."""
    return {"io_method": "sync"} if version >= _FIRST_WITH_IO_METHOD else {}


def kept_log_settings() -> dict[str, SettingValue]:
    """Choose the settings of a server whose write-ahead log is read after it has ended."""
    return {
        # More than any disk has. Not an archive: its command would read and write beside the server.
        "wal_keep_size": "1000TB",
        # Images protect pages from a write that a crash has cut in two; a storage tier that has the log has no use for
        # them. Without them a crash of the machine may leave such a page.
        "full_page_writes": False,
        # The calls that end a flush are seen as such. With open_datasync there would be none.
        "wal_sync_method": "fdatasync",
    }


def memory_settings(machine: Machine) -> dict[str, SettingValue]:
    """Choose the settings that follow from the cores and the memory of a machine."""
    sizes = sane_settings(machine, 0)
    return {name: sizes[name] for name in _SIZED_BY_THE_MACHINE}


def configuration(settings: Mapping[str, SettingValue], port: int, access: Path) -> str:
    """Write the whole configuration of a server on a loopback port; ``access`` is its pg_hba.conf."""
    reach: dict[str, SettingValue] = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        # No Unix socket at all: neither a file outside the data folder nor its limit of 107 characters.
        "unix_socket_directories": "",
        "hba_file": str(access),
    }
    lines = [f"{name} = {_written(value)}" for name, value in (dict(settings) | reach).items()]
    return "\n".join(["# Written by nephoscope at every start; change system.settings instead.", *lines, ""])


ACCESS = """\
# Written by nephoscope at every start.
# TYPE  DATABASE     USER      ADDRESS       METHOD
host    all          all       127.0.0.1/32  scram-sha-256
host    replication  postgres  127.0.0.1/32  scram-sha-256
"""
"""Who may come in: from this machine, with a password."""


def _written(value: SettingValue) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case int() | float():
            return repr(value)
        case _:
            doubled = value.replace("\\", "\\\\").replace("'", "''")
            return f"'{doubled}'"


def _within(amount: float, least: float, most: float) -> float:
    return min(max(amount, least), most)


def _mb(amount: float) -> str:
    return f"{int(amount / _MIB)}MB"
