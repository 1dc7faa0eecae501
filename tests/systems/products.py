"""The products whose clusters the same tests run over, and what a test has to say to each in its own words."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from postgres_lab import Lab

from databases import query
from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.systems.mariadb.embedded import EmbeddedMariadb
from nephoscope.systems.mariadb.install import NEEDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ANSWER_S = 30.0


class Words(ABC):
    """What the tests of clusters ask of a product."""

    lab: type[Lab]
    back: str
    """How an old primary comes back that has nothing which the new one has not."""
    again: str
    """How one comes back that has more than the new one."""
    memory: tuple[str, str]
    """A setting that `resize` to 0.5 GB changes, and its value then."""
    resize_restarts: bool
    parameters: Sequence[tuple[str, int | str, int]]
    """Settings, what they are set to, and how many of two nodes that restarts."""
    refused: Sequence[tuple[Any, str]]
    """Settings that cannot be set, and what the message says."""

    @abstractmethod
    def ask(self, url: str, sql: str) -> Sequence[Sequence[str | None]]:
        """Run a statement behind a URL. Raises ``MeasurementError``."""

    @abstractmethod
    def shown(self, url: str, name: str) -> str | None:
        """Ask for a setting."""

    @abstractmethod
    def is_replica(self, url: str) -> bool:
        """Ask whether a node takes no writes."""

    @abstractmethod
    def followers(self, url: str) -> int:
        """Ask a primary how many replicas have a stream."""

    @abstractmethod
    def keeps_log_for(self, url: str, names: Sequence[str]) -> bool:
        """Ask a primary whether it keeps its log for these nodes, and for no others."""

    @abstractmethod
    def session(self, url: str) -> Session:
        """Connect."""


class Session(ABC):
    """A connection that stays open."""

    @abstractmethod
    def ask(self, sql: str) -> None:
        """Run a statement, and wait for its answer."""

    @abstractmethod
    def close(self) -> None:
        """End it."""


class PostgresWords(Words):
    lab = Lab
    back = again = "pg_rewind"
    memory = ("shared_buffers", "128MB")
    resize_restarts = True
    parameters = (("work_mem", "9MB", 0), ("max_connections", 510, 2), ("max_connections", 490, 2))
    refused = (
        ({"port": 1}, "port cannot be set"),
        ({"primary_conninfo": ""}, "primary_conninfo cannot be set"),
        ({"no_such_thing": 1}, 'unrecognized configuration parameter "no_such_thing"'),
        ({"work_mem": "much"}, 'invalid value for parameter "work_mem": "much"'),
        ({"max_connections": 600, "max_wal_senders": 10}, "cannot rise and fall at once"),
        ({"shared_preload_libraries": "no_such_library"}, "does not start with these settings"),
    )

    def ask(self, url: str, sql: str) -> Sequence[Sequence[str | None]]:
        return query(url, sql)

    def shown(self, url: str, name: str) -> str | None:
        return query(url, f"SHOW {name}")[0][0]

    def is_replica(self, url: str) -> bool:
        return query(url, "SELECT pg_is_in_recovery()") == [["t"]]

    def followers(self, url: str) -> int:
        return int(
            query(url, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")[0][0] or 0
        )

    def keeps_log_for(self, url: str, names: Sequence[str]) -> bool:
        return query(url, "SELECT slot_name FROM pg_replication_slots") == [[name] for name in names]

    def session(self, url: str) -> Session:
        return _AdminSession(url)


class _AdminSession(Session):
    def __init__(self, url: str) -> None:
        self._admin = _engine.Admin(url)

    def ask(self, sql: str) -> None:
        self._admin.query(sql)

    def close(self) -> None:
        self._admin.close()


class MariadbLab(Lab):
    embedded = EmbeddedMariadb
    settings: Mapping[str, Any] = {
        "settings": {"innodb_log_file_size": "16M", "innodb_buffer_pool_size": "64M"}
    }


class MariadbWords(Words):
    """By the client program: the tests of these servers need no driver of ours."""

    lab = MariadbLab
    back, again = "started", "mariadb-dump"
    memory = ("innodb_buffer_pool_size", str(256 << 20))
    resize_restarts = False
    parameters = (("max_connections", 510, 0), ("tmp_table_size", "32M", 0), ("back_log", 70, 2))
    refused = (
        ({"port": 1}, "port cannot be set"),
        ({"read_only": True}, "read_only cannot be set"),
        ({"no_such_thing": 1}, "MariaDB has no setting no_such_thing"),
        ({"tx_isolation_": "much"}, "MariaDB has no setting tx_isolation_"),
        ({"max_connections": "many"}, "does not take these settings: .*max_connections"),
        ({"innodb_flush_method": "never"}, "does not take these settings: .*innodb.flush.method"),
        ({"innodb_data_file_path": "ibdata1:1G"}, "does not start with these settings"),
    )

    def ask(self, url: str, sql: str) -> Sequence[Sequence[str | None]]:
        with tempfile.NamedTemporaryFile("w") as file:
            command = mariadb(url, file)
            try:
                answer = subprocess.run(
                    command, input=sql, capture_output=True, text=True, timeout=_ANSWER_S, check=False
                )
            except subprocess.TimeoutExpired as error:
                raise MeasurementError("no answer") from error
        if answer.returncode != 0:
            raise MeasurementError(answer.stderr)
        return [
            [None if cell == "NULL" else cell for cell in line.split("\t")]
            for line in answer.stdout.splitlines()
        ]

    def shown(self, url: str, name: str) -> str | None:
        value = self.ask(url, f"SELECT @@GLOBAL.{name}")[0][0]
        return "32M" if value == str(32 << 20) else value

    def is_replica(self, url: str) -> bool:
        return self.ask(url, "SELECT @@GLOBAL.read_only") == [["1"]]

    def followers(self, url: str) -> int:
        sql = "SELECT count(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
        return int(self.ask(url, sql)[0][0] or 0)

    def keeps_log_for(self, url: str, names: Sequence[str]) -> bool:
        del names  # it is kept for a time, whoever reads it
        return self.shown(url, "binlog_expire_logs_seconds") == "3600"

    def session(self, url: str) -> Session:
        return _ClientSession(url)


def mariadb(url: str, file: Any) -> list[str]:
    """Make the command of a client, whose password is in a file."""
    parts = urlsplit(url)
    file.write(f"[client]\npassword = {parts.password}\n")
    file.flush()
    return [
        *("mariadb", f"--defaults-file={file.name}", "--protocol=tcp", "-h", str(parts.hostname)),
        *("-P", str(parts.port), "-u", str(parts.username), "--connect-timeout=5"),
        *("-B", "-N", "--unbuffered", parts.path[1:]),
    ]


class _ClientSession(Session):
    def __init__(self, url: str) -> None:
        with tempfile.NamedTemporaryFile("w") as file:
            self._client = subprocess.Popen(
                mariadb(url, file), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            self.ask("SELECT 1")

    def ask(self, sql: str) -> None:
        assert self._client.stdin is not None
        assert self._client.stdout is not None
        self._client.stdin.write(f"{sql};\n")
        self._client.stdin.flush()
        assert self._client.stdout.readline()

    def close(self) -> None:
        self._client.communicate(timeout=_ANSWER_S)


needs_mariadb = pytest.mark.skipif(
    not all(shutil.which(name, path="/usr/sbin:/usr/bin") for name in NEEDED), reason="no MariaDB is here"
)

EVERY_PRODUCT = [
    pytest.param(PostgresWords(), id="PostgreSQL"),
    pytest.param(MariadbWords(), id="MariaDB", marks=needs_mariadb),
]
