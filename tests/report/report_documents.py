"""The documents of a made-up run: its study, manifest and scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from report_synthetic import Plan, Tape

STUDY = """\
# The study as it was run: every default written out.
name = "first"
seed = 42

[system]
provider = "embedded-postgres"
settings = { shared_buffers = "1GB", synchronous_commit = true }

[workload]
name = "sales"
scale = 0.1

[[measure]]
evaluator = "throughput"
mixes = ["RO", "RW", "WO"]
concurrency = [1, 2, 4, 8, 16, 32]  # then bisected
repetitions = 3
warm_up = 2.0
duration = 10.0
"""

LINES = (
    ("vcores", 4, "vCore", 0.1847),
    ("memory", 16, "GB", 0.0095),
    ("storage", 42, "GB", 0.000853),
    ("iops", 1000, "IOPS", 0.0000015),
    ("network", 10, "Gbps TCP/IP", 0.07696),
)


def manifest(tape: Tape, status: str = "measured", reason: str | None = None, **more: Any) -> dict[str, Any]:
    """A plausible manifest."""
    totals = {
        "started": 0,
        "committed": 0,
        "aborted": 0,
        "failed": 0,
        "in_flight": 0,
        "dropped": 0,
        **tape.totals,
    }
    totals["in_flight"] = 7 if totals["started"] else 0
    totals["started"] += totals["in_flight"]
    return {
        "format": 1,
        "nephoscope": "0.1.0",
        "study": "first",
        "status": status,
        "reason": reason,
        "clock": {"origin": "2026-11-20T19:15:00.123456Z", "finished": "2026-11-20T19:26:31.5Z"},
        "host": {
            "name": "bench-01",
            "os": "Debian GNU/Linux 12",
            "kernel": "6.1.0-30-amd64",
            "cpu": "AMD EPYC 7763",
            "cores": 2,
            "memory_gb": 23.5,
            "python": "3.11.7",
        },
        "workload": {
            "name": "sales",
            "scale": 0.1,
            "options": {},
            "files": {"workload.lua": "sha256:" + "9f" * 32, "statements.sql": "sha256:" + "3c" * 32},
        },
        "load": {
            "threads": 1,
            "statement_mode": "prepared",
            "pipeline": False,
            "io": "epoll",
            "balance": "round-robin",
        },
        "system": {
            "provider": "embedded-postgres",
            "endpoints": {"rw": ["postgresql://app@127.0.0.1:5433/sales"], "ro": []},
            "facts": {"server_version": "18.4", "shared_buffers": "1GB", "max_connections": 200},
        },
        "totals": totals,
        **more,
    }


def cost() -> dict[str, Any]:
    """Table V's AWS RDS."""
    lines: list[dict[str, Any]] = []
    for resource, quantity, unit, per_hour in LINES:
        nodes = 1 if resource in ("iops", "network") else 2
        lines.append(
            {
                "resource": resource,
                "quantity": quantity * nodes,
                "unit": unit,
                "per_hour": per_hour,
                "per_minute": quantity * nodes * per_hour / 60,
            }
        )
    total = sum(line["per_minute"] for line in lines)
    return {"price_book": "cloudybench-2024", "nodes": 2, "lines": lines, "per_minute": total}


MIXES = {
    "RO": {"order_status": 1.0},
    "RW": {"new_orderline": 0.15, "order_payment": 0.05, "order_status": 0.8},
    "WO": {"new_orderline": 1.0},
}
MOST = {"RO": 61000.0, "RW": 24500.0, "WO": 14200.0}
HALF = {"RO": 4.0, "RW": 6.5, "WO": 7.5}
TAU = {"RO": 16, "RW": 24, "WO": 24}
WHY = {
    "RO": "TPS grew by 1.8 % from 16 to 24 while p99 grew by 41 %",
    "RW": "TPS grew by 2.6 % from 24 to 32 while p99 grew by 30 %",
    "WO": "TPS grew by 2.9 % from 24 to 32 while p99 doubled",
}


def scores_of(plan: Plan, tape: Tape, verdicts: list[dict[str, str]], warnings: list[str]) -> dict[str, Any]:
    """What the evaluators would have said of the tape."""
    bill = cost()
    points = _points(plan, tape)
    detail = {}
    for mix, tau in TAU.items():
        rates = [point["tps"] for point in points if (point["mix"], point["concurrency"]) == (mix, tau)]
        mean = sum(rates) / len(rates)
        detail[mix] = {
            "tps": mean,
            "ci95": [mean * 0.988, mean * 1.011],
            "p": mean / bill["per_minute"],
            "concurrency": tau,
        }
    p = sum(float(entry["p"]) for entry in detail.values()) / len(detail)
    return {
        "scores": {
            "P": {
                "value": p,
                "unit": "TPS per $/min",
                "ci95": [p * 0.991, p * 1.008],
                "repetitions": 3,
                "detail": detail,
            }
        },
        "absent": {
            "E1": "no elasticity pattern in the study",
            "R": "no failure was injected",
            "F": "no failure was injected",
            "E2": "the system has no read-only node",
            "C": "the system has no read-only node",
            "T": "one tenant only",
            "O": "E1, R, F, E2, C and T are absent",
        },
        "verdicts": verdicts,
        "warnings": warnings,
        "points": points,
        "saturation": {
            mix: {"concurrency": tau, "tps": detail[mix]["tps"], "why": WHY[mix]} for mix, tau in TAU.items()
        },
        "cost": bill,
    }


def _points(plan: Plan, tape: Tape) -> list[dict[str, Any]]:
    committed: dict[int, int] = {}
    failed: dict[int, int] = {}
    for phase, good, bad in zip(tape.rows["phase"], tape.rows["committed"], tape.rows["failed"], strict=True):
        committed[phase] = committed.get(phase, 0) + good
        failed[phase] = failed.get(phase, 0) + bad
    points = []
    for number, step in enumerate(plan.steps):
        if step.kind != "measure":
            continue
        tps = committed.get(number, 0) / step.seconds
        wide = {"RO": 0.015, "RW": 0.04, "WO": 0.08}[step.labels["mix"]]
        points.append(
            {
                **step.labels,
                "phase": number,
                "tps": tps,
                "ci95": [tps * (1 - wide), tps * (1 + wide)],
                "goodput": None,
                "latency_ms": {"mean": 1.0, "p50": 0.9, "p95": 2.0, "p99": 3.0, "max": 30.0},
                "failed": failed.get(number, 0),
                "steady": number != 70,
            }
        )
    return points


VERDICTS = [
    {
        "verdict": "client was not the limit",
        "level": "ok",
        "detail": "busiest thread 58 % of a core, lag p99 0.1 ms",
    },
    {
        "verdict": "not every point was steady",
        "level": "warning",
        "detail": "RW at 16 sessions, repetition 2: TPS had a trend at 95 %",
    },
    {"verdict": "few repetitions", "level": "note", "detail": "3 repetitions: the intervals are wide"},
]
