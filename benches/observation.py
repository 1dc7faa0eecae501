"""What the collectors cost the load beside them: wait events, 10 looks a second (MariaDB: 5), and counters, one."""

from __future__ import annotations

import os
import statistics
import time
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

from benches.client import beside, load_spec, observing
from benches.results import Result, at_least, at_most, mean, result
from benches.servers import family_cpu, load_data, mariadb, own_cpu, server
from nephoscope import _engine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benches.servers import Server

PAIRS = 20
"""A machine that others use, too, moves each pair by several per cent: the mean of so many is known to two or three."""
PAIRS_AT_A_RATE = 5
SCALE = 0.1
SECONDS = 4.0
SESSIONS = 16
"""Idle sessions that each look sees, too."""
TURNS = 5


def observation(folder: Path) -> Iterator[Result]:
    """TPS with and without the collectors of host and server, in turns; and the processors' time that they take."""
    for product, start in (("PostgreSQL", server), ("MariaDB", mariadb)):
        with start(folder / product) as on:
            load_data(on.url, folder, "sales", SCALE)
            yield _processors(product, on)
            yield from _transactions(product, on)


def _transactions(product: str, on: Server) -> Iterator[Result]:
    """Measure a load that keeps both processors busy, and one at half of its TPS."""
    what = "with wait events, counters, processes"
    spec = load_spec(on.url, "sales", SCALE, "RW", level={"concurrency": 8}, seconds=SECONDS)
    observed = {"observed": on.pid}
    saturated, tps = beside(spec, observed, PAIRS)
    detail = f"{mean(saturated)}; {tps:,.0f} TPS without"
    yield result(f"TPS {what}, {product}, saturated", "without", saturated, at_least(0.99), detail)
    rate = round(tps / 2)
    at_a_rate, _ = beside({**spec, "level": {"rate": rate}}, observed, PAIRS_AT_A_RATE)
    detail = f"{mean(at_a_rate)}; {rate:,} transactions a second"
    yield result(f"the same of {product} at half that rate", "without", at_a_rate, at_least(0.99), detail)


def _processors(product: str, on: Server) -> Result:
    """Measure what the collectors take of the machine's processors, client and server together, beside no load."""
    with ExitStack() as sessions:
        for _ in range(SESSIONS):
            sessions.callback(_engine.Admin(on.url).close)
        idle, used = (_used(on, observed=observed) for observed in (False, True))
    cores = len(os.sched_getaffinity(0))
    shares = [(one[0] + one[1] - sum(idle[0])) / cores for one in used]
    client, at_server = (1000 * statistics.median(one[part] for one in used) for part in (0, 1))
    detail = (
        f"client {client:.1f} ms, server {at_server:.1f} ms a second; {cores} cores, {SESSIONS} idle sessions"
    )
    return result(f"processor time of the collectors, {product}", "all cores", shares, at_most(0.01), detail)


def _used(on: Server, *, observed: bool) -> list[tuple[float, float]]:
    """Give the processor seconds a second of client and server, turn by turn."""
    found = []
    with observing(on.url, _engine.monotonic_ns(), on.pid) if observed else nullcontext():
        time.sleep(2.0)
        for _ in range(TURNS):
            before, at_server = sum(own_cpu()), family_cpu(on.pid)
            time.sleep(SECONDS)
            used = (sum(own_cpu()) - before, family_cpu(on.pid) - at_server)
            found.append((used[0] / SECONDS, used[1] / SECONDS))
    return found
