"""The page of several runs, computed from their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope import __version__
from nephoscope.report import radar
from nephoscope.report.kit import scored
from nephoscope.report.kit.charts import Axis, Line, XYChart, category
from nephoscope.report.kit.parts import Grid, Part, grid
from nephoscope.report.kit.run import Run
from nephoscope.report.radar import Radar
from nephoscope.report.sections import title
from nephoscope.statistics import mean_ci
from nephoscope.tables.numbers import count, finite, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.store.protocol import RunReader
    from nephoscope.tables.model import Table


_FACTS = ("Study", "System", "Workload", "Measured", "Duration", "Load")


class RunLine(Part):
    """A run as the page introduces it."""

    name: str
    color: str
    status: str
    facts: tuple[str, ...]


class SeveralView(Part):
    """The page of several runs."""

    runs: tuple[RunLine, ...]
    facts: tuple[str, ...]
    """The facts of the runs."""
    statement: str
    warnings: tuple[str, ...]
    radar: Radar | None
    charts: tuple[XYChart, ...]
    tables: tuple[Grid, ...]
    notes: tuple[str, ...]
    generator: str


def build(
    runs: Sequence[tuple[str, RunReader, Mapping[str, Any]]],
    tables: Sequence[Table],
    warnings: Sequence[str],
    notes: Sequence[str],
) -> SeveralView:
    """Compute the page of runs, each with its name and its scores."""
    scores = [(name, _values(given)) for name, _, given in runs]
    return SeveralView(
        runs=tuple(_line(index, name, reader) for index, (name, reader, _) in enumerate(runs)),
        facts=_FACTS,
        statement=_statement(scores, [_o_interval(given) for _, _, given in runs]),
        warnings=tuple(warnings),
        radar=radar.build(scores),
        charts=_charts(runs),
        tables=tuple(grid(table) for table in tables),
        notes=tuple(notes),
        generator=f"nephoscope {__version__}",
    )


def _values(scores: Mapping[str, Any]) -> dict[str, float]:
    found = {
        str(key): finite(scored.table(score).get("value"))
        for key, score in scored.table(scores.get("scores")).items()
    }
    return {key: value for key, value in found.items() if value is not None}


def _line(index: int, name: str, reader: RunReader) -> RunLine:
    made = title.build(Run(reader))
    said = {fact.label: fact.value for fact in made.facts} | {"Study": made.study}
    facts = tuple(said.get(fact, "") for fact in _FACTS)
    return RunLine(name=name, color=category(index)[0], status=made.status, facts=facts)


def _o_interval(scores: Mapping[str, Any]) -> tuple[float, float] | None:
    return scored.ci95(scored.table(scored.table(scores.get("scores")).get("O")).get("ci95"))


def _statement(
    scores: Sequence[tuple[str, Mapping[str, float]]], intervals: Sequence[tuple[float, float] | None]
) -> str:
    """Say in a sentence which run is the best, as far as that can be said."""
    with_o = [
        (values["O"], name, ci95)
        for (name, values), ci95 in zip(scores, intervals, strict=True)
        if "O" in values
    ]
    if len(with_o) > 1:
        best, name, above = max(with_o, key=lambda entry: entry[0])
        worst, last, below = min(with_o, key=lambda entry: entry[0])
        said = f"The highest O is that of {name}, {number(best)}; the lowest that of {last}, {number(worst)}"
        if above is None or below is None:
            return f"{said}; how sure that is is not known, for one of them has no interval."
        apart = "do not overlap" if above[0] > below[1] else "overlap, so chance may have made the order"
        return f"{said}; their 95 % intervals {apart}."
    if with_o:
        return f"Only {with_o[0][1]} has an O: the others lack scores, as is said below."
    shared = [
        key
        for key in dict.fromkeys(key for _, values in scores for key in values)
        if all(key in v for _, v in scores)
    ]
    said = (
        f"scores that all of them have: {', '.join(shared)}"
        if shared
        else "no score is one that all of them have"
    )
    return f"{count(len(scores))} runs, none with an O; {said}."


def _charts(runs: Sequence[tuple[str, RunReader, Mapping[str, Any]]]) -> tuple[XYChart, ...]:
    """Draw the throughput over the load for each mix that at least two runs have measured."""
    curves: dict[str, dict[int, dict[float, list[Mapping[str, Any]]]]] = {}
    for index, (_, _, scores) in enumerate(runs):
        for point in map(scored.table, scored.sequence(scores.get("points"))):
            concurrency = finite(point.get("concurrency"))
            if concurrency and point.get("slot") is None:
                of_mix = curves.setdefault(str(point.get("mix") or "load"), {})
                of_mix.setdefault(index, {}).setdefault(concurrency, []).append(point)
    names = [name for name, _, _ in runs]
    return tuple(_chart(mix, names, of_mix) for mix, of_mix in curves.items() if len(of_mix) > 1)


def _chart(
    mix: str, names: Sequence[str], curves: Mapping[int, Mapping[float, Sequence[Mapping[str, Any]]]]
) -> XYChart:
    lines = []
    most = []
    for index, curve in curves.items():
        points = [(at, *_mean(found)) for at, found in sorted(curve.items())]
        color, dash = category(index)
        data = tuple((at, mean) for at, mean, _ in points)
        whiskers = tuple((at, *ci95) for at, _, ci95 in points if ci95 is not None)
        lines.append(Line(name=names[index], color=color, dash=dash, data=data, whiskers=whiskers))
        lines.append(Line(name=names[index], color=color, style="points", data=data, legend=False))
        most.append(f"{names[index]} {number(max(mean for _, mean, _ in points))}")
    return XYChart(
        id=f"several-{mix}",
        title=f"Throughput of {mix}",
        unit="transactions per second",
        message=f"At most: {', '.join(most)} TPS.",
        note="Means over repetitions with their 95 % intervals.",
        x=Axis(title="Concurrency", unit="sessions", scale="log2"),
        y=Axis(title="TPS"),
        lines=tuple(lines),
    )


def _mean(points: Sequence[Mapping[str, Any]]) -> tuple[float, tuple[float, float] | None]:
    """Return the mean TPS of a point's repetitions, with the interval of a single one where there is one."""
    values = [finite(point.get("tps")) or 0.0 for point in points]
    found = mean_ci(values)
    return found.mean, found.ci95 if len(values) > 1 else scored.ci95(points[0].get("ci95"))
