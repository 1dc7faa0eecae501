"""Runs with failures and lags whose figures are planted, so that what the report must say of them is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from report_documents import HALF, MIXES, MOST, cost, manifest
from report_stored import SyntheticRun
from report_synthetic import Plan, Step, play, tables

from nephoscope.store.layout import PROBES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from report_synthetic import Tape

RATE = 50
"""Availability probes a second."""

STUDY = """
[[measure]]
evaluator = "failover"
fault = "crash"
roles = ["rw"]
before = "10s"

[[measure]]
evaluator = "lag"
limit = "2s"
"""


def probe(**values: Any) -> dict[str, Any]:
    return {**dict.fromkeys(PROBES.names), "number": 0, "polls": 1, **values}


def availability(
    seconds: tuple[float, float], away: tuple[float, float] | None, late: float = 0.0
) -> Iterator[dict[str, Any]]:
    """Probes of ``rw`` that fail while it is away, and are late for a while after that."""
    for number in range(round(seconds[0] * RATE), round(seconds[1] * RATE)):
        due = number / RATE
        failed = away is not None and away[0] <= due < away[1]
        slow = away is not None and away[1] <= due < away[1] + late
        yield probe(
            time_s=due,
            probe="availability",
            kind="write",
            role="rw",
            node="rw",
            number=number,
            sent_s=due,
            end_s=due + (0.2 if slow else 0.001),
            outcome="connection_lost" if failed else "ok",
        )


def marker(
    time_s: float, kind: str, lag_ms: float | None, node: str = "ro", half: float = 0.05
) -> dict[str, Any]:
    """A marker that was seen after so long, or (None) not within 2 s."""
    seen = lag_ms is not None
    lower = max(0.0, lag_ms - half) if lag_ms is not None else 2000.0
    return probe(
        time_s=time_s,
        probe="lag",
        kind=kind,
        role="ro",
        node=node,
        sent_s=time_s,
        end_s=time_s + (lag_ms or 2000.0) / 1000,
        outcome="ok" if seen else "not_seen",
        lower_ms=lower,
        upper_ms=lag_ms + half if lag_ms is not None else None,
    )


def stored(
    name: str,
    tape: Tape,
    scores: Mapping[str, Any],
    probes: Sequence[Mapping[str, Any]] = (),
    study: str = STUDY,
) -> SyntheticRun:
    intervals, system = tables(tape)
    events = sorted(tape.events, key=lambda event: float(event["time_s"]))
    columns = {field.name: pa.array([row[field.name] for row in probes], field.type) for field in PROBES}
    whole = {
        "absent": {},
        "verdicts": [],
        "warnings": [],
        "points": [],
        "saturation": {},
        "cost": cost(),
        **scores,
    }
    given = manifest(tape)
    given["load"] = {**given["load"], "interval_s": 0.5}
    return SyntheticRun(
        name, given, study, whole, intervals, events, system, tape.records, pa.table(columns, PROBES)
    )


def failure(at: float, back: float | None, full: float | None, **more: Any) -> dict[str, Any]:
    """A failure as the evaluator tells it."""
    told = {
        "role": "rw",
        "repetition": 1,
        "injected_s": at,
        "service_back_s": back,
        "tps_back_s": full,
        "interrupted": back != at,
        "last_success_s": at,
        "failed_probes": 100,
        "late_probes": 25,
        "resolution_s": 0.02,
        "tps_before": 16000.0,
        "errors": {"connection_lost": 40, "read_only": 3},
        "acknowledged": 900,
        "lost": 0,
        "indeterminate": 1,
    }
    return {**told, **more}


FAILURES = (
    failure(12.0, 14.0, 17.0),
    failure(42.0, 42.0, 42.0, repetition=2, failed_probes=0, late_probes=0, errors={}, lost=2),
    failure(
        72.0, None, None, repetition=3, failed_probes=900, lost=None, acknowledged=None, indeterminate=None
    ),
)
"""Away for 2 s and back to full after 3 s more; no interruption, two commits lost; never back."""


def failover_run() -> SyntheticRun:
    """Three crashes: a short one, one that nobody noticed, one that did not end."""
    steps = []
    for repetition in (1, 2, 3):
        labels = {"measure": 0, "mix": "RW", "role": "rw", "fault": "crash", "repetition": repetition}
        steps += [
            Step("warm_up", 2, labels, "crash of rw warm-up"),
            Step("measure", 28, labels, "crash of rw"),
        ]
    tape = play(Plan(tuple(steps), {"RW": MIXES["RW"]}, MOST, HALF, interval=0.5))
    for place, at in enumerate((12.0, 42.0, 72.0)):
        common = {"measure": 0, "role": "rw", "repetition": place + 1, "node": "node1"}
        tape.events.append({"time_s": at, "event": "fault", "action": "kill", "took_s": 0.25, **common})
        tape.events.append(
            {"time_s": at + 0.25, "event": "action", "action": "promote", "took_s": 1.5, **common}
        )
    tape.events.append({"time_s": 90.0, "event": "end", "status": "measured", "reason": None})
    probes = [
        *availability((2.0, 30.0), (12.0, 14.0), late=0.5),
        *availability((32.0, 60.0), None),
        *availability((62.0, 90.0), (72.0, 90.0)),
    ]
    scores = {
        "scores": {},
        "absent": {"F": "the service did not come back after failure 3 of 3", "R": "the same"},
        "details": {"failover": {"0": {"fault": "crash", "late_s": 0.1, "failures": list(FAILURES)}}},
    }
    return stored("20261120T191500Z-failover", tape, scores, probes)


def lag_run() -> SyntheticRun:
    """Lags of 1, 2 … 100 ms beside one load, and of 1 ms beside the other, where one marker in ten is not seen."""
    steps = [
        Step(
            "measure", 10, {"measure": 1, "mix": "RW", "load": load, "repetition": repetition}, f"lag, {load}"
        )
        for repetition in (1, 2)
        for load in ("even", "idle")
    ]
    tape = play(Plan(tuple(steps), {"RW": MIXES["RW"]}, MOST, HALF))
    tape.events.append({"time_s": 40.0, "event": "end", "status": "measured", "reason": None})
    kinds = ("insert", "update", "delete")
    probes = []
    for start in (0.0, 20.0):
        for number in range(1, 101):
            at = start + number * 0.09
            probes.append(marker(at, kinds[number % 3], float(number)))
            probes.append(marker(at + 10, kinds[number % 3], None if number % 10 == 0 else 1.0, half=0.5))
    tape.gauge(5.0, "replica:node2", bytes_behind=4096.0, replay_lag_ms=1.5)
    tape.gauge(25.0, "replica:node2", bytes_behind=8192.0)
    detail = {"replicas": 1, "counted": ["even"], "lag_ms": {}}
    c = {"value": 0.1515, "unit": "s", "ci95": [0.15, 0.153], "repetitions": 2, "detail": detail}
    return stored("20261120T191500Z-lag", tape, {"scores": {"C": c}}, probes)


def elasticity_run() -> SyntheticRun:
    """A pattern of 14 s within three minutes; later two nodes come within 2 s of each other."""
    pattern = {"measure": 1, "pattern": "single-peak", "repetition": 1, "tau": 16}
    wanted = (0, 16, 0)
    steps = [
        Step("measure", 60, {"measure": 0, "mix": "RW", "concurrency": 16}, "RW c=16"),
        Step("pause", 1, pattern, "single-peak before"),
        *(
            Step("measure", 4, {**pattern, "slot": slot, "sessions": sessions}, f"single-peak slot {slot}")
            for slot, sessions in enumerate(wanted, 1)
        ),
        Step("pause", 1, pattern, "single-peak after"),
        Step("measure", 106, {"measure": 2, "mix": "RW", "concurrency": 8}, "RW c=8"),
    ]
    tape = play(Plan(tuple(steps), {"RW": MIXES["RW"]}, MOST, HALF, interval=0.5))
    for at in (120.0, 122.0):
        tape.events.append({"time_s": at, "event": "scaling", "action": "add_node", "node": "node2"})
    tape.events.append({"time_s": 180.0, "event": "end", "status": "measured", "reason": None})
    entry = {
        "pattern": "single-peak",
        "repetition": 1,
        "mean_tps": 5000.0,
        "window_s": 60.0,
        "slots": [{"sessions": sessions, "tps": 100.0 * sessions} for sessions in wanted],
        "transitions": [{"at_s": 65.0, "from_sessions": 0, "to_sessions": 16, "demand_vcores": 4.0}],
    }
    detail = {"patterns": [entry], "allocation": "as the provider told it"}
    e1 = {"value": 1e5, "unit": "TPS per $", "ci95": None, "repetitions": 1, "detail": detail}
    return stored("20261120T191500Z-elasticity", tape, {"scores": {"E1": e1}}, [])
