"""The evaluator ``elasticity``: steps of an allocation that are planted under a pattern of load."""

from __future__ import annotations

import contextlib
import json
import math
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.calibration.base import Case, Reading, Watch, origin_s
from nephoscope.scoring.prices import (
    DEFAULT_PRICE_BOOK,
    ELASTIC_RESOURCES,
    Stretch,
    allocated_cost,
    load_price_book,
)
from nephoscope.settings.resources import Resources
from nephoscope.statistics import half_width
from nephoscope.store import FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

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
        Stretch(after - before, _resources(max(step for step in line if step[0] <= before)[1]))
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


_ANSWERS = ((3.05, 8.0), (5.9, 1.0))
"""Since the start of the load: what the hook says from then on; 1 vCore before. The first follows its load at once."""
_PERIOD_S = 0.2
_MANIFESTS = f"*-calibrate*/{FILES.manifest}"


class _Answers(Watch):
    """Changes what a hook prints at planted times after the load of a bench's next run has begun."""

    def __init__(self, bench: Bench, file: Path) -> None:
        """Begin with `with`."""
        super().__init__("answers")
        self._folder = bench.folder
        self._known = set(bench.folder.glob(_MANIFESTS))
        self._file = file
        self.changed: list[tuple[float, float]] = []
        """When each answer was there to be read, in seconds since the start of the load, and its vCores."""
        self._print(BASE["vcores"])

    def _watch(self) -> None:
        while (origin := self._origin_s()) is None:
            if self._over.wait(0.01):
                return
        for at, vcores in _ANSWERS:
            if self._over.wait(origin + at - _engine.monotonic_ns() / 1e9):
                return
            self._print(vcores)
            self.changed.append((_engine.monotonic_ns() / 1e9 - origin, vcores))

    def _origin_s(self) -> float | None:
        """Look whether the load has begun; None as long as it has not."""
        for file in set(self._folder.glob(_MANIFESTS)) - self._known:
            with contextlib.suppress(OSError, ValueError):
                # A manifest is written before the load begins, and anew with its beginning before the first phase.
                if '"phase"' in file.with_name(FILES.events).read_text():
                    return origin_s(json.loads(file.read_text()))
        return None

    def _print(self, vcores: float) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(_resources(vcores).model_dump_json())
        new.replace(self._file)


def _asked(bench: Bench) -> Iterator[Reading]:
    """Expect what a hook said within a pattern: mean, cost, a scaling time, and none that is finer than the asking."""
    file, url = bench.folder / "vcores.json", f"sim://{bench.name()}?latency=constant(25ms)"
    hooks = {"allocation": f"cat '{file}'", "allocation_period": _PERIOD_S}
    with _Answers(bench, file) as answers:
        measured = bench.measure({"provider": "url", "rw": url, "hooks": hooks}, _spike())
    (pattern,) = measured.score("E1")["detail"]["patterns"]
    up, down = pattern["transitions"][1:3]
    begun, end = pattern["slots"][0]["start_s"], pattern["slots"][-1]["end_s"] + _WATCH_S
    mean = sum(vcores * length for length, vcores in _lengths(begun, end, answers.changed)) / (end - begun)
    yield Reading(
        figure="mean vCores",
        planted=mean,
        read=pattern["mean_vcores"],
        absolute=7 * _PERIOD_S / (end - begun),
    )
    dollars = planted_cost(begun, begun + pattern["window_s"], answers.changed)
    half = (pattern["cost_high"] - pattern["cost_low"]) / 2
    figure = "cost of the window"
    yield Reading(figure=figure, unit="$", planted=dollars, read=pattern["cost"], relative=0.02, stated=half)
    figure, word = f"scaling time {up['from_sessions']} → {up['to_sessions']}", "finer than the resolution"
    is_finer = up["scaling_s"] is None and up["scaling_high_s"] is not None
    yield Reading(figure=figure, planted=word, read=word if is_finer else str(up["scaling_s"]))
    yield Reading(
        figure=f"scaling time {down['from_sessions']} → {down['to_sessions']}",
        unit="s",
        planted=answers.changed[1][0] - down["at_s"],
        read=down["scaling_s"] if down["scaling_s"] is not None else "none",
        absolute=_PERIOD_S,
        stated=half_width((down["scaling_low_s"], down["scaling_high_s"])),
    )


def _lengths(
    start_s: float, end_s: float, steps: Sequence[tuple[float, float]]
) -> Iterator[tuple[float, float]]:
    """Cut a stretch of time at steps within it: lengths, and the vCores of each."""
    edges = [(start_s, BASE["vcores"]), *steps, (end_s, 0.0)]
    return ((after - at, vcores) for (at, vcores), (after, _) in pairwise(edges))


CASES = (
    Case("elasticity", "steps of an allocation on sim", _simulated),
    Case("elasticity", "hook polling", _asked),
)
