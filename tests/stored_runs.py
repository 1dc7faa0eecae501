"""Run directories with planted figures: written as a run writes them, with no engine and no chance in them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.measuring.manifest import inputs_of
from nephoscope.measuring.measurement import write_results
from nephoscope.store import RunWriter
from nephoscope.study.reading import make_study
from nephoscope.study.workload import Workload
from sample_studies import RESOURCES, Tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

INTERVAL_S = 0.1

_ZEROS = dict.fromkeys(
    ("aborted", "failed", "retried", "retries", "affected", "unstarted", *_engine.error_classes()), 0
)
_MANIFEST: dict[str, Any] = {
    "nephoscope": "0.1.0",
    "study": "planted",
    "seed": 1,
    "clock": {"origin": "2026-01-02T03:04:05+00:00"},
    "host": {"name": "planet", "cpu": "abacus", "cores": 2},
    "workload": {"name": "tpcb", "scale": 1.0, "files": {"workload.lua": "sha256:0"}},
    "load": {"threads": 1, "statement_mode": "prepared", "pipeline": False},
    "system": {"provider": "url", "endpoints": {"rw": ["sim://"], "ro": []}, "resources": RESOURCES},
}


@dataclass(frozen=True)
class Step:
    """A measured phase: what was committed in each interval, and how long each of its transactions took."""

    labels: Mapping[str, Any]
    committed: Sequence[int]
    latency_ms: Sequence[float]
    failed_ms: Sequence[float] = ()
    """How long each transaction took that failed, all of them in the last interval."""
    unstarted_ms: Sequence[float] = ()
    """How long each arrival had waited that had not started at the end."""
    disconnected: Sequence[int] = ()
    """How many of its sessions lacked a connection as each interval ended; told nowhere where it is left out."""

    @property
    def seconds(self) -> float:
        return round(len(self.committed) * INTERVAL_S, 6)


def begin_run(
    folder: Path,
    tables: Tables,
    steps: Sequence[Step],
    manifest: Mapping[str, Any] | None = None,
    *,
    probed: bool = True,
) -> RunWriter:
    """Write a run but for its end."""
    folder.mkdir(parents=True, exist_ok=True)
    study = make_study(tables, "planted")
    inputs = inputs_of(study, Workload.of(study.workload, "sim://"))
    writer = RunWriter(folder, {**_MANIFEST, "inputs": inputs, **(manifest or {})}, study.to_toml())
    at = 0
    for number, step in enumerate(steps):
        labels = {"measure": 0, "repetition": 1, "planned_s": step.seconds, **step.labels}
        name = f"{labels['mix']} c={labels['concurrency']}"
        writer.event(_time(at), "phase", phase=number, name=name, kind="measure", labels=labels)
        last = at + len(step.committed) - 1
        for place, (committed, latency) in enumerate(zip(step.committed, step.latency_ms, strict=True)):
            interval = _interval(number, at, committed, latency)
            client = {"cpu_busy": 0.25, "lag_p99_us": 5.0, "cpu_us_per_transaction": 10.0, "dropped": 0.0}
            client["arrivals"] = float(committed)
            if step.disconnected:
                client |= {
                    "sessions": float(labels["concurrency"]),
                    "disconnected": float(step.disconnected[place]),
                }
            if at == last:
                interval["series"][0] |= _at_the_end(step)
                client["arrivals"] += len(step.failed_ms) + len(step.unstarted_ms)
            writer.interval(interval)
            at += 1
            writer.metrics(_time(at), "client", client.items())
            if probed:
                writer.probes(_probe(at))
                writer.checks(_check(at))
    return writer


def write_run(
    folder: Path, tables: Tables, steps: Sequence[Step], manifest: Mapping[str, Any] | None = None
) -> Path:
    """Write a whole run, its scores and its report."""
    writer = begin_run(folder, tables, steps, manifest)
    committed = sum(sum(step.committed) for step in steps)
    totals = {
        "started": committed,
        "committed": committed,
        "aborted": 0,
        "failed": 0,
        "in_flight": 0,
        "dropped": 0,
    }
    writer.event(sum(step.seconds for step in steps), "end", status="measured", reason=None)
    writer.finish("measured", None, totals)
    write_results(folder)
    return folder


def _probe(number: int) -> str:
    """Make a sample of a probe as the engine gives it: each third one was not sent."""
    sent, outcome = (None, "missing") if number % 3 == 0 else (_time(number), "ok")
    row = {
        "time_s": _time(number),
        "probe": "availability",
        "kind": "write",
        "role": "rw",
        "node": "rw",
        "number": number,
        "sent_s": sent,
        "end_s": sent,
        "outcome": outcome,
        "lower_ms": None,
        "upper_ms": None,
        "polls": 0,
    }
    return json.dumps(row) + "\n"


def _check(number: int) -> str:
    """Make what a check came to as the engine gives it."""
    row = {"start_s": _time(number - 1), "end_s": _time(number), "check": "stale", "node": "ro", "place": 1.0}
    return json.dumps(row | {"trials": 5, "hits": number % 2}) + "\n"


def _at_the_end(step: Step) -> dict[str, Any]:
    """Make what the last interval of a phase has besides what was committed."""
    found: dict[str, Any] = {"failed": len(step.failed_ms), "unstarted": len(step.unstarted_ms)}
    for kind, times in (("failed_latency", step.failed_ms), ("censored", step.unstarted_ms)):
        if times:
            histogram = _engine.Histogram()
            for time_ms in times:
                histogram.record(round(time_ms * 1e6))
            found |= {kind: histogram.encode(), f"{kind}_max_ms": max(times)}
    return found


def _time(intervals: int) -> float:
    return round(intervals * INTERVAL_S, 6)


def _interval(phase: int, at: int, committed: int, latency_ms: float) -> dict[str, Any]:
    """Make an interval as the engine gives it, of one series."""
    histogram = _engine.Histogram()
    histogram.record(round(latency_ms * 1e6), committed)
    series: dict[str, Any] = {
        **_ZEROS,
        "tenant": "default",
        "role": "rw",
        "transaction": "select_only",
        "committed": committed,
        **{f"latency_{name}_ms": latency_ms for name in ("mean", "p50", "p95", "p99", "max")},
        "service_max_ms": latency_ms,
        "latency": histogram.encode(),
        "service": histogram.encode(),
    }
    return {"phase": phase, "start_s": _time(at), "end_s": _time(at + 1), "series": [series]}
