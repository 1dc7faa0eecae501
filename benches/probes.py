"""Probes: what they cost the load beside them, and how sharply they see replication lag."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from benches.client import beside, load_spec, probing
from benches.results import Result, at_least, at_most, mean, result
from benches.servers import family_cpu, load_data, own_cpu, server
from nephoscope import _engine
from nephoscope.engine.probes import Endpoint, Probes, ProbeSettings
from nephoscope.store import RunWriter, StoredRun
from nephoscope.systems.base import System
from nephoscope.systems.postgres.embedded import EmbeddedPostgres, EmbeddedPostgresSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benches.servers import Server

PAIRS = 20
"""A machine that others use, too, moves each pair by several per cent: the mean of so many is known to two or three."""
PAIRS_AT_A_RATE = 5
SCALE = 0.1
RATE = 200
HALF_WIDTH_US = 150
TURNS = 3
SECONDS = 10.0


def probes(folder: Path) -> Iterator[Result]:
    """TPS with and without probes at 200/s, in turns, and what a probe costs."""
    with server(folder / "server") as on:
        load_data(on.url, folder, "sales", SCALE)
        saturated, tps = _beside(on, {"concurrency": 8}, PAIRS)
        # What fail-overs are measured beside: a rate that the system can do.
        rate = round(tps / 2)
        at_a_rate, _ = _beside(on, {"rate": rate}, PAIRS_AT_A_RATE)
        detail = f"{mean(saturated)}; {tps:,.0f} TPS without; {_cost(on)}"
        yield result("TPS with probes at 200/s, saturated", "without", saturated, at_least(0.99), detail)
        detail = f"{mean(at_a_rate)}; {rate:,} transactions a second"
        yield result("the same at half that rate", "without", at_a_rate, at_least(0.99), detail)


def _beside(on: Server, level: dict[str, float], pairs: int) -> tuple[list[float], float]:
    spec = load_spec(on.url, "sales", SCALE, "RW", level=level, seconds=4.0)
    return beside(spec, {"probes": True}, pairs)


def _cost(on: Server) -> str:
    """Tell what a probe, which is a durable commit, uses of the processors where there is no load."""
    with probing(on.url, _engine.monotonic_ns()):
        time.sleep(1.0)
        before, at_server = sum(own_cpu()), family_cpu(on.pid)
        time.sleep(SECONDS)
        used = (sum(own_cpu()) - before, family_cpu(on.pid) - at_server)
    client, at_server = (seconds * 1e6 / (RATE * SECONDS) for seconds in used)
    return f"each takes {client:.0f} µs of the client's processor and {at_server:.0f} µs of the server's"


def lag_resolution(folder: Path) -> Iterator[Result]:
    """Half the width between the bounds of a lag: at a primary and its replica, and behind their proxies, in turns."""
    settings = EmbeddedPostgresSettings(data=folder / "cluster", replicas=1)
    at_nodes, behind_proxies = [], []
    with EmbeddedPostgres(settings) as cluster:
        system = cluster.start()
        nodes = System(rw=tuple(map(_at_the_node, system.rw)), ro=tuple(map(_at_the_node, system.ro)))
        for turn in range(TURNS):
            at_nodes.append(_half_width(nodes, folder / f"nodes-{turn}"))
            behind_proxies.append(_half_width(system, folder / f"proxies-{turn}"))
    ratios = [width / HALF_WIDTH_US for width in at_nodes]
    detail = f"p50 {_micros(at_nodes)}; behind proxies {_micros(behind_proxies)}"
    yield result("half-width of a lag, p50", f"{HALF_WIDTH_US:g} µs", ratios, at_most(1.0), detail)


def _at_the_node(url: str) -> str:
    """Tell where the node is that an address leads to."""
    admin = _engine.Admin(url)
    try:
        [[port]] = admin.query("SHOW port")[1]
    finally:
        admin.close()
    parts = urlsplit(url)
    return url.replace(f":{parts.port}/", f":{port}/")


def _half_width(system: System, folder: Path) -> float:
    """Give the median half-width of some markers, in microseconds."""
    folder.mkdir()
    writer = RunWriter(folder, {}, "")
    beginning = _engine.monotonic_ns()
    making = Probes(Endpoint.of(system), writer, beginning, ProbeSettings(), availability=False, lag=True)
    with making as running:
        time.sleep(SECONDS)
        running.stop()
    writer.close()
    rows = [row for row in StoredRun(folder).probes.to_pylist() if row["outcome"] == "ok"]
    return float(statistics.median((row["upper_ms"] - row["lower_ms"]) / 2 for row in rows)) * 1000


def _micros(widths: Sequence[float]) -> str:
    return f"{min(widths):.0f} to {max(widths):.0f} µs"
