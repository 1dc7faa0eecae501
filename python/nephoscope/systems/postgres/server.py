"""One PostgreSQL server: how it is made, started, asked and told of other settings."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import TYPE_CHECKING

from nephoscope.errors import MeasurementError
from nephoscope.systems.cluster.folder import HOST
from nephoscope.systems.cluster.server import Server
from nephoscope.systems.machine.folders import write_file
from nephoscope.systems.postgres.settings import ACCESS, configuration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nephoscope.systems.cluster.product import SettingValue
    from nephoscope.systems.postgres.folder import PostgresFolder

_STATE_LINE = 8
# What a table has beside its rows, its long values, is named after it.
_RELATION_FILES = """
SELECT json_object_agg(pg_relation_filepath(relation.oid),
         CASE WHEN owner.oid IS NULL THEN shown.name
              WHEN toast_index.indexrelid IS NULL THEN shown.name || ':toast'
              ELSE shown.name || ':toast_index' END)
  FROM pg_class relation
  LEFT JOIN pg_index toast_index ON toast_index.indexrelid = relation.oid
  LEFT JOIN pg_class owner ON owner.reltoastrelid <> 0
        AND owner.reltoastrelid IN (relation.oid, toast_index.indrelid)
  JOIN pg_class named ON named.oid = coalesce(owner.oid, relation.oid)
  JOIN pg_namespace place ON place.oid = named.relnamespace
  CROSS JOIN LATERAL (SELECT CASE place.nspname WHEN 'public' THEN '' ELSE place.nspname || '.' END
                             || named.relname AS name) shown
 WHERE pg_relation_filepath(relation.oid) IS NOT NULL
"""
_CLIENT_ENVIRONMENT = {"PGCLIENTENCODING": "UTF8", "PGCONNECT_TIMEOUT": "10"}


class PostgresServer(Server):
    """One postmaster on its folder."""

    folder: PostgresFolder
    _initialiser = "initdb"

    @property
    def version(self) -> str:
        """The major version."""
        return self.install.server_version.partition(".")[0]

    def psql(self, script: str, database: str = "postgres") -> str:
        """Run SQL, and psql's own commands, in a database; return what it prints, bare and unaligned.

        Raises:
            MeasurementError: it failed, or took more than 30 s.

        """
        command = (
            *(self.install.program("psql"), "-X", "-w", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"),
            *("-h", HOST, "-p", str(self.port), "-U", self.traits.user, "-d", database),
        )
        # The password comes from its file: arguments are everyone's to read.
        environment = {**_CLIENT_ENVIRONMENT, "PGPASSFILE": str(self.folder.password_file)}
        return self.run_client(command, script, environment)

    def make_database(self, name: str) -> None:
        """Make a database where there is none of that name."""
        if self.psql(f"SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '{name}')"):
            self.psql(f'CREATE DATABASE "{name}"')

    @property
    def log_folder(self) -> Path:
        """The folder of the write-ahead log."""
        return self.folder.data / "pg_wal"

    def relation_files(self, database: str) -> dict[str, str]:
        """Name the relations of a database, and those that all databases share, by the paths of their first files."""
        files: dict[str, str] = json.loads(self.psql(_RELATION_FILES, database))
        return files

    def vacuum(self, database: str) -> None:
        """Vacuum and analyze a database. Raises ``MeasurementError``."""
        self.psql("VACUUM (ANALYZE)", database)

    def needs_restart(self, settings: Mapping[str, SettingValue]) -> bool:
        """Tell whether one of these settings, whose names have been checked, holds only after a restart.

        Raises:
            MeasurementError: PostgreSQL does not take them; it says why.

        """
        self._try_settings(settings)
        names = ", ".join(f"'{name}'" for name in settings)
        found = self.psql(f"SELECT name, context FROM pg_settings WHERE name IN ({names})")
        contexts = dict(line.split("|") for line in found.split())
        if unchangeable := [name for name, context in contexts.items() if context == "internal"]:
            raise MeasurementError(f"{', '.join(unchangeable)} cannot be set")
        return "postmaster" in contexts.values()

    def _try_settings(self, changes: Mapping[str, SettingValue]) -> None:
        """Let the server's program check settings without touching the server."""
        tried = self.folder.configuration.with_suffix(".tried")
        write_file(tried, self.configuration({**self._settings, **changes}), private=False)
        try:
            command = (self.install.program("postgres"), "-D", self.folder.data, "-C", "config_file")
            answer = self.account.run([*command, "-c", f"config_file={tried}"])
        finally:
            tried.unlink()
        if answer.returncode != 0:
            said = re.findall(r"LOG:  ((?:invalid|unrecognized|parameter|syntax|\d).*)", answer.stdout)
            said = [line.replace(f' in file "{tried}"', "") for line in said]
            raise MeasurementError(
                f"PostgreSQL does not take these settings: {'; '.join(said) or answer.stdout.strip()}"
            )

    def configuration(self, settings: Mapping[str, SettingValue]) -> str:
        """Write postgresql.conf."""
        return configuration(settings, self.port, self.folder.access)

    def environment(self) -> dict[str, str]:
        """Make the environment in which PostgreSQL does not stumble over a lock file that a crash left."""
        stale = self.folder.stale_lock_owner()
        # PostgreSQL takes a lock file that names its own grandparent for stale, whatever runs under that
        # number, and still looks whether processes of the dead server use its memory. Without the file
        # it could not.
        return super().environment() | ({} if stale is None else {"PG_GRANDPARENT_PID": str(stale)})

    def _initialising(self, place: Path, secret: Path) -> Sequence[str | Path]:
        return (
            *(
                self.install.program(self._initialiser),
                "-D",
                place,
                "-U",
                self.traits.user,
                f"--pwfile={secret}",
            ),
            # The same on every machine, version and environment. Checksums are version 18's default.
            *("--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--data-checksums"),
            "--no-instructions",
        )

    def _serving(self) -> Sequence[str | Path]:
        command = (self.install.program("postgres"), "-D", self.folder.data)
        return (*command, "-c", f"config_file={self.folder.configuration}")

    def _before_launch(self) -> None:
        write_file(self.folder.access, ACCESS, private=False)
        # What ALTER SYSTEM set in an earlier run would bend a measurement unseen.
        (self.folder.data / "postgresql.auto.conf").unlink(missing_ok=True)

    def _says_ready(self, pid: int) -> bool:
        """Read the server's state where pg_ctl does: in the last line of its lock file."""
        try:
            lines = (self.folder.data / "postmaster.pid").read_text().splitlines()
        except (OSError, ValueError):
            return False
        return (
            len(lines) >= _STATE_LINE and lines[0] == str(pid) and lines[_STATE_LINE - 1].strip() == "ready"
        )

    def _apply(self, changes: Mapping[str, SettingValue | None]) -> None:
        del changes
        os.kill(self.pid, signal.SIGHUP)
