"""The responses of an experiment over one factor, beside what others have measured."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from nephoscope.experiments.responses import response
from nephoscope.report.kit.charts import Axis, XYChart, axis_around, category, course
from nephoscope.tables.numbers import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.experiments.results import Results
    from nephoscope.report.kit.charts import Line
    from nephoscope.study.factors import FactorTable
    from nephoscope.study.references import ReferenceTable

    Point = tuple[float, float, tuple[float, float] | None]

_WIDE = 8
"""From this ratio of its ends on, an axis of numbers is logarithmic."""


def curves(found: Results, name: str) -> list[XYChart]:
    """Draw a response over the factor of ``experiment.over``: a chart for each combination of the other factors.

    The points are means over the repetitions with their 95 % intervals; the factor of ``experiment.by`` has a line for
    each of its levels. References that belong to a chart are drawn into it.
    """
    table, factors = found.experiment.experiment, {f.name: f for f in found.experiment.factors}
    if table.over is None:
        return []
    across, by = factors.pop(table.over), factors.pop(table.by) if table.by is not None else None
    charts = []
    for chosen in itertools.product(*(factor.names for factor in factors.values())):
        where = dict(zip(factors, chosen, strict=True))
        lines = {
            _label(by, level, name): _points(found, name, across, where | ({by.name: level} if by else {}))
            for level in (by.names if by else [""])
        }
        lines = {label: points for label, points in lines.items() if points}
        beside = [
            one
            for one in found.experiment.references
            if one.response == name and all(where[key] == level for key, level in one.where.items())
        ]
        if lines:
            charts.append(_chart(name, across, where, lines, beside))
    return charts


def _label(by: FactorTable | None, level: str, name: str) -> str:
    return f"{by.name} {level}" if by else name


def _points(found: Results, name: str, across: FactorTable, where: Mapping[str, str]) -> list[Point]:
    """Give the means of the treatments at these levels, in the order of the factor across."""
    values = dict(zip(across.names, across.values or (), strict=True))
    made: list[Point] = []
    for treatment in found.treatments:
        levels = found.experiment.levels(treatment.treatment)
        mean = treatment.means.get(name)
        if mean is not None and all(levels[key] == level for key, level in where.items()):
            made.append((values[levels[across.name]], mean.mean, mean.ci95))
    return sorted(made)


def _chart(
    name: str,
    across: FactorTable,
    where: Mapping[str, str],
    lines: Mapping[str, Sequence[Point]],
    beside: Sequence[ReferenceTable],
) -> XYChart:
    unit = response(name).unit
    drawn: list[Line] = []
    for place, (label, points) in enumerate(lines.items()):
        drawn += course(label, category(place), points)
    for place, one in enumerate(beside, start=len(lines)):
        color, _ = category(place)
        drawn += course(
            f"reference: {one.name}", (color, "dashed"), [(x, y, None) for x, y in sorted(one.points)]
        )
    means = [(label, *point) for label, own in lines.items() for point in own]
    choose = max if response(name).higher_is_better else min
    label, at, best, _ = choose(means, key=lambda point: point[2])
    ends = [end for _, _, y, ci95 in means for end in (y, *(ci95 or ()))]
    xs = sorted({x for _, x, _, _ in means} | {x for one in beside for x, _ in one.points})
    named = ", ".join(f"{key} {level}" for key, level in where.items())
    sources = "; ".join(f"{one.name}: {one.source}" for one in beside)
    return XYChart(
        id="-".join(("curve", name, *where.values())),
        title=f"{name} over {across.name}" + (f", {named}" if named else ""),
        unit=unit,
        message=f"Best: {number(best)} {unit} at {across.name} {at:g}"
        + (f", {label}." if len(lines) > 1 else "."),
        note="Means of the repetitions with 95 % intervals."
        + (
            f" References were measured by others on other machines, and rank nothing here. {sources}."
            if beside
            else ""
        ),
        x=_axis(across.name, xs),
        y=axis_around(name, unit, [0.0, *ends, *(y for one in beside for _, y in one.points)]),
        lines=tuple(drawn),
    )


def _axis(name: str, xs: Sequence[float]) -> Axis:
    ticks = [(x, f"{x:g}") for x in xs]
    if xs[-1] / xs[0] >= _WIDE:
        return Axis(title=name, scale="log2", ticks=tuple(ticks))
    return axis_around(name, "", xs, ticks)
