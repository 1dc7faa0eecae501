"""The verdicts on the client: whether it was the limit, or the machine that it shares with the database."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nephoscope.evaluators.client_metrics import ClientMetrics
from nephoscope.results.verdicts import names, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.evaluators.points import Point
    from nephoscope.store import StoredRun

CPU_LIMIT = 0.85
"""The share of a core above which the busiest load thread counts as the limit."""
LAG_LIMIT = 0.10
"""The share of the median latency above which the schedule lag's p99 counts as the limit, too."""
_LOCAL = re.compile(r"://([^/]*@)?(localhost|127\.|\[::1\]|%2F|/)", re.IGNORECASE)
"""A URL whose host is this machine, or a Unix socket."""
_REMEDY = "raise load.threads, or measure from a larger machine"


def client(points: Sequence[Point], run: StoredRun) -> list[dict[str, str]]:
    """Return the verdicts on the client, and on the machine that it may share with the database."""
    if _is_inside(run):
        return [_inside_verdict(points)]
    return [_client_verdict(points, run), *_machine_verdict(run)]


def _is_inside(run: StoredRun) -> bool:
    """Tell whether the database is a library in the client's own process."""
    kept = (run.inputs or {}).get("workload", {})
    # Runs of format 3 keep the dialect alone.
    return bool(kept.get("blocking", kept.get("dialect") == "sqlite"))


def _inside_verdict(points: Sequence[Point]) -> dict[str, str]:
    """Return the verdict on a database within the client: neither is the limit of the other."""
    busy = max((point.cpu_busy for point in points if point.cpu_busy is not None), default=None)
    share = f": the busiest was running {busy:.0%} of the time" if busy is not None else ""
    return verdict("note", "the database ran on the threads of the load", f"what they used is both's{share}")


def _client_verdict(points: Sequence[Point], run: StoredRun) -> dict[str, str]:
    busy = [(point.cpu_busy, point) for point in points if point.cpu_busy is not None]
    if not busy:
        return _phases_verdict(run)
    reasons = []
    limited = [point for share, point in busy if share > CPU_LIMIT]
    if limited:
        reasons.append(
            f"its busiest thread was running {max(share for share, _ in busy):.0%} of the time "
            f"({names(limited)}): {_REMEDY}"
        )
    # A server on the same machine has a verdict of its own.
    starved = [
        point
        for share, point in busy
        if share <= CPU_LIMIT < share + (point.cpu_wait or 0.0) and not _is_local(run)
    ]
    if starved:
        worst = max(starved, key=lambda point: point.cpu_wait or 0.0)
        reasons.append(
            f"a thread of it was running {worst.cpu_busy or 0.0:.0%} of the time and waited for a processor for "
            f"another {worst.cpu_wait or 0.0:.0%} ({names(starved)}): something else runs on its machine"
        )
    late = [
        point
        for point in points
        if point.lag_p99_us is not None
        and point.latency_ms is not None
        and point.lag_p99_us > LAG_LIMIT * point.latency_ms.p50 * 1000
    ]
    if late:
        worst = max(late, key=lambda point: point.lag_p99_us or 0.0)
        median = worst.latency_ms.p50 if worst.latency_ms else 0.0
        reasons.append(
            f"transactions started up to {(worst.lag_p99_us or 0) / 1000:.2g} ms late (p99) where the median latency "
            f"is {median:.2g} ms ({names(late)})"
        )
    if reasons:
        return verdict("problem", "the client was the limit", "; ".join(reasons))
    return _ok(max(share for share, _ in busy))


def _ok(share: float) -> dict[str, str]:
    return verdict(
        "ok", "the client was not the limit", f"its busiest thread was running {share:.0%} of the time"
    )


def _phases_verdict(run: StoredRun) -> dict[str, str]:
    """Return the verdict on a run without points of throughput, by its measured phases."""
    metrics = ClientMetrics(run)
    phases = [phase for phase in run.phases if phase.kind == "measure"]
    during = ((phase, metrics.during("cpu_busy", phase.start_s, phase.end_s)[1]) for phase in phases)
    busy = [(float(values.mean()), phase.name) for phase, values in during if values.size]
    if not busy:
        return verdict("note", "whether the client was the limit is not known", "no metrics of the client")
    share, name = max(busy)
    if share <= CPU_LIMIT:
        return _ok(share)
    said = f"its busiest thread was running {share:.0%} of the time ({name})"
    return verdict("problem", "the client was the limit", f"{said}: {_REMEDY}")


def _machine_verdict(run: StoredRun) -> list[dict[str, str]]:
    """Return the verdict if client and server share a machine, where each takes from the other."""
    if not _is_local(run):
        return []
    table = run.system_metrics
    rows = zip(*(table.column(name).to_pylist() for name in ("source", "metric", "value")), strict=True)
    busy = [value for source, metric, value in rows if (source, metric) == ("host", "cpu_busy")]
    facts = run.manifest.get("system", {}).get("facts", {})
    share = f"its processors were {sum(busy) / len(busy):.0%} busy; " if busy else ""
    detail = f"{share}what the load generator used, the database could not have"
    shared = [verdict("note", "client and server shared one machine", detail)]
    if why := facts.get("no_cpu_quota"):
        shared.append(verdict("warning", "nothing kept the nodes to their vCores", str(why)))
    return shared


def _is_local(run: StoredRun) -> bool:
    """Tell whether an endpoint is on the machine of the client."""
    endpoints = run.manifest.get("system", {}).get("endpoints", {})
    return any(_LOCAL.search(url) for urls in endpoints.values() for url in urls)
