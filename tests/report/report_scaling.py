"""Runs with nodes that came and parameters that were set, whose figures are planted."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from report_documents import HALF, MIXES, MOST
from report_evaluated import stored
from report_synthetic import Plan, Step, play

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from report_stored import SyntheticRun
    from report_synthetic import Tape

SCALEOUT_STUDY = """
[[measure]]
evaluator = "scaleout"
mixes = ["RO", "RW"]
nodes = 2
delta = 1000.0
"""
PARAMETERS_STUDY = """
[[measure]]
evaluator = "sweep"
parameter = "shared_buffers"
values = ["128MB", "512MB", "2GB"]

[[measure]]
evaluator = "sweep"
parameter = "wal_sync_method"
values = ["fsync", "fdatasync"]
"""


def _played(labels: Sequence[Mapping[str, Any]]) -> Tape:
    """A measured phase of 4 s for each of these labels; the model knows a mix by its name without what follows."""
    steps = tuple(Step("measure", 4, {**of, "concurrency": 16}, str(of["mix"])) for of in labels)
    names = {str(of["mix"]): str(of["of_mix"]) for of in labels}
    mixes = {name: MIXES[mix] for name, mix in names.items()}
    most, half = ({name: table[mix] for name, mix in names.items()} for table in (MOST, HALF))
    tape = play(Plan(steps, mixes, most, half))
    end = {"time_s": 4.0 * len(steps), "event": "end", "status": "measured", "reason": None}
    tape.events.append(end)
    return tape


def step(
    nodes: int, tps: float, gain: float | None, half: float | None = None, **more: Any
) -> dict[str, Any]:
    """TPS with so many read-only nodes, as the evaluator tells it."""
    return {
        "nodes": nodes,
        "tps": tps,
        "gain_tps": gain,
        "ci95": [tps - half, tps + half] if half else None,
        "latency_ms": {"p50": 16e3 / tps, "p95": 30e3 / tps, "p99": 48e3 / tps},
        "failed": 0,
        "concurrency": 16,
        "repetitions": 2,
        "phases": [],
        **more,
    }


def scaled(*courses: tuple[str, Sequence[float]], delta: float = 1000.0) -> dict[str, Any]:
    """An entry of scale-out whose mixes have these TPS with 0, 1, … nodes."""
    mixes = {}
    for mix, rates in courses:
        gains = [None, *(after - before for before, after in itertools.pairwise(rates))]
        steps = [
            step(at, tps, gain, 0.02 * tps) for at, (tps, gain) in enumerate(zip(rates, gains, strict=True))
        ]
        e2 = (rates[-1] - rates[0]) / (delta * (len(rates) - 1)) if len(rates) > 1 else None
        straight = 0.99 if len(rates) > 2 else None
        mixes[mix] = {"steps": steps, "e2": e2, "r_squared": straight, "scale_up": rates[-1] / rates[0]}
    most = max(len(rates) for _, rates in courses)
    added = [
        {"at_s": 10.0 * at, "repetition": number, "nodes": at, "node": f"node{at + 1}", "serve_s": 1.5 + at}
        for number in (1, 2)
        for at in range(1, most)
    ]
    return {
        "delta": delta,
        "from_nodes": 0,
        "reads": "all",
        "served_by": "the first",
        "mixes": mixes,
        "added": added,
    }


def scaleout_run() -> SyntheticRun:
    """Two nodes come: to RO the second brings 45 % of what the first does, and it takes from RW."""
    labels = [
        {"measure": 0, "mix": f"{mix} nodes={at}", "of_mix": mix, "nodes": at, "repetition": number}
        for number in (1, 2)
        for at in (0, 1, 2)
        for mix in ("RO", "RW")
    ]
    entry = scaled(("RO", (10_000.0, 14_000.0, 15_800.0)), ("RW", (8_000.0, 8_500.0, 8_300.0)))
    e2 = {
        "value": 1.525,
        "unit": "delta TPS per node",
        "ci95": [1.4, 1.65],
        "repetitions": 2,
        "detail": entry,
    }
    scores = {"scores": {"E2": e2}, "details": {"scaleout": {"0": entry}}}
    return stored("20261120T191500Z-scaleout", _played(labels), scores, study=SCALEOUT_STUDY)


def value(value: Any, per_minute: float | None, **rates: Mapping[float, float]) -> dict[str, Any]:
    """A value of a parameter with the TPS of each mix by the number of sessions; ± 2 %."""
    mixes = {}
    for mix, by_level in rates.items():
        points = [
            {
                "concurrency": level,
                "tps": tps,
                "ci95": [0.98 * tps, 1.02 * tps],
                "failed": 0,
                "latency_ms": {"p50": 1e3 * level / tps, "p95": 2e3 * level / tps, "p99": 3e3 * level / tps},
                "p": tps / per_minute if per_minute else None,
                "p_ci95": [0.98 * tps / per_minute, 1.02 * tps / per_minute] if per_minute else None,
                "repetitions": 3,
                "phases": [],
            }
            for level, tps in by_level.items()
        ]
        mean = sum(by_level.values()) / len(by_level)
        mixes[mix] = {"points": points, "tps": mean, "p": mean / per_minute if per_minute else None}
    common = {"value": value, "held": value, "took_s": [1.0, 2.0, 3.0], "resources": None}
    return {**common, "cost_per_minute": per_minute, "mixes": mixes}


BUFFERS: dict[str, Any] = {
    "parameter": "shared_buffers",
    "before": "256MB",
    "values": [
        value("128MB", 0.02, RO={16.0: 10_000.0}, RW={16.0: 8_000.0}),
        value("512MB", 0.03, RO={16.0: 18_000.0}, RW={16.0: 9_000.0}),
        {**value("2GB", 0.06, RO={16.0: 30_000.0}, RW={16.0: 9_100.0}), "held": "2097152kB"},
    ],
}
"""RO has its best P at 512MB and its highest TPS at 2GB; RW cannot tell the TPS of these two apart."""
WORDS: dict[str, Any] = {
    "parameter": "wal_sync_method",
    "before": "fdatasync",
    "values": [
        value("fsync", 0.02, RW={4.0: 2_000.0, 16.0: 6_000.0}),
        value("fdatasync", 0.02, RW={4.0: 3_000.0, 16.0: 7_000.0}),
    ],
}
"""Words, at two levels, which all cost the same."""


def parameters_run() -> SyntheticRun:
    """Two sweeps: of a size, and of words."""
    labels = [
        {
            "measure": place,
            "mix": f"{mix} {entry['parameter']}={told['value']}",
            "of_mix": mix,
            "repetition": 1,
        }
        for place, entry in enumerate((BUFFERS, WORDS))
        for told in entry["values"]
        for mix in told["mixes"]
    ]
    scores = {
        "scores": {},
        "absent": {"E2": "no evaluator of this study measures it"},
        "details": {"sweep": {"0": BUFFERS, "1": WORDS}},
    }
    return stored("20261120T191500Z-parameters", _played(labels), scores, study=PARAMETERS_STUDY)
