"""A made-up run: it has the shape of a real one, and no chance in it, so that golden files stay golden.

``Plan`` says what is measured; ``play`` plays it against a small model of a database (throughput saturates
with concurrency, latency follows by Little's law) and leaves behind what a run directory holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from report_stored import BOUNDS, Counts, Record, value_at
from scipy.special import ndtr

if TYPE_CHECKING:
    from collections.abc import Mapping

ERRORS = (
    "serialization",
    "deadlock",
    "lock_timeout",
    "connection_lost",
    "read_only",
    "shutting_down",
    "statement_timeout",
    "other",
)
COUNTS = ("committed", "aborted", "failed", "retried", "retries", "affected")
LATENCIES = ("latency_mean_ms", "latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "latency_max_ms")


def noise(*seed: float) -> float:
    """A number between -1 and 1 that looks random and never changes."""
    x = math.sin(
        sum(value * factor for value, factor in zip(seed, (12.9898, 78.233, 37.719, 4.581), strict=False))
    )
    return 2 * ((x * 43758.5453) % 1) - 1


@dataclass(frozen=True)
class Step:
    """A phase of the plan."""

    kind: str
    seconds: float
    labels: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True)
class Plan:
    """What is to be played."""

    steps: tuple[Step, ...]
    mixes: Mapping[str, Mapping[str, float]]
    """Mix → transaction → share."""
    most_tps: Mapping[str, float]
    half_at: Mapping[str, float]
    """The concurrency that reaches 63 % of the most."""
    tenants: tuple[str, ...] = ("default",)
    interval: float = 1.0
    error_share: Mapping[str, float] = field(default_factory=dict)
    """Class → share of attempts at the highest contention."""
    fails: bool = False
    stall: tuple[float, float] | None = None
    """From, to: an open loop waits through it."""
    killed_at: float | None = None


@dataclass(frozen=True)
class Slot:
    """One row to be: a transaction of a tenant in an interval, and how hard the system is pressed."""

    phase: int
    start: float
    end: float
    tenant: str
    transaction: str
    tps: float
    sessions: float
    mean_ms: float


@dataclass
class Tape:
    """What playing a plan leaves behind."""

    rows: dict[str, list[Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    system: dict[str, list[Any]] = field(
        default_factory=lambda: {"time_s": [], "source": [], "metric": [], "value": []}
    )
    records: list[Record] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=dict)

    def row(self, **values: Any) -> None:
        for key, value in values.items():
            self.rows.setdefault(key, []).append(value)

    def gauge(self, time_s: float, source: str, **values: float) -> None:
        for metric, value in values.items():
            for key, item in zip(self.system, (time_s, source, metric, value), strict=True):
                self.system[key].append(item)


def play(plan: Plan) -> Tape:
    """Play the plan to its end, or until it is killed."""
    tape = Tape()
    now = 0.0
    for number, step in enumerate(plan.steps):
        tape.events.append(
            {
                "time_s": now,
                "event": "phase",
                "phase": number,
                "name": step.name or step.kind,
                "kind": step.kind,
                "labels": dict(step.labels),
            }
        )
        end = now + step.seconds
        while now < end - 1e-9:
            until = min(end, (math.floor(now / plan.interval + 1e-9) + 1) * plan.interval)
            if plan.killed_at is not None and until > plan.killed_at:
                return tape
            _interval(plan, tape, number, step, (now, until))
            now = until
    return tape


def _interval(plan: Plan, tape: Tape, phase: int, step: Step, when: tuple[float, float]) -> None:
    start, end = when
    mix = str(step.labels.get("mix", next(iter(plan.mixes))))
    sessions = float(step.labels.get("concurrency", 16))
    warm = 0.8 if step.kind == "warm_up" else 1.0
    tps = float(step.labels.get("rate", 0)) or _model_tps(plan, mix, sessions) * warm
    tps *= 1 + 0.02 * noise(start, sessions) - (0.25 if _checkpoint(start) else 0)
    if step.kind == "pause":
        tps = 0.0
    stalled = plan.stall is not None and plan.stall[0] <= start < plan.stall[1]
    if stalled:
        tps *= 0.02
    weights = _tenant_weights(plan, step)
    for tenant, weight in weights.items():
        for name, share in plan.mixes[mix].items():
            if share * weight > 0:
                mean_ms = 1000 * sessions / max(tps, 1)
                _row(
                    plan, tape, Slot(phase, start, end, tenant, name, tps * share * weight, sessions, mean_ms)
                )
    _client(plan, tape, end, tps, sessions, stalled=stalled)
    _server(tape, end, tps, sessions)


def _tenant_weights(plan: Plan, step: Step) -> dict[str, float]:
    weights = step.labels.get("weights") or [1 / len(plan.tenants)] * len(plan.tenants)
    return dict(zip(plan.tenants, weights, strict=True))


def _model_tps(plan: Plan, mix: str, sessions: float) -> float:
    half = plan.half_at[mix]
    crowd = max(0.0, sessions - 6 * half)
    return plan.most_tps[mix] * (1 - math.exp(-sessions / half)) * (1 - 0.002 * crowd)


def _checkpoint(start: float) -> bool:
    return int(start) % 97 in (95, 96)


def _row(plan: Plan, tape: Tape, slot: Slot) -> None:
    start, end, name = slot.start, slot.end, slot.transaction
    attempts = round(slot.tps * (end - start))
    errors = _errors(plan, attempts, slot)
    failed = (
        attempts
        if plan.fails
        else sum(errors[key] for key in ("connection_lost", "statement_timeout", "other"))
    )
    aborted = round(attempts * 0.01) if name == "order_payment" and not plan.fails else 0
    committed = max(0, attempts - failed - aborted)
    retried = 0 if plan.fails else errors["serialization"] + errors["deadlock"]
    latency = _latency(plan, tape, slot, committed)
    tape.row(
        phase=slot.phase,
        start_s=start,
        end_s=end,
        tenant=slot.tenant,
        role="rw",
        transaction=name,
        committed=committed,
        aborted=aborted,
        failed=failed,
        retried=retried,
        retries=retried,
        affected=4 * committed,
        **errors,
        **latency,
    )
    outcome = {"committed": committed, "aborted": aborted, "failed": failed}
    for key, value in {"started": committed + aborted + failed, **outcome}.items():
        tape.totals[key] = tape.totals.get(key, 0) + value
    for key, value in errors.items():
        if value:
            tape.events.append(_error(key, name, slot.tenant, end, value))


def _errors(plan: Plan, attempts: int, slot: Slot) -> dict[str, int]:
    sessions, start, name = slot.sessions, slot.start, slot.transaction
    errors = dict.fromkeys(ERRORS, 0)
    if plan.fails:
        errors["other"] = attempts
        return errors
    contention = min(1.0, sessions / 32)
    for key, share in plan.error_share.items():
        often = key in ("serialization", "deadlock")
        if name == "order_status" or (not often and int(start) % 211 != 200):
            continue
        errors[key] = round(attempts * share * contention * (1 + 0.5 * noise(start, 7)))
    return errors


_MESSAGES = {
    "serialization": ("40001", "could not serialize access due to concurrent update"),
    "deadlock": ("40P01", "deadlock detected: Process 4711 waits for ShareLock on transaction 815"),
    "connection_lost": ("08006", "connection closed by the server"),
    "statement_timeout": ("57014", "canceling statement due to statement timeout"),
    "other": ("42P01", 'relation "orders" does not exist'),
}


def _error(key: str, transaction: str, tenant: str, time_s: float, count: int) -> dict[str, Any]:
    code, message = _MESSAGES[key]
    return {
        "time_s": time_s,
        "event": "error",
        "class": key,
        "code": code,
        "message": message,
        "transaction": transaction,
        "tenant": tenant,
        "role": "rw",
        "count": count,
    }


def _latency(plan: Plan, tape: Tape, slot: Slot, committed: int) -> dict[str, float | None]:
    if committed == 0:
        return dict.fromkeys(LATENCIES)
    start = slot.start
    mean_ms = slot.mean_ms * {"order_status": 0.8, "order_payment": 1.9}.get(slot.transaction, 1.2)
    service = _spread(committed, mean_ms * (1.8 if _checkpoint(start) else 1), noise(start, mean_ms))
    counts = service
    if plan.stall is not None and plan.stall[0] <= start < plan.stall[1] + 2:
        counts = _spread(committed, 600 * (1 + 0.5 * noise(start, 3)), 0.2)
    middle = (start + slot.end) / 2
    for kind, spread in (("latency", counts), ("service", service)):
        kept = np.flatnonzero(spread)
        trimmed = spread[kept[0] : kept[-1] + 1]
        tape.records.append(
            Record(slot.phase, middle, slot.tenant, slot.transaction, kind, int(kept[0]), trimmed)
        )
    in_ms = BOUNDS / 1e6
    found = [value_at(counts, percentile) or 0.0 for percentile in (50, 95, 99, 100)]
    values = [float((counts * in_ms).sum() / counts.sum()), *(value / 1e6 for value in found)]
    return dict(zip(LATENCIES, values, strict=True))


def _spread(count: int, mean_ms: float, wobble: float) -> Counts:
    """So many latencies: mostly log-normal, one in a hundred six times slower."""
    sigma = 0.32
    log = np.log(BOUNDS / 1e6)
    centre = math.log(mean_ms) - sigma**2 / 2 + 0.03 * wobble
    cumulative = 0.99 * ndtr((log - centre) / sigma) + 0.01 * ndtr((log - centre - 1.8) / 0.45)
    whole: Counts = np.round(cumulative * count).astype(np.int64)
    whole[1:] -= whole[:-1].copy()
    return whole


def _client(plan: Plan, tape: Tape, time_s: float, tps: float, sessions: float, *, stalled: bool) -> None:
    busy = min(0.97, 0.03 + tps * 9e-6 * (1 + 0.05 * noise(time_s)))
    lag = 14 + 40 * busy**3 + 4 * noise(time_s, 2)
    tape.gauge(
        time_s,
        "client",
        cpu_busy=busy,
        cpu_us_per_transaction=9 + 1.5 * noise(time_s, 1) if tps else 0.0,
        lag_p50_us=lag,
        lag_p99_us=lag * 4,
        lag_max_us=lag * (12 + 8 * noise(time_s, 5)),
        backlog=900.0 if stalled else 0.0,
        dropped=250.0 if stalled else 0.0,
        sessions=sessions,
        connected=sessions,
        rss_mb=38 + 0.002 * time_s,
    )
    if stalled:
        tape.events.append({"time_s": time_s, "event": "dropped", "count": 250, "tenant": plan.tenants[0]})
        tape.totals["dropped"] = tape.totals.get("dropped", 0) + 250


def _server(tape: Tape, time_s: float, tps: float, sessions: float) -> None:
    tape.gauge(
        time_s,
        "host",
        cpu_percent=min(99.0, 8 + tps / 800 * (1 + 0.03 * noise(time_s, 8))),
        memory_used_mb=5200 + 0.3 * time_s,
        disk_write_mb_per_s=4 + tps / 4000 + (60 if _checkpoint(time_s) else 0),
    )
    tape.gauge(
        time_s,
        "server:rw",
        connections=sessions + 1,
        cache_hit_percent=99.2 + 0.3 * noise(time_s, 4),
        wal_mb_per_s=tps / 3000 * (1 + 0.1 * noise(time_s, 6)),
    )


def tables(tape: Tape) -> tuple[pa.Table, pa.Table]:
    """The two Parquet files of the tape, with their columns even where there are no rows."""
    names = ["phase", "start_s", "end_s", "tenant", "role", "transaction", *COUNTS, *ERRORS, *LATENCIES]
    types = {
        "phase": pa.int32(),
        **dict.fromkeys(("start_s", "end_s", *LATENCIES), pa.float64()),
        **dict.fromkeys(("tenant", "role", "transaction"), pa.string()),
        **dict.fromkeys((*COUNTS, *ERRORS), pa.int64()),
    }
    intervals = pa.table({name: pa.array(tape.rows.get(name, []), types[name]) for name in names})
    kinds = {"time_s": pa.float64(), "source": pa.string(), "metric": pa.string(), "value": pa.float64()}
    system = pa.table({name: pa.array(tape.system[name], kind) for name, kind in kinds.items()})
    return intervals, system
