"""The evaluator ``slo``: a capacity, which arrivals at equal distances either stay within or overrun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.calibration.base import Case, Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.calibration.base import Bench

_SERVICE_S, _CAPACITY = 0.02, 4
_PRECISION = 0.05
_TOLERANCE = 2 * _PRECISION
"""A step just below the capacity may not hold because the machine was late."""


def _capacity(bench: Bench) -> Iterator[Reading]:
    """Expect the capacity: below it no arrival waits, above it the queue grows beyond any limit."""
    measured = bench.measure(
        {"provider": "sim", "plan": f"latency=constant({1000 * _SERVICE_S:g}ms)&capacity={_CAPACITY}"},
        {
            "evaluator": "slo",
            "mixes": ["SELECT"],
            "limit": 3 * _SERVICE_S,
            "arrivals": "constant",
            "start": 90,
            "least": 70,
            "precision": _PRECISION,
            "rest": 0.6,
            "warmup": 0.3,
            "duration": bench.seconds(4, 1.5),
            "repetitions": 1,
        },
    )
    found = measured.scores["details"]["slo"]["0"]["mixes"]["SELECT"]
    low, high = found["certainly_held"], found["certainly_not_held"]
    yield Reading(
        figure="the highest rate within three times the service time",
        unit="1/s",
        planted=_CAPACITY / _SERVICE_S,
        read="none" if found["rate"] is None else found["rate"],
        relative=_TOLERANCE,
        stated=None if low is None or high is None else (high - low) / 2,
    )


CASES = (Case("slo", "a capacity of 4", _capacity),)
