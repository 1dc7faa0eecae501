"""A node of a MariaDB cluster: it follows by GTID, and comes back where its transactions are the primary's."""

from __future__ import annotations

import re
import secrets
import time
from typing import TYPE_CHECKING, Self

from nephoscope.systems.cluster.folder import HOST
from nephoscope.systems.cluster.node import COPY_S, LOOK_AGAIN_S, PROMOTE_S, LostTheWayError, Node
from nephoscope.systems.machine.folders import write_file
from nephoscope.systems.mariadb.folder import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nephoscope.systems.mariadb.folder import MariadbFolder
    from nephoscope.systems.mariadb.server import MariadbServer

_LINEAGE = "lineage"
"""A file in the data: which empty database it comes from, and the number of promotions since."""
_COPY = "copy.sql"
"""A file in the data with the contents of the primary; while it is there they are not, or not all, in the tables."""
_NOT_IN_THE_LOG = "1236"
_LOAD = 'exec "$1" "$2" --protocol=tcp -h "$3" -P "$4" -u "$5" --init-command="SET SESSION sql_log_bin = 0" < "$6"'


class MariadbNode(Node):
    """One mariadbd of a cluster."""

    copied_by = "mariadb-dump"
    server: MariadbServer

    def __init__(self, name: str, server: MariadbServer, delay_s: float = 0.0) -> None:
        """Take a server that has not been started; ``delay_s`` is whole."""
        super().__init__(name, server, delay_s)
        self._credentials = server.folder.path / "replication.cnf"
        self._is_synchronous = "rpl_semi_sync_master_wait_point" in server.settings

    # --- what it is ----------------------------------------------------------------------------------------------

    @property
    def has_data(self) -> bool:
        """Whether there is a whole database in its folder."""
        return super().has_data and not (self.server.folder.data / _COPY).exists()

    @property
    def is_replica(self) -> bool:
        """Whether its server knows whom to follow when it starts."""
        return (self.server.folder.data / "master.info").exists()

    @property
    def timeline(self) -> int:
        """The number of promotions behind its data, counted from 1; 0 where it has no data that took writes."""
        return 0 if not self.has_data or self.is_replica else self._lineage()[1]

    def is_copy_of(self, other: Self) -> bool:
        """Whether both come from one empty database."""
        return self.has_data and self._lineage()[0] == other._lineage()[0] != ""

    def _lineage(self) -> tuple[str, int]:
        try:
            origin, generation = (self.server.folder.data / _LINEAGE).read_text().split()
            return origin, int(generation)
        except (OSError, ValueError):  # damaged: no copy of anything
            return "", 1

    def _keep_lineage(self, origin: str, generation: int) -> None:
        file = self.server.folder.data / _LINEAGE
        write_file(file, f"{origin} {generation}\n", private=True, owner=self.owner)

    def start(self) -> None:
        """Start its server, in the role that its data has."""
        if not self.is_replica and self.server.settings.get("read_only"):
            self.server.configure({"read_only": False, **self._semi_sync(confirms=False)})
        self.server.start()
        if self.is_replica:
            self.server.ask("START SLAVE")
        elif not self._lineage()[0]:
            self._keep_lineage(secrets.token_hex(8), 1)

    # --- to follow -----------------------------------------------------------------------------------------------

    def follow(self, primary: Self) -> None:
        """Take the log of another server from now on; what runs looks for it at once."""
        self.server.configure({"read_only": True, **self._semi_sync(confirms=True)})
        if self.is_running:
            self._change_primary(primary)

    def _semi_sync(self, *, confirms: bool) -> Mapping[str, bool]:
        """Choose whether a node confirms what it receives; no wait for replicas is left from an earlier role.

        A replica confirms. A primary does not: after a crash, a node that confirms rolls back what its engine had not
        committed. A replica receives those transactions again; a primary would lack what its replicas have.
        """
        if not self._is_synchronous:
            return {}
        return {"rpl_semi_sync_slave_enabled": confirms, "rpl_semi_sync_master_enabled": False}

    def _change_primary(self, primary: Self) -> None:
        server, leader = self.server, primary.server
        words = {
            "MASTER_HOST": f"'{HOST}'",
            "MASTER_PORT": str(leader.port),
            "MASTER_USER": f"'{ROOT}'",
            "MASTER_PASSWORD": f"'{leader.folder.password.get_secret_value()}'",
            "MASTER_USE_GTID": "slave_pos",
            "MASTER_CONNECT_RETRY": "1",
            "MASTER_DELAY": str(round(self.delay_s)),
        }
        script = ["STOP SLAVE;"]
        if not self.is_replica:  # it took writes before, or is a copy
            script += ["SET GLOBAL gtid_slave_pos = @@GLOBAL.gtid_current_pos;"]
        script += [
            f"CHANGE MASTER TO {', '.join(f'{name} = {word}' for name, word in words.items())};",
            "START SLAVE;",
        ]
        server.ask("\n".join(script))
        origin, generation = primary._lineage()
        self._keep_lineage(origin, generation)

    def _copy(self, primary: Self, place: Path) -> None:
        """Make an empty database, and beside it a dump of one moment of the primary, which goes on."""
        server, folder = self.server, self.server.folder
        self._write_credentials(primary.server.folder)
        dump = place / _COPY
        with folder.opened_log() as output:
            server.initialise(place, primary.server.folder.password, output)
            write_file(dump, "", private=True, owner=self.owner)
            command: list[str | Path] = [
                *(server.install.program("mariadb-dump"), f"--defaults-file={self._credentials}"),
                *("--protocol=tcp", "-h", HOST, "-P", str(primary.server.port), "-u", ROOT),
                *("--single-transaction", "--master-data=1", "--gtid", "--quick", "--hex-blob"),
                *("--routines", "--events", "--triggers", "--system=users", "--insert-ignore"),
                *(f"--result-file={dump}", "--databases", *self._databases(primary)),
            ]
            failed = f"mariadb-dump could not make a copy in {folder.path}"
            server.run_program(command, output, COPY_S, failed)

    @staticmethod
    def _databases(primary: MariadbNode) -> list[str]:
        own = "'information_schema', 'performance_schema', 'mysql', 'sys'"
        return primary.server.ask(
            f"SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN ({own})"
        ).splitlines()

    def _go_back(self, way: str, primary: Self) -> bool:
        del primary
        return way == "started"  # an old primary, too: whether it has more than the new one shows

    def _begin_to_follow(self, primary: Self) -> None:
        if (self.server.folder.data / _COPY).exists():
            self._load(self.server.folder.data / _COPY)
        self._change_primary(primary)

    def _load(self, dump: Path) -> None:
        """Take in the copy; the first transaction of the primary that it has not is the first to be followed."""
        server = self.server
        # What a log would tell of the copy others know by other numbers.
        server.ask("SET GLOBAL read_only = OFF; RESET MASTER;")
        command = ("/bin/sh", "-c", _LOAD, "sh", server.install.program("mariadb"))
        where = (f"--defaults-file={self._credentials}", HOST, str(server.port), ROOT, dump)
        with server.folder.opened_log() as output:
            failed = f"mariadb could not take in the copy in {server.folder.path}"
            server.run_program((*command, *where), output, COPY_S, failed)
        # Those who follow this node one day may begin where it has begun.
        position = server.ask("SELECT @@GLOBAL.gtid_slave_pos")
        server.ask(f"SET GLOBAL gtid_binlog_state = '{position}'; SET GLOBAL read_only = ON;")
        dump.unlink()

    def _write_credentials(self, primary: MariadbFolder) -> None:
        """Write the password where the server's user, whom the folder's other files do not trust, can read it."""
        text = primary.credentials(primary.password)
        write_file(self._credentials, text, private=True, owner=self.owner)

    def goal(self) -> str:
        """Tell the last transaction of this primary, and before it the last of each server in its log."""
        state, position = self.server.ask(
            "SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_current_pos"
        ).split("\t")
        return f"{self.server.server_id};{state};{position}"

    def progress(self, goal: str, *, shown: bool) -> tuple[bool, bool]:
        """Ask the threads of this replica.

        Raises:
            LostTheWayError: it has transactions that the primary has not, or needs some that the primary has no more.

        """
        leader, state, position = goal.split(";")
        status = self._status()
        received = _last(status.get("Gtid_IO_Pos", ""), status.get("applied", ""))
        if status.get("Last_IO_Errno") == _NOT_IN_THE_LOG or _is_beyond(received, state, leader):
            raise LostTheWayError(
                f"{self.name} is at {received}, and cannot go on from there with the log of the primary: "
                f"{status.get('Last_IO_Error') or 'it has more than that'}"
            )
        if status.get("Last_SQL_Errno", "0") != "0":
            raise LostTheWayError(f"{self.name} cannot apply the log: {status.get('Last_SQL_Error')}")
        threads = (status.get("Slave_IO_Running"), status.get("Slave_SQL_Running"))
        there = _number(status["applied"] if shown else received) >= _number(position)
        return threads == ("Yes", "Yes"), there

    def _status(self) -> dict[str, str]:
        """Ask for the state of the threads; ``applied`` is the last transaction that readers see."""
        answer = self.server.ask(
            "SHOW SLAVE STATUS\\G\nSELECT @@GLOBAL.gtid_slave_pos AS applied\\G", named=True
        )
        status = dict(re.findall(r"^\s*(\w+):[ ]?(.*)$", answer, re.MULTILINE))
        status.setdefault("applied", "")
        return status

    def received(self) -> int:
        """Tell the number of the last transaction that has come to this replica."""
        status = self._status()
        return _number(_last(status.get("Gtid_IO_Pos", ""), status["applied"]))

    def end_for(self, new: Self) -> None:
        """End in good order, with all that has been committed at the new primary.

        A server that ends does not wait for its replicas: writes end before it does.
        """
        try:
            self.server.ask("SET GLOBAL read_only = ON")
            new.catch_up(self, shown=False)
        except BaseException:
            self.server.ask("SET GLOBAL read_only = OFF")
            raise
        super().end_for(new)

    def has_all_of(self, old: Self) -> bool:
        """Compare with the numbers that the old primary has written down at its end."""
        try:
            lines = (old.server.folder.data / "binlog.state").read_text().split()
        except OSError:
            return False
        return self.received() >= max(map(_number, lines), default=0)

    # --- to lead -------------------------------------------------------------------------------------------------

    def _promote(self) -> None:
        server, limit_s = self.server, PROMOTE_S + self.delay_s
        server.ask("STOP SLAVE IO_THREAD")
        deadline = time.monotonic() + limit_s
        while True:
            status = self._status()
            if _number(status["applied"]) >= _number(status.get("Gtid_IO_Pos", "")):
                break
            if not server.is_running or time.monotonic() > deadline:
                raise server.folder.failure(f"{self.name} did not become the primary within {limit_s:.0f} s")
            time.sleep(LOOK_AGAIN_S)
        server.ask("STOP SLAVE; RESET SLAVE ALL;")
        origin, generation = self._lineage()
        self._keep_lineage(origin, generation + 1)
        server.configure({"read_only": False, **self._semi_sync(confirms=False)})

    def wait_for(self, names: Sequence[str]) -> None:
        """Have a commit wait until one of the replicas has received it, where there are any."""
        self.server.configure({"rpl_semi_sync_master_enabled": bool(names)})


def _number(position: str) -> int:
    """Read the number of a transaction in a GTID such as ``0-1-105``; there is one domain only. 0 before the first."""
    return int(position.rpartition("-")[2] or 0)


def _last(one: str, other: str) -> str:
    return max(one, other, key=_number)


def _is_beyond(position: str, state: str, leader: str) -> bool:
    """Tell whether a log of this state, which only the server ``leader`` still writes, cannot have a transaction."""
    if not position:
        return False
    server = position.split("-")[1]
    last = {entry.split("-")[1]: _number(entry) for entry in state.split(",") if entry}
    return server != leader and _number(position) > last.get(server, 0)
