"""Against a truth that is known beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benches.client import load_spec, measure
from benches.results import Result, result
from benches.servers import SCALE, pgbench_tables, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def stall(_folder: Path) -> Iterator[Result]:
    """A planted stall of 2 s at 500/s for 20 s: p99 against the truth computed from the plan."""
    rate, seconds, at, length, service = 500, 20.0, 9.0, 2.0, 0.001
    spec = load_spec(f"sim://?latency=constant(1ms)&stall={at + 1:g}s%2B{length:g}s", "tpcb", 1, "SELECT")
    found = measure({**spec, "level": {"rate": rate}, "seconds": seconds})
    # Arrivals lie evenly; whoever comes in the stall waits for its end.
    times = [(k + 0.5) / rate for k in range(round(rate * seconds))]
    truth = sorted((at + length - t if at - service <= t < at + length else 0.0) + service for t in times)
    p99 = truth[int(0.99 * len(truth)) - 1]
    ratio = found["latency_ns"]["0.99"] / 1e9 / p99
    bar = ("within 5 %", lambda ratio: abs(ratio - 1) <= 0.05)
    detail = f"p99 {found['latency_ns']['0.99'] / 1e9:.3f} s, truth {p99:.3f} s"
    yield result("p99 under a planted stall", "the plan", [ratio], bar, detail)


def rate(folder: Path) -> Iterator[Result]:
    """A constant rate of 2,000/s on a real PostgreSQL: how many arrivals each second has."""
    with server(folder) as on:
        pgbench_tables(on)
        spec = load_spec(on.url, "tpcb", SCALE, "SELECT")
        found = measure({**spec, "level": {"rate": 2000}, "seconds": 10.0})
    counts = [interval["arrivals"] / interval["seconds"] / 2000 for interval in found["intervals"]]
    detail = (
        f"{len(counts)} seconds; {found['committed']:,} committed, {found['failed']} failed; "
        f"schedule lag p50 {found['lag_ns']['0.5'] / 1000:.0f} µs, p99 {found['lag_ns']['0.99'] / 1000:.0f} µs"
    )
    exact = ("exact in every second", lambda _: set(counts) == {1.0})
    yield result("arrivals per second at 2,000/s", "the rate", counts, exact, detail)
