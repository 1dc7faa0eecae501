"""One MariaDB server: how it is made, started, asked and told of other settings."""

from __future__ import annotations

import os
import re
import secrets
from typing import TYPE_CHECKING

from nephoscope.errors import MeasurementError
from nephoscope.systems.cluster.folder import HOST
from nephoscope.systems.cluster.server import Server
from nephoscope.systems.machine.folders import write_file
from nephoscope.systems.mariadb.folder import ROOT
from nephoscope.systems.mariadb.settings import assigned, configuration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pydantic import SecretStr

    from nephoscope.systems.cluster.product import Making, SettingValue
    from nephoscope.systems.mariadb.folder import MariadbFolder

_PID_FILE = "server.pid"
_SERVER_IDS = 1 << 31

# The script splits its arguments where they have spaces, and so has the folder as its current one. What it prints is
# advice; errors go the other way.
_INITIALISE = """cd -- "$1" && PATH="$PATH:/usr/bin:/bin:/usr/sbin:/sbin" exec "$2" --no-defaults --datadir=. \
--skip-name-resolve --auth-root-authentication-method=normal --skip-test-db --innodb-log-file-size=8M \
--tmpdir=. --extra-file="$3" > /dev/null"""

# One statement a line: the bootstrapping server takes no more.
_ACCOUNTS = """FLUSH PRIVILEGES;
DELETE FROM mysql.global_priv WHERE user = 'root';
DELETE FROM mysql.proxies_priv;
FLUSH PRIVILEGES;
CREATE USER '{root}'@'{host}' IDENTIFIED BY '{password}';
GRANT ALL ON *.* TO '{root}'@'{host}' WITH GRANT OPTION;
CREATE USER '{user}'@'{host}' IDENTIFIED BY '{password}';
GRANT ALL ON *.* TO '{user}'@'{host}' WITH GRANT OPTION;
REVOKE SUPER, READ_ONLY ADMIN ON *.* FROM '{user}'@'{host}';
"""


class MariadbServer(Server):
    """One mariadbd on its folder."""

    folder: MariadbFolder
    _initialiser = "mariadb-install-db"

    def __init__(self, folder: MariadbFolder, making: Making) -> None:
        """Describe a server in a folder, which need not exist yet; nothing is touched."""
        super().__init__(folder, making)
        # Its own for each run: of two transactions with one GTID it is sure then that they are the same.
        self.server_id = 1 + secrets.randbelow(_SERVER_IDS - 1)

    @property
    def version(self) -> str:
        """The series, as ``10.11``."""
        return self.install.series

    def ask(self, script: str, *, named: bool = False) -> str:
        """Run SQL as root; return what it prints: rows by lines and columns by tabs, without names unless ``named``.

        Raises:
            MeasurementError: it failed, or took more than 30 s.

        """
        command = (
            # The password comes from its file: arguments are everyone's to read.
            *(self.install.program("mariadb"), f"--defaults-file={self.folder.password_file}"),
            *("--protocol=tcp", "-h", HOST, "-P", str(self.port), "-u", ROOT, "--connect-timeout=10"),
            *("--default-character-set=utf8mb4", "--batch", "--raw"),
            *(() if named else ("--skip-column-names",)),
        )
        return self.run_client(command, script, {})

    def make_database(self, name: str) -> None:
        """Make a database where there is none of that name."""
        self.ask(f"CREATE DATABASE IF NOT EXISTS `{name}`")

    def relation_files(self, database: str) -> dict[str, str]:
        """Name the tables by the paths of their files; those of other databases with their database."""
        rows = self.ask("SELECT name, filename FROM information_schema.innodb_sys_tablespaces").splitlines()
        pairs = (row.split("\t") for row in rows)
        return {
            path.removeprefix("./"): name.removeprefix(f"{database}/").replace("/", ".")
            for name, path in pairs
        }

    def needs_restart(self, settings: Mapping[str, SettingValue]) -> bool:
        """Tell whether one of these settings, whose names have been checked, holds only after a restart.

        Raises:
            MeasurementError: MariaDB does not take them; it says why.

        """
        names = ", ".join(f"'{name}'" for name in settings)
        rows = self.ask(
            "SELECT lower(variable_name), variable_scope, read_only FROM information_schema.system_variables"
            f" WHERE variable_name IN ({names})"
        ).splitlines()
        found = {name: (scope, fixed) for name, scope, fixed in (row.split("\t") for row in rows)}
        if unknown := [name for name in settings if name not in found]:
            raise MeasurementError(f"MariaDB has no setting {', '.join(unknown)}")
        if sessions := [name for name, (scope, _) in found.items() if scope == "SESSION ONLY"]:
            raise MeasurementError(f"{', '.join(sessions)} cannot be set for all sessions")
        self._try_settings(settings)
        return any(fixed == "YES" for _, fixed in found.values())

    def _try_settings(self, changes: Mapping[str, SettingValue]) -> None:
        """Let the server's program read settings without touching the server."""
        tried = self.folder.configuration.with_suffix(".tried")
        write_file(tried, self.configuration({**self._settings, **changes}), private=False)
        try:
            command = (self.install.program("mariadbd"), f"--defaults-file={tried}", "--verbose", "--help")
            answer = self.account.run(command)
        finally:
            tried.unlink()
        words = "|".join(re.escape(name).replace("_", "[_-]") for name in changes)
        said = re.findall(rf"\[(?:ERROR|Warning)\] (?:\S*mariadbd: )?(.*(?:{words}).*)", answer.stdout)
        if said or answer.returncode != 0:
            raise MeasurementError(
                f"MariaDB does not take these settings: {'; '.join(said) or 'no reason given'}"
            )

    def environment(self) -> dict[str, str]:
        """Have nobody else read what the server writes: one of its files holds the password of the primary."""
        return super().environment() | {"UMASK": "0600", "UMASK_DIR": "0700"}

    def configuration(self, settings: Mapping[str, SettingValue]) -> str:
        """Write my.cnf."""
        reach: dict[str, SettingValue] = {
            "bind_address": HOST,
            "port": self.port,
            # No Unix socket at all: neither a file outside the data folder nor its limit of 107 characters.
            "socket": "",
            "skip_name_resolve": True,
            "pid_file": _PID_FILE,
            # A server that starts removes the temporary tables that it finds there, whosever they are. From the data
            # folder, for a colon in a path would begin another one.
            "tmpdir": f"../{self.folder.temporary.name}",
            "log_bin": "binlog",
            "relay_log": "relay",
            "server_id": self.server_id,
            "log_slave_updates": True,
            "gtid_strict_mode": True,
            "skip_slave_start": True,
        }
        return configuration(settings, reach)

    def _secret(self, password: SecretStr) -> str:
        return _ACCOUNTS.format(
            root=ROOT, user=self.traits.user, host=HOST, password=password.get_secret_value()
        )

    def _initialising(self, place: Path, secret: Path) -> Sequence[str | Path]:
        return ("/bin/sh", "-c", _INITIALISE, "sh", place, self.install.program(self._initialiser), secret)

    def _serving(self) -> Sequence[str | Path]:
        command = (self.install.program("mariadbd"), f"--defaults-file={self.folder.configuration}")
        return (*command, "--datadir", self.folder.data)

    def _says_ready(self, pid: int) -> bool:
        """Look for its process number, and for what it says last before it takes connections."""
        try:
            written = (self.folder.data / _PID_FILE).read_text().strip()
        except (OSError, ValueError):
            return False
        return written == str(pid) and self.folder.says("ready for connections")

    def _before_launch(self) -> None:
        self.folder.temporary.mkdir(mode=0o700, exist_ok=True)
        os.chown(self.folder.temporary, self.account.uid, self.account.gid)
        # A crash leaves it, and the number may be another program's now.
        (self.folder.data / _PID_FILE).unlink(missing_ok=True)

    def _apply(self, changes: Mapping[str, SettingValue | None]) -> None:
        """Set what can be set while the server runs; nothing else is asked for without a restart."""
        names = ", ".join(f"'{name}'" for name in changes)
        if not names:
            return
        dynamic = self.ask(
            "SELECT lower(variable_name) FROM information_schema.system_variables"
            f" WHERE read_only = 'NO' AND variable_name IN ({names})"
        ).split()
        if dynamic:
            self.ask(f"SET {', '.join(f'GLOBAL {name} = {assigned(changes[name])}' for name in dynamic)}")
