"""The evaluator ``metastability``: a queue that retries keep full, or do not, and the time in which it empties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.calibration.base import Case, Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.calibration.base import Bench

_SERVICE_S, _PLACES = 0.01, 4
_CAPACITY = _PLACES / _SERVICE_S
_LIMIT_S = 0.1
"""When a client gives up: the server serves what nobody waits for any more all the same."""
_SURGE, _LENGTH_S = 5.0, 0.5
_RATE = 200.0
_ATTEMPTS = 4


def _queue(bench: Bench) -> Iterator[Reading]:
    """Expect goodput to return when the queue is short enough, and retries of each part of it to keep it for ever.

    At the end of a surge the queue holds what has come beyond the capacity. Without retries it shrinks by what the
    capacity exceeds the rate, and is short enough when it is served within the limit. With ``_ATTEMPTS`` attempts, all
    of them in vain, more comes than is served.
    """
    once, often = {"attempts": 1}, {"attempts": _ATTEMPTS, "backoff": 0.0}
    measured = bench.measure(
        {"provider": "sim", "plan": f"latency=constant({1000 * _SERVICE_S:g}ms)&capacity={_PLACES}"},
        {
            "evaluator": "metastability",
            "mix": "SELECT",
            "limit": _LIMIT_S,
            "start": _RATE,
            "least": _RATE,
            "most": _RATE,
            "arrivals": "constant",
            "surge": _SURGE,
            "length": _LENGTH_S,
            "policies": {
                "once": once,
                "at once again": often | {"classes": ["statement_timeout", "connection_lost"]},
            },
            "rest": 0.5,
            "warmup": 0.3,
            "before": 1.0,
            "patience": bench.seconds(6, 4),
        },
        load={"sessions": 400, "statement_timeout": _LIMIT_S, "interval": 0.1},
    )
    policies = measured.scores["details"]["metastability"]["0"]["policies"]
    queue = (_SURGE * _RATE - _CAPACITY) * _LENGTH_S - (_LIMIT_S - _SERVICE_S) * _CAPACITY
    returned_s = policies["once"]["returned_s"]
    yield Reading(
        figure="time until goodput returned, without retries",
        unit="s",
        planted=queue / (_CAPACITY - _RATE),
        read="not at all" if returned_s is None else returned_s,
        absolute=0.25,
    )
    found = policies["at once again"]
    yield Reading(
        figure=f"goodput with {_ATTEMPTS} attempts",
        planted="stayed down",
        read=found["beyond_outcome"] or "returned",
    )


CASES = (Case("metastability", "a queue after a surge", _queue),)
