"""Metrics of the load itself: what it costs, how late it is, and what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.collectors.host import rss_mb

if TYPE_CHECKING:
    from collections.abc import Mapping


def client_metrics(record: Mapping[str, Any]) -> dict[str, float]:
    """Give the metrics of an interval, by the engine's record of it. Those that it does not tell are left out."""
    values = {"cpu_busy": record["cpu_busy"], "rss_mb": rss_mb()}
    if (waited := record["cpu_wait"]) is not None:
        values["cpu_wait"] = waited
    if committed := sum(series["committed"] for series in record["series"]):
        values["cpu_us_per_transaction"] = record["cpu_s"] * 1e6 / committed
    if lag := record["lag"]:
        values |= {f"lag_{name}": lag[name] for name in ("p50_us", "p99_us", "max_us")}
    for name in ("arrivals", "backlog", "dropped", "sessions", "connected", "disconnected"):
        values[name] = float(sum(tenant[name] for tenant in record["tenants"]))
    return values
