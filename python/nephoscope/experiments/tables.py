"""The tables of an experiment, for terminal, Markdown, CSV, Parquet and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.experiments.responses import response
from nephoscope.experiments.results import BOX
from nephoscope.tables.columns import number, text
from nephoscope.tables.model import Column, Row, Table, ends, interval_of, spread

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from nephoscope.experiments.effects import Analysis
    from nephoscope.experiments.folder import Experiment
    from nephoscope.experiments.results import LevelScaling, Results

_KINDS = {
    "effect": "the change from the first level to the last; of a product half the difference between the effects of"
    " the one at the ends of the other",
    "curvature": "the second-order coefficient",
    "deviation": "a level's distance from the mean of all",
}


def meanings(kinds: Container[str]) -> str:
    """Say what these kinds of effects are."""
    return " ".join(f"{kind}: {meaning}." for kind, meaning in _KINDS.items() if kind in kinds)


def tables_of(found: Results) -> list[Table]:
    """Make the tables of an experiment; those without rows are left out."""
    made = [
        effects_table(found),
        models_table(found),
        treatments_table(found),
        scaling_table(found.scaling),
        references_table(found.experiment),
        runs_table(found),
    ]
    return [table for table in made if table.rows]


def effects_table(found: Results) -> Table:
    """Make the table of effects: a row for each term of each response."""
    rows: list[Row] = [
        {
            "response": analysis.response,
            "term": effect.label,
            "kind": effect.kind,
            "effect": effect.value,
            **ends("effect", effect.ci95),
            "unit": effect_unit(analysis),
            "of_mean_percent": _of_mean(analysis, effect.value),
            "clear": effect.clear,
            "freedom": effect.freedom,
            "aliases": ", ".join(effect.aliases),
        }
        for analysis in found.analyses
        for effect in analysis.effects
    ]
    columns = [
        text("response", "The response.", "response"),
        text("term", "A factor, its curvature (²) or level (=), or a product of two.", "term"),
        text(
            "kind",
            meanings(_KINDS),
        ),
        Column(
            "effect",
            "number",
            "In the unit of the response; in percent of a logarithmic one.",
            "effect",
            spread("effect"),
        ),
        *interval_of("effect", "the effect"),
        text("unit", "The unit.", "unit"),
        number(
            "of_mean_percent", "The effect as a share of the mean of all runs.", "of the mean", "+.1f", " %"
        ),
        Column(
            "clear",
            "flag",
            "Whether it differs from 0 at 5 % for all effects of its response together.",
            "clear",
        ),
        Column("freedom", "whole", "The degrees of freedom of its error."),
        text(
            "aliases",
            "Terms up to two factors that a fractional design cannot tell from it.",
            "aliases" if found.experiment.words else "",
        ),
    ]
    return Table("effects", "Effects, with their 95 % intervals", columns, rows)


def effect_unit(analysis: Analysis) -> str:
    """Return the unit of a response's effects."""
    return "%" if analysis.logarithmic else response(analysis.response).unit


def _of_mean(analysis: Analysis, effect: float) -> float | None:
    if analysis.logarithmic:
        return effect
    return 100 * effect / analysis.mean if analysis.mean else None


def models_table(found: Results) -> Table:
    """Make the table of the models: a row for each response."""
    rows: list[Row] = [
        {
            "response": one.response,
            "mean": one.mean,
            "unit": response(one.response).unit,
            "r_squared": one.r_squared,
            "freedom": one.freedom,
        }
        for one in found.analyses
    ]
    columns = [
        text("response", "The response.", "response"),
        number("mean", "The mean of all runs; the geometric one of a logarithmic response.", "mean"),
        text("unit", "The unit.", "unit"),
        number("r_squared", "The share of the variance between runs that the model explains.", "R²", ".3f"),
        Column("freedom", "whole", "The degrees of freedom of the error.", "degrees of freedom"),
    ]
    return Table("models", "Responses", columns, rows)


def treatments_table(found: Results) -> Table:
    """Make the table of treatments: their levels, the means of their responses, whether another dominates them."""
    experiment = found.experiment
    rows: list[Row] = []
    for one in found.treatments:
        row: Row = {"treatment": one.treatment + 1, **experiment.levels(one.treatment), "runs": one.runs}
        for name, mean in one.means.items():
            row |= {name: mean.mean, **ends(name, mean.ci95)}
        quantiles = one.boxes_ms.get("") or [None] * len(BOX)
        row |= {_box(share): value for share, value in zip(BOX, quantiles, strict=True)}
        knees = [
            f"{name}{'' if knee.clear else ' (not clear)'}"
            for name, knee in found.knees.items()
            if knee.place == one.treatment
        ]
        rows.append({**row, "standing": one.standing, "knee": ", ".join(knees)})
    columns = [
        Column("treatment", "whole", "The number of the treatment.", "treatment"),
        *_levels(experiment),
        Column("runs", "whole", "How many of its runs have been measured.", "runs"),
    ]
    for name in experiment.responses:
        of = response(name)
        columns += [
            Column(
                name, "number", of.meaning, f"{name}, {of.unit}" if name != "tps" else "TPS", spread(name)
            ),
            *interval_of(name, name),
        ]
    columns += [
        number(_box(share), f"The {share:.0%} quantile of latency over all its runs.") for share in BOX
    ]
    columns.append(
        text(
            "standing",
            f"Whether another treatment dominates it in {', '.join(experiment.objectives)}.",
            "Pareto",
        )
    )
    columns.append(
        text("knee", "The objectives of which it is the knee over the cost.", "knee" if found.knees else "")
    )
    return Table(
        "treatments",
        f"Treatments; the Pareto front is that of {', '.join(experiment.objectives)}",
        columns,
        rows,
    )


def _box(share: float) -> str:
    return f"latency_p{100 * share:02.0f}_ms"


def _levels(experiment: Experiment) -> Sequence[Column]:
    return [text(factor.name, f"The level of {factor.name}.", factor.name) for factor in experiment.factors]


def scaling_table(found: LevelScaling | None) -> Table:
    """Make the table of scaling: a row for each level above the lowest."""
    rows: dict[float, Row] = {}
    if found is not None:
        for name, ratios in (
            ("scale_up", found.scale_up),
            ("speed_up", found.speed_up),
            ("cost", found.cost),
        ):
            for ratio in ratios:
                row = rows.setdefault(ratio.level, {"level": ratio.level, "linearity": found.linearity})
                row |= {name: ratio.value, **ends(name, ratio.ci95), "pairs": ratio.pairs}
    columns = [
        number("level", "The level of the factor of scaling.", found.factor if found else "level", "g"),
        Column(
            "scale_up", "number", "Its TPS over that of the lowest level.", "scale-up", spread("scale_up")
        ),
        *interval_of("scale_up", "the scale-up"),
        Column(
            "speed_up",
            "number",
            "The mean latency of the lowest level over its own.",
            "speed-up",
            spread("speed_up"),
        ),
        *interval_of("speed_up", "the speed-up"),
        Column("cost", "number", "Its cost over that of the lowest level.", "cost", spread("cost")),
        *interval_of("cost", "the ratio of costs"),
        Column("pairs", "whole", "How many pairs of runs were compared.", "pairs"),
        number(
            "linearity",
            "R² of a straight line through the TPS of all levels; absent for two levels.",
            "linearity R²",
            ".3f",
        ),
    ]
    return Table(
        "scaling", "Scaling from the lowest level, with 95 % intervals", columns, list(rows.values())
    )


def references_table(experiment: Experiment) -> Table:
    """Make the table of what others have measured: a row for each figure. It is for files: the charts show it."""
    rows: list[Row] = [
        {
            "reference": one.name,
            "response": one.response,
            "where": ", ".join(f"{name} {level}" for name, level in one.where.items()),
            "over": x,
            "value": y,
            "source": one.source,
        }
        for one in experiment.references
        for x, y in one.points
    ]
    columns = [
        text("reference", "What was measured, by others on another machine."),
        text("response", "The response."),
        text("where", "The levels of factors that it belongs to."),
        Column("over", "number", "The level of the factor that the response is drawn over."),
        Column("value", "number", "The figure, in the unit of the response."),
        text("source", "Where it stands."),
    ]
    return Table("references", "What others have measured", columns, rows)


def runs_table(found: Results) -> Table:
    """Make the table of the runs in their order; it is only kept in files."""
    experiment = found.experiment
    rows: list[Row] = []
    for run in found.runs:
        planned = experiment.runs[run.number - 1]
        rows.append(
            {
                "run": run.number,
                "treatment": planned.treatment + 1,
                "replicate": planned.replicate,
                "block": planned.block,
                **experiment.levels(planned.treatment),
                **run.values,
                "folder": run.folder.name,
            }
        )
    columns = [
        Column("run", "whole", "The place of the run in the random order."),
        Column("treatment", "whole", "The number of the treatment."),
        Column("replicate", "whole", "Which replicate it belongs to."),
        Column(
            "block",
            "whole",
            "The stretch in which the factors of the blocks stand still; of the replicate without blocks.",
        ),
        *(Column(factor.name, "text", f"The level of {factor.name}.") for factor in experiment.factors),
        *(
            Column(name, "number", response(name).meaning)
            for name in (found.runs[0].values if found.runs else ())
        ),
        Column("folder", "text", "The run directory, in the folder runs."),
    ]
    return Table("runs", "Runs in their order", columns, rows)
