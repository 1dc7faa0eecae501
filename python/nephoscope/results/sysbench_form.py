"""A run's figures as sysbench prints those of its own: for scripts that read its output."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.store.reader import StoredRun

QUERIES = {"read": "reads", "write": "writes", "other": "others"}
"""sysbench's words for queries, and the tallies of its scripts."""

_PERCENTILE = 95.0
_NS_PER_MS = 1e6


def sysbench_form(run: StoredRun) -> str:
    """Write what a run has measured in the form of sysbench's summary.

    The queries are those of the whole run, and are left out where the workload does not count them: only a script of
    sysbench does. Latency is in ms, of committed transactions; with a rate it counts from the intended start.
    """
    phases = [phase for phase in run.phases if phase.kind == "measure"]
    seconds = sum(phase.end_s - phase.start_s for phase in phases)
    numbers = frozenset(phase.number for phase in phases)
    rows = [row for row in run.intervals.to_pylist() if row["phase"] in numbers]
    committed = sum(row["committed"] for row in rows)
    errors = sum(row[name] for row in rows for name in _engine.error_classes())
    queries = queries_of(run)
    lines = ["SQL statistics:"]
    if queries:
        total = sum(queries.values())
        lines.append("    queries performed:")
        lines += [f"        {f'{word}:':<33}{queries[word]:.0f}" for word in QUERIES]
        lines.append(f"        {'total:':<33}{total:.0f}")
    lines.append(_rate("transactions", committed, seconds))
    if queries:
        lines.append(_rate("queries", total, seconds))
    lines.append(_rate("ignored errors", errors, seconds))
    lines += ["", "General statistics:", f"    {'total time:':<37}{seconds:.4f}s"]
    lines.append(f"    {'total number of events:':<37}{committed:.0f}")
    lines += ["", "Latency (ms):", *_latency(run.merged(Selection(phases=numbers)))]
    return "\n".join(lines) + "\n"


def queries_of(run: StoredRun) -> Mapping[str, float]:
    """Add up the queries that a script of sysbench has counted, by sysbench's words; empty where none did."""
    counted: Counter[str] = Counter()
    for event in run.events:
        if event["event"] == "tallies":
            for of_tenant in event["tallies"].values():
                counted.update({name: _amount(tally) for name, tally in of_tenant.items()})
    found = {word: counted[name] for word, name in QUERIES.items()}
    return found if any(found.values()) else {}


def _amount(tally: Any) -> float:  # noqa: ANN401 - what a file holds
    return float(tally.get("amount", 0.0)) if isinstance(tally, dict) else 0.0


def _rate(word: str, count: float, seconds: float) -> str:
    rate = count / seconds if seconds > 0 else 0.0
    return f"    {f'{word}:':<37}{count:<6.0f} ({rate:.2f} per sec.)"


def _latency(latency: _engine.Histogram) -> list[str]:
    figures = {
        "min": latency.quantile(0.0),
        "avg": latency.mean,
        "max": latency.max,
        f"{_PERCENTILE:.0f}th percentile": latency.quantile(_PERCENTILE / 100),
        "sum": latency.mean * latency.count,
    }
    return [f"         {f'{word}:':<32}{value / _NS_PER_MS:>11.2f}" for word, value in figures.items()]
