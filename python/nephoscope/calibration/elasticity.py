"""The evaluator ``elasticity``: steps of an allocation that are planted under a pattern of load."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nephoscope.calibration.base import Case, Reading
from nephoscope.price_book import (
    DEFAULT_PRICE_BOOK,
    ELASTIC_RESOURCES,
    Allocation,
    allocated_cost,
    load_price_book,
)
from nephoscope.systems.base import Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nephoscope.calibration.base import Bench, Measured

BASE = {"vcores": 1.0, "memory_gb": 4.0, "storage_gb": 10.0, "iops": 1000.0}
"""What a simulated system has before its steps."""
_REST_S, _SLOT_S, _WINDOW_S, _WATCH_S = 1.0, 2.0, 60.0, 2.0
_STEPS = ((3.6, 4.0), (5.4, 3.0), (5.9, 2.0), (7.5, 1.0))
"""Since the start of the load: its slots begin at 1, 3 and 5 s; the last one ends at 7 s."""
_SCALING_S = {1: 0.6, 2: 0.9, 3: 0.5}
"""From each change of the load, the first left out, to the last step that follows it."""
_SAMPLE_S = 0.01
"""The provider tells the moment of each step; the engine changes its load that exactly."""


def _resources(vcores: float) -> Resources:
    """Give the resources of so many vCores: memory goes with them."""
    return Resources.model_validate({**BASE, "vcores": vcores, "memory_gb": 4 * vcores})


def planted_cost(start_s: float, end_s: float, steps: Sequence[tuple[float, float]]) -> float:
    """Reckon what an allocation costs over a stretch of time, in dollars, from its steps alone."""
    line = [(-math.inf, BASE["vcores"]), *steps]
    edges = [start_s, *(at for at, _ in steps if start_s < at < end_s), end_s]
    pieces = [
        Allocation(after - before, _resources(max(step for step in line if step[0] <= before)[1]))
        for before, after in pairwise(edges)
    ]
    return allocated_cost(pieces, load_price_book(DEFAULT_PRICE_BOOK), ELASTIC_RESOURCES)


def _spike() -> dict[str, Any]:
    """Describe a pattern with a spike, for the steps that are planted under it."""
    return {
        "evaluator": "elasticity",
        "mixes": ["SELECT"],
        "patterns": [{"name": "spike", "shares": [0.25, 1.0, 0.25]}],
        "tau": 8,
        "slot": _SLOT_S,
        "rest": _REST_S,
        "window": _WINDOW_S,
        "watch": _WATCH_S,
    }


def _simulated(bench: Bench) -> Iterator[Reading]:
    """Expect the times from a change of the load to the last step, and the cost of the window and of each scaling."""
    measured = bench.measure(
        {
            "provider": "sim",
            "plan": "latency=constant(25ms)",
            "resources": BASE,
            "capacity_per_vcore": 2,
            "allocation": [{"at": at, "vcores": vcores, "memory_gb": 4 * vcores} for at, vcores in _STEPS],
        },
        _spike(),
    )
    cost = partial(planted_cost, steps=_STEPS)
    yield from compare(measured, cost, _SCALING_S, _SAMPLE_S)


def compare(
    measured: Measured,
    cost: Callable[[float, float], float],
    scaling_s: Mapping[int, float],
    sample_s: float,
    *,
    scaling_costs: bool = True,
) -> Iterator[Reading]:
    """Compare a pattern that was played with its true allocation: of any provider that has a log of its own.

    ``cost`` is what the true allocation costs from one time to another, in seconds since the start of the load;
    ``scaling_s`` are the true scaling times of changes of the load, by their place; ``sample_s`` is how far the times
    are apart at which the provider looks. Without ``scaling_costs`` those of single scalings are left out: of less than
    a second they are known no better than the moments of its steps.
    """
    (pattern,) = measured.score("E1")["detail"]["patterns"]
    begun = pattern["slots"][0]["start_s"]
    dollars = cost(begun, begun + pattern["window_s"])
    yield Reading(
        figure="cost of the window", unit="$", planted=dollars, read=pattern["cost"], relative=0.005
    )
    for place, seconds in scaling_s.items():
        change = pattern["transitions"][place]
        name = f"{change['from_sessions']} → {change['to_sessions']}"
        read = change["scaling_s"] if change["scaling_s"] is not None else "none"
        yield Reading(figure=f"scaling time {name}", unit="s", planted=seconds, read=read, absolute=sample_s)
        if scaling_costs and isinstance(read, float):
            yield Reading(
                figure=f"scaling cost {name}",
                unit="$",
                planted=cost(change["at_s"], change["at_s"] + read),
                read=change["scaling_cost"],
                relative=0.005,
            )


CASES = (Case("elasticity", "steps of an allocation on sim", _simulated),)
