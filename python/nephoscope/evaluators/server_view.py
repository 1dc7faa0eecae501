"""How far replicas were behind by the server's own account, beside what the probes saw: a cross-check on one clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.store import Phase, StoredRun

_SOURCE = "replica:"


def server_view(run: StoredRun, phases: Sequence[Phase]) -> dict[str, dict[str, Any]]:
    """Sum up ``bytes_behind`` and ``replay_lag_ms`` of each replica over some phases; empty where no server told any.

    Of each metric the number of samples, the mean and the largest. A sample is of one moment, once a second.
    """
    table = run.system_metrics
    names = ("time_s", "source", "metric", "value")
    found: dict[str, dict[str, list[float]]] = {}
    for time_s, source, metric, value in zip(
        *(table.column(name).to_pylist() for name in names), strict=True
    ):
        if source.startswith(_SOURCE) and any(phase.start_s <= time_s <= phase.end_s for phase in phases):
            of_node = found.setdefault(source.removeprefix(_SOURCE), {})
            of_node.setdefault(metric, []).append(value)
    return {
        node: {
            metric: {"samples": len(values), "mean": sum(values) / len(values), "max": max(values)}
            for metric, values in metrics.items()
        }
        for node, metrics in found.items()
    }
