"""The result: P per mix as in CloudyBench's Table V, and the eight scores with what is absent and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.report.measured import AbsentScores, ScoreRow
from nephoscope.report.numbers import finite
from nephoscope.report.parts import Estimate, Fact
from nephoscope.report.sections import key_figures, scored
from nephoscope.report.sections.points import exact_latency, figures_of, headline_points
from nephoscope.report.view import Headline, MixRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.report.facts import Point, Run
    from nephoscope.report.view import Verdict

# Name, meaning, which direction is better, unit (METRICS, section 3), in the order of PERFECT and then O.
_SCORES: dict[str, tuple[str, str, str, str]] = {
    "P": ("Performance", "throughput per cost", "higher", "TPS per $/min"),
    "E1": ("Elasticity", "throughput per cost while the load varies", "higher", "TPS per $"),
    "R": ("Recovery", "from the service's return to full throughput", "lower", "s"),
    "F": ("Fail-over", "from the fault to the service's return", "lower", "s"),
    "E2": ("Scale-out", "gain per added read-only node", "higher", ""),
    "C": ("Consistency", "replication lag", "lower", "s"),
    "T": ("Tenancy", "throughput per cost over all tenants", "higher", "TPS per $/min"),
    "O": ("Overall", "all of the above, on a logarithmic scale", "higher", ""),
}


def build(run: Run, verdicts: tuple[Verdict, ...]) -> Headline:
    """Return the key figures and the rows of both tables."""
    score = scored.score(run, "P")
    details = scored.mix_details(run)
    points = headline_points(run)
    rows = tuple(_row(run, point, details.get(point.mix, {})) for point in points)
    # A pattern of load is no mix to be averaged with others.
    of_mixes = tuple(
        row for row, point in zip(rows, points, strict=True) if "pattern" not in point.phases[0].labels
    )
    return Headline(
        figures=key_figures.build(run, rows, verdicts),
        mixes=rows,
        average=_average(of_mixes, score),
        cost_per_minute=scored.table(run.scores.get("cost")).get("per_minute"),
        p_unit=str(score.get("unit") or _SCORES["P"][3]),
        note=_note(run, score),
        scores=_scores(run),
        absent=_absent(run),
    )


def _row(run: Run, point: Point, detail: Mapping[str, Any]) -> MixRow:
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
    if len(rows) < 2 and not _measured(score):  # noqa: PLR2004 - the average of one row is that row
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


def _known(run: Run) -> dict[str, tuple[str, str, str, str]]:
    """Return the scores of the paper, and any that the run adds to them."""
    names = (*scored.table(run.scores.get("scores")), *scored.table(run.scores.get("absent")))
    return _SCORES | {str(key): (str(key), "", "", "") for key in names if key not in _SCORES}


def _scores(run: Run) -> tuple[ScoreRow, ...]:
    """Return the scores that were measured."""
    found = ((key, about, scored.score(run, key)) for key, about in _known(run).items())
    return tuple(_score(key, about, score) for key, about, score in found if _measured(score))


def _measured(score: Mapping[str, Any]) -> bool:
    return finite(score.get("value")) is not None


def _score(key: str, about: tuple[str, str, str, str], score: Mapping[str, Any]) -> ScoreRow:
    name, meaning, better, unit = about
    return ScoreRow.model_validate(
        {
            "key": key,
            "name": name,
            "meaning": meaning,
            "better": better or None,
            "unit": str(score.get("unit") or unit),
            "estimate": Estimate(value=score.get("value"), ci95=scored.ci95(score.get("ci95"))),
            "repetitions": score.get("repetitions"),
        }
    )


def _absent(run: Run) -> tuple[AbsentScores, ...]:
    """Return the scores that were not measured, those with one reason together."""
    reasons = scored.table(run.scores.get("absent"))
    groups: dict[str, list[Fact]] = {}
    for key, (name, *_) in _known(run).items():
        if not _measured(scored.score(run, key)):
            reason = str(reasons.get(key) or "not measured in this run")
            groups.setdefault(reason, []).append(Fact(label=key, value="" if name == key else name))
    return tuple(AbsentScores(scores=tuple(facts), reason=reason) for reason, facts in groups.items())
