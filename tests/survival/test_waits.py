"""Waits that nothing ends but a signal: each of them does, at once, and nothing is left behind at the server."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import threading
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from commands import call, finish, start, wait_for
from databases import Server, query, running_server, study_of
from nephoscope import _engine
from nephoscope.collectors.monitor import Monitor
from nephoscope.collectors.presence import Presence
from nephoscope.errors import MeasurementError
from nephoscope.store import FILES
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.alone

AT_ONCE_S = 3.0
"""A look at signals every tenth of a second, a second for the request to cancel, and the end of the interpreter."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
COMMANDS = ("load", "check", "run")
EACH = [(command, number) for command in COMMANDS for number in SIGNALS]
ONE_EACH = list(zip(COMMANDS, SIGNALS, strict=True))
PROMISE = "SIGINT, SIGTERM and SIGHUP end it within three seconds, with exit code 1 and one message"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


# --- servers that are none


def message(tag: bytes, body: bytes) -> bytes:
    return tag + struct.pack(">i", len(body) + 4) + body


GREETING = message(b"R", bytes(4)) + message(b"K", struct.pack(">ii", 7, 8)) + message(b"Z", b"I")
NOTICE = message(b"N", b"SNOTICE\0C00000\0Monce more\0\0")
EMPTY = message(b"T", bytes(2)) + message(b"C", b"SELECT 0\0") + message(b"Z", b"I")


class Scripted:
    """A server that lets everybody in, and answers each question in its own manner."""

    def __init__(self, answer: Callable[[socket.socket], None]) -> None:
        self._answer = answer
        self.asked = threading.Event()
        self.cancelled = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://somebody@127.0.0.1:{self._listener.getsockname()[1]}/none?sslmode=disable"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                said = connection.recv(4096)
                if said[4:8] == struct.pack(">HH", 1234, 5678):
                    self.cancelled.set()
                    return
                connection.sendall(GREETING)
                while connection.recv(65536)[:1] == b"Q":
                    self.asked.set()
                    self._answer(connection)
            except OSError:
                return

    def close(self) -> None:
        self._listener.close()


@contextmanager
def scripted(answer: Callable[[socket.socket], None]) -> Iterator[Scripted]:
    server = Scripted(answer)
    try:
        yield server
    finally:
        server.close()


def be_silent(_: socket.socket) -> None:
    time.sleep(0.01)


def flood(connection: socket.socket) -> None:
    while True:
        connection.sendall(NOTICE * 1000)


def say_nothing_of_it(connection: socket.socket) -> None:
    connection.sendall(EMPTY)


# --- the tool waits


def small(url: str, **load: Any) -> dict[str, Any]:
    tables = study_of(url, phases({"duration": "300ms", "mix": "RW", "concurrency": 2}))
    tables["load"] |= {"connect_timeout": "300s", **load}
    return tables


def ends_at_once(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Check that a signal ends a process that waits."""
    process.send_signal(number)
    begun = time.monotonic()
    ended = finish(process)
    assert time.monotonic() - begun < AT_ONCE_S
    assert ended.code == 1, ended
    assert ended.err.splitlines() == [f"nephoscope: interrupted by {number.name}"]


Waiting = dict[tuple[str, signal.Signals], tuple["subprocess.Popen[str]", Any]]
"""Processes that wait, by command and the signal that is to end them, each with what it waits for."""


@pytest.fixture(scope="module")
def waiting_for_silence(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Waiting]:
    """Start all that wait for a silent server, side by side: they come to life together, and then do nothing."""
    with ExitStack() as begun:
        found: Waiting = {}
        for command, number in EACH:
            server, folder = begun.enter_context(scripted(be_silent)), tmp_path_factory.mktemp("silent")
            process = begun.enter_context(start(command, write_study(folder, small(server.url)), cwd=folder))
            found[command, number] = process, server
        for process, server in found.values():
            wait_for(server.asked.is_set, "the question", process)
        yield found


@pytest.mark.parametrize(("command", "number"), EACH)
@pytest.mark.survives(
    part="start", fault="a server that is silent after the login", promise=PROMISE, on="a scripted server"
)
def test_a_server_that_is_silent_after_the_login(
    waiting_for_silence: Waiting, command: str, number: signal.Signals
) -> None:
    process, server = waiting_for_silence[command, number]
    ends_at_once(process, number)
    assert server.cancelled.wait(5), "the server was asked to give up"


@pytest.mark.parametrize(("command", "number"), ONE_EACH)
@pytest.mark.survives(
    part="start", fault="endless notices in place of an answer", promise=PROMISE, on="a scripted server"
)
def test_endless_notices(tmp_path: Path, command: str, number: signal.Signals) -> None:
    with (
        scripted(flood) as server,
        start(command, write_study(tmp_path, small(server.url)), cwd=tmp_path) as process,
    ):
        wait_for(server.asked.is_set, "the question", process)
        time.sleep(0.3)
        ends_at_once(process, number)


LOCKED = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


def is_waited_for(url: str) -> bool:
    return query(url, LOCKED) != [["0"]]


@pytest.fixture(scope="module")
def waiting_for_a_lock(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[Waiting]:
    """Start all that wait for a lock, side by side, each on a database of its own; gives the databases."""
    with ExitStack() as begun:
        found: Waiting = {}
        for command, number in EACH:
            url, folder = server.new_database(), tmp_path_factory.mktemp("locked")
            study = write_study(folder, small(url))
            assert call("load", study).code == 0
            holder = _engine.Admin(url)
            begun.callback(holder.close)
            holder.query("BEGIN; LOCK TABLE nephoscope_data")
            found[command, number] = begun.enter_context(start(command, study, cwd=folder)), url
        for process, url in found.values():
            wait_for(partial(is_waited_for, url), "the lock is waited for", process)
        yield found


@pytest.mark.parametrize(("command", "number"), EACH)
@pytest.mark.survives(
    part="start",
    fault="`nephoscope_data` is locked by another session",
    promise=f"{PROMISE}; nobody goes on waiting for the lock",
    on="PostgreSQL",
)
def test_a_lock_on_the_book(waiting_for_a_lock: Waiting, command: str, number: signal.Signals) -> None:
    process, url = waiting_for_a_lock[command, number]
    assert is_waited_for(url)
    ends_at_once(process, number)
    assert not is_waited_for(url)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.survives(
    part="start",
    fault="a COPY whose server process stands still (SIGSTOP) while data is loaded",
    promise=f"{PROMISE}; the sessions end when the server comes to itself",
    on="PostgreSQL",
)
def test_a_copy_that_stands_still(tmp_path: Path, server: Server, number: signal.Signals) -> None:
    url = server.new_database()
    tables = study_of(
        url, phases({"duration": "1s", "mix": "TPCB", "concurrency": 2}), name="tpcb", scale=100
    )
    of = (
        "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'COPY%' AND state = 'active'"
    )
    stopped: list[int] = []
    with start("load", write_study(tmp_path, tables), cwd=tmp_path) as process:
        wait_for(lambda: query(url, f"SELECT pid {of}"), "rows are copied", process)
        try:
            stopped = [int(row[0] or 0) for row in query(url, f"SELECT pid {of}")]
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(0.5)
            ends_at_once(process, number)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
    others = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    wait_for(lambda: query(url, others) == [["0"]], "no session is left")


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.survives(
    part="start",
    fault="a statement of `on_connect` that does not come to an end",
    promise="SIGINT, SIGTERM and SIGHUP end the run, within seconds, with exit code 1 and one message; the run"
    " directory says that it was interrupted",
    on="PostgreSQL",
)
def test_sessions_that_are_not_made(tmp_path: Path, server: Server, number: signal.Signals) -> None:
    url = server.new_database()
    study = write_study(tmp_path, small(url, on_connect=["SELECT pg_sleep(3600)"]))
    sleeping = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
    )
    with start("run", study, cwd=tmp_path) as process:
        wait_for(lambda: query(url, sleeping) != [["0"]], "the sessions are set up", process)
        process.send_signal(number)
        begun = time.monotonic()
        ended = finish(process)
    # A report is written besides.
    assert time.monotonic() - begun < 2 * AT_ONCE_S
    assert ended.code == 1
    assert ended.err.endswith(f"interrupted by {number.name}\n")
    assert "Traceback" not in ended.err + ended.out
    manifest = json.loads((tmp_path / "runs" / "latest" / FILES.manifest).read_text())
    assert (manifest["status"], manifest["reason"]) == ("interrupted", f"interrupted by {number.name}")


WORKLOAD = 'local w = workload "endless"\nw:transaction("t", function() end)\n'
LOOP = "while true do pcall(function() while true do end end) end"
BOMB = 'local _ = ("a"):rep(60):find(("a-"):rep(30) .. "b")'


def endless(folder: Path, lua: str) -> Path:
    workload = folder / "endless"
    workload.mkdir()
    (workload / "workload.lua").write_text(WORKLOAD + lua + "\n")
    (workload / "statements.sql").write_text("-- name: none\nSELECT 1;\n")
    return workload


@pytest.mark.parametrize(
    ("lua", "number"), [(LOOP, signal.SIGINT), (BOMB, signal.SIGTERM), (BOMB, signal.SIGHUP)]
)
@pytest.mark.survives(
    part="input",
    fault="a workload file that does not come to an end, in a loop under pcall or in a pattern",
    promise=PROMISE,
    on="the simulated database",
)
def test_a_workload_file_without_an_end_is_interrupted(
    tmp_path: Path, lua: str, number: signal.Signals
) -> None:
    study = write_study(tmp_path, sim_study(workload={"name": str(endless(tmp_path, lua))}))
    with start("run", study, cwd=tmp_path) as process:
        # It has used more processor time than the interpreter needs to come to life.
        wait_for(lambda: _processor_s(process.pid) > 3, "the file runs", process)
        ends_at_once(process, number)
    assert not (tmp_path / "runs").exists()


def _processor_s(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123 - no file to speak of
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


# --- parts


def test_a_question_has_its_own_time_limit_if_it_is_given_one() -> None:
    with scripted(be_silent) as server:
        admin = _engine.Admin(server.url)
        begun = time.monotonic()
        with pytest.raises(MeasurementError, match="no answer within the time limit"):
            admin.query("SELECT 1", answer_timeout_s=0.5)
        assert time.monotonic() - begun < 3
        admin.close()
        assert server.cancelled.wait(5)


class Notes:
    """Takes what a monitor writes."""

    def __init__(self) -> None:
        self.metrics_of: list[str] = []

    def metrics(self, _time_s: float, source: str, _values: object) -> None:
        self.metrics_of.append(source)


def test_statistics_without_a_row_end_no_monitor() -> None:
    notes = Notes()
    with scripted(say_nothing_of_it) as server:
        servers = {"server:rw": server.url}
        monitor = Monitor(notes, _engine.monotonic_ns(), "postgres", servers, Presence.of("test"))  # type: ignore[arg-type]
        wait_for(lambda: notes.metrics_of.count("host") >= 3, "samples after the one without a row")
        monitor.stop()
    assert set(notes.metrics_of) == {"host"}
