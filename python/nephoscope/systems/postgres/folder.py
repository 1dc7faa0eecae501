"""The folder of one PostgreSQL server, and what a crash may have left in it."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, ClassVar

from nephoscope.systems.cluster.folder import HOST, ServerFolder
from nephoscope.systems.cluster.product import Traits

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import SecretStr

USER = "postgres"
"""The role that everything is done with: the superuser."""

TRAITS = Traits(
    name="PostgreSQL",
    program="postgres",
    scheme="postgresql",
    user=USER,
    mark="PG_VERSION",
    configuration="postgresql.conf",
    password_file="pgpass",  # noqa: S106 - the name of a file
    # Fast (sessions are cut, all is written), then immediate (recovery comes next).
    stages=((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0)),
    orphaned=signal.SIGQUIT,
    port_taken="could not bind",
)

_PASSWORD_FOR = f"{HOST}:*:*:{USER}:"


class PostgresFolder(ServerFolder):
    """Beside what every server's folder holds, ``pg_hba.conf``; the password is in libpq's format."""

    traits: ClassVar[Traits] = TRAITS

    def __init__(self, path: Path) -> None:
        """Take an absolute path; nothing is touched yet."""
        super().__init__(path)
        self.access = path / "pg_hba.conf"

    def credentials(self, password: SecretStr) -> str:
        """Write a password in libpq's format."""
        return f"{_PASSWORD_FOR}{password.get_secret_value()}\n"

    def read_credentials(self, text: str) -> str:
        """Read the password from libpq's format."""
        return text.strip().removeprefix(_PASSWORD_FOR)

    def found_version(self) -> str:
        """Read the major version of the database."""
        return (self.data / self.traits.mark).read_text().strip()

    def stale_lock_owner(self) -> int | None:
        """Read which process the lock file of a crashed server names; a file that names none is removed.

        PostgreSQL itself finds out that a file is stale if its process is dead or another user's. It refuses to
        start where the number now belongs to another program of its own user, and where the file is empty, as a
        crash of the machine leaves it. To be called when no server runs on ``data``.
        """
        file = self.data / "postmaster.pid"
        try:
            pid = int(file.read_bytes().split()[0])
        except FileNotFoundError:
            return None
        except (ValueError, IndexError):
            pid = 0
        if pid <= 0:
            file.unlink(missing_ok=True)
            return None
        return pid
