"""A load without anything around it: the engine, and what reads its records, in a process of its own.

``python -m benches.client LOAD.json`` runs the load and prints what this process used in the measured phase. It is
what a run costs the client: the load threads, the histograms, and Python reading the records.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches.servers import own_cpu, timed
from nephoscope import _engine
from nephoscope.collectors.monitor import Monitor
from nephoscope.collectors.presence import Presence
from nephoscope.dialects import DIALECTS, dialect_of
from nephoscope.engine.probes import Endpoint, Probes, ProbeSettings
from nephoscope.store import RunWriter
from nephoscope.systems.base import System
from nephoscope.systems.machine.processes import family

if TYPE_CHECKING:
    from collections.abc import Iterator


def load_spec(
    url: str,
    workload: str | Path,
    scale: float,
    mix: str,
    **changes: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """Describe a load of one tenant; the phases are still to come. A workload has a name, or is a folder."""
    folder = Path(__file__).parent.parent / "workloads" / workload
    return {
        "seed": 1,
        "threads": 1,
        "interval_ms": 1000,
        "statement_mode": "prepared",
        "pipeline": False,
        "connect_timeout_ms": 10_000,
        "statement_timeout_ms": 30_000,
        "drain_timeout_ms": 5_000,
        "retry": {"attempts": 5, "backoff_ms": 5, "backoff_max_ms": 200},
        "on_connect": [],
        "balance": "round-robin",
        "tenants": [
            {
                "name": "default",
                "rw": [url],
                "ro": [],
                "reads": "rw",
                "writer_weight": 1.0,
                "workload": {"folder": str(folder), "scale": scale, "data_seed": 7},
                "sessions": 64,
                "backlog": 100_000,
            }
        ],
        "mix": mix,
        **changes,
    }


def measure(spec: dict[str, Any]) -> dict[str, Any]:
    """Run a load in a process of its own; its ``level`` and ``seconds`` stand in the specification."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(spec, file)
        file.flush()
        used = timed([sys.executable, "-m", "benches.client", file.name])
    found: dict[str, Any] = json.loads(used.output)
    return found


def beside(spec: dict[str, Any], what: dict[str, Any], pairs: int) -> tuple[list[float], float]:
    """Measure a load with and without what stands beside it, such as ``{"probes": True}``.

    Give the ratios of its TPS, and the median TPS without.
    """
    ratios, without = [], []
    for pair in range(pairs):
        # In turns, and each first in every other pair: what drifts hits both.
        order = [True, False] if pair % 2 else [False, True]
        tps = {is_there: measure({**spec, **(what if is_there else {})})["tps"] for is_there in order}
        ratios.append(tps[True] / tps[False])
        without.append(tps[False])
    return ratios, statistics.median(without)


def resident_mb() -> float:
    """Memory that this process holds, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def probing(url: str, origin_ns: int) -> Iterator[None]:
    """Probe an endpoint's availability meanwhile, and write the samples, as a run does."""
    with tempfile.TemporaryDirectory() as folder:
        writer = RunWriter(Path(folder), {}, "")
        with Probes(Endpoint.of(System(rw=(url,))), writer, origin_ns, ProbeSettings()):
            yield
        writer.close()


@contextlib.contextmanager
def observing(url: str, origin_ns: int, pid: int) -> Iterator[None]:
    """Sample host and server meanwhile, wait events and processes included, and write the samples, as a run does."""
    with tempfile.TemporaryDirectory() as folder:
        writer = RunWriter(Path(folder), {}, "")
        servers = {"server:rw": url}
        presence = Presence.of("bench")
        of_server = partial(family, pid)
        dialect = next(name for name, one in DIALECTS.items() if one is dialect_of(url))
        monitor = Monitor(writer, origin_ns, dialect, servers, presence, processes=of_server)
        try:
            yield
        finally:
            monitor.stop()
            writer.close()


def run(spec: dict[str, Any]) -> dict[str, Any]:
    """Run a load, beside probes or the collectors if it says so; give what its measured phase used."""
    level, seconds, mix = spec.pop("level"), spec.pop("seconds"), spec.pop("mix")
    url = spec["tenants"][0]["rw"][0]
    probes, pid = spec.pop("probes", False), spec.pop("observed", 0)
    warmup = {"name": "warm-up", "kind": "warm_up", "seconds": 1.0, "loads": {"*": {**level, "mix": mix}}}
    measure = {"name": "measure", "kind": "measure", "seconds": seconds, "loads": {}}
    at_start = resident_mb()
    load = _engine.Run(json.dumps({**spec, "phases": [warmup, measure]}))
    with contextlib.ExitStack() as stack:
        if probes:
            stack.enter_context(probing(url, load.origin_ns))
        if pid:
            stack.enter_context(observing(url, load.origin_ns, pid))
        return _read(load, seconds, at_start)


def _read(load: _engine.Run, seconds: float, at_start: float) -> dict[str, Any]:
    """Read a load to its end; ``at_start`` is the memory that this process had before."""
    before = after = None
    intervals: list[dict[str, Any]] = []
    latency, lag = _engine.Histogram(), _engine.Histogram()
    committed = failed = 0
    load_cpu = 0.0
    while True:
        text = load.next(0.2)
        if before is None and load.elapsed() >= 1.0:
            before = own_cpu()
        if after is None and load.elapsed() >= 1.0 + seconds:
            after = own_cpu()
        if text is None:
            continue
        record = json.loads(text)
        if record["record"] == "end":
            break
        if record["record"] == "interval" and record["phase"] == 1:
            for series in record["series"]:
                committed += series["committed"]
                failed += series["failed"]
                if "latency" in series:
                    latency.add(_engine.Histogram.decode(series["latency"]))
            lag_p50 = None
            if record["lag"]:
                of_interval = _engine.Histogram.decode(record["lag"]["histogram"])
                lag.add(of_interval)
                lag_p50 = of_interval.quantile(0.5)
            load_cpu += record["cpu_s"]
            intervals.append(
                {
                    "seconds": record["end_s"] - record["start_s"],
                    "late_s": load.elapsed() - record["end_s"],
                    "series": len(record["series"]),
                    "committed": sum(series["committed"] for series in record["series"]),
                    "arrivals": sum(tenant["arrivals"] for tenant in record["tenants"]),
                    "lag_p50_ns": lag_p50,
                    "memory_mb": resident_mb(),
                }
            )
    used = [b - a for a, b in zip(before or (0, 0), after or own_cpu(), strict=True)]
    return {
        "committed": committed,
        "failed": failed,
        "user_us": used[0] * 1e6 / max(committed, 1),
        "system_us": used[1] * 1e6 / max(committed, 1),
        "cpu_us": sum(used) * 1e6 / max(committed, 1),
        "load_cpu_us": load_cpu * 1e6 / max(committed, 1),
        "tps": committed / seconds,
        "latency_ns": {str(q): latency.quantile(q) for q in (0.5, 0.9, 0.99, 0.999)},
        "latency_max_ns": latency.max,
        "lag_ns": {str(q): lag.quantile(q) for q in (0.5, 0.99, 0.999)},
        "lag_max_ns": lag.max,
        "grown_mb": max((interval["memory_mb"] for interval in intervals), default=at_start) - at_start,
        "intervals": intervals,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(json.loads(Path(sys.argv[1]).read_text()))))
