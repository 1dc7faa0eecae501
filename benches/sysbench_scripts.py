"""Against sysbench: what its own scripts, unmodified, cost the client when nephoscope runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benches.against_sysbench import run_turn, sysbench
from benches.client import load_spec
from benches.costs import by_turns, ratios, told, ways
from benches.results import Result, at_most, result
from benches.servers import Server, mariadb, server, timed
from nephoscope.foreign.naming import Named, folder_of
from nephoscope.foreign.sysbench import Sysbench

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCRIPTS = ("oltp_point_select", "oltp_read_write")
_OPTIONS = {"table_size": 100_000, "rand_type": "uniform"}
_BARS = {8: 0.9, 32: 0.75}
"""By sessions."""


def scripts(folder: Path) -> Iterator[Result]:
    """Client CPU per transaction of sysbench's own scripts, by nephoscope and by sysbench, prepared, on one thread."""
    for product, started in (("PostgreSQL", server), ("MariaDB", mariadb)):
        with started(folder / product) as on:
            timed(_command(on, _SCRIPTS[0], "prepare"))
            for script in _SCRIPTS:
                yield from _compared(on, product, script)


def _compared(on: Server, product: str, script: str) -> Iterator[Result]:
    io = ways()[-1]
    for sessions, bar in _BARS.items():
        theirs, ours = by_turns(
            _spec(on.url, script),
            sessions,
            lambda number: run_turn(_command(on, script, "run"), number),
            [io],
        )
        name = f"client CPU per transaction, {script}.lua, {product}, {sessions} sessions, {io}"
        found = ours[io]
        yield result(name, f"sysbench {script}", ratios(found, theirs), at_most(bar), told(found, theirs))


def _spec(url: str, script: str) -> dict[str, Any]:
    """Describe a load of a script's events, on tables that are there."""
    parts = Sysbench().asked([script], ()).parts
    spec = load_spec(url, folder_of(Named(Sysbench(), parts)), 1, "ALL")
    spec["tenants"][0]["workload"]["options"] = dict(_OPTIONS)
    return spec


def _command(on: Server, script: str, action: str) -> list[str]:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in _OPTIONS.items()]
    return sysbench(on, script, *words, action)
