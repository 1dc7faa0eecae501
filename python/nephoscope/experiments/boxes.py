"""Box plots of latency: a box a treatment, as the runtime quality framework's Figure 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.report.kit.charts import Axis, Line, XYChart, axis_of_names
from nephoscope.tables.numbers import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.experiments.results import Results, TreatmentResult

_MOST_LETTERS = 48
"""How many letters the labels of an axis may have together."""


def boxes(found: Results) -> tuple[XYChart, ...]:
    """Draw the latency of each treatment: a chart for each transaction that the responses name, else one for all.

    With ``experiment.over`` each level of that factor has a chart of its own.
    """
    over = found.experiment.experiment.over
    levels = next((factor.names for factor in found.experiment.factors if factor.name == over), [""])
    transactions = list(dict.fromkeys(name for one in found.treatments for name in one.boxes_ms))
    charts = [
        chart
        for transaction in [name for name in transactions if name] or transactions
        for level in levels
        if (chart := _chart(found, transaction, over, level)) is not None
    ]
    return tuple(charts)


def _chart(found: Results, transaction: str, over: str | None, level: str) -> XYChart | None:
    own = [
        one
        for one in found.treatments
        if transaction in one.boxes_ms
        and (over is None or found.experiment.levels(one.treatment)[over] == level)
    ]
    if not own:
        return None
    drawn = list(enumerate((one.boxes_ms[transaction] for one in own), start=1))
    place, lowest = min(drawn, key=lambda box: box[1][2])
    title = f"Latency of {transaction}" if transaction else "Latency by treatment"
    return XYChart(
        id=f"boxes-{transaction}-{level}",
        title=f"{title}, {over} {level}" if over is not None else title,
        unit="ms",
        message=f"Lowest median: {number(lowest[2])} ms, {found.experiment.label(own[place - 1].treatment)}.",
        note="Boxes from the 25th to the 75th percentile with the median, whiskers from the 5th to the 95th, of "
        "all runs of a treatment.",
        x=_axis(found, own, over),
        y=Axis(title="latency", unit="ms", low=0, high=1.05 * max(box[4] for _, box in drawn)),
        lines=(
            Line(
                name="latency",
                color="c0",
                style="points",
                data=tuple((place, box[2]) for place, box in drawn),
                whiskers=tuple((place, box[0], box[4]) for place, box in drawn),
                boxes=tuple((place, box[1], box[3]) for place, box in drawn),
            ),
        ),
    )


def _axis(found: Results, treatments: Sequence[TreatmentResult], over: str | None) -> Axis:
    """Name the treatments by their levels, where these fit; else by their numbers."""
    factors = [factor.name for factor in found.experiment.factors if factor.name != over]
    labels = [
        " ".join(found.experiment.levels(one.treatment)[name] for name in factors) for one in treatments
    ]
    if not factors or sum(map(len, labels)) > _MOST_LETTERS:
        return axis_of_names("treatment", [str(one.treatment + 1) for one in treatments])
    return axis_of_names(", ".join(factors), labels)
