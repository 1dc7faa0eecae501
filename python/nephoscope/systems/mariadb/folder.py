"""The folder of one MariaDB server."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, ClassVar

from nephoscope.systems.cluster.folder import ServerFolder
from nephoscope.systems.cluster.product import Traits

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import SecretStr

ROOT = "root"
"""The account that this tool does everything with. It may write to a replica, which that of the URLs may not."""

TRAITS = Traits(
    name="MariaDB",
    program="mariadbd",
    scheme="mysql",
    user="nephoscope",
    mark="ibdata1",
    configuration="my.cnf",
    password_file="client.cnf",  # noqa: S106 - the name of a file
    # There is no faster end in good order: after it come a kill and a recovery.
    stages=((signal.SIGTERM, 30.0),),
    orphaned=signal.SIGTERM,
    port_taken="Bind on TCP/IP port",
)

_HEAD = "[client]\npassword = "
_VERSION = re.compile(r"\d+\.\d+")


class MariadbFolder(ServerFolder):
    """Beside what every server's folder holds, ``tmp``; the password is in the format of MariaDB's option files."""

    traits: ClassVar[Traits] = TRAITS

    def __init__(self, path: Path) -> None:
        """Take an absolute path; nothing is touched yet."""
        super().__init__(path)
        self.temporary = path / "tmp"

    def credentials(self, password: SecretStr) -> str:
        """Write a password as an option file of MariaDB's clients."""
        return f"{_HEAD}{password.get_secret_value()}\n"

    def read_credentials(self, text: str) -> str:
        """Read the password from such a file."""
        return text.strip().removeprefix(_HEAD)

    def found_version(self) -> str:
        """Read the series of the server that made the database, ``10.11`` for one."""
        # The name before version 11, and since.
        files = [self.data / f"{name}_upgrade_info" for name in ("mysql", "mariadb")]
        text = next((file for file in files if file.exists()), files[0]).read_text()
        if (found := _VERSION.match(text)) is None:
            raise ValueError("its file of the version says nothing")
        return found[0]
