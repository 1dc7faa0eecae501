"""The evaluator ``throughput``: the search for saturation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.calibration.base import Case, Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.calibration.base import Bench

_TAU, _SERVICE_MS = 24, 20.0


def _search(bench: Bench) -> Iterator[Reading]:
    """Expect that 24 places are found: from the 24th session on nothing is served that was not before."""
    duration = bench.seconds(2, 0.8)
    measured = bench.measure(
        {"provider": "url", "rw": f"sim://?latency=constant({_SERVICE_MS:g}ms)&capacity={_TAU}"},
        {
            "evaluator": "throughput",
            "mixes": ["SELECT"],
            "concurrency": "search",
            "search": {"start": 8, "most": 128, "duration": duration},
            "warmup": 0.2,
            "duration": duration,
            "repetitions": 1,
        },
    )
    found = measured.scores["saturation"]["SELECT"]
    # Sessions are told apart to an eighth of τ: that is a step of the search.
    step = _TAU // 8
    yield Reading(figure="τ", planted=_TAU, read=found["concurrency"], absolute=step, stated=step)
    most = _TAU / _SERVICE_MS * 1000
    yield Reading(figure="TPS there", unit="1/s", planted=most, read=found["tps"], relative=0.06)


CASES = (Case("throughput", "saturation at τ = 24", _search),)
