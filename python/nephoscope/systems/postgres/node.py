"""A node of a PostgreSQL cluster: a server that takes writes, or follows the one that does."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from nephoscope.errors import MeasurementError, NephoscopeError
from nephoscope.systems.machine import processes
from nephoscope.systems.machine.folders import write_file
from nephoscope.systems.postgres.folder import HOST, USER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nephoscope.systems.postgres.folder import PostgresFolder
    from nephoscope.systems.postgres.server import PostgresServer
    from nephoscope.systems.postgres.settings import SettingValue

_log = logging.getLogger(__name__)

COPY_S = 1800.0
"""The longest that a copy of a database may take."""
REWIND_S = 600.0
PROMOTE_S = 60.0
"""A replica first replays what it has received."""
FOLLOW_S = 15.0
"""So long may a replica go without a stream from the primary; it asks for one ten times a second."""
CATCH_UP_S = 300.0
"""The longest that a replica which streams may need until it has what the primary had at the beginning."""

_RELOAD_S = 10.0
_LOOK_AGAIN_S = 0.02
_PROMOTED_LOOK_S = 0.002
_CONTROL = struct.Struct("=Q8xI12xQ")
"""The beginning of pg_control: system identifier, versions and state, a time, the place of the last checkpoint."""
_IN_PRODUCTION = 6


@dataclass(frozen=True)
class Began:
    """When an action touched the system first, and what is worth telling of it."""

    node: str | None
    at_ns: int
    detail: Mapping[str, Any]


class Source(Protocol):
    """What is followed."""

    @property
    def server(self) -> PostgresServer:
        """Its server, which runs."""


class LostTheWayError(MeasurementError):
    """A replica does not follow: its log and the primary's have gone different ways, or a part is missing."""


class Node:
    """One server of a cluster. Its name is also that of its replication slot on the primary."""

    def __init__(self, name: str, server: PostgresServer) -> None:
        """Take a server that has not been started."""
        self.name = name
        self.server = server
        self.is_paused = False
        self._credentials = server.folder.path / "replication.pgpass"
        self._rejoining = server.folder.path / "rejoining"

    @property
    def is_running(self) -> bool:
        """Whether it runs and is not paused."""
        return not self.is_paused and self.server.is_running

    @property
    def address(self) -> str | None:
        """``127.0.0.1:port``, also while it is paused; None where it does not run."""
        return f"{HOST}:{self.server.port}" if self.server.is_running else None

    def facts(self) -> dict[str, object]:
        """Tell where it is."""
        return {"folder": str(self.server.folder.path), "port": self.server.port}

    # --- what it is ----------------------------------------------------------------------------------------------

    @property
    def has_data(self) -> bool:
        """Whether there is a whole database in its folder."""
        return (self.server.folder.data / "PG_VERSION").exists() and not self._rejoining.exists()

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

    def is_copy_of(self, other: Node) -> bool:
        """Whether both come from one initdb."""
        try:
            return self.has_data and self._control()[0] == other._control()[0]
        except (OSError, struct.error):  # damaged: no copy of anything
            return False

    def last_checkpoint(self) -> int:
        """Tell where its last checkpoint is in the log; after an orderly end that is the log's last entry."""
        return self._control()[2]

    def _control(self) -> tuple[int, ...]:
        file = self.server.folder.data / "global" / "pg_control"
        with file.open("rb") as opened:
            return _CONTROL.unpack(opened.read(_CONTROL.size))

    @staticmethod
    def _signal_file(data: Path) -> Path:
        return data / "standby.signal"

    # --- what is done to it --------------------------------------------------------------------------------------

    def kill(self) -> None:
        """End it at once, paused or not; returns when it has gone."""
        self.server.kill()
        self.is_paused = False

    def halt(self) -> None:
        """End it in good order; its folder stays ours."""
        self.resume()
        self.server.halt()

    def stop(self) -> None:
        """End it in good order and give its folder back."""
        self.resume()
        self.server.stop()

    def pause(self) -> None:
        """Let all its processes stand still."""
        processes.pause(self.server.pid)
        self.is_paused = True

    def resume(self) -> None:
        """Let its processes go on; harmless where they do."""
        if self.is_paused:
            processes.resume(self.server.pid)
            self.is_paused = False

    def reload(self, settings: Mapping[str, SettingValue]) -> None:
        """Change settings that need no restart; returns when new sessions have them."""
        asked = "SELECT pg_conf_load_time()"
        before = self.server.psql(asked)
        self.server.configure(settings)
        deadline = time.monotonic() + _RELOAD_S
        while self.server.psql(asked) == before:
            if time.monotonic() > deadline:
                raise MeasurementError(f"{self.name} has not read its settings within {_RELOAD_S:.0f} s")
            time.sleep(_LOOK_AGAIN_S)

    # --- to follow -----------------------------------------------------------------------------------------------

    def follow(self, primary: Source) -> None:
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

    def copy_from(self, primary: Source) -> None:
        """Take a copy of a running server, in place of whatever there is; the slot must exist there."""
        folder, server = self.server.folder, self.server
        folder.take(server.account)  # given back where the server did not start
        self._write_credentials(primary.server.folder)
        owner = (server.account.uid, server.account.gid)
        shutil.rmtree(folder.unfinished, ignore_errors=True)
        folder.unfinished.mkdir(mode=0o700)
        os.chown(folder.unfinished, *owner)
        command: list[str | Path] = [
            *(server.install.program("pg_basebackup"), "-h", HOST, "-p", str(primary.server.port)),
            *("-U", USER, "-w", "-D", folder.unfinished, "-X", "stream", "-c", "fast", "-S", self.name),
        ]
        environment = {"PGPASSFILE": str(self._credentials)}
        with folder.opened_log() as output:
            failed = f"pg_basebackup could not make a copy in {folder.path}"
            server.run_program(command, output, COPY_S, failed, environment)
        write_file(self._signal_file(folder.unfinished), "", private=True, owner=owner)
        shutil.rmtree(folder.data, ignore_errors=True)
        folder.unfinished.rename(folder.data)
        self._rejoining.unlink(missing_ok=True)

    def rewind_to(self, primary: Source) -> None:
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
        environment = {"PGPASSFILE": str(self._credentials), **server.past_stale_lock()}
        # Neither a whole database nor a replica from here to the end: whoever finds it makes a copy anew.
        self._rejoining.touch()
        with folder.opened_log() as output:
            failed = f"pg_rewind could not bring {folder.path} onto the way of the new primary"
            server.run_program(command, output, REWIND_S, failed, environment)
        owner = (server.account.uid, server.account.gid)
        write_file(self._signal_file(folder.data), "", private=True, owner=owner)
        self._rejoining.unlink()

    def catch_up(self, primary: Source, delay_s: float = 0.0, *, shown: bool = True) -> None:
        """Wait until this replica shows to readers, or has at least received, what the primary has now.

        Raises:
            LostTheWayError: it gets no stream from the primary.
            MeasurementError: it gets one, and is not there in time.

        """
        goal, file = primary.server.psql(
            "SELECT pg_current_wal_flush_lsn(), pg_walfile_name(pg_current_wal_insert_lsn())"
        ).split("|")
        # One that has more of an old primary's log than the new one asks for its own course again and again, and each
        # attempt says for a moment that it streams.
        of_primary = f"status = 'streaming' AND received_tli = {int(file[:8], 16)}"
        place = "pg_last_wal_replay_lsn()" if shown else "pg_last_wal_receive_lsn()"
        began = streamed = time.monotonic()
        while True:
            streams, there = self.server.psql(
                f"SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE {of_primary}),"
                f" coalesce({place} >= '{goal}', false)"
            ).split("|")
            if (streams, there) == ("t", "t"):
                return
            now = time.monotonic()
            streamed = now if streams == "t" else streamed
            if now - streamed > FOLLOW_S:
                raise LostTheWayError(
                    str(self.server.folder.failure(f"{self.name} has had no stream for {FOLLOW_S:.0f} s"))
                )
            if now - began > CATCH_UP_S + delay_s:
                raise MeasurementError(
                    f"{self.name} has not caught up with the primary within {CATCH_UP_S + delay_s:.0f} s"
                )
            time.sleep(_LOOK_AGAIN_S)

    def received(self) -> int:
        """Tell how many bytes of the log have come to this replica."""
        # One that has had no stream since its start knows what it has replayed.
        sql = "SELECT greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn"
        return int(self.server.psql(sql) or 0)

    def join(self, primary: Node, delay_s: float = 0.0) -> str:
        """Make this node, which does not run, a replica that serves, whatever is in its folder.

        Returns:
            How: ``started`` where its data fitted, ``pg_rewind`` or ``pg_basebackup``.

        Raises:
            NephoscopeError: it cannot be made one.

        """
        self.server.folder.take(self.server.account)
        self.follow(primary)
        for way in ("started", "pg_rewind"):
            if not self.is_copy_of(primary) or (way == "started" and not self.is_replica):
                continue
            try:
                if way == "pg_rewind":
                    self.rewind_to(primary)
                self._start_behind(primary, delay_s)
            except NephoscopeError as error:
                _log.info("%s is not back by the way %r, and tries another: %s", self.name, way, error)
                self.server.halt()
            else:
                return way
        self.copy_from(primary)
        self._start_behind(primary, delay_s)
        return "pg_basebackup"

    def _start_behind(self, primary: Source, delay_s: float) -> None:
        self.server.folder.keep_password(primary.server.folder.password)
        self.server.start()
        # Slots of the time when it was the primary would keep its log for ever.
        self.server.psql(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"
        )
        self.catch_up(primary, delay_s)

    def _write_credentials(self, primary: PostgresFolder) -> None:
        """Write the password where the server's user, whom the folder's other files do not trust, can read it."""
        owner = (self.server.account.uid, self.server.account.gid)
        text = primary.credentials(primary.password)
        write_file(self._credentials, text, private=True, owner=owner)

    # --- to lead -------------------------------------------------------------------------------------------------

    def promote(self) -> None:
        """Make this running replica take writes; returns when it does.

        Raises:
            MeasurementError: it does not in time; it has been killed then, lest it does so later.

        """
        try:
            self._promote()
        except BaseException:
            self.kill()
            raise

    def _promote(self) -> None:
        data = self.server.folder.data
        owner = (self.server.account.uid, self.server.account.gid)
        write_file(data / "promote", "", private=True, owner=owner)
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

    def keep_slots(self, names: list[str]) -> None:
        """See that this primary keeps its log for these replicas, and for no others."""
        wanted = ", ".join(f"('{name}')" for name in names) or "(NULL::text)"
        # One that is active belongs to a replica which is just about to go.
        self.server.psql(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            rf" WHERE slot_name ~ '^node\d+$' AND NOT active AND NOT EXISTS"
            f" (SELECT FROM (VALUES {wanted}) AS wanted(node) WHERE node = slot_name);"
            f" SELECT pg_create_physical_replication_slot(node, true) FROM (VALUES {wanted}) AS wanted(node)"
            " WHERE node IS NOT NULL AND NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = node)"
        )


def bring_home(home: Node, others: list[Node]) -> None:
    """See that the database which took the last writes is in the folder of ``home``; none of the nodes runs.

    It may be elsewhere after a run in which another node was promoted.
    """
    best = max([home, *others], key=lambda node: node.timeline)
    if best.timeline <= home.timeline:
        return
    displaced = home.server.folder.path / "data.displaced"
    shutil.rmtree(displaced, ignore_errors=True)
    if home.server.folder.data.exists():
        home.server.folder.data.rename(displaced)
    best.server.folder.data.rename(home.server.folder.data)
    home._rejoining.unlink(missing_ok=True)  # noqa: SLF001 - a function of this class
    if displaced.exists():
        displaced.rename(best.server.folder.data)


def _conninfo(words: dict[str, str]) -> str:
    """Write a connection string as libpq reads it."""
    quoted = {name: value.replace("\\", "\\\\").replace("'", "\\'") for name, value in words.items()}
    return " ".join(f"{name}='{value}'" for name, value in quoted.items())
