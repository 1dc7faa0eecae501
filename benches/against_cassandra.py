"""What a YCSB read on Cassandra costs the client. Its own `cassandra-stress` is not on Maven Central."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from benches.cassandra_wire import connected, read
from benches.client import load_spec
from benches.costs import by_turns, exchange, median, ratios, told
from benches.results import Result, at_most, result
from benches.servers import load_data
from nephoscope import _engine
from nephoscope.systems.cassandra.embedded import EmbeddedCassandra, EmbeddedCassandraSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SESSIONS = 32
_SCALE = 10
_FIELDS = ", ".join(f"field{number}" for number in range(10))
_READ = f"SELECT {_FIELDS} FROM {{}}.usertable WHERE ycsb_key = ?"
_FLOOR = 1.4


def floor(folder: Path) -> Iterator[Result]:
    """Client CPU per YCSB read against the bare exchange of the same bytes by a minimal client, on one node."""
    settings = {"data": str(folder / "ring"), "nodes": 1, "replication_factor": 1, "heap": "512M"}
    with (
        EmbeddedCassandra(EmbeddedCassandraSettings.model_validate(settings)) as provider,
        contextlib.ExitStack() as stack,
    ):
        (url,) = provider.start().rw
        load_data(url, folder, "ycsb", _SCALE)
        admin = _engine.Admin(url)
        key = str(admin.query("SELECT ycsb_key FROM usertable LIMIT 1")[1][0][0])
        admin.close()
        made = [connected(url, _READ.format(url.rpartition("/")[2])) for _ in range(_SESSIONS)]
        sockets = [stack.enter_context(one) for one, _ in made]
        question = read(*made[0], key)

        def peer(_sessions: int) -> dict[str, float]:
            return exchange([one.fileno() for one in sockets], question)

        theirs, ours = by_turns(load_spec(url, "ycsb", _SCALE, "C"), _SESSIONS, peer)
    for io, found in ours.items():
        name = f"client CPU per read on Cassandra, ycsb C, {_SESSIONS} sessions, {io}, against the floor"
        detail = f"{told(found, theirs)}; {median(theirs, 'each'):.1f} answers a wait of the peer's"
        yield result(name, "the bare exchange by epoll", ratios(found, theirs), at_most(_FLOOR), detail)
