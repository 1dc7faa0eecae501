"""A PostgreSQL with TLS, whose certificate can be exchanged."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from certificates import Certificates

from commands import wait_for
from databases import query
from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.systems.cluster.server import free_port
from nephoscope.systems.machine.account import server_accounts

if TYPE_CHECKING:
    from collections.abc import Iterator

# The server is gone when its standard input ends: also when the tests are killed.
_UNTIL_END_OF_INPUT = '"$@" & server=$!; read _; kill -QUIT $server; wait $server'


class TlsServer:
    """A running server; connections without TLS are trusted as well."""

    def __init__(self, port: int, folder: Path, certificates: Certificates) -> None:
        self.place = f"localhost:{port}/postgres"
        self.certificates = certificates
        self.root = certificates.root
        self._folder = folder

    def show(self, name: str) -> None:
        """Let new connections see a certificate."""
        plain = f"postgresql://postgres@{self.place}?sslmode=disable"
        certificate = f"{self._folder}/{name}.crt"
        query(plain, f"ALTER SYSTEM SET ssl_cert_file = '{certificate}'")
        query(plain, f"ALTER SYSTEM SET ssl_key_file = '{self._folder}/{name}.key'")
        query(plain, "SELECT pg_reload_conf()")
        wait_for(lambda: query(plain, "SHOW ssl_cert_file") == [[certificate]], "the certificate is loaded")


@contextmanager
def tls_server() -> Iterator[TlsServer]:
    """Run a server on a free port of this machine. The test is skipped where what it needs is not installed."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if not programs or not shutil.which("openssl"):
        pytest.skip("there is no PostgreSQL in /usr/lib/postgresql, or no openssl")
    [owner, *_] = server_accounts()
    folder = Path(tempfile.mkdtemp(prefix="nephoscope-tls-"))
    try:
        folder.chmod(0o755)
        certificates = Certificates(folder, owner)
        certificates.sign("right", "DNS:localhost")
        data = folder / "data"
        data.mkdir(mode=0o700)
        if owner.other:
            shutil.chown(data, owner.uid, owner.gid)
        made = owner.run([programs[-1] / "initdb", "--no-sync", "-U", "postgres", "--auth=trust", "-D", data])
        assert made.returncode == 0, made.stdout
        port = free_port()
        settings = {
            "port": port,
            "listen_addresses": "localhost",
            "unix_socket_directories": "",
            "fsync": "off",
            "ssl": "on",
        }
        with (data / "postgresql.auto.conf").open("a") as file:
            file.write(f"ssl_cert_file = '{folder}/right.crt'\nssl_key_file = '{folder}/right.key'\n")
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command: list[str | Path] = [
            "sh",
            "-c",
            _UNTIL_END_OF_INPUT,
            "sh",
            programs[-1] / "postgres",
            "-D",
            data,
            *options,
        ]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            user=owner.uid if owner.other else None,
            group=owner.gid if owner.other else None,
            extra_groups=[] if owner.other else None,
            cwd="/",
        )
        with process:
            wait_for(lambda: _answers(port), "the server takes connections")
            yield TlsServer(port, folder, certificates)
    finally:
        shutil.rmtree(folder)


def _answers(port: int) -> bool:
    try:
        _engine.Admin(f"postgresql://postgres@localhost:{port}/postgres?sslmode=disable").close()
    except MeasurementError:
        return False
    return True
