"""The view of the page of ``nephoscope storage evaluate``: the errors, and two forecasts as pictures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from nephoscope import __version__
from nephoscope.report.kit.charts import HeatChart, TimeAxis, TimeChart, XYChart
from nephoscope.report.kit.parts import Grid, Part, grid
from nephoscope.storage import evaluation_tables, pictures
from nephoscope.storage.describing import BOTH, segment_names
from nephoscope.storage.pictures import Side
from nephoscope.tables.numbers import number, percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.storage.corpus import Corpus
    from nephoscope.storage.evaluating import Evaluation, Tested
    from nephoscope.storage.reuse import MissRatioCurve

Chart = TypeVar("Chart", TimeChart, HeatChart, XYChart)

TEMPLATE = "nephoscope.storage/evaluated.html.j2"
"""The page's template, as ``report.page.render_with`` takes it."""


class DrawnForecast(Part):
    """A held-out run beside a forecast of it (CDSBen's Figures 10 and 11)."""

    id: str
    heading: str
    said: str
    timeline: TimeChart
    heat: tuple[HeatChart, ...]
    caches: tuple[XYChart, ...]


class EvaluationView(Part):
    """The page."""

    title: str
    axis: TimeAxis
    tables: tuple[Grid, ...]
    notes: tuple[str, ...]
    forecasts: tuple[DrawnForecast, ...]
    generator: str


def build(evaluation: Evaluation, corpus: Corpus) -> EvaluationView:
    """Compute the page."""
    names = segment_names(corpus)
    chosen = best_and_worst(evaluation)
    return EvaluationView(
        title=f"Forecasts of {corpus.folder.resolve().name}",
        axis=TimeAxis(start_s=0, end_s=max((one.run.run.seconds for one in chosen.values()), default=1)),
        tables=tuple(grid(table) for table in evaluation_tables.shown(evaluation)),
        notes=tuple(evaluation_tables.notes(evaluation)),
        forecasts=tuple(_drawn(which, one, names) for which, one in chosen.items()),
        generator=f"nephoscope {__version__}",
    )


def best_and_worst(evaluation: Evaluation) -> dict[str, Tested]:
    """Choose forecasts of the first model: those with the smallest and the largest divergence of Z, if they are two."""
    known = [
        (one.errors["divergence"], one) for one in evaluation.tested if one.model == evaluation.models[0]
    ]
    ordered = [one for _, one in sorted(known, key=lambda pair: pair[0] or 0.0)]
    ends = {"best": ordered[0], "worst": ordered[-1]}
    return ends if len(ordered) > 1 else {"best": ordered[0]}


def _drawn(which: str, one: Tested, names: Mapping[int, str]) -> DrawnForecast:
    sides = [Side.of_features(one.run, names, "captured run")]
    if one.forecast is not None:
        drawn = Side.of_forecast(one.forecast, names, "forecast")
        # Of Z what is expected, as its divergence is; only the seconds are those of one sequence.
        sides.append(replace(drawn, z=np.stack([one.found.z, np.zeros_like(one.found.z)])))
    curves = [one.truth.curve, one.found.curve]
    sides = [_with_curve(side, curve) for side, curve in zip(sides, curves, strict=True)]
    caches = pictures.miss_ratios(sides)
    return DrawnForecast(
        id=which,
        heading=f"The {which} forecast of {one.model}",
        said=_said(one),
        timeline=_named(which, pictures.timeline(sides)),
        heat=tuple(_named(which, chart) for chart in pictures.heat_maps(sides)),
        caches=() if caches is None else (_named(which, caches),),
    )


def _with_curve(side: Side, curve: MissRatioCurve | None) -> Side:
    return side if curve is None else replace(side, curves={BOTH: curve})


def _said(one: Tested) -> str:
    run, errors = one.run.run, one.errors
    asked = "" if run.target_tps is None else f", {number(run.target_tps)} asked for"
    mix = f"mix {run.mix}, " if run.mix else ""
    reached = number(float(one.run.x.sum(axis=0).mean()))
    told = [f"K-L of Z {number(errors['divergence'], 3)} nats"]
    for name, what in (("mean", "mean of Y"), ("deviation", "standard deviation of Y")):
        if (error := errors[name]) is not None:
            told.append(f"{what} off by {percent(error)}")
    if errors["miss_ratio"] is not None:
        told.append(f"miss-ratio curve {number(errors['miss_ratio'], 3)} away")
    return (
        f"Run {run.run}: {one.kind}, {mix}{reached} TPS reached{asked}. {', '.join(told)}. "
        "The forecast is one of the sequences that were drawn: as bursty as foretold, at other seconds."
    )


def _named(which: str, chart: Chart) -> Chart:
    return chart.model_copy(update={"id": f"{which}-{chart.id}"})
