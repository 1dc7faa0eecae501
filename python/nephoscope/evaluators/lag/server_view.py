"""The replicas' lag as the server reports it: a cross-check of the probes on one clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.store import Phase, StoredRun

_SOURCE = "replica:"


class ServerView:
    """``bytes_behind`` and ``replay_lag_ms`` of each replica; a sample is of one moment, once a second."""

    def __init__(self, run: StoredRun) -> None:
        """Read the servers' metrics of replicas from a run."""
        columns = (
            run.system_metrics.column(name).to_pylist() for name in ("time_s", "source", "metric", "value")
        )
        self._samples = [
            (time_s, source.removeprefix(_SOURCE), metric, value)
            for time_s, source, metric, value in zip(*columns, strict=True)
            if source.startswith(_SOURCE)
        ]

    def during(self, phases: Sequence[Phase]) -> dict[str, dict[str, Any]]:
        """Sum up some phases: of each node and metric the number of samples, the mean and the largest.

        Empty if no server reported any.
        """
        found: dict[str, dict[str, list[float]]] = {}
        for time_s, node, metric, value in self._samples:
            if any(phase.start_s <= time_s <= phase.end_s for phase in phases):
                found.setdefault(node, {}).setdefault(metric, []).append(value)
        return {
            node: {
                metric: {"samples": len(values), "mean": sum(values) / len(values), "max": max(values)}
                for metric, values in metrics.items()
            }
            for node, metrics in found.items()
        }
