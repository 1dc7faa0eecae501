"""The result: key figures, and P per mix as in CloudyBench's Table V."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.report.kit import scored
from nephoscope.report.kit.parts import Estimate
from nephoscope.report.kit.points import exact_latency, figures_of, headline_points
from nephoscope.report.sections import key_figures
from nephoscope.report.view import Headline, MixRow
from nephoscope.tables.numbers import finite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.report.kit.parts import Verdict
    from nephoscope.report.kit.run import Run, ShownPoint


def build(run: Run, verdicts: tuple[Verdict, ...]) -> Headline:
    """Return the key figures and the rows of the table."""
    score = scored.score(run, "P")
    details = scored.mix_details(run)
    points = headline_points(run)
    rows = tuple(_row(run, point, details.get(point.mix, {})) for point in points)
    # Patterns of load, failures and the loads beside lags are no mixes to be averaged with others.
    of_mixes = tuple(row for row, point in zip(rows, points, strict=True) if point.is_of_mix)
    # Other measurements have sections of their own, or are the only ones.
    shown = tuple(row for row in of_mixes if row.p.value is not None) or of_mixes or rows
    return Headline(
        figures=key_figures.build(run, shown, verdicts),
        mixes=shown,
        average=_average(of_mixes, score),
        cost_per_minute=scored.table(run.scores.get("cost")).get("per_minute"),
        p_unit=str(score.get("unit") or "TPS per $/min"),
        note=_note(run, score),
    )


def _row(run: Run, point: ShownPoint, detail: Mapping[str, Any]) -> MixRow:
    figures = figures_of(run, point)
    given = finite(detail.get("tps"))
    tps = figures.tps if given is None else Estimate(value=given, ci95=scored.ci95(detail.get("ci95")))
    return MixRow(
        mix=point.name,
        load=point.load,
        tps=tps,
        goodput=figures.goodput,
        p=Estimate(value=detail.get("p"), ci95=scored.ci95(detail.get("p_ci95"))),
        latency=exact_latency(run, point.numbers),
        repetitions=point.repetitions,
        color=run.mix_color(point.name),
    )


def _average(rows: tuple[MixRow, ...], score: Mapping[str, Any]) -> MixRow | None:
    """Return the row AVG: means of what may be averaged. Percentiles may not, so it has none."""
    if len(rows) < 2 and finite(score.get("value")) is None:  # noqa: PLR2004 - the average of one row is that row
        return None
    scored_rows = [row for row in rows if row.p.value is not None] or rows
    tps = [row.tps.value for row in scored_rows if row.tps.value is not None]
    return MixRow(
        mix="AVG",
        load="",
        tps=Estimate(value=sum(tps) / len(tps) if tps else None),
        p=Estimate(value=score.get("value"), ci95=scored.ci95(score.get("ci95"))),
        repetitions=round(finite(score.get("repetitions")) or 0),
    )


def _note(run: Run, score: Mapping[str, Any]) -> str:
    if run.nothing_measured and run.phases:
        return "No phase was measured: these figures are from warm-up and say little."
    if not score and run.points:
        return "There is no P-Score; throughput and latency are those of the measured phases."
    return ""
