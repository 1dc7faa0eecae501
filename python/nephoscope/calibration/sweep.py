"""The evaluator ``sweep``: a parameter that is the capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.calibration.base import Case, Reading
from nephoscope.statistics import half_width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.calibration.base import Bench

_SERVICE_S = 0.02
_VALUES, _BEFORE = (4, 8, 16), 6
_TOLERANCE = 0.03


def _capacity(bench: Bench) -> Iterator[Reading]:
    """Expect the throughput of each value, and that the parameter is then what it was."""
    measured = bench.measure(
        {"provider": "sim", "plan": f"latency=constant(20ms)&capacity={_BEFORE}"},
        {
            "evaluator": "sweep",
            "parameter": "capacity",
            "values": list(_VALUES),
            "mixes": ["SELECT"],
            "concurrency": [2 * max(_VALUES)],
            "warmup": 0.3,
            "duration": bench.seconds(3, 1.2),
            "repetitions": 1,
        },
    )
    for value in measured.scores["details"]["sweep"]["0"]["values"]:
        (point,) = value["mixes"]["SELECT"]["points"]
        yield Reading(
            figure=f"TPS at capacity {value['value']}",
            unit="1/s",
            planted=value["value"] / _SERVICE_S,
            read=point["tps"],
            relative=_TOLERANCE,
            stated=half_width(point["ci95"]),
        )
    held = [event["held"] for event in measured.run.events if event["event"] == "setting"]
    yield Reading(figure="capacity afterwards", planted=_BEFORE, read=held[-1])


CASES = (Case("sweep", "a capacity of 4, 8 and 16", _capacity),)
