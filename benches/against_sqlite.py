"""Against SQLite's C interface: what a transaction costs over the bare loop, on one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benches.client import load_spec
from benches.costs import SECONDS, by_turns, cost, ratios, told
from benches.results import Result, at_most, result
from benches.servers import SCALE, example, load_data, timed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BAR = 1.5
# What a commit costs is the disk's where each waits for it; here the log is synced at checkpoints alone.
_PRAGMAS = ("journal_mode=wal", "synchronous=normal")
_SCRIPTS = {"SELECT": "select", "TPCB": "tpcb"}
"""By our mix, the script of the bare loop."""


def sqlite(folder: Path) -> Iterator[Result]:
    """Client CPU of a point select and of TPC-B over the bare loop: the same library, file, pragmas and statements."""
    program, file = example("nephoscope-drivers", "sqlite_loop"), folder / "bench.db"
    url = f"sqlite://{file}?{'&'.join(_PRAGMAS)}&begin=immediate"
    load_data(url, folder, "tpcb", SCALE)
    for mix, script in _SCRIPTS.items():
        command = [str(program), f"{SECONDS:g}", str(file), str(SCALE), script, *_PRAGMAS]

        def peer(_sessions: int, command: list[str] = command) -> dict[str, float]:
            used = timed(command)
            return cost(used, int(used.output))

        theirs, ours = by_turns(load_spec(url, "tpcb", SCALE, mix), 1, peer, ["epoll"])
        name = f"CPU per transaction on SQLite, tpcb {mix}, one session"
        found = ours["epoll"]
        peer_name = "the sqlite3 C API in a minimal loop"
        yield result(name, peer_name, ratios(found, theirs), at_most(_BAR), told(found, theirs))
