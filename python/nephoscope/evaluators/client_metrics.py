"""The metrics of a run's client, interval by interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nephoscope.store.protocol import RunReader

    Floats = NDArray[np.float64]


class ClientMetrics:
    """The client's metrics as arrays, read once: a value belongs to the interval that ends at its time."""

    def __init__(self, run: RunReader) -> None:
        """Read them from a run's table of metrics."""
        table = run.system_metrics
        client = np.asarray([source == "client" for source in table.column("source").to_pylist()], bool)
        self._metrics = np.asarray(table.column("metric").to_pylist(), object)[client]
        self._times, self._values = (table.column(name).to_numpy()[client] for name in ("time_s", "value"))

    def during(self, metric: str, start_s: float, end_s: float) -> tuple[Floats, Floats]:
        """Return the times and the values of the intervals that end within a time; empty where the run has none."""
        inside = (self._times > start_s + 1e-6) & (self._times <= end_s + 1e-6) & (self._metrics == metric)
        return np.asarray(self._times[inside], np.float64), np.asarray(self._values[inside], np.float64)

    def intervals(self, start_s: float, end_s: float) -> list[tuple[float, float]]:
        """Return start and end of each interval within a time, in s: metrics are written as it ends."""
        ends = self.during("arrivals", start_s, end_s)[0].tolist()
        return list(zip([start_s, *ends[:-1]], ends, strict=True))
