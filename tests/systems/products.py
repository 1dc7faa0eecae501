"""The products whose clusters the same tests run over, and what a test has to say to each in its own words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import pytest
from postgres_lab import Lab, server_of

from databases import HAS_MARIADB, NO_MARIADB, MariadbLab, query
from nephoscope.systems.mariadb import node as mariadb_node
from nephoscope.systems.mariadb.server import MariadbServer
from nephoscope.systems.postgres import node as postgres_node
from nephoscope.systems.postgres.server import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from nephoscope.systems.cluster.embedded import EmbeddedCluster
    from nephoscope.systems.cluster.server import Server


class Words(ABC):
    """What the tests of clusters ask of a product."""

    lab: type[Lab]
    back: str
    """How an old primary comes back that has nothing which the new one has not."""
    again: str
    """How one comes back that has more than the new one."""
    copied_by: str
    least_processes: int
    """How many processes a running server has, with the one that watches it."""
    node: ModuleType
    """Where its nodes are."""
    server: type[Server]
    synchronous: str
    """How commits wait for replicas."""
    delay_s: float
    least_delay_s: float
    """When a commit may be seen first at a replica that is to be so late."""
    ended: str
    recovered: str
    """What the log says of an end in good order, and of a start after a crash."""
    port_taken: str
    password_file: str
    password_files: frozenset[str]
    """Where the password may be, in a cluster whose roles have moved."""
    spin: str
    """A statement that takes a tenth of a second, or so, of a processor."""
    memory: tuple[str, str]
    """A setting that `resize` to 0.5 GB changes, and its value then."""
    resize_restarts: bool
    parameters: Sequence[tuple[str, int | str, int]]
    """Settings, what they are set to, and how many of two nodes that restarts."""
    refused: Sequence[tuple[Any, str]]
    """Settings that cannot be set, and what the message says."""

    @abstractmethod
    def run(self, provider: EmbeddedCluster, sql: str) -> str:
        """Run a statement in the database of a provider, by the server itself."""

    @abstractmethod
    def code(self, sql: str) -> str:
        """Write what runs a statement in a process that has a provider."""

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


class PostgresWords(Words):
    lab = Lab
    back = again = "pg_rewind"
    copied_by = "pg_basebackup"
    least_processes = 8
    node = postgres_node
    server = PostgresServer
    synchronous = "remote_apply"
    delay_s, least_delay_s = 0.5, 0.49
    ended = "database system is shut down"
    recovered = "not properly shut down"
    port_taken = "could not bind"
    password_file = "pgpass"
    password_files = frozenset({"pgpass", "replication.pgpass"})
    spin = "SELECT count(*) FROM generate_series(1, 500000)"
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

    def run(self, provider: EmbeddedCluster, sql: str) -> str:
        answer: str = server_of(provider).psql(sql, "nephoscope")
        return answer

    def code(self, sql: str) -> str:
        return f"provider._server.psql({sql!r}, 'nephoscope')"

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


class MariadbWords(Words):
    lab = MariadbLab
    back, again = "started", "mariadb-dump"
    copied_by = "mariadb-dump"
    least_processes = 2
    node = mariadb_node
    server = MariadbServer
    synchronous = "semi-sync"
    # It counts from the second in which a statement began.
    delay_s, least_delay_s = 2.0, 1.0
    ended = "Shutdown complete"
    recovered = "Starting crash recovery"
    port_taken = "Address already in use"
    password_file = "client.cnf"
    password_files = frozenset({"client.cnf", "replication.cnf", "master.info"})
    spin = "SELECT benchmark(300000, md5('x'))"
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
        ({"default_storage_engine": "nonsense"}, "Unknown storage engine 'nonsense'"),
        ({"innodb_data_file_path": "ibdata1:1G"}, "does not start with these settings"),
    )

    def run(self, provider: EmbeddedCluster, sql: str) -> str:
        answer: str = server_of(provider).ask(f"USE nephoscope; {sql}")
        return answer

    def code(self, sql: str) -> str:
        return f"provider._server.ask('USE nephoscope; ' {sql!r})"

    def shown(self, url: str, name: str) -> str | None:
        value = query(url, f"SELECT @@GLOBAL.{name}")[0][0]
        return "32M" if value == str(32 << 20) else value

    def is_replica(self, url: str) -> bool:
        return query(url, "SELECT @@GLOBAL.read_only") == [["1"]]

    def followers(self, url: str) -> int:
        sql = "SELECT count(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
        return int(query(url, sql)[0][0] or 0)

    def keeps_log_for(self, url: str, names: Sequence[str]) -> bool:
        del names  # it is kept for a time, whoever reads it
        return self.shown(url, "binlog_expire_logs_seconds") == "3600"


needs_mariadb = pytest.mark.skipif(not HAS_MARIADB, reason=NO_MARIADB)

EVERY_PRODUCT = [
    pytest.param(PostgresWords(), id="PostgreSQL"),
    pytest.param(MariadbWords(), id="MariaDB", marks=needs_mariadb),
]
