"""The page of an experiment: effects, interactions, response surfaces, the Pareto front, box plots, tables."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from nephoscope import __version__
from nephoscope.experiments.boxes import boxes
from nephoscope.experiments.curves import curves
from nephoscope.experiments.responses import response
from nephoscope.experiments.results import COST
from nephoscope.experiments.tables import effect_unit, meanings, tables_of
from nephoscope.report.kit.charts import (
    HeatChart,
    Line,
    Mark,
    TimeAxis,
    XYChart,
    axis_around,
    axis_of_names,
    category,
    course,
)
from nephoscope.report.kit.parts import Grid, Part, grid
from nephoscope.tables.numbers import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.experiments.effects import Analysis, Effect
    from nephoscope.experiments.results import Results

TEMPLATE = "nephoscope.experiments/experiment.html.j2"
"""The page's template, as ``report.page.render_with`` takes it."""
_MOST_INTERACTIONS = 6
"""How many interactions are drawn, of each response: those with the largest effects."""


class ExperimentView(Part):
    """The page."""

    title: str
    description: str
    said: str
    axis: TimeAxis
    curves: tuple[XYChart, ...]
    effects: tuple[XYChart, ...]
    interactions: tuple[XYChart, ...]
    surfaces: tuple[HeatChart, ...]
    front: tuple[XYChart, ...]
    boxes: tuple[XYChart, ...]
    tables: tuple[Grid, ...]
    notes: tuple[str, ...]
    generator: str


def build(found: Results) -> ExperimentView:
    """Compute the page of an experiment."""
    experiment = found.experiment
    factors = ", ".join(f"{f.name} ({', '.join(f.names)})" for f in experiment.factors)
    kind = "full" if not experiment.words else f"fractional, resolution {experiment.design.resolution}"
    return ExperimentView(
        title=experiment.name,
        description=experiment.description,
        said=f"{len(found.runs)} of {len(experiment.runs)} runs in random order; {kind} design over {factors}.",
        axis=TimeAxis(start_s=0, end_s=1),
        curves=tuple(chart for name in experiment.experiment.responses for chart in curves(found, name)),
        effects=tuple(_effects(analysis) for analysis in found.analyses if analysis.effects),
        interactions=tuple(chart for analysis in found.analyses for chart in _interactions(found, analysis)),
        surfaces=tuple(chart for analysis in found.analyses for chart in _surfaces(found, analysis)),
        front=tuple(_front(found, a, b) for a, b in _pairs(experiment.objectives)),
        boxes=boxes(found),
        tables=tuple(grid(table) for table in tables_of(found) if table.shown),
        notes=tuple(found.notes),
        generator=f"nephoscope {__version__}",
    )


def _pairs(objectives: Sequence[str]) -> list[tuple[str, str]]:
    """Pair the objectives; the cost lies on the horizontal axis."""
    ordered = sorted(objectives, key=lambda name: name != COST)
    return list(itertools.combinations(ordered, 2))


def _effects(analysis: Analysis) -> XYChart:
    unit = effect_unit(analysis)
    effects = sorted(analysis.effects, key=lambda effect: -abs(effect.value))
    clear = [effect for effect in effects if effect.clear]
    said = "; ".join(f"{effect.label} {_signed(effect)} {unit}" for effect in clear[:4])
    lines = [
        Line(
            name=name,
            color=color,
            style="points",
            data=tuple((place, e.value) for place, e in enumerate(effects, 1) if bool(e.clear) is of),
            whiskers=tuple(
                (place, *e.ci95) for place, e in enumerate(effects, 1) if e.ci95 and bool(e.clear) is of
            ),
        )
        for name, color, of in (("clear", "c0", True), ("not clear", "muted", False))
    ]
    ends = [0.0, *(value for effect in effects for value in (effect.value, *(effect.ci95 or ())))]
    zero = Line(
        name="no effect", color="muted", dash="dashed", data=((0.5, 0), (len(effects) + 0.5, 0)), legend=False
    )
    return XYChart(
        id=f"effects-{analysis.response}",
        title=f"Effects on {analysis.response}",
        unit=unit,
        message=f"Clear: {said}." if said else "No effect is clear.",
        note=f"{meanings({effect.kind for effect in effects})} With 95 % intervals; the largest first."
        " Clear: at 5 % for all effects together.",
        x=axis_of_names("", [effect.label for effect in effects]),
        y=axis_around("effect", unit, ends),
        lines=(zero, *(line for line in lines if line.data)),
    )


def _signed(effect: Effect) -> str:
    """Write an effect with its sign."""
    return f"{'+' if effect.value > 0 else ''}{number(effect.value)}"


def _interactions(found: Results, analysis: Analysis) -> list[XYChart]:
    """Draw the response over one factor for each level of another, of the largest interactions."""
    factors = found.experiment.factors
    if len(factors) == 1:
        return [_means(found, analysis, 0, None, None)]
    largest: dict[tuple[int, int], Effect] = {}
    for one, other in itertools.combinations(range(len(factors)), 2):
        ours = [e for e in analysis.effects if _is_of(e, factors[one].name, factors[other].name)]
        if ours:
            largest[one, other] = max(ours, key=lambda effect: abs(effect.value))
    chosen = sorted(largest, key=lambda pair: -abs(largest[pair].value))[:_MOST_INTERACTIONS]
    return [_means(found, analysis, *pair, largest[pair]) for pair in chosen]


def _is_of(effect: Effect, one: str, other: str) -> bool:
    return [part.partition("=")[0] for part in effect.label.split(" × ")] == [one, other]  # noqa: RUF001 - times


def _means(found: Results, analysis: Analysis, one: int, other: int | None, effect: Effect | None) -> XYChart:
    """Draw the means over one factor, a line for each level of another."""
    experiment = found.experiment
    across = experiment.factors[one]
    by = experiment.factors[other].names if other is not None else [analysis.response]
    unit = response(analysis.response).unit
    lines: list[Line] = []
    ends: list[float] = []
    for level, name in enumerate(by):
        points = []
        for at in range(len(across.levels)):
            chosen = [
                number
                for number, treatment in enumerate(experiment.treatments)
                if treatment[one] == at and (other is None or treatment[other] == level)
            ]
            own = [found.treatments[number].means.get(analysis.response) for number in chosen]
            means = [mean for mean in own if mean is not None]
            if means:
                # The spread over the other factors is no error: only a single treatment has an interval.
                mean = math.fsum(one.mean for one in means) / len(means)
                ci95 = means[0].ci95 if len(means) == 1 else None
                points.append((across.values[at] if across.values else at + 1.0, mean, ci95))
                ends += [mean, *(ci95 or ())]
        label = f"{experiment.factors[other].name} {name}" if other is not None else name
        lines += course(label, category(level), points)
    second = experiment.factors[other].name if other is not None else ""
    numeric = across.values
    horizontal = (
        axis_around(across.name, "", numeric, list(zip(numeric, across.names, strict=True)))
        if numeric
        else axis_of_names(across.name, across.names)
    )
    return XYChart(
        id=f"means-{analysis.response}-{across.name}-{second}",
        title=f"{analysis.response} over {across.name}" + (f" and {second}" if second else ""),
        unit=unit,
        message=_said(effect, effect_unit(analysis)),
        x=horizontal,
        y=axis_around(analysis.response, unit, ends),
        lines=tuple(lines),
    )


def _said(effect: Effect | None, unit: str) -> str:
    if effect is None:
        return "Means of the runs."
    tells = {True: "clear", False: "not clear", None: "without an interval"}[effect.clear]
    return f"Interaction {effect.label}: {_signed(effect)} {unit}, {tells}."


def _surfaces(found: Results, analysis: Analysis) -> list[HeatChart]:
    """Draw the model's response over each pair of factors of numbers, of which one has three levels or more."""
    factors = found.experiment.factors
    numeric = [at for at, one in enumerate(factors) if one.values is not None]
    pairs = [
        pair
        for pair in itertools.combinations(numeric, 2)
        if max(len(factors[at].levels) for at in pair) > 2  # noqa: PLR2004
    ]
    return [chart for pair in pairs if (chart := _surface(found, analysis, *pair)) is not None]


def _surface(found: Results, analysis: Analysis, one: int, other: int) -> HeatChart | None:
    """Draw one surface: the mean of the model over the other factors; none where it is not above 0 everywhere."""
    across, up = found.experiment.factors[one], found.experiment.factors[other]
    cells: dict[tuple[int, int], list[float]] = {}
    for treatment, value in zip(found.experiment.treatments, analysis.fitted, strict=True):
        cells.setdefault((treatment[one], treatment[other]), []).append(value)
    means = {at: math.fsum(values) / len(values) for at, values in cells.items()}
    low, high = min(means.values()), max(means.values())
    if low <= 0 or low == high:
        return None
    unit = response(analysis.response).unit
    at, level = max(means, key=lambda cell: means[cell])
    rows = tuple(reversed(up.names))
    return HeatChart(
        id=f"surface-{analysis.response}-{across.name}-{up.name}",
        title=f"{analysis.response} over {across.name} and {up.name}",
        unit=unit,
        message=f"Highest: {number(high)} {unit}, {across.name} {across.names[at]}, {up.name} {up.names[level]}.",
        note=f"The second-order model; {up.name} upwards.",
        columns=tuple(across.names),
        columns_title=across.name,
        rows=rows,
        cells=tuple((column, len(rows) - 1 - row, value) for (column, row), value in means.items()),
        low=low,
        high=high,
        ticks=((0, number(low)), (0.5, number(math.sqrt(low * high))), (1, number(high))),
    )


def _front(found: Results, one: str, other: str) -> XYChart:
    """Draw two objectives of all treatments, with the intervals of both."""
    lines: list[Line] = []
    marks: list[Mark] = []
    xs: list[float] = []
    ys: list[float] = []
    for standing, color in (("not dominated", "c0"), ("cannot tell", "c1"), ("dominated", "muted")):
        own = [t for t in found.treatments if t.standing == standing]
        points = [(t.means[one].mean, t.means[other].mean) for t in own]
        if not own:
            continue
        whiskers = tuple(
            (x, *ci) for (x, _), t in zip(points, own, strict=True) if (ci := t.means[other].ci95)
        )
        lines.append(Line(name=standing, color=color, style="points", data=tuple(points), whiskers=whiskers))
        for (x, y), treatment in zip(points, own, strict=True):
            if ci := treatment.means[one].ci95:
                lines.append(Line(name=standing, color=color, data=((ci[0], y), (ci[1], y)), legend=False))
                xs += ci
            xs.append(x)
            ys += [y, *(treatment.means[other].ci95 or ())]
            if standing != "dominated":
                knee = found.knees.get(other) if one == COST else None
                is_knee = knee is not None and knee.place == treatment.treatment
                label = f"{treatment.treatment + 1}{' knee' if is_knee else ''}"
                marks.append(Mark(x=x, y=y, label=label, color=color))
    said = _said_of_knee(found, other) if one == COST else ""
    best = [str(t.treatment + 1) for t in found.treatments if t.standing == "not dominated"]
    ways = " and ".join(
        f"{name} {'higher' if response(name).higher_is_better else 'lower'}" for name in (one, other)
    )
    return XYChart(
        id=f"front-{one}-{other}",
        title=f"{one} and {other}",
        message=f"Not dominated: {', '.join(best) if best else 'none for certain'}.{said}",
        note=f"Numbers are those of the treatments below; better is {ways}. 95 % intervals decide who dominates whom.",
        x=axis_around(one, response(one).unit, xs),
        y=axis_around(other, response(other).unit, ys),
        lines=tuple(lines),
        marks=tuple(marks),
    )


def _said_of_knee(found: Results, name: str) -> str:
    knee = found.knees.get(name)
    if knee is None:
        return " There is no knee."
    certainty = "" if knee.clear else ", not clear"
    return f" The knee is {knee.place + 1}, {found.experiment.label(knee.place)}{certainty}."
