"""A node of a PostgreSQL cluster: it streams from the primary through a slot, and comes back by pg_rewind."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import time
from typing import TYPE_CHECKING, Self

from nephoscope.errors import MeasurementError
from nephoscope.systems.cluster.folder import HOST
from nephoscope.systems.cluster.node import COPY_S, LOOK_AGAIN_S, PROMOTE_S, Node
from nephoscope.systems.machine.folders import write_file
from nephoscope.systems.postgres.folder import USER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nephoscope.systems.cluster.product import SettingValue
    from nephoscope.systems.postgres.folder import PostgresFolder
    from nephoscope.systems.postgres.server import PostgresServer

REWIND_S = 600.0

_RELOAD_S = 10.0
_PROMOTED_LOOK_S = 0.002
_CONTROL = struct.Struct("=Q8xI12xQ")
"""The beginning of pg_control: system identifier, versions and state, a time, the place of the last checkpoint."""
_IN_PRODUCTION = 6
_NOT_LESS_THAN_THE_PRIMARY = (
    "max_connections",
    "max_locks_per_transaction",
    "max_prepared_transactions",
    "max_wal_senders",
    "max_worker_processes",
)
"""A replica with less of one of these than its primary does not start."""


class PostgresNode(Node):
    """One postmaster of a cluster. Its name is also that of its replication slot on the primary."""

    ways_back = ("started", "pg_rewind")
    copied_by = "pg_basebackup"
    server: PostgresServer

    def __init__(self, name: str, server: PostgresServer, delay_s: float = 0.0) -> None:
        """Take a server that has not been started."""
        super().__init__(name, server, delay_s)
        self._credentials = server.folder.path / "replication.pgpass"

    # --- what it is ----------------------------------------------------------------------------------------------

    @property
    def is_replica(self) -> bool:
        """Whether its server will follow another one when it starts."""
        return self._signal_file(self.server.folder.data).exists()

    @property
    def timeline(self) -> int:
        """The number of promotions behind its data, counted from 1; 0 where it has no data that took writes."""
        if not self.has_data or self.is_replica:
            return 0
        histories = (self.server.folder.data / "pg_wal").glob("*.history")
        return max((int(file.stem, 16) for file in histories), default=1)

    def is_copy_of(self, other: Self) -> bool:
        """Whether both come from one initdb."""
        try:
            return self.has_data and self._control()[0] == other._control()[0]
        except (OSError, struct.error):  # damaged: no copy of anything
            return False

    def _control(self) -> tuple[int, ...]:
        file = self.server.folder.data / "global" / "pg_control"
        with file.open("rb") as opened:
            return _CONTROL.unpack(opened.read(_CONTROL.size))

    @staticmethod
    def _signal_file(data: Path) -> Path:
        return data / "standby.signal"

    def reload(self, settings: Mapping[str, SettingValue]) -> None:
        """Change settings that need no restart; returns when new sessions have them."""
        asked = "SELECT pg_conf_load_time()"
        before = self.server.psql(asked)
        self.server.configure(settings)
        deadline = time.monotonic() + _RELOAD_S
        while self.server.psql(asked) == before:
            if time.monotonic() > deadline:
                raise MeasurementError(f"{self.name} has not read its settings within {_RELOAD_S:.0f} s")
            time.sleep(LOOK_AGAIN_S)

    # --- to follow -----------------------------------------------------------------------------------------------

    def follow(self, primary: Self) -> None:
        """Take the log of another server from now on; what runs looks for it at once."""
        self._write_credentials(primary.server.folder)
        words = {
            "host": HOST,
            "port": str(primary.server.port),
            "user": USER,
            "passfile": str(self._credentials),
            "application_name": self.name,
        }
        self.server.configure({"primary_conninfo": _conninfo(words), "primary_slot_name": self.name})

    def _copy(self, primary: Self, place: Path) -> None:
        """Take a base backup; the slot must exist there."""
        server = self.server
        self._write_credentials(primary.server.folder)
        place.mkdir(mode=0o700)
        os.chown(place, *self.owner)
        command: list[str | Path] = [
            *(server.install.program("pg_basebackup"), "-h", HOST, "-p", str(primary.server.port)),
            *("-U", USER, "-w", "-D", place, "-X", "stream", "-c", "fast", "-S", self.name),
        ]
        environment = {"PGPASSFILE": str(self._credentials)}
        with server.folder.opened_log() as output:
            failed = f"pg_basebackup could not make a copy in {server.folder.path}"
            server.run_program(command, output, COPY_S, failed, environment)
        write_file(self._signal_file(place), "", private=True, owner=self.owner)

    def _go_back(self, way: str, primary: Self) -> bool:
        if way != "pg_rewind":
            return super()._go_back(way, primary)
        self._rewind_to(primary)
        return True

    def _rewind_to(self, primary: Self) -> None:
        """Take back what this node, once the primary, has and the new primary has not; it must not run.

        Raises:
            MeasurementError: pg_rewind says why it cannot.

        """
        folder, server = self.server.folder, self.server
        folder.take(server.account)  # given back where the server did not start
        self._write_credentials(primary.server.folder)
        words = {"host": HOST, "port": str(primary.server.port), "user": USER, "dbname": "postgres"}
        command: list[str | Path] = [
            *(server.install.program("pg_rewind"), "-D", folder.data, f"--source-server={_conninfo(words)}"),
            f"--config-file={folder.configuration}",
        ]
        environment = {"PGPASSFILE": str(self._credentials), **server.environment()}
        # Neither a whole database nor a replica from here to the end: whoever finds it makes a copy anew.
        self._rejoining.touch()
        with folder.opened_log() as output:
            failed = f"pg_rewind could not bring {folder.path} onto the way of the new primary"
            server.run_program(command, output, REWIND_S, failed, environment)
        write_file(self._signal_file(folder.data), "", private=True, owner=self.owner)
        self._rejoining.unlink()

    def goal(self) -> str:
        """Tell where the log of this primary is, and its timeline."""
        goal, file = self.server.psql(
            "SELECT pg_current_wal_flush_lsn(), pg_walfile_name(pg_current_wal_insert_lsn())"
        ).split("|")
        return f"{goal} {int(file[:8], 16)}"

    def progress(self, goal: str, *, shown: bool) -> tuple[bool, bool]:
        """Ask the receiver of this replica, and where it is in the log."""
        place, timeline = goal.split()
        # One that has more of an old primary's log than the new one asks for its own course again and again, and each
        # attempt says for a moment that it streams.
        of_primary = f"status = 'streaming' AND received_tli = {timeline}"
        reached = "pg_last_wal_replay_lsn()" if shown else "pg_last_wal_receive_lsn()"
        streams, there = self.server.psql(
            f"SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE {of_primary}),"
            f" coalesce({reached} >= '{place}', false)"
        ).split("|")
        return streams == "t", there == "t"

    def received(self) -> int:
        """Tell how many bytes of the log have come to this replica."""
        # One that has had no stream since its start knows what it has replayed.
        sql = "SELECT greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn"
        return int(self.server.psql(sql) or 0)

    def has_all_of(self, old: Self) -> bool:
        """Compare with the old primary's last checkpoint: after an orderly end that is the log's last entry."""
        return self.received() > old._control()[2]

    def _begin_to_follow(self, primary: Self) -> None:
        del primary
        # Slots of the time when it was the primary would keep its log for ever.
        self.server.psql(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"
        )

    def _write_credentials(self, primary: PostgresFolder) -> None:
        """Write the password where the server's user, whom the folder's other files do not trust, can read it."""
        text = primary.credentials(primary.password)
        write_file(self._credentials, text, private=True, owner=self.owner)

    # --- to lead -------------------------------------------------------------------------------------------------

    def _promote(self) -> None:
        data = self.server.folder.data
        write_file(data / "promote", "", private=True, owner=self.owner)
        os.kill(self.server.pid, signal.SIGUSR1)
        deadline = time.monotonic() + PROMOTE_S
        # The server writes its state there at the very moment from which on it takes writes.
        while self._control()[1] != _IN_PRODUCTION:
            if not self.server.is_running or time.monotonic() > deadline:
                with contextlib.suppress(OSError):
                    (data / "promote").unlink()
                raise self.server.folder.failure(
                    f"{self.name} did not become the primary within {PROMOTE_S:.0f} s"
                )
            time.sleep(_PROMOTED_LOOK_S)
        # Only whoever starts it anew reads these.
        self.server.configure({"primary_conninfo": "", "primary_slot_name": ""})

    def keep_log_for(self, names: Sequence[str]) -> None:
        """Have a slot for each of these replicas, and no others."""
        wanted = ", ".join(f"('{name}')" for name in names) or "(NULL::text)"
        # One that is active belongs to a replica which is just about to go.
        self.server.psql(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            rf" WHERE slot_name ~ '^node\d+$' AND NOT active AND NOT EXISTS"
            f" (SELECT FROM (VALUES {wanted}) AS wanted(node) WHERE node = slot_name);"
            f" SELECT pg_create_physical_replication_slot(node, true) FROM (VALUES {wanted}) AS wanted(node)"
            " WHERE node IS NOT NULL AND NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = node)"
        )

    def wait_for(self, names: Sequence[str]) -> None:
        """Have commits wait until each of these replicas shows them."""
        quoted = [f'"{name}"' for name in names]
        wanted = f"FIRST {len(quoted)} ({', '.join(quoted)})" if quoted else ""
        if self.server.settings.get("synchronous_standby_names", "") != wanted:
            self.server.configure({"synchronous_standby_names": wanted})

    def restarts_last(self, settings: Mapping[str, SettingValue]) -> bool:
        """Tell it so that at no time a replica has less than the primary of what it needs as much of.

        Raises:
            MeasurementError: there is no such order.

        """
        names = [name for name in _NOT_LESS_THAN_THE_PRIMARY if name in settings]
        before = {name: int(self.server.psql(f"SHOW {name}")) for name in names}
        changes = {name: int(settings[name]) - value for name, value in before.items()}
        falls = {change < 0 for change in changes.values() if change}
        if len(falls) > 1:
            raise MeasurementError(
                f"{', '.join(names)} cannot rise and fall at once: set them one after the other"
            )
        return falls != {True}

    def after_restart(self) -> None:
        """Write a checkpoint: a replica may have less of something only if its log begins after the primary had."""
        self.server.psql("CHECKPOINT")


def _conninfo(words: dict[str, str]) -> str:
    """Write a connection string as libpq reads it."""
    quoted = {name: value.replace("\\", "\\\\").replace("'", "\\'") for name, value in words.items()}
    return " ".join(f"{name}='{value}'" for name, value in quoted.items())
