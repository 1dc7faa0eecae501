"""A real server for tests of the command line: one for a module, a new database for a test."""

from __future__ import annotations

import itertools
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from postgres_lab import Lab

from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.systems.machine.account import server_accounts
from nephoscope.systems.machine.folders import fast_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sample_studies import Tables


class Server:
    """A running server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._numbers = itertools.count(1)

    def new_database(self) -> str:
        """Make a database; return its URL."""
        if self.url.startswith("sqlite:"):  # each file is one, made when it is first used
            return f"{self.url}/test{next(self._numbers)}.db"
        name = f"test{next(self._numbers)}"
        query(self.url, f"CREATE DATABASE {name}")
        return f"{self.url.rpartition('/')[0]}/{name}"


FOREIGN: Mapping[str, Mapping[str, str]] = {
    "postgres": {
        "table": "CREATE TABLE {name} AS SELECT 42 AS precious",
        "partitioned table": "CREATE TABLE {name} (precious int) PARTITION BY RANGE (precious)",
        "view": "CREATE VIEW {name} AS SELECT 42 AS precious",
        "materialized view": "CREATE MATERIALIZED VIEW {name} AS SELECT 42 AS precious",
        "sequence": "CREATE SEQUENCE {name} START 42",
        "type": "CREATE TYPE {name} AS (precious int)",
        "foreign table": "CREATE FOREIGN DATA WRAPPER far; CREATE SERVER there FOREIGN DATA WRAPPER far;"
        " CREATE FOREIGN TABLE {name} (precious int) SERVER there",
    },
    "mysql": {
        "table": "CREATE TABLE {name} AS SELECT 42 AS precious",
        "view": "CREATE VIEW {name} AS SELECT 42 AS precious",
        "sequence": "CREATE SEQUENCE {name} START WITH 42",
    },
    "sqlite": {
        "table": "CREATE TABLE {name} AS SELECT 42 AS precious",
        "view": "CREATE VIEW {name} AS SELECT 42 AS precious",
    },
}
"""How somebody else makes what has a name, by dialect and kind."""


@contextmanager
def running_server(**settings: object) -> Iterator[Server]:
    """Run a server on a free port, with settings of one's own."""
    lab = Lab()
    try:
        with lab.provider(settings={"fsync": False, **settings}) as provider:
            yield Server(provider.start().rw[0])
    finally:
        lab.close()


@contextmanager
def running_mariadb() -> Iterator[Server]:
    """Run a MariaDB server on a free port."""
    program = shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if program is None:
        pytest.skip("there is no MariaDB server here")
    account = server_accounts()[0]
    with tempfile.TemporaryDirectory(dir=fast_folder(), ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o777)
        set_up = "CREATE USER tester@'%' IDENTIFIED BY 'secret';\nGRANT ALL ON *.* TO tester@'%';\n"
        (folder / "set_up.sql").write_text(set_up)
        who: Any = {"user": account.uid, "group": account.gid, "extra_groups": []} if account.other else {}
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o777)
        data = f"--datadir={folder}/data"
        make = ["mariadb-install-db", "--no-defaults", "--skip-test-db", data]
        subprocess.run(make, check=True, capture_output=True, **who)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        settings = [data, f"--port={port}", f"--socket={folder}/socket", f"--init-file={folder}/set_up.sql"]
        settings.append(f"--tmpdir={folder}/tmp")  # a server that starts deletes what others have in theirs
        server = subprocess.Popen(
            [program, "--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve", *settings],
            stderr=subprocess.DEVNULL,
            **who,
        )
        try:
            url = f"mysql://tester:secret@127.0.0.1:{port}/mysql"
            wait_until_it_answers(url)
            yield Server(url)
        finally:
            server.kill()
            server.wait()


def wait_until_it_answers(url: str) -> None:
    limit = time.monotonic() + 60
    while True:
        try:
            query(url, "SELECT 1")
        except MeasurementError:
            assert time.monotonic() < limit, "the server does not answer"
            time.sleep(0.05)
        else:
            return


@contextmanager
def folder_of_files() -> Iterator[Server]:
    """Give a folder for SQLite's files."""
    with tempfile.TemporaryDirectory() as folder:
        yield Server(f"sqlite://{folder}")


SERVERS: Mapping[str, Callable[[], AbstractContextManager[Server]]] = {
    "postgres": running_server,
    "mysql": running_mariadb,
    "sqlite": folder_of_files,
}
"""How a server is started, by the dialect that it speaks: one for each that stores data."""


def dialect_of(url: str) -> str:
    """Name the dialect that is spoken behind a URL of a server here."""
    scheme = url.partition(":")[0]
    return "postgres" if scheme == "postgresql" else scheme


def query(url: str, sql: str) -> Sequence[Sequence[str | None]]:
    admin = _engine.Admin(url)
    try:
        return admin.query(sql)[1]
    finally:
        admin.close()


def study_of(url: str, measure: Tables, **workload: object) -> Tables:
    """A study of a small workload in a database."""
    return {
        "study": {"name": "real"},
        "system": {"provider": "url", "rw": url},
        "workload": {"name": "sales", "scale": 0.002, **workload},
        "load": {"interval": "100ms"},
        "measure": [measure],
    }
