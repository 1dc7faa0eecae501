"""What the collectors cost the load beside them: looks at wait events ten times a second, counters once a second."""

from __future__ import annotations

import os
import statistics
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from benches.client import load_spec, measure, observing
from benches.engine import at_least
from benches.results import Result, at_most, result
from benches.servers import family_cpu, load_data, own_cpu, server
from nephoscope import _engine
from nephoscope.statistics import half_width, mean_ci

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAIRS = 20
"""A machine that others use, too, moves each pair by several per cent: the mean of so many is known to two or three."""
SCALE = 0.1
SECONDS = 4.0
SESSIONS = 16
"""Idle sessions that each look sees, too."""
TURNS = 5


def observation(folder: Path) -> Iterator[Result]:
    """TPS with and without the collectors of host and server, in turns; and the processors' time that they take."""
    with server(folder / "server") as on:
        load_data(on.url, folder, "sales", SCALE)
        spec = load_spec(on.url, "sales", SCALE, "RW", level={"concurrency": 8}, seconds=SECONDS)
        postmaster = int(
            on.run("psql", "-Atc", "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)")
        )
        yield _processors(on.url, postmaster)
        ratios, without = [], []
        for pair in range(PAIRS):
            # In turns, and each first in every other pair: what drifts hits both.
            order = [True, False] if pair % 2 else [False, True]
            tps = {
                observed: measure({**spec, "observed": postmaster * observed})["tps"] for observed in order
            }
            ratios.append(tps[True] / tps[False])
            without.append(tps[False])
    mean = mean_ci(ratios)
    detail = f"mean {mean.mean:.3f} ± {half_width(mean.ci95) or 0.0:.3f}; {statistics.median(without):,.0f} TPS without"
    yield result(
        "TPS with wait events at 10/s, counters, processes", "without", ratios, at_least(0.99), detail
    )


def _processors(url: str, postmaster: int) -> Result:
    """Measure what the collectors take of the machine's processors, client and server together, beside no load."""
    sessions = [_engine.Admin(url) for _ in range(SESSIONS)]
    cores = len(os.sched_getaffinity(0))
    idle, used = (_used(url, postmaster, observed=observed) for observed in (False, True))
    for session in sessions:
        session.close()
    shares = [(one[0] + one[1] - sum(idle[0])) / cores for one in used]
    client, at_server = (1000 * statistics.median(one[part] for one in used) for part in (0, 1))
    detail = (
        f"client {client:.1f} ms, server {at_server:.1f} ms a second; {cores} cores, {SESSIONS} idle sessions"
    )
    return result("processor time of the collectors", "all cores", shares, at_most(0.01), detail)


def _used(url: str, postmaster: int, *, observed: bool) -> list[tuple[float, float]]:
    """Give the processor seconds a second of client and server, turn by turn."""
    found = []
    with observing(url, _engine.monotonic_ns(), postmaster) if observed else nullcontext():
        time.sleep(2.0)
        for _ in range(TURNS):
            before, at_server = sum(own_cpu()), family_cpu(postmaster)
            time.sleep(SECONDS)
            used = (sum(own_cpu()) - before, family_cpu(postmaster) - at_server)
            found.append((used[0] / SECONDS, used[1] / SECONDS))
    return found
