"""The section on how a load should be measured: its course from a cold start, and the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.evaluators.steady.tables import steady
from nephoscope.report.kit import method, scored
from nephoscope.report.kit.charts import Axis, Line, Rule, XYChart
from nephoscope.report.kit.parts import Grid, Method, Part, grid
from nephoscope.tables.columns import RunFigures
from nephoscope.tables.numbers import finite, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nephoscope.report.kit.run import Run

PLACE, ANCHOR, LABEL = 18, "steady", "How to measure"


class SteadySection(Part):
    """How a load should be measured."""

    statement: str
    charts: tuple[XYChart, ...]
    plans: Grid
    method: tuple[Method, ...] = ()


def build(run: Run) -> SteadySection | None:
    """Return the section; None where that was not looked at."""
    found = [
        (f"{place}-{number}", str(mix), scored.table(plan), scored.table(entry))
        for place, entry in scored.entries(run, "steady").items()
        for number, (mix, plan) in enumerate(scored.table(entry.get("mixes")).items())
    ]
    if not found:
        return None
    return SteadySection(
        statement=" ".join(_said(mix, plan, entry) for _, mix, plan, entry in found),
        charts=tuple(_chart(id_, mix, plan) for id_, mix, plan, _ in found),
        plans=grid(steady([RunFigures("", run.reader, run.scores)])),
        method=method.of(run, "steady"),
    )


def _said(mix: str, plan: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    warm_up, window = finite(plan.get("warm_up_s")), finite(plan.get("window_s"))
    precision = f"± {number(100 * (finite(entry.get('precision')) or 0.0))} %"
    if warm_up is None:
        return f"{mix}: no steady part was seen, so a repetition must be longer."
    needed, most = finite(plan.get("repetitions")), finite(plan.get("repetitions_at_most"))
    if needed is None:
        return f"{mix}: {precision} of the TPS takes more than 10,000 repetitions."
    at_most = f"{number(most)} at the most" if most is not None else "perhaps more than 10,000"
    return (
        f"{mix}: {precision} of the TPS takes {number(needed)} repetitions ({at_most}) of"
        f" {number(window or 0.0)} s, each after a warm-up of {number(warm_up)} s."
    )


def _chart(id_: str, mix: str, plan: Mapping[str, Any]) -> XYChart:
    course, warm_up = scored.table(plan.get("course")), finite(plan.get("warm_up_s"))
    step = finite(course.get("step_s")) or 0.0
    looks = (("mean", "c0", "solid"), ("low", "muted", "dashed"), ("high", "muted", "dashed"))
    rules = () if warm_up is None else (Rule(x=warm_up, label="warm-up"),)
    return XYChart(
        id=f"steady-{id_}",
        title=f"TPS of {mix} since a cold start",
        unit="transactions per second",
        message=f"Mean {number(finite(plan.get('tps')) or 0.0)} TPS after the warm-up.",
        note="The mean of all repetitions, with the lowest and the highest of them.",
        x=Axis(title="Time since the start", unit="s", low=0),
        y=Axis(title="TPS", low=0),
        lines=tuple(
            Line(name=name, color=color, dash=dash, data=tuple(_points(course.get(name), step)))  # type: ignore[arg-type]
            for name, color, dash in looks
        ),
        rules=rules,
    )


def _points(values: object, step: float) -> Iterator[tuple[float, float]]:
    for place, value in enumerate(scored.sequence(values)):
        if (known := finite(value)) is not None:
            yield (place + 0.5) * step, known
