"""The scores of several runs as shapes: drawn here, as SVG, for the chart library has none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nephoscope.report.kit.charts import Dash, category
from nephoscope.report.kit.parts import Part
from nephoscope.scoring.definitions import DEFINITIONS, PERFECT, TIMES, listed
from nephoscope.scoring.formulas import DEFAULT_RESOLUTION_S
from nephoscope.tables.numbers import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RADIUS = 150.0
_FEWEST = 3
"""The fewest corners of a shape."""
_LABELS = 22.0
_RINGS: tuple[tuple[float, ...], ...] = ((1, 1.25, 1.6, 2), (1, 2, 5, 10))
"""Where the rim is the best: how many times worse each ring is, to the centre."""


class Ring(Part):
    """A ring, and how many times worse than the best it stands for."""

    r: float
    label: str


class Spoke(Part):
    """A score; ``known`` where at least two runs have it."""

    key: str
    x: float
    y: float
    label_x: float
    label_y: float
    known: bool


class Shape(Part):
    """A run: ``path`` joins its scores as far as neighbours are there, ``dots`` are the scores themselves."""

    name: str
    color: str
    dash: Dash
    path: str
    dots: tuple[tuple[float, float], ...]


class Radar(Part):
    """A chart of all runs, around the origin."""

    rings: tuple[Ring, ...]
    spokes: tuple[Spoke, ...]
    shapes: tuple[Shape, ...]
    note: str


def build(runs: Sequence[tuple[str, Mapping[str, float]]]) -> Radar | None:
    """Draw runs by their names and scores; None where fewer than three scores are such of at least two runs."""
    worse = _times_worse(runs)
    known = {key for of in worse for key in of}
    if len(known) < _FEWEST:
        return None
    most = max(value for of in worse for value in of.values())
    rings = _rings(most)
    bound = rings[-1]
    return Radar(
        rings=tuple(
            Ring(r=_radius(times, bound), label="best" if times == 1 else f"1/{plain(times)}")
            for times in rings[:-1]
        ),
        spokes=tuple(_spoke(place, key, known=key in known) for place, key in enumerate(PERFECT)),
        shapes=tuple(_shape(index, name, worse[index], bound) for index, (name, _) in enumerate(runs)),
        note=(
            "Each spoke is a score on a logarithmic scale, relative to the best of these runs: that one is at the rim, "
            f"and the centre is {plain(bound)} times worse ({listed(TIMES)}: {plain(bound)} times as long). "
            "A score that fewer than two of the runs have is not drawn."
        ),
    )


def _times_worse(runs: Sequence[tuple[str, Mapping[str, float]]]) -> list[dict[str, float]]:
    """Return by run how many times worse than the best each score is that at least two runs have."""
    found: list[dict[str, float]] = [{} for _ in runs]
    for key in PERFECT:
        higher = DEFINITIONS[key].higher_is_better
        values = [(index, scores[key]) for index, (_, scores) in enumerate(runs) if key in scores]
        # A time below the resolution counts as the resolution; a value of 0 or less has no logarithm.
        usable = [(index, value if higher else max(value, DEFAULT_RESOLUTION_S)) for index, value in values]
        usable = [(index, value) for index, value in usable if value > 0]
        if len(usable) < 2:  # noqa: PLR2004 - one alone is its own best
            continue
        best = (max if higher else min)(value for _, value in usable)
        for index, value in usable:
            found[index][key] = best / value if higher else value / best
    return found


def _rings(most: float) -> tuple[float, ...]:
    for rings in _RINGS:
        if most <= rings[-1]:
            return rings
    return tuple(10.0**power for power in range(math.ceil(math.log10(most) - 1e-9) + 1))


def _radius(times: float, bound: float) -> float:
    return round(RADIUS * (1 - math.log(times) / math.log(bound)), 2)


def _at(place: int, radius: float) -> tuple[float, float]:
    angle = 2 * math.pi * place / len(PERFECT) - math.pi / 2
    return round(radius * math.cos(angle), 2), round(radius * math.sin(angle), 2)


def _spoke(place: int, key: str, *, known: bool) -> Spoke:
    x, y = _at(place, RADIUS)
    label_x, label_y = _at(place, RADIUS + _LABELS)
    return Spoke(key=key, x=x, y=y, label_x=label_x, label_y=label_y, known=known)


def _shape(index: int, name: str, worse: Mapping[str, float], bound: float) -> Shape:
    points = [
        _at(place, _radius(worse[key], bound)) if key in worse else None for place, key in enumerate(PERFECT)
    ]
    path = []
    for place, point in enumerate(points):
        after = points[(place + 1) % len(points)]
        if point is not None and after is not None:
            path.append(f"M{point[0]} {point[1]}L{after[0]} {after[1]}")
    color, dash = category(index)
    return Shape(
        name=name,
        color=color,
        dash=dash,
        path="".join(path),
        dots=tuple(point for point in points if point is not None),
    )
