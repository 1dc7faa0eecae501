"""Against sysbench: what a point select on MariaDB costs the client."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from benches.client import load_spec
from benches.costs import SECONDS, by_turns, cost, exchange, median, ratios, told, ways
from benches.mariadb_wire import connected
from benches.mariadb_wire import point_select as mariadb_select
from benches.results import Result, at_most, result
from benches.servers import Server, installed, mariadb, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORKLOAD = Path(__file__).parent / "sbtest"
_ROWS = 100_000
_BARS = {8: 0.85, 32: 0.7, 128: 0.6}
"""By sessions, on io_uring."""
_EPOLL = 0.9
_FLOOR = 1.2
_SELECT = "SELECT c FROM sbtest1 WHERE id = ?"


def point_select(folder: Path) -> Iterator[Result]:
    """Client CPU per point select against sysbench's oltp_point_select, prepared, on one thread."""
    with mariadb(folder) as on:
        timed(_command(on, "prepare"))
        spec = load_spec(on.url, _WORKLOAD, 1, "SELECT")
        for sessions, bar in _BARS.items():
            theirs, ours = by_turns(spec, sessions, lambda sessions: _turn(on, sessions))
            for io, found in ours.items():
                name = f"client CPU per point select, MariaDB, {sessions} sessions, {io}"
                allowed = at_most(bar if io == "uring" else _EPOLL)
                peer = "sysbench oltp_point_select"
                yield result(name, peer, ratios(found, theirs), allowed, told(found, theirs))


def floor(folder: Path) -> Iterator[Result]:
    """Client CPU per point select on MariaDB against the bare exchange of the same bytes by a minimal client."""
    sessions, io = 32, ways()[-1]
    with mariadb(folder) as on, contextlib.ExitStack() as stack:
        timed(_command(on, "prepare"))
        sockets = [stack.enter_context(connected(on.url, _SELECT)) for _ in range(sessions)]
        (question,) = {mariadb_select(made, _ROWS) for made in sockets}

        def peer(_sessions: int) -> dict[str, float]:
            return exchange([made.fileno() for made in sockets], question)

        theirs, ours = by_turns(load_spec(on.url, _WORKLOAD, 1, "SELECT"), sessions, peer, [io])
    found = ours[io]
    name = f"client CPU per point select, MariaDB, {sessions} sessions, {io}, against the floor"
    detail = f"{told(found, theirs)}; {median(theirs, 'each'):.1f} answers a wait of the peer's"
    yield result(name, "the bare exchange by epoll", ratios(found, theirs), at_most(_FLOOR), detail)


def _turn(on: Server, sessions: int) -> dict[str, float]:
    return run_turn(_command(on, "run"), sessions)


def _command(on: Server, action: str) -> list[str]:
    return sysbench(on, "oltp_point_select", f"--table-size={_ROWS}", "--rand-type=uniform", action)


def run_turn(command: list[str], sessions: int) -> dict[str, float]:
    """Run sysbench for some seconds; give its processor time per transaction."""
    used = timed([*command, f"--threads={sessions}", f"--time={SECONDS:g}", "--percentile=0"])
    line = next(line for line in used.output.splitlines() if "transactions:" in line)
    return cost(used, int(line.split(":")[1].split("(")[0]))


def sysbench(on: Server, script: str, *options: str) -> list[str]:
    """Give the command of a script of sysbench's for a server's database."""
    driver = "pgsql" if on.url.startswith("postgres") else "mysql"
    words = {
        "host": on.parts.hostname,
        "port": on.parts.port,
        "user": on.user,
        "password": on.password,
        "db": on.database,
    }
    connection = [f"--{driver}-{word}={value}" for word, value in words.items()]
    return [installed("sysbench", "sysbench"), script, f"--db-driver={driver}", *connection, *options]
