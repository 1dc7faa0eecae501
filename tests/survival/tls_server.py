"""A PostgreSQL with TLS, whose certificate can be exchanged, and the authority that signs them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commands import wait_for
from databases import query
from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.systems.cluster.server import free_port
from nephoscope.systems.machine.account import Account, server_accounts

if TYPE_CHECKING:
    from collections.abc import Iterator

_CA = """[ca]
default_ca=d
[d]
database={0}/index
new_certs_dir={0}
rand_serial=yes
default_md=sha256
policy=p
unique_subject=no
[p]
commonName=supplied
"""
# The server is gone when its standard input ends: also when the tests are killed.
_UNTIL_END_OF_INPUT = '"$@" & server=$!; read _; kill -QUIT $server; wait $server'


class Certificates:
    """An authority in a folder."""

    def __init__(self, folder: Path, owner: Account) -> None:
        self.root = folder / "root.crt"
        self._folder = folder
        self._owner = owner
        (folder / "ca.conf").write_text(_CA.format(folder))
        (folder / "index").touch()
        self._openssl(
            "req -x509 -newkey ec:p256 -noenc -days 30 -subj /CN=root -keyout root.key -out root.crt"
        )

    def _openssl(self, line: str) -> None:
        words = line.replace("ec:p256", "ec -pkeyopt ec_paramgen_curve:P-256").split()
        subprocess.run(["openssl", *words], cwd=self._folder, check=True, capture_output=True)

    def sign(
        self, name: str, names: str, start: str = "20200101000000Z", end: str = "20491231000000Z"
    ) -> None:
        """Make ``name.crt`` and ``name.key`` for alternative names in OpenSSL's words."""
        (self._folder / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        self._openssl(f"req -newkey ec:p256 -noenc -subj /CN={name} -keyout {name}.key -out {name}.csr")
        self._openssl(
            f"ca -batch -notext -config ca.conf -cert root.crt -keyfile root.key -in {name}.csr"
            f" -startdate {start} -enddate {end} -extfile {name}.ext -out {name}.crt"
        )
        key = self._folder / f"{name}.key"
        key.chmod(0o600)
        if self._owner.other:
            shutil.chown(key, self._owner.uid, self._owner.gid)


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
