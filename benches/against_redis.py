"""Against redis-benchmark: what a YCSB read costs the client, on one Redis."""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benches.client import load_spec
from benches.costs import by_turns, median, ratios
from benches.results import Result, at_most, result
from benches.servers import installed, load_data, timed
from nephoscope import _engine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SESSIONS = 32
_REQUESTS = 200_000
_FIELDS = [f"field{number}" for number in range(10)]
_STARTS_WITHIN_S = 10.0


@contextmanager
def _redis(folder: Path) -> Iterator[str]:
    """Start a server on a Unix socket, which persists nothing; give the socket's path."""
    socket = folder / "socket"
    program = installed("redis-server", "redis-server")
    keep = [
        "--port",
        "0",
        "--unixsocket",
        str(socket),
        "--dir",
        str(folder),
        "--save",
        "",
        "--appendonly",
        "no",
    ]
    with subprocess.Popen([program, *keep], stdout=subprocess.DEVNULL) as server:
        try:
            end = time.monotonic() + _STARTS_WITHIN_S
            while not socket.exists() and time.monotonic() < end:
                time.sleep(0.01)
            yield str(socket)
        finally:
            server.terminate()


def redis(folder: Path) -> Iterator[Result]:
    """Client CPU of a YCSB read with 32 sessions against redis-benchmark, unpipelined: HMGET of the same ten fields."""
    program = installed("redis-benchmark", "redis-tools")
    with _redis(folder) as socket:
        url = f"redis:///0?socket={socket}"
        load_data(url, folder, "ycsb", 10)
        admin = _engine.Admin(url)
        key = admin.query("ZRANGE usertable 0 0")[1][0][0]
        admin.close()
        words = ["-s", socket, "-q", "-n", str(_REQUESTS), "HMGET", f"usertable:{key}", *_FIELDS]

        def peer(sessions: int) -> dict[str, float]:
            used = timed([program, "-c", str(sessions), *words])
            each = {"cpu_us": used.cpu, "user_us": used.user}
            return {name: cost * 1e6 / _REQUESTS for name, cost in each.items()} | {
                "tps": _REQUESTS / used.wall
            }

        theirs, ours = by_turns(load_spec(url, "ycsb", 10, "C"), _SESSIONS, peer)
    for io, found in ours.items():
        detail = (
            f"{median(found, 'cpu_us'):.2f} µs against {median(theirs, 'cpu_us'):.2f} µs a read "
            f"(user {median(found, 'user_us'):.2f} against {median(theirs, 'user_us'):.2f}); "
            f"TPS {median(found, 'tps'):,.0f} against {median(theirs, 'tps'):,.0f}"
        )
        name = f"client CPU per read on Redis, ycsb C, {_SESSIONS} sessions, {io}"
        yield result(name, "redis-benchmark", ratios(found, theirs), at_most(1.0), detail)
