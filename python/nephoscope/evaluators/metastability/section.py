"""The section on metastability: goodput over time around the trigger, where it returned and where it did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.evaluators.metastability.tables import metastability, metastability_steps
from nephoscope.report.kit import method, scored
from nephoscope.report.kit.charts import Axis, Dash, Line, Span, XYChart, category
from nephoscope.report.kit.parts import Grid, Method, Part, grid
from nephoscope.tables.columns import RunFigures
from nephoscope.tables.numbers import duration, finite, number, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nephoscope.report.kit.run import Run

PLACE, ANCHOR, LABEL = 33, "metastability", "Coming back"
NO_MIX, HIDDEN = {"metastability"}, {"step", "confirms"}


class MetastabilityEntry(Part):
    """The result of an entry of ``[[measure]]``."""

    statement: str
    charts: tuple[XYChart, ...]


class MetastabilitySection(Part):
    """Whether goodput returns after a trigger."""

    entries: tuple[MetastabilityEntry, ...]
    policies: Grid
    steps: Grid
    method: tuple[Method, ...] = ()


def build(run: Run) -> MetastabilitySection | None:
    """Return the section; None where nothing was measured."""
    found = scored.entries(run, "metastability")
    entries = tuple(
        MetastabilityEntry(statement=_statement(entry), charts=tuple(_charts(place, entry)))
        for place, entry in found.items()
        if _policies(entry)
    )
    if not entries:
        return None
    figures = RunFigures("", run.reader, run.scores)
    return MetastabilitySection(
        entries=entries,
        policies=grid(metastability([figures])),
        steps=grid(metastability_steps([figures])),
        method=method.of(run, "metastability"),
    )


def _policies(entry: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(name): scored.table(found) for name, found in scored.table(entry.get("policies")).items()}


def _statement(entry: Mapping[str, Any]) -> str:
    trigger = scored.table(entry.get("trigger"))
    what = f"a {trigger.get('kind')}"
    if (length := finite(trigger.get("length_s"))) is not None:
        what += f" of {duration(length)}"
    if (factor := finite(trigger.get("factor"))) is not None:
        what += f" at {number(factor)} times the rate"
    said = "; ".join(f"{name}: {_said(found, trigger)}" for name, found in _policies(entry).items())
    limit = plain(entry.get("limit_ms"))
    return f"After {what}, goodput (committed within {limit} ms) under each retry policy: {said}."


def _said(found: Mapping[str, Any], trigger: Mapping[str, Any]) -> str:
    rate, beyond = finite(found.get("rate")), finite(found.get("beyond"))
    parts = [
        "it returned at no rate that was tried" if rate is None else f"it returns up to {number(rate)}/s"
    ]
    if rate is not None and (took := finite(found.get("returned_s"))) is not None:
        parts[0] += f", within {duration(took)}"
    if beyond is not None and found.get("beyond_outcome") == "stayed down":
        waited = duration(finite(trigger.get("patience_s")) or 0.0)
        parts.append(
            f"at {number(beyond)}/s it stays down for {waited} and more, a rate that was served before"
        )
    elif beyond is not None and found.get("beyond_outcome") == "too much before":
        parts.append(f"{number(beyond)}/s is more than the system serves even before")
    elif beyond is None:
        parts.append("no rate is known at which it does not")
    return ", ".join(parts)


def _charts(place: str, entry: Mapping[str, Any]) -> Iterator[XYChart]:
    """Draw goodput around the trigger: of each policy the highest rate that returned, and the lowest that did not."""
    lines: list[Line] = []
    told: list[str] = []
    begun: list[float] = []
    starts: list[float] = []
    dashes: tuple[tuple[str, Dash], ...] = (("rate", "solid"), ("beyond", "dashed"))
    for index, (name, found) in enumerate(_policies(entry).items()):
        color, _ = category(index)
        courses = scored.table(found.get("courses"))
        for key, dash in dashes:
            rate, course = finite(found.get(key)), scored.table(courses.get(key))
            if not rate or not course or (key == "beyond" and found.get("beyond_outcome") != "stayed down"):
                continue
            shares = [good / rate for good in scored.sequence(course.get("goodput"))]
            data = tuple(zip(scored.sequence(course.get("time_s")), shares, strict=True))
            lines.append(
                Line(name=f"{name}, {number(rate)}/s", color=color, dash=dash, style="steps", data=data)
            )
            starts.append(data[0][0])
            begun.append(finite(course.get("begun_s")) or 0.0)
            told.append(f"{name} at {number(rate)}/s: {'it is back' if key == 'rate' else 'it stays down'}")
    if lines:
        yield XYChart(
            id=f"metastability-{place}",
            title="Goodput around the trigger",
            unit="share of the rate",
            message=f"{'; '.join(told)}.",
            note="Solid: the highest rate at which goodput returned. Dashed: the lowest at which it stayed down.",
            x=Axis(title="Time since the trigger's end", unit="s", low=min(starts)),
            y=Axis(title="goodput / rate", low=0.0),
            lines=tuple(lines),
            spans=(Span(start=min(begun), end=0.0, label="trigger", color="problem-wash"),),
        )
