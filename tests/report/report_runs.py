"""The runs that the report is tested with: a full one, and every way in which a run can be less than that."""

from __future__ import annotations

from typing import Any

from report_documents import HALF, MIXES, MOST, STUDY, VERDICTS, cost, manifest, scores_of
from report_evaluated import elasticity_run, failover_run, lag_run
from report_scaling import parameters_run, scaleout_run
from report_stored import SyntheticRun
from report_synthetic import Plan, Step, Tape, play, tables


def sweep_plan(*, warm: float = 2, measure: float = 10, repetitions: int = 3) -> Plan:
    """Three mixes, a sweep and a bisection, repeated."""
    steps = []
    for mix in MIXES:
        for sessions in (1, 2, 4, 8, 16, 32, 24):
            for repetition in range(1, repetitions + 1):
                labels = {"mix": mix, "concurrency": sessions, "repetition": repetition}
                steps.append(Step("warm_up", warm, labels, f"{mix} {sessions} warm-up"))
                steps.append(Step("measure", measure, labels, f"{mix} {sessions}"))
        if mix != "WO":
            steps.append(Step("pause", 4, {}, "pause"))
    errors = {
        "serialization": 0.004,
        "deadlock": 0.0006,
        "connection_lost": 0.002,
        "statement_timeout": 0.001,
    }
    return Plan(tuple(steps), MIXES, MOST, HALF, error_share=errors)


def sweep_run(**size: Any) -> SyntheticRun:
    """The full one."""
    plan = sweep_plan(**size)
    tape = play(plan)
    message = "autovacuum ran on orderline during WO, 24 sessions"
    tape.events.append({"time_s": 612.0, "event": "warning", "message": message})
    tape.events += [
        {
            "time_s": 412.5,
            "event": "connection",
            "state": "lost",
            "role": "rw",
            "tenant": "default",
            "count": 3,
        },
        {
            "time_s": 412.9,
            "event": "connection",
            "state": "restored",
            "role": "rw",
            "tenant": "default",
            "count": 3,
        },
    ]
    tape.events.append(
        {"time_s": tape.rows["end_s"][-1], "event": "end", "status": "measured", "reason": None}
    )
    scores = scores_of(plan, tape, VERDICTS, [message])
    return SyntheticRun("20261120T191500Z-first", manifest(tape), STUDY, scores, *_files(tape))


def search_run() -> SyntheticRun:
    """A search for saturation in short steps, one of them at what is then measured three times."""
    steps = [
        Step("measure", 1, {"mix": "RO", "concurrency": sessions, "search": True}) for sessions in (1, 2, 4)
    ]
    steps += [Step("measure", 5.3, {"mix": "RO", "concurrency": 2, "repetition": n}) for n in (1, 2, 3)]
    tape = play(Plan(tuple(steps), MIXES, MOST, HALF))
    tape.events.append(
        {"time_s": tape.rows["end_s"][-1], "event": "end", "status": "measured", "reason": None}
    )
    scores = {
        "scores": {},
        "saturation": {"RO": {"concurrency": 2, "tps": 9000.0, "why": "p99 grew"}},
        "cost": cost(),
    }
    return SyntheticRun("20261120T191500Z-search", manifest(tape), STUDY, scores, *_files(tape))


def killed_run() -> SyntheticRun:
    """Killed after two seconds, in warm-up: no end, no scores, no totals."""
    tape = play(
        Plan(
            (Step("warm_up", 5, {"mix": "RO", "concurrency": 8}, "RO 8 warm-up"),),
            MIXES,
            MOST,
            HALF,
            killed_at=2.0,
        )
    )
    given = manifest(tape, "killed")
    del given["totals"]
    return SyntheticRun("20261120T191500Z-killed", given, STUDY, None, *_files(tape))


def empty_run() -> SyntheticRun:
    """Killed before its first interval."""
    tape = Tape()
    given = manifest(tape, "killed")
    del given["totals"]
    return SyntheticRun("20261120T191500Z-empty", given, "", None, *_files(tape))


def failed_run() -> SyntheticRun:
    """Every transaction failed."""
    plan = Plan(
        (
            Step("warm_up", 2, {"mix": "RO", "concurrency": 4}),
            Step("measure", 10, {"mix": "RO", "concurrency": 4, "repetition": 1}),
        ),
        MIXES,
        MOST,
        HALF,
        fails=True,
    )
    tape = play(plan)
    tape.events.append(
        {"time_s": 12.0, "event": "end", "status": "failed", "reason": "no transaction was committed"}
    )
    absent = dict.fromkeys(("P", "E1", "R", "F", "E2", "C", "T", "O"), "no transaction was committed")
    nan = float("nan")
    scores = {
        "scores": {
            "P": {"value": nan, "unit": "TPS per $/min", "ci95": [nan, nan], "repetitions": 1, "detail": {}}
        },
        "absent": absent,
        "verdicts": [],
        "warnings": [],
        "points": [
            {**plan.steps[1].labels, "phase": 1, "tps": 0.0, "ci95": None, "steady": None, "failed": 9}
        ],
        "saturation": {},
        "cost": cost(),
    }
    given = manifest(tape, "failed", "no transaction was committed")
    return SyntheticRun("20261120T191500Z-failures", given, STUDY, scores, *_files(tape))


def open_loop_run() -> SyntheticRun:
    """A constant rate through a stall of two seconds: waits in the latency, arrivals dropped."""
    steps = (
        Step("warm_up", 5, {"mix": "RW", "rate": 2000}),
        Step("measure", 60, {"mix": "RW", "rate": 2000, "repetition": 1}),
        Step("ramp_down", 3, {"mix": "RW", "rate": 2000}),
    )
    plan = Plan(steps, MIXES, MOST, HALF, stall=(30.0, 32.0), interval=0.5)
    tape = play(plan)
    tape.events.append({"time_s": 30.0, "event": "fault", "message": "server stopped for 2 s"})
    tape.events.append({"time_s": 68.0, "event": "end", "status": "measured", "reason": None})
    verdicts = [
        {
            "verdict": "the client was the limit",
            "level": "bad",
            "detail": "busiest thread 97 % of a core: the system can do more than this",
        }
    ]
    scores = {
        "scores": {},
        "absent": {"P": "the study has no throughput measurement"},
        "verdicts": verdicts,
        "warnings": [],
        "points": [
            {**steps[1].labels, "phase": 1, "tps": 1938.0, "ci95": [1890.0, 1990.0], "goodput": 1811.0}
        ],
        "saturation": {},
        "cost": None,
    }
    return SyntheticRun("20261120T191500Z-open", manifest(tape), STUDY, scores, *_files(tape))


def tenants_run() -> SyntheticRun:
    """Three tenants in a staggered pattern."""
    tenants = ("alpha", "beta", "gamma")
    steps = [Step("warm_up", 5, {"pattern": "staggered high"})]
    for slot, weights in enumerate(([0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]), 1):
        labels = {"pattern": "staggered high", "slot": slot, "weights": weights}
        steps.append(Step("measure", 30, labels))
    plan = Plan(tuple(steps), {"RW": MIXES["RW"]}, MOST, HALF, tenants=tenants)
    tape = play(plan)
    for event in tape.events:
        if event["event"] == "phase":
            event["labels"].pop("weights", None)
    tape.events.append({"time_s": 95.0, "event": "end", "status": "measured", "reason": None})
    scores = {
        "scores": {
            "T": {
                "value": 80619.0,
                "unit": "TPS per $/min",
                "ci95": [79100.0, 84000.0],
                "repetitions": 1,
                "detail": {},
            }
        },
        "absent": {},
        "verdicts": [{"verdict": "client was not the limit", "level": "ok", "detail": ""}],
        "warnings": [],
        "points": [],
        "saturation": {},
        "cost": cost(),
    }
    return SyntheticRun("20261120T191500Z-tenants", manifest(tape), STUDY, scores, *_files(tape))


def hour_run() -> SyntheticRun:
    """An hour at intervals of one second, four transactions."""
    mix = {"new_orderline": 0.15, "order_payment": 0.05, "order_status": 0.75, "orderline_deletion": 0.05}
    steps = (
        Step("warm_up", 60, {"mix": "RW", "concurrency": 16}),
        *(Step("measure", 1180, {"mix": "RW", "concurrency": 16, "repetition": n}) for n in (1, 2, 3)),
    )
    plan = Plan(steps, {"RW": mix}, MOST, HALF, error_share={"serialization": 0.004, "connection_lost": 0.01})
    tape = play(plan)
    tape.events.append({"time_s": 3600.0, "event": "end", "status": "measured", "reason": None})
    return SyntheticRun("20261120T191500Z-hour", manifest(tape), STUDY, None, *_files(tape))


ATTACK = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x1b\x9b\u202e\u200b"


def hostile_run() -> SyntheticRun:
    """Every text that comes from outside tries to break out of the page."""
    run = sweep_run(repetitions=1, measure=2, warm=1)
    for event in run.events:
        if event["event"] == "error":
            event["message"] = f"{event['message']} {ATTACK}"  # type: ignore[index]
    intervals = run.intervals.set_column(
        run.intervals.column_names.index("transaction"),
        "transaction",
        [[f"{name}{ATTACK}" for name in run.intervals.column("transaction").to_pylist()]],
    )
    scores = dict(run.scores or {})
    scores["warnings"] = [ATTACK]
    scores["verdicts"] = [{"verdict": ATTACK, "level": ATTACK, "detail": ATTACK}]
    scores["absent"] = {"O": ATTACK}
    system = {
        "provider": ATTACK,
        "facts": {"server_version": ATTACK, ATTACK: ATTACK},
        "endpoints": {"rw": ["postgresql://app:hunter2@db.example:5432/sales"], "ro": []},
    }
    given = {**run.manifest, "study": ATTACK, "status": "failed", "reason": ATTACK, "system": system}
    study = f'{STUDY}\n[sql]\nquery = "SELECT 1; -- {ATTACK}"\n'
    return SyntheticRun(
        f"x-{ATTACK}", given, study, scores, intervals, run.events, run.system_metrics, run.records
    )


def _files(tape: Tape) -> tuple[Any, Any, Any, Any]:
    """The last four fields of a run, in their order."""
    intervals, system = tables(tape)
    return intervals, sorted(tape.events, key=lambda event: float(event["time_s"])), system, tape.records


RUNS = {
    "sweep": sweep_run,
    "search": search_run,
    "killed": killed_run,
    "empty": empty_run,
    "failures": failed_run,
    "open_loop": open_loop_run,
    "tenants": tenants_run,
    "hour": hour_run,
    "hostile": hostile_run,
    "elasticity": elasticity_run,
    "failover": failover_run,
    "lag": lag_run,
    "scaleout": scaleout_run,
    "parameters": parameters_run,
}
