"""The data of a chart, its labels included; its looks are the page's JavaScript.

Colours are roles, not values, because the page has a light and a dark palette: ``c0`` … ``c6`` tell
categories apart, ``q0`` … ``q3`` are an ordered ramp (percentiles), ``muted`` and ``problem`` are what
their names say.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from nephoscope.tables.numbers import rounded

if TYPE_CHECKING:
    from collections.abc import Sequence

CATEGORIES = 7
"""How many categorical colours there are; more series than that repeat them with another dash."""

# The order in which transactions take the colours: the mixes take them from the front.
_TRANSACTIONS = (5, 3, 4, 6, 2, 1, 0)

Dash = Literal["solid", "dashed", "dotted"]


def _drawable(value: object) -> float | None:
    """Return a coordinate of five significant digits: more cannot be seen, and they would double the file."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return rounded(float(value), 5)


Coordinate = Annotated[float | None, BeforeValidator(_drawable)]


class ChartPart(BaseModel):
    """A part of a chart's data."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Axis(ChartPart):
    """An axis of a chart that is not over time; ``percentile`` shows 1 / (1 - p) as p."""

    title: str
    unit: str = ""
    scale: Literal["linear", "log2", "log10", "percentile"] = "linear"
    low: Coordinate = None
    """Where a linear axis begins; 0 if left out. With it goes ``high``."""
    high: Coordinate = None
    """Where it ends; beyond the data if left out."""
    ticks: tuple[tuple[Coordinate, str], ...] = ()
    """Places that are called by a name; where there are some, only they are labelled."""


class Line(ChartPart):
    """A line, a set of points, or a filled step line; its whiskers and boxes are (x, low, high).

    ``steps`` holds each value until the next x. A ``rug`` is a stroke at the foot of the chart for each x.
    """

    name: str
    color: str
    dash: Dash = "solid"
    style: Literal["line", "steps", "points", "crosses", "area", "rug"] = "line"
    data: tuple[tuple[Coordinate, Coordinate], ...] = ()
    whiskers: tuple[tuple[Coordinate, Coordinate, Coordinate], ...] = ()
    boxes: tuple[tuple[Coordinate, Coordinate, Coordinate], ...] = ()
    """With points for medians and whiskers, a box plot."""
    legend: bool = True


class Mark(ChartPart):
    """A point that is pointed out, with its label."""

    x: Coordinate
    y: Coordinate
    label: str
    color: str


class Rule(ChartPart):
    """An upright line at a place of the x axis, with its label."""

    x: Coordinate
    label: str
    color: str = "ink-3"
    dash: Dash = "dashed"


class Span(ChartPart):
    """A shaded stretch of the x axis, with its name where it fits."""

    start: Coordinate
    end: Coordinate
    label: str
    color: str = "band"


class XYChart(ChartPart):
    """A chart over something other than time."""

    kind: Literal["xy"] = "xy"
    id: str
    title: str
    unit: str = ""
    message: str
    note: str = ""
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()
    rules: tuple[Rule, ...] = ()
    spans: tuple[Span, ...] = ()


class Bars(ChartPart):
    """A set of bars: a value for each name of its chart; None where there is nothing to show."""

    name: str
    color: str
    values: tuple[Coordinate, ...]


class BarChart(ChartPart):
    """Bars beside one another for each name: upright, or ``flat``, one name below the other."""

    kind: Literal["bars"] = "bars"
    id: str
    title: str
    unit: str = ""
    message: str
    note: str = ""
    names: tuple[str, ...]
    names_title: str = ""
    """What the names are."""
    series: tuple[Bars, ...]
    flat: bool = False
    stacked: bool = False


class HeatChart(ChartPart):
    """A heat map: a cell of a row and a column has a value, or is not there and stays empty.

    On the scale ``log`` values are positive and deeper is more, from ``low`` to ``high``; on ``difference`` they lie
    about 0, to ``high`` on either side. What lies beyond has the colour of the end.
    """

    kind: Literal["heat"] = "heat"
    id: str
    title: str
    unit: str = ""
    message: str
    note: str = ""
    columns: tuple[str, ...]
    columns_title: str
    rows: tuple[str, ...]
    """From the top."""
    cells: tuple[tuple[int, int, Coordinate], ...]
    """Column, row, value."""
    scale: Literal["log", "difference"] = "log"
    low: Coordinate
    high: Coordinate
    ticks: tuple[tuple[Coordinate, str], ...]
    """The labels of the legend, each with its place on the scale, 0 to 1."""


class TimeLine(ChartPart):
    """A series over time: one value per entry of its chart's ``x``; None where there is nothing to show."""

    name: str
    color: str
    dash: Dash = "solid"
    y: tuple[Coordinate, ...]


class TimeChart(ChartPart):
    """A chart over time; ``x`` are the middles of the buckets, in seconds since the start of the load."""

    kind: Literal["time"] = "time"
    id: str
    title: str
    unit: str = ""
    message: str
    note: str = ""
    x: tuple[Coordinate, ...]
    lines: tuple[TimeLine, ...]
    style: Literal["lines", "stack", "bars"] = "lines"
    log: bool = False
    percent: bool = False
    size: Literal["large", "medium", "small"] = "large"
    start_s: Coordinate = None
    """Where its axis begins that shows a stretch of the run of its own; the whole run's if left out, as ``end_s``."""
    end_s: Coordinate = None
    slider: bool = False


class Band(ChartPart):
    """A phase as the time axis shows it: ``group`` and ``load`` head the spans that phases share."""

    start_s: Coordinate
    end_s: Coordinate
    kind: str
    name: str
    group: str = ""
    load: str = ""
    color: str = ""


class Moment(ChartPart):
    """Something that happened at one moment (a fault, a scaling), marked in the charts over time."""

    time_s: Coordinate
    text: str


class TimeAxis(ChartPart):
    """The common part of all charts over time."""

    start_s: Coordinate
    end_s: Coordinate
    bands: tuple[Band, ...] = ()
    moments: tuple[Moment, ...] = ()


def transaction_look(index: int) -> tuple[str, Dash]:
    """Return the look of the n-th transaction: from the other end, so that it is not taken for a mix."""
    color, dash = category(index)
    return f"c{_TRANSACTIONS[int(color[1:])]}", dash


def category(index: int) -> tuple[str, Dash]:
    """Return the colour and the dash of the n-th category."""
    dashes: tuple[Dash, ...] = ("solid", "dashed", "dotted")
    return f"c{index % CATEGORIES}", dashes[index // CATEGORIES % len(dashes)]


def axis_of_names(title: str, names: Sequence[str]) -> Axis:
    """Return an axis of names at 1, 2, 3 …."""
    ticks = tuple((float(place), name) for place, name in enumerate(names, start=1))
    return Axis(title=title, low=0.5, high=len(names) + 0.5, ticks=ticks)


def axis_around(
    title: str, unit: str, values: Sequence[float], ticks: Sequence[tuple[float, str]] = ()
) -> Axis:
    """Return a linear axis that shows all values, with a little room."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.08 * ((high - low) or abs(high) or 1)
    return Axis(title=title, unit=unit, low=low - room, high=high + room, ticks=tuple(ticks))


def course(
    name: str,
    look: tuple[str, Dash],
    points: Sequence[tuple[Coordinate, Coordinate, tuple[float, float] | None]],
) -> tuple[Line, Line]:
    """Return a line through points, and on it the points with their intervals; each is (x, y, interval of y)."""
    color, dash = look
    data = tuple((x, y) for x, y, _ in points)
    whiskers = tuple((x, *ci95) for x, _, ci95 in points if ci95 is not None)
    return (
        Line(name=name, color=color, dash=dash, data=data),
        Line(name=name, color=color, style="points", data=data, whiskers=whiskers, legend=False),
    )
