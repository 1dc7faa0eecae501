"""The evaluator ``availability``: a simulated system that is away three times, for times that are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.calibration.base import Case, Reading
from nephoscope.errors import MeasurementError
from nephoscope.statistics import half_width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.calibration.base import Bench

_PROBE_RATE = 200.0
_TIME_S = 0.010 + 1 / _PROBE_RATE
"""A time down is read within 10 ms, and the time between two probes."""
_WARMUP_S, _SECONDS = 1.0, 8.0
_OUTAGES = ((1.0, 0.4), (3.0, 0.8), (6.0, 0.4))
"""When each begins, since the start of the measured time, and how long it lasts."""
_LATE_S = 0.05


def _away(bench: Bench) -> Iterator[Reading]:
    """Expect the planted availability, MTTF and MTTR, of outages that nobody caused, under a rate."""
    plan = [f"{_WARMUP_S + at:g}s+{lasts * 1000:g}ms" for at, lasts in _OUTAGES]
    measured = bench.measure(
        {"provider": "sim", "plan": {"latency": "constant(1ms)", "outage": plan}},
        {
            "evaluator": "availability",
            "mix": "SELECT",
            "rate": 100.0,
            "warmup": _WARMUP_S,
            "duration": _SECONDS,
            "probe_rate": _PROBE_RATE,
            "late": _LATE_S,
            "calm": 0.2,
        },
    )
    roles = measured.scores["details"]["availability"]["0"]["roles"]
    if not roles or roles[0]["mttr_s"] is None:
        raise MeasurementError("no interruption was seen")
    (found,) = roles
    count, down_s = len(_OUTAGES), sum(lasts for _, lasts in _OUTAGES)
    yield Reading(figure="interruptions", planted=count, read=found["interruptions"])
    figures = (
        ("availability", "", "availability", 1 - down_s / _SECONDS, count * _TIME_S / _SECONDS),
        ("MTTF", "s", "mttf", (_SECONDS - down_s) / count, _TIME_S),
        ("MTTR", "s", "mttr", down_s / count, _TIME_S),
    )
    for figure, unit, key, planted, absolute in figures:
        yield Reading(
            figure=figure,
            unit=unit,
            planted=planted,
            read=found[f"{key}_s" if unit else key],
            absolute=absolute,
            stated=half_width(found[f"{key}_ci95"]),
        )


CASES = (Case("availability", "three outages of sim, of 0.4, 0.8 and 0.4 s", _away),)
