"""The result of an experiment, read from its runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nephoscope.errors import InputError
from nephoscope.experiments.effects import Analysis, analyse, pooled_means
from nephoscope.experiments.folder import FILES, read_folder
from nephoscope.experiments.pareto import Knee, Standing, knee, standings
from nephoscope.experiments.responses import (
    latencies,
    may_be_negative,
    points_of,
    response,
    transactions_of,
    value_of,
)
from nephoscope.experiments.scaling import Ratio, linearity, ratios
from nephoscope.measuring.series import whole_runs
from nephoscope.results.scores import scores_or_why
from nephoscope.statistics import no_less_than_0

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nephoscope import _engine
    from nephoscope.experiments.folder import Experiment
    from nephoscope.statistics import MeanEstimate
    from nephoscope.store import StoredRun

BOX = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of latency that a box plot has."""
COST = "cost"
SCALED = ("tps", "mean_ms", COST)
"""The responses of scale-up, speed-up and cost."""


@dataclass(frozen=True)
class MeasuredRun:
    """A run of an experiment that has been measured."""

    number: int
    """Its place in the order of the runs, from 1."""
    folder: Path
    values: Mapping[str, float | None]
    """Its responses by name."""
    problems: tuple[str, ...]
    """What the run's own verdicts say against its figures."""


@dataclass(frozen=True)
class TreatmentResult:
    """The runs of a treatment together."""

    treatment: int
    runs: int
    means: Mapping[str, MeanEstimate]
    boxes_ms: Mapping[str, tuple[float, ...]]
    """Quantiles of latency (`BOX`) of all its runs, in ms: of each transaction that the responses name, and of all
    transactions by the name ``""``."""
    standing: Standing | None
    """Whether another treatment dominates it; None where an objective is missing."""


@dataclass(frozen=True)
class LevelScaling:
    """How throughput, latency and cost follow the factor of scaling."""

    factor: str
    scale_up: Sequence[Ratio]
    speed_up: Sequence[Ratio]
    cost: Sequence[Ratio]
    linearity: float | None


@dataclass(frozen=True)
class Results:
    """What an experiment has found."""

    folder: Path
    experiment: Experiment
    runs: Sequence[MeasuredRun]
    treatments: Sequence[TreatmentResult]
    analyses: Sequence[Analysis]
    scaling: LevelScaling | None
    knees: Mapping[str, Knee]
    """Of each objective beside the cost, the treatment that is its knee over the cost; where there is one."""
    notes: Sequence[str]

    @property
    def missing(self) -> int:
        """How many runs have not been measured."""
        return len(self.experiment.runs) - len(self.runs)


def read_results(folder: Path) -> Results:
    """Read the runs of an experiment and compute its result. Raises ``InputError`` where none has been measured."""
    experiment = read_folder(folder)
    found = whole_runs(folder / FILES.runs)
    wanted = {run.study: number for number, run in enumerate(experiment.runs, start=1)}
    stored = {wanted[run.study]: run for run in found if run.study in wanted}
    if not stored:
        raise InputError(f"{folder}: no run of the experiment has been measured yet")
    scores = {number: scores_or_why(run) for number, run in stored.items()}
    names = list(dict.fromkeys((*experiment.responses, *(SCALED if experiment.experiment.scaling else ()))))
    runs = [_measured(number, stored[number], scores[number], names) for number in sorted(stored)]
    by_number = {run.number: run for run in runs}
    planned = [run.planned for run in experiment.runs]
    analyses = []
    for name in experiment.responses:
        values = [by_number[n].values[name] if n in by_number else None for n in range(1, len(planned) + 1)]
        made = analyse(
            name,
            experiment.factors,
            experiment.design,
            planned,
            values,
            blocks=experiment.experiment.blocks,
            logarithmic=name in experiment.experiment.logarithmic,
        )
        analyses += [made] if made is not None else []
    boxes = {
        transaction: _boxes(experiment, stored, scores, transaction or None)
        for transaction in ("", *transactions_of(experiment.responses))
    }
    treatments = _treatments(experiment, runs, boxes)
    return Results(
        folder,
        experiment,
        runs,
        treatments,
        analyses,
        _scaling(experiment, runs),
        _knees(experiment, treatments),
        _notes(experiment, runs, analyses),
    )


def _measured(number: int, run: StoredRun, scores: Mapping[str, Any], names: Sequence[str]) -> MeasuredRun:
    problems = [f"{v['verdict']}: {v['detail']}" for v in scores["verdicts"] if v["level"] == "problem"]
    problems += [w for w in scores["warnings"] if not scores["points"]]
    return MeasuredRun(
        number, run.folder, {name: value_of(run, scores, name) for name in names}, tuple(problems)
    )


def _boxes(
    experiment: Experiment,
    stored: Mapping[int, StoredRun],
    scores: Mapping[int, Mapping[str, Any]],
    transaction: str | None,
) -> dict[int, tuple[float, ...]]:
    """Return the quantiles of latency of each treatment, in ms; of all transactions or one."""
    totals: dict[int, _engine.Histogram] = {}
    for number, run in stored.items():
        (one,) = latencies([(run, points_of(run, scores[number]))], transaction)
        treatment = experiment.runs[number - 1].treatment
        if treatment in totals:
            totals[treatment].add(one)
        else:
            totals[treatment] = one
    return {
        treatment: tuple(total.quantile(share) / 1e6 for share in BOX)
        for treatment, total in totals.items()
        if total.count
    }


def _treatments(
    experiment: Experiment, runs: Sequence[MeasuredRun], boxes: Mapping[str, Mapping[int, tuple[float, ...]]]
) -> list[TreatmentResult]:
    means: dict[int, dict[str, MeanEstimate]] = {}
    samples: dict[str, dict[int, list[float]]] = {}
    numbers: dict[int, int] = {}
    for treatment in range(len(experiment.treatments)):
        own = [run for run in runs if experiment.runs[run.number - 1].treatment == treatment]
        numbers[treatment] = len(own)
        for name in experiment.responses:
            values = [value for run in own if (value := run.values[name]) is not None]
            if values:
                samples.setdefault(name, {})[treatment] = values
    for name, groups in samples.items():
        scale = name in experiment.experiment.logarithmic
        for treatment, mean in pooled_means(groups, logarithmic=scale).items():
            means.setdefault(treatment, {})[name] = (
                mean if may_be_negative(name) else replace(mean, ci95=no_less_than_0(mean.ci95))
            )
    whole = [t for t in means if all(name in means[t] for name in experiment.objectives)]
    found = standings(
        [[means[t][name] for name in experiment.objectives] for t in whole],
        [response(name).higher_is_better for name in experiment.objectives],
    )
    of = dict(zip(whole, found, strict=True))
    return [
        TreatmentResult(
            t,
            numbers[t],
            means.get(t, {}),
            {transaction: of_all[t] for transaction, of_all in boxes.items() if t in of_all},
            of.get(t),
        )
        for t in range(len(experiment.treatments))
    ]


def _knees(experiment: Experiment, treatments: Sequence[TreatmentResult]) -> dict[str, Knee]:
    found: dict[str, Knee] = {}
    for name in experiment.objectives if COST in experiment.objectives else ():
        own = [one for one in treatments if {name, COST} <= one.means.keys()]
        costs, values = [one.means[COST].mean for one in own], [one.means[name] for one in own]
        if name != COST and (of := knee(costs, values, response(name).higher_is_better)) is not None:
            found[name] = Knee(own[of.place].treatment, of.clear)
    return found


def _scaling(experiment: Experiment, runs: Sequence[MeasuredRun]) -> LevelScaling | None:
    name = experiment.experiment.scaling
    factor = next((one for one in experiment.factors if one.name == name), None)
    if factor is None or factor.values is None:
        return None
    place = experiment.factors.index(factor)
    tables: dict[str, dict[tuple[float, tuple[object, ...]], float]] = {figure: {} for figure in SCALED}
    for run in runs:
        planned = experiment.runs[run.number - 1]
        levels = experiment.treatments[planned.treatment]
        key = (*levels[:place], *levels[place + 1 :], planned.replicate)
        for figure, values in tables.items():
            if (value := run.values[figure]) is not None:
                values[factor.values[levels[place]], key] = value
    tps, mean_ms, cost = (tables[figure] for figure in SCALED)
    return LevelScaling(factor.name, ratios(tps), ratios(mean_ms, inverse=True), ratios(cost), linearity(tps))


def _notes(experiment: Experiment, runs: Sequence[MeasuredRun], analyses: Sequence[Analysis]) -> list[str]:
    design = experiment.design
    notes = [f"run {run.number}: {problem}" for run in runs for problem in run.problems]
    if missing := len(experiment.runs) - len(runs):
        notes.append(
            f"{missing} of {len(experiment.runs)} runs are missing: the command of the experiment measures them"
        )
    if design.words:
        relation = " = ".join(("1", *(design.write(word) for word in design.words)))
        notes.append(
            f"a fractional design of resolution {design.resolution}; its defining relation is {relation}"
        )
    notes += [note for analysis in analyses for note in analysis.notes]
    return notes
