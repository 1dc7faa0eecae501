"""Transactions on connections of their own whose statements run in a given order: what each saw, and who waited.

A statement that has not been answered within a moment waits for another transaction: the next one is sent, and the
connection's own next ones follow once it is answered.
"""

from __future__ import annotations

import queue
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.dialects import DIALECTS
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class InterleavedStatement:
    """A statement of one of the transactions, which are counted from 1."""

    who: int
    sql: str
    """A statement, or ``COMMIT`` or ``ROLLBACK``. ``{t}`` is the table, of the columns ``id`` and ``value``."""
    name: str = ""
    """Under which what it returns is kept."""


@dataclass
class Interleaved:
    """What became of an interleaving."""

    rows: dict[str, Rows] = field(default_factory=dict)
    """What named steps have returned; absent where they were not run, or failed."""
    committed: set[int] = field(default_factory=set)
    """The transactions that have committed."""
    waited: bool = False
    """Whether a statement waited for another transaction."""
    errors: list[str] = field(default_factory=list)
    """What the server refused, in its words."""
    final: Rows = ()
    """What was there afterwards, ordered by ``id``."""


class Interleaver:
    """A table of two rows, and connections on which transactions are interleaved."""

    def __init__(
        self, admin: _engine.Admin, url: str, dialect: str, table: str, limits_s: tuple[float, float]
    ) -> None:
        """Take a connection beside the transactions.

        ``limits_s`` says after how many seconds a statement waits that is not answered, and is given up.
        """
        self._admin = admin
        self._url = url
        self._isolation = DIALECTS[dialect].isolation
        self._table = table
        self._moment_s, self._limit_s = limits_s

    def run(self, isolation: str, steps: Sequence[InterleavedStatement]) -> Interleaved:
        """Run steps in an isolation level on the rows (1, 10) and (2, 20). Raises ``MeasurementError``."""
        self._admin.query(f"DELETE FROM {self._table}")
        self._admin.query(f"INSERT INTO {self._table} (id, value) VALUES (1, 10), (2, 20)")
        course = Interleaved()
        on_connect = [] if self._isolation is None else [self._isolation.format(level=isolation.upper())]
        sessions: dict[int, _Session] = {}
        try:
            for who in sorted({step.who for step in steps}):
                connection = _engine.Admin(self._url, on_connect=on_connect, answer_timeout_s=self._limit_s)
                sessions[who] = _Session(connection, who, course)
            for step in steps:
                self._take(step, sessions)
            for session in sessions.values():
                session.end(2 * self._limit_s)
        finally:
            for session in sessions.values():
                session.close(self._limit_s)
        _, rows = self._admin.query(f"SELECT id, value FROM {self._table} ORDER BY id")
        course.final = _numbers(rows)
        return course

    def _take(self, step: InterleavedStatement, sessions: dict[int, _Session]) -> None:
        session = sessions[step.who]
        errors = len(session.course.errors)
        session.send(step.sql.format(t=self._table), step.name)
        if not session.idle.wait(self._moment_s):
            session.course.waited = True
        if step.sql not in ("COMMIT", "ROLLBACK") and len(session.course.errors) == errors:
            return
        # Whoever waited for a transaction that has ended goes on now.
        until = time.monotonic() + self._moment_s
        for other in sessions.values():
            other.idle.wait(max(until - time.monotonic(), 0.001))


@contextmanager
def interleaver(url: str, dialect: str, table: str, limits_s: tuple[float, float]) -> Iterator[Interleaver]:
    """Make the table for as long as the context lasts. Raises ``MeasurementError``, also where the table is there."""
    admin = _engine.Admin(url)
    try:
        admin.query(f"CREATE TABLE {table} (id int NOT NULL PRIMARY KEY, value int NOT NULL)")
        try:
            yield Interleaver(admin, url, dialect, table, limits_s)
        finally:
            admin.query(f"DROP TABLE {table}")
    finally:
        admin.close()


class _Session:
    """A transaction on a connection of its own, with a thread that waits for its answers."""

    def __init__(self, connection: _engine.Admin, who: int, course: Interleaved) -> None:
        self.course = course
        self.idle = threading.Event()
        self.idle.set()
        self._connection = connection
        self._who = who
        self._begun = self._failed = False
        self._statements: queue.SimpleQueue[tuple[str, str] | None] = queue.SimpleQueue()
        self._left = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name=f"transaction-{who}", daemon=True)
        self._thread.start()

    def send(self, sql: str, name: str) -> None:
        with self._lock:
            self._left += 1
            self.idle.clear()
        self._statements.put((sql, name))

    def _serve(self) -> None:
        while (statement := self._statements.get()) is not None:
            try:
                self._execute(*statement)
            except MeasurementError as error:
                self._fail(str(error))
            with self._lock:
                self._left -= 1
                if not self._left:
                    self.idle.set()

    def _execute(self, sql: str, name: str) -> None:
        if self._failed:
            # The server may have ended the transaction, and would take further statements for others.
            return
        if not self._begun:
            self._begun = True
            self._connection.query("BEGIN")
        _, rows = self._connection.query(sql)
        if name:
            self.course.rows[name] = _numbers(rows)
        if sql == "COMMIT":
            self.course.committed.add(self._who)

    def _fail(self, error: str) -> None:
        """Take note of an error, and let go what the transaction holds."""
        self._failed = True
        self.course.errors.append(f"T{self._who}: {error}")
        # Some servers have ended it already.
        with suppress(MeasurementError):
            self._connection.query("ROLLBACK")

    def end(self, limit_s: float) -> None:
        """Wait until all is answered. Raises ``MeasurementError`` where it is not."""
        if not self.idle.wait(limit_s):
            raise MeasurementError(f"transaction {self._who} did not end within {limit_s:g} s")

    def close(self, limit_s: float) -> None:
        self._statements.put(None)
        self._thread.join(limit_s)
        self._connection.close()


def _numbers(rows: Sequence[Sequence[str | None]]) -> Rows:
    return tuple(tuple(int(cell or 0) for cell in row) for row in rows)
