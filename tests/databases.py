"""A real server for tests of the command line: one for a module, a new database for a test."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from postgres_lab import Lab

from nephoscope import _engine
from nephoscope.systems.mariadb.embedded import EmbeddedMariadb
from nephoscope.systems.mariadb.install import NEEDED

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


class MariadbLab(Lab):
    embedded = EmbeddedMariadb
    settings: Mapping[str, Any] = {
        "settings": {"innodb_log_file_size": "16M", "innodb_buffer_pool_size": "64M"}
    }


HAS_MARIADB = all(shutil.which(name, path="/usr/sbin:/usr/bin") for name in NEEDED)
NO_MARIADB = "no MariaDB is here"


def redis_program() -> str:
    """Find the program of a Redis server; a test that needs it is skipped where there is none, as on a bare machine."""
    return shutil.which("redis-server") or pytest.skip("there is no redis-server")


@contextmanager
def _running(kind: type[Lab], settings: Mapping[str, object]) -> Iterator[Server]:
    lab = kind()
    try:
        with lab.provider(settings=settings) as provider:
            yield Server(provider.start().rw[0])
    finally:
        lab.close()


def running_server(**settings: object) -> AbstractContextManager[Server]:
    """Run a server on a free port, with settings of one's own."""
    return _running(Lab, {"fsync": False, **settings})


def running_mariadb(**settings: bool | int | str) -> AbstractContextManager[Server]:
    """Run a MariaDB server on a free port, with settings of one's own."""
    if not HAS_MARIADB:
        pytest.skip(NO_MARIADB)
    quick = {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0, "innodb_log_file_size": 64 << 20}
    return _running(MariadbLab, {**quick, **settings})


@contextmanager
def folder_of_files() -> Iterator[Server]:
    """Give a folder for SQLite's files."""
    with tempfile.TemporaryDirectory() as folder:
        yield Server(f"sqlite://{folder}")


SERVERS: Mapping[str, Callable[..., AbstractContextManager[Server]]] = {
    "postgres": running_server,
    "mysql": running_mariadb,
    "sqlite": folder_of_files,
}
"""How a server is started, by the dialect that it speaks: one for each that stores data."""


PLACES: Mapping[str, str] = {
    "noop": "",
    "sim": "",
    "sqlite": "/none",
    "redis": "localhost/0",
    "dynamodb": "id:secret@us-east-1",
    "s3": "id:secret@tests?region=us-east-1",
    "simpledb": "id:secret@us-east-1",
    "hbase": "localhost",
    "mongodb": "localhost",
}
"""What a URL has behind its scheme that names no server, where that is neither a user nor a host."""


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


def shows(url: str, table: str) -> bool:
    """Whether a table is there."""
    return query(url, f"SELECT count(*) FROM information_schema.tables WHERE table_name = '{table}'") == [
        ["1"]
    ]


def study_of(url: str, measure: Tables, **workload: object) -> Tables:
    """A study of a small workload in a database."""
    return {
        "study": {"name": "real"},
        "system": {"provider": "url", "rw": url},
        "workload": {"name": "sales", "scale": 0.002, **workload},
        "load": {"interval": "100ms"},
        "measure": [measure],
    }
