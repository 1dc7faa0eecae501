"""The evaluator ``scaleout``: read-only nodes of a known capacity, which take a known time to come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.calibration.base import Case, Reading
from nephoscope.statistics import half_width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.calibration.base import Bench

_LAW, _SERVICE_S = "latency=constant(20ms)", 0.02
_PLACES, _NODE_PLACES, _SESSIONS, _NODES = 4, 8, 32, 2
_DELTA = 100.0
_NODE_TIME_S = 1.0
_TOLERANCE, _SERVE_S = 0.03, 0.1


def _nodes(bench: Bench) -> Iterator[Reading]:
    """Expect that each node adds what it serves to the primary, which goes on reading."""
    measured = bench.measure(
        {
            "provider": "sim",
            "plan": f"{_LAW}&capacity={_PLACES}",
            "node": f"{_LAW}&capacity={_NODE_PLACES}",
            "node_time": _NODE_TIME_S,
        },
        {
            "evaluator": "scaleout",
            "mixes": ["SELECT"],
            "nodes": _NODES,
            "concurrency": _SESSIONS,
            "warmup": 0.4,
            "duration": bench.seconds(4, 1.5),
            "delta": _DELTA,
        },
    )
    score = measured.score("E2")
    alone, node = (places / _SERVICE_S for places in (_PLACES, _NODE_PLACES))
    yield Reading(
        figure="E2",
        planted=node / _DELTA,
        read=score["value"],
        relative=_TOLERANCE,
        stated=half_width(score["ci95"]),
    )
    steps = score["detail"]["mixes"]["SELECT"]["steps"]
    for number, step in enumerate(steps):
        yield Reading(
            figure=f"TPS with {number} read-only nodes",
            unit="1/s",
            planted=alone + number * node,
            read=step["tps"],
            relative=_TOLERANCE,
        )
    for added in score["detail"]["added"]:
        yield Reading(
            figure=f"time until node {added['nodes']} serves",
            unit="s",
            planted=_NODE_TIME_S + _SERVICE_S,
            read=added["serve_s"],
            absolute=_SERVE_S,
        )


CASES = (Case("scaleout", "two nodes of twice the capacity", _nodes),)
