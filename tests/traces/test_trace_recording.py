"""``nephoscope trace record``: what clients ask through it becomes a trace; nothing else is one."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import socket
import subprocess
import threading
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
import pyarrow.parquet as pq
import pytest
from psycopg.types.json import Jsonb
from psycopg.types.numeric import Float4, Int2, Oid

from commands import call, finish
from databases import running_mariadb, running_server
from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.interrupts import Interrupted
from nephoscope.traces.recording import record_trace
from recordings import interrupted, recorder, recording, server_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UTC = dt.UTC
VALUES: list[object] = [
    True, Int2(-7), 70_000, 1 << 40, Oid(4_000_000_000), Float4(0.1), 1e15, -1.25e-7, "it's", b"\x00\xff",
    Decimal("-12345.0670"), Decimal("1e-20"), Decimal("NaN"), Jsonb({"a": [1, "x"]}), uuid.UUID(int=7),
    dt.date(1999, 12, 31), dt.time(1, 2, 3, 40_000), dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
    dt.datetime(1960, 1, 2, 3, 4, 5, 678),  # noqa: DTZ001 - a timestamp without a zone
    None,
]  # fmt: skip
SECRET = "hunter2-never-kept"


def statements(trace: Path) -> list[dict[str, Any]]:
    return pq.read_table(trace).to_pylist()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server() as server:
        yield server.new_database()


def test_values_in_binary_are_as_the_server_shows_them(url: str, tmp_path: Path) -> None:
    out = tmp_path / "trace.parquet"
    shown = []
    with recording(url, out) as through, psycopg.connect(through, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"SELECT '{SECRET}' AS password")
        for value in VALUES:
            row = connection.execute("SELECT (%b)::text", (value,)).fetchone()
            shown.append(row[0] if row else "no row")
    found = [one for one in statements(out) if one["statement"].startswith("select ($1)")]
    # PostgreSQL's cast writes `true`, its output function, and so its log, `t`.
    assert [one["parameters"] for one in found] == [["t"], *([text] for text in shown[1:])]
    assert {(one["rows"], one["error"]) for one in found} == {(1, None)}
    assert all(one["duration_us"] > 0 for one in found)
    assert SECRET.encode() not in out.read_bytes()


def test_simple_queries_errors_and_copies_are_recorded(url: str, tmp_path: Path) -> None:
    out = tmp_path / "trace.parquet"
    with (
        recording(url, out, left_out=False) as through,
        psycopg.connect(through, autocommit=True) as connection,
    ):
        connection.execute("CREATE TEMP TABLE kept (a int)")
        with connection.cursor() as cursor, cursor.copy("COPY kept FROM STDIN") as copy:
            copy.write("1\n2\n3\n")
        connection.execute("UPDATE kept SET a = a + 1; DELETE FROM kept")
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / %s", (0,))
        with connection.pipeline():
            cursors = [connection.execute("SELECT %s::int", (number,)) for number in range(5)]
            assert [cursor.fetchone() for cursor in cursors] == [(number,) for number in range(5)]
    found = [(one["statement"], one["rows"], one["error"]) for one in statements(out)]
    assert found == [
        ("create temp table kept(a int)", None, None),
        ("copy kept from stdin", 3, None),
        ("update kept set a = a + $1; delete from kept", None, None),
        ("select $1 / $2", None, "22012"),
        *[("select $1::int", 1, None)] * 5,
    ]


def test_what_a_client_of_mariadb_asks_is_recorded(tmp_path: Path) -> None:
    out, rows = tmp_path / "trace.parquet", tmp_path / "rows.tsv"
    rows.write_text("7\tseven\n8\teight\n")
    with running_mariadb(local_infile=True) as server:
        url = server.new_database()
        with recording(url, out) as through:
            parts = urlsplit(through)
            sql = f"""
                CREATE TABLE kept (a INT PRIMARY KEY, b TEXT);
                LOAD DATA LOCAL INFILE '{rows}' INTO TABLE kept;
                SELECT * FROM kept; SELECT 1 + 1;
                UPDATE kept SET b = 'it''s' WHERE a < 9;
                UPDATE kept SET b = "it's" WHERE a < 9;
                INSERT INTO kept VALUES (7, 'twice');
                PREPARE s FROM 'SELECT b FROM kept WHERE a = ?'; SET @a = 7; EXECUTE s USING @a;
                CREATE USER stranger IDENTIFIED BY '{SECRET}';
                USE mysql; SELECT 'elsewhere';
            """
            command = [
                "mariadb", "--no-defaults", "--force", "--local-infile", f"--host={parts.hostname}",
                f"--port={parts.port}", f"--user={parts.username}", parts.path[1:],
            ]  # fmt: skip
            given = {**os.environ, "MYSQL_PWD": parts.password or ""}
            subprocess.run(
                command, input=sql, text=True, check=False, capture_output=True, timeout=60, env=given
            )
    found = [(one["statement"], one["rows"], one["error"]) for one in statements(out)]
    first = next(at for at, (text, *_) in enumerate(found) if text.startswith("create table"))
    assert found[first:] == [
        ("create table kept(a INT primary key, b TEXT)", 0, None),
        ("LOAD DATA LOCAL INFILE $1 into table kept", 2, None),
        ("select * from kept", 2, None),
        ("select $1 + $2", 1, None),
        # Rows that were found, whether or not they were changed.
        ("update kept set b = $1 where a < $2", 2, None),
        ("update kept set b = $1 where a < $2", 2, None),
        ("insert into kept values ($1, $2), …", None, "1062"),
        ("PREPARE s from $1", 0, None),
        ("set @a = $1", 0, None),
        ("EXECUTE s using @a", 1, None),
        # What the client asks before it changes the database, by a command that is no statement.
        ("select DATABASE()", 1, None),
        ("select $1", 1, None),
    ]
    assert statements(out)[-1]["database"] == "mysql"
    assert SECRET.encode() not in out.read_bytes()


def test_a_recording_of_some_seconds_ends_by_itself_masked(url: str, tmp_path: Path) -> None:
    out = tmp_path / "trace.parquet"
    with (
        recorder(server_of(url), out, "--mask", "--for", "3s") as (process, port),
        # A client that stays is no reason to go on.
        psycopg.connect(url, host="127.0.0.1", port=port, autocommit=True) as connection,
    ):
        connection.execute("SELECT 'plantedword'")
        ended = finish(process)
    assert (ended.code, ended.err) == (0, "")
    assert "1 statement of 1 connection (postgresql-wire, masked)" in ended.out
    assert b"plantedword" not in out.read_bytes()
    described = call("trace", "describe", out).out
    assert "postgresql-wire" in described
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trace.parquet"]


@contextlib.contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Listen as a server that answers whatever comes first, and then ends the connection."""

    def serve() -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as client:
            client.recv(100)
            if answer:
                client.sendall(answer)
                client.recv(100)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"postgresql://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize(
    ("said", "answer", "message"),
    [
        (
            b"\0\0\0\x08\x04\xd2\x16\x2f",
            b"S",
            "1 connections that are encrypted: connect with sslmode=disable",
        ),
        (b"GET / HTTP/1.1\r\n", b"", "1 connections that do not speak the protocol"),
        (b"", b"", "It has nothing at all"),
    ],
)
def test_without_a_statement_there_is_no_trace(
    tmp_path: Path, said: bytes, answer: bytes, message: str
) -> None:
    with answering(answer) as server, recorder(server, tmp_path / "trace.parquet") as (process, port):
        if said:
            with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
                client.sendall(said)
                assert client.recv(100) == answer
        ended = interrupted(process)
    assert ended.code == 2
    assert "no statement was recorded" in ended.err
    assert len(ended.err.splitlines()) == 1
    assert message in " ".join(ended.err.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from", "redis://h:1/"], "no URL of PostgreSQL, MariaDB or MySQL (allowed: such as"),
        (["--from", "h:5432"], "(allowed: such as postgresql://10.0.0.5:5432/ or mysql://10.0.0.5:3306/)"),
        (["--from", "postgresql://h:x/"], "(allowed: such as postgresql://10.0.0.5:5432/"),
        (["--from", f"postgresql://me:{SECRET}@h/shop"], "user and password are the clients'"),
        (["--from", "postgresql://127.0.0.1:1/", "--listen", "here"], "allowed is an address with a port"),
        (["--from", "postgresql://127.0.0.1:1/", "--for", "0s"], "--for 0s: no such length"),
        (["--from", "postgresql://127.0.0.1:1/", "--out", "none/trace"], "none"),
    ],
)
def test_what_cannot_be_recorded_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    ended = call("trace", "record", "--out", tmp_path / "trace.parquet", *options)
    assert (ended.code, ended.out) == (2, "")
    assert message in " ".join(ended.err.split())
    assert SECRET not in ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        ended = call(
            "trace", "record", "--from", "postgresql://127.0.0.1:1/", "--listen", address,
            "--out", tmp_path / "trace.parquet",
        )  # fmt: skip
    assert ended.code == 2
    assert f"listen {address}: Address already in use" in " ".join(ended.err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_takes_no_connection_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        server = f"postgresql://127.0.0.1:{closed.getsockname()[1]}/"
    with recorder(server, tmp_path / "trace.parquet") as (process, port):
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection(("127.0.0.1", port), timeout=20) as client,
        ):
            assert client.recv(1) == b""
        ended = interrupted(process)
    assert ended.code == 2
    assert "1 connections that the server did not take" in " ".join(ended.err.split())


class Recorder:
    """A recorder whose recording is interrupted a number of times before it ends, without a statement."""

    connect, server, kind = "psql", "h:5432", ("form", "dialect", 1)
    records, zone, left_out = 0, "UTC", {"of a kind": 1}

    def __init__(self, interruptions: int) -> None:
        self.interruptions = interruptions
        self.stopped = 0

    def next(self) -> None:
        if self.interruptions:
            self.interruptions -= 1
            raise Interrupted("interrupted by SIGINT")

    def stop(self) -> None:
        self.stopped += 1


@pytest.mark.parametrize(("interruptions", "raised"), [(0, InputError), (1, InputError), (2, Interrupted)])
def test_the_second_interruption_gives_a_recording_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, interruptions: int, raised: type[BaseException]
) -> None:
    recorder = Recorder(interruptions)
    monkeypatch.setattr(_engine, "SqlTraceRecorder", lambda *_: recorder)
    with pytest.raises(raised):
        record_trace("", tmp_path / "trace.parquet", listening=lambda _: None)
    assert recorder.stopped == min(interruptions, 1)
    assert list(tmp_path.iterdir()) == []
