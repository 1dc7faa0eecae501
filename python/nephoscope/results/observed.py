"""What was observed beside the load, per measured phase: the server's wait events, and what a transaction cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.store.protocol import SAMPLE_S, WAIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from nephoscope.store import StoredRun
    from nephoscope.store.protocol import Phase

    Floats = NDArray[np.float64]

_LATE_S = 0.05
"""How much later than due a sample may be taken, in s, and still count as of its phase alone."""
_MEASURED = "measure"
_MIB = 1 << 20
_COSTS = {
    "server_cpu_us": ("processes", "cpu_us_per_s", 1.0),
    "disk_read_bytes": ("processes", "disk_read_bytes_per_s", 1.0),
    "context_switches": ("processes", "context_switches_per_s", 1.0),
    "read_bytes": ("server", "io_read_bytes_per_s", 1.0),
    "written_bytes": ("server", "io_written_bytes_per_s", 1.0),
    "wal_bytes": ("server", "wal_mb_per_s", _MIB),
}
"""By the name of a cost: the kind of its source, its metric, and the units of the cost in one of the metric."""


class Observed:
    """A run's metrics of servers and their processes as arrays, and its commits over time; read once."""

    def __init__(self, run: StoredRun) -> None:
        """Read them from the run's tables."""
        table = run.system_metrics
        self._times, self._values = (
            np.asarray(table.column(name).to_numpy(), np.float64) for name in ("time_s", "value")
        )
        self._sources, self._metrics = (
            np.asarray(table.column(name).to_pylist(), object) for name in ("source", "metric")
        )
        self._known = sorted(set(self._sources.tolist()))
        self._phases = [phase for phase in run.phases if phase.kind == _MEASURED]
        intervals = run.intervals
        ends, places = np.unique(intervals.column("end_s").to_numpy(), return_inverse=True)
        counts = np.bincount(places, weights=intervals.column("committed").to_numpy(), minlength=ends.size)
        start = intervals.column("start_s").to_numpy()[:1]
        self._ends = np.concatenate([start, ends])
        self._committed = np.concatenate([np.zeros(start.size), np.cumsum(counts)])

    def waits(self) -> list[dict[str, Any]]:
        """Return a row for each measured phase, server and wait event: mean sessions, and the share of their time."""
        rows = []
        for phase in self._phases:
            for source in self._among("server"):
                found = dict(self._means(phase, source))
                total = sum(found.values())
                rows += [
                    {
                        **_named(phase),
                        "source": source,
                        "wait": wait,
                        "sessions": sessions,
                        "share": sessions / total,
                    }
                    for wait, sessions in sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
                    if sessions
                ]
        return rows

    def costs(self, client_cpu_us: Mapping[int, float | None]) -> list[dict[str, Any]]:
        """Return a row for each measured phase: what was used per committed transaction, as far as that is known.

        ``client_cpu_us`` is the client's processor time per transaction by a phase's number. A phase of which only
        that is known has no row.
        """
        rows = []
        for phase in self._phases:
            costs = {name: self._cost(phase, *of) for name, of in _COSTS.items()}
            if any(cost is not None for cost in costs.values()):
                rows.append({**_named(phase), **costs, "client_cpu_us": client_cpu_us.get(phase.number)})
        return rows

    def _among(self, kind: str) -> list[str]:
        """Return the sources of a kind: ``server`` has ``server:rw``, ``server:ro`` …."""
        return [source for source in self._known if source.partition(":")[0] == kind]

    def _inside(self, phase: Phase) -> NDArray[np.bool_]:
        """Tell which samples are of this phase alone: each tells of the time since the one before it."""
        begun = self._times - SAMPLE_S >= phase.start_s - _LATE_S
        return np.asarray(begun & (self._times <= phase.end_s + _LATE_S), np.bool_)

    def _means(self, phase: Phase, source: str) -> Iterator[tuple[str, float]]:
        inside = self._inside(phase) & (self._sources == source)
        waits = np.asarray([metric.startswith(WAIT) for metric in self._metrics[inside]], bool)
        times, metrics, values = (of[inside][waits] for of in (self._times, self._metrics, self._values))
        # An event counts as 0 in the samples before it was first seen.
        samples = np.unique(times).size
        for metric in np.unique(metrics.astype(str)) if samples else ():
            yield metric.removeprefix(WAIT), float(values[metrics == metric].sum() / samples)

    def _cost(self, phase: Phase, kind: str, metric: str, factor: float) -> float | None:
        """Return a cost per committed transaction: of all servers together, over the seconds that have a sample."""
        inside = self._inside(phase) & (self._metrics == metric)
        used, committed = 0.0, 0.0
        for source in self._among(kind):
            of_source = inside & (self._sources == source)
            used += float(self._values[of_source].sum()) * SAMPLE_S * factor
            committed = max(committed, self._commits(self._times[of_source]))
        return used / committed if committed else None

    def _commits(self, times: Floats) -> float:
        """Count the commits in the second before each time; a part of an interval has its share of them."""
        if not self._ends.size or not times.size:
            return 0.0
        at, before = (np.interp(when, self._ends, self._committed) for when in (times, times - SAMPLE_S))
        return float((at - before).sum())


def _named(phase: Phase) -> dict[str, Any]:
    labels = phase.labels
    named = ("mix", "concurrency", "rate", "slot", "measure", "repetition")
    mix = labels.get("mix") or labels.get("pattern")
    return {"phase": phase.number, "name": phase.name, **{key: labels.get(key) for key in named}, "mix": mix}
