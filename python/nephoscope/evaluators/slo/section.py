"""The section on the highest rate within a latency limit: the latency over the rate, and each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.evaluators.slo.tables import slo, slo_steps
from nephoscope.report.kit import method, scored
from nephoscope.report.kit.charts import Axis, Line, Mark, XYChart, category
from nephoscope.report.kit.parts import Grid, Method, Part, grid
from nephoscope.tables.columns import RunFigures
from nephoscope.tables.numbers import finite, number, percent, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nephoscope.report.kit.run import Run

_APART = 1.15
"""Rates that are closer than this ratio share a label."""
PLACE, ANCHOR, LABEL = 17, "slo", "Rate within a limit"
NO_MIX, HIDDEN = {"slo"}, {"slo"}


class SloEntry(Part):
    """The result of an entry of ``[[measure]]``."""

    statement: str
    charts: tuple[XYChart, ...]


class SloSection(Part):
    """The highest rates within latency limits."""

    entries: tuple[SloEntry, ...]
    rates: Grid
    steps: Grid
    method: tuple[Method, ...] = ()


def build(run: Run) -> SloSection | None:
    """Return the section; None where no such rate was searched for."""
    found = scored.entries(run, "slo")
    entries = tuple(_entry(place, entry) for place, entry in found.items() if _mixes(entry))
    if not entries:
        return None
    figures = RunFigures("", run.reader, run.scores)
    return SloSection(
        entries=entries,
        rates=grid(slo([figures])),
        steps=grid(slo_steps([figures])),
        method=method.of(run, "slo"),
    )


def _mixes(entry: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(mix): scored.table(found) for mix, found in scored.table(entry.get("mixes")).items()}


def _entry(place: str, entry: Mapping[str, Any]) -> SloEntry:
    return SloEntry(statement=_statement(entry), charts=(_chart(place, entry),))


def _statement(entry: Mapping[str, Any]) -> str:
    limit = f"{percent(entry.get('percentile'))} of the arrivals within {plain(entry.get('limit_ms'))} ms"
    said = "; ".join(f"{mix} {_said(found)}" for mix, found in _mixes(entry).items())
    return f"The highest rate with {limit}: {said}."


def _said(found: Mapping[str, Any]) -> str:
    rate = finite(found.get("rate"))
    if rate is None:
        return f"has none ({found.get('why')})"
    low, high = finite(found.get("certainly_held")), finite(found.get("certainly_not_held"))
    above = f"certainly not at {number(high)}/s" if high is not None else "no rate is known that is too high"
    below = f"certainly at {number(low)}/s" if low is not None else "no rate is known for certain to hold"
    return f"{number(rate)}/s ({below}, {above})"


def _chart(place: str, entry: Mapping[str, Any]) -> XYChart:
    limit = finite(entry.get("limit_ms"))
    name = f"p{100 * (finite(entry.get('percentile')) or 0.0):g}"
    lines, marks, told = [], [], []
    rates: set[float] = set()
    for index, (mix, found) in enumerate(_mixes(entry).items()):
        color, dash = category(index)
        data = _curve(found)
        rates |= {rate for rate, _ in data}
        lines.append(Line(name=mix, color=color, dash=dash, data=data))
        lines.append(Line(name=mix, color=color, style="points", data=data, legend=False))
        best = finite(found.get("rate"))
        marks += [Mark(x=x, y=y, label=f"{number(x)}/s", color=color) for x, y in data if x == best]
        told.append(f"{mix} {_told(data, best)}")
    if rates:
        # A rule of a chart is upright; the limit is a line of its own.
        across = ((min(rates), limit), (max(rates), limit))
        lines.append(Line(name="limit", color="problem", dash="dashed", data=across))
    return XYChart(
        id=f"slo-{place}",
        title=f"Latency {name} over the rate",
        unit="ms, log scale",
        message=f"{name}: {'; '.join(told)}.",
        note="Each point is one rate with all its phases together; what had not ended with its phase counts with its "
        "wait. The mark is the highest rate that held and was confirmed.",
        x=Axis(title="Rate", unit="arrivals per second", scale="log2", ticks=_ticks(rates)),
        y=Axis(title=name, unit="ms", scale="log10"),
        lines=tuple(lines),
        marks=tuple(marks),
    )


def _curve(found: Mapping[str, Any]) -> tuple[tuple[float, float], ...]:
    """Return the percentile at each rate, ascending."""
    told = map(scored.table, scored.sequence(found.get("rates")))
    each = ((finite(of.get("rate")), finite(of.get("percentile_ms"))) for of in told)
    return tuple((rate, latency) for rate, latency in each if rate is not None and latency is not None)


def _told(data: Sequence[tuple[float, float]], best: float | None) -> str:
    """Say the percentile at the highest rate that held, and at the next one above."""
    near = [point for point in data if best is None or point[0] >= best][:2]
    return (
        " and ".join(f"{number(latency, 3)} ms at {number(rate)}/s" for rate, latency in near) or "not known"
    )


def _ticks(rates: Iterable[float]) -> tuple[tuple[float, str], ...]:
    """Return the rates that stand far enough apart to be labelled, ascending."""
    chosen: list[float] = []
    for rate in sorted(rates):
        if not chosen or rate >= _APART * chosen[-1]:
            chosen.append(rate)
    return tuple((rate, number(rate, 3)) for rate in chosen)
