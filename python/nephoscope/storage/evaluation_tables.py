"""The tables of an evaluation: each model's errors beside the bars and the baselines."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.statistics.intervals import no_less_than_0
from nephoscope.storage.distances import SMOOTHING, reuse
from nephoscope.storage.evaluating import (
    BASELINES,
    DRAWS,
    FIGURES,
    FIT_SECONDS,
    KINDS,
    REPLICATE,
    is_informed,
)
from nephoscope.tables.model import ABSENT, Column, Row, Table, ends, interval_of, of_texts, with_interval
from nephoscope.tables.numbers import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.storage.evaluating import Evaluation, Kind, Tested

_SHOWN = {
    "mean": "mean of Y",
    "deviation": "standard deviation of Y",
    "dispersion": "|ln index of dispersion|",
    "lag1": "lag-1 autocorrelation",
    "divergence": "K-L of Z",
    "read_share": "read share",
    "write_bytes": "mean write size",
    "miss_ratio": "miss-ratio curve",
}
_SHARES = {"mean", "deviation", "read_share", "write_bytes"}


def shown(evaluation: Evaluation) -> list[Table]:
    """Make the tables that are shown: a column a model, and the runs that were held out."""
    tables = [_by_model(evaluation, kind) for kind in KINDS if any(s.kind == kind for s in evaluation.splits)]
    return [*tables, _settings(evaluation), _fits(evaluation)]


def kept(evaluation: Evaluation) -> list[Table]:
    """Make the tables of files: a row a figure and model, a row a forecast."""
    return [_long(evaluation), _runs(evaluation), _fits(evaluation)]


def notes(evaluation: Evaluation) -> list[str]:
    """Say what the figures rest on."""
    told = [name for name in evaluation.models if name in _REFERENCES]
    return [
        *(f"{split.kind}: {split.held} held out" for split in evaluation.splits),
        "errors are means over held-out runs with their 95 % intervals; ✓ or ✗: whether the bar holds",
        f"{', '.join(told)}: told the run itself, or another capture of it; references, no forecasts",
        f"K-L in nats over the cells of either, {SMOOTHING:g} of what was foretold spread evenly over them",
        f"deviation, dispersion and autocorrelation are means over {DRAWS} sequences",
        *_of_curves(evaluation),
        *evaluation.reasons,
    ]


def _of_curves(evaluation: Evaluation) -> list[str]:
    found = {one.run.run.run: one.truth.curve for one in evaluation.tested if one.truth.curve is not None}
    if not found:
        return []
    curves = list(found.values())
    accesses = [curve.accesses for curve in curves]
    kinds = dict.fromkeys(split.kind for split in evaluation.splits)
    away = ", ".join(f"{number(evaluation.reuse(kind), 2)} ({kind})" for kind in kinds)
    notes = [
        "miss-ratio curve: mean distance of a generated sequence's from the captured run's",
        f"held-out runs have {min(accesses):,} to {max(accesses):,} accesses to pages",
        f"the curve of pages that never come again is {away} away; ?: that holds the bar, which then tells nothing",
    ]
    if sampled := [curve.rate for curve in curves if not curve.is_exact]:
        of = f"{len(sampled)} of {len(curves)}"
        notes.append(f"{of} captured curves are of a sample: {min(sampled):.2%} of the pages at least")
    return notes


_REFERENCES = ("poisson", "oracle", "replicate")


def _by_model(evaluation: Evaluation, kind: Kind) -> Table:
    place = KINDS.index(kind)
    rows = []
    for figure in FIGURES:
        cells = [_cell(evaluation, kind, model, figure.name) for model in evaluation.models]
        rows.append([_SHOWN[figure.name], f"≤ {_figure(figure.name, figure.bars[place])}", *cells])
    return of_texts(f"evaluation-{place}", f"Errors, {kind}", ["error of", "bar", *evaluation.models], rows)


def _cell(evaluation: Evaluation, kind: Kind, model: str, figure: str) -> str:
    found = evaluation.error(kind, model, figure)
    if found is None:
        return ABSENT
    if not math.isfinite(found.mean):
        return "∞ ✗"
    # Intervals of baselines are in the files: their columns are for a glance.
    ci95 = None if model in (*BASELINES, REPLICATE) or found.ci95 is None else no_less_than_0(found.ci95)
    factor = 100 if figure in _SHARES else 1
    value = found.mean * factor if found.mean > _NOTHING else 0.0
    ends_of = None if ci95 is None else [end * factor for end in ci95]
    mark = "" if model in _REFERENCES else _MARKS[evaluation.holds(kind, model, figure)]
    return with_interval(f"{value:.3g}", value, ends_of) + (" %" if figure in _SHARES else "") + mark


_NOTHING = 1e-9
_MARKS = {True: " ✓", False: " ✗", None: " ?"}


def _figure(name: str, value: float) -> str:
    return f"{value * 100:.3g} %" if name in _SHARES else f"{value:.3g}"


def _long(evaluation: Evaluation) -> Table:
    rows: list[Row] = []
    for kind in dict.fromkeys(split.kind for split in evaluation.splits):
        for model in evaluation.models:
            for figure in FIGURES:
                found = evaluation.error(kind, model, figure.name)
                finite = found is not None and math.isfinite(found.mean)
                rows.append(
                    {
                        "split": kind,
                        "model": model,
                        "figure": figure.name,
                        "error": found.mean if found is not None and finite else None,
                        **ends("error", found.ci95 if found is not None else None),
                        "runs": found.count if found is not None else 0,
                        "bar": figure.bars[KINDS.index(kind)],
                        "holds": None if model in _REFERENCES else evaluation.holds(kind, model, figure.name),
                    }
                )
    columns = [
        Column("split", "text", "What was held out: the highest TPS levels, or a mix."),
        Column("model", "text", "The model, a baseline, or the floor."),
        Column("figure", "text", " ".join(f"{one.name}: {one.meaning}" for one in FIGURES)),
        Column(
            "error", "number", "The mean over held-out runs; absent where it is infinite or there is none."
        ),
        *interval_of("error", "the error"),
        Column("runs", "whole", "Forecasts that have this error."),
        Column("bar", "number", "What the error should be at most."),
        Column(
            "holds",
            "flag",
            "Whether it is, and that of Z is below the constant's and the forest's; absent where it tells nothing.",
        ),
    ]
    return Table("evaluation", "Errors of models on held-out runs", columns, rows)


def _runs(evaluation: Evaluation) -> Table:
    first = evaluation.models[0]
    rows = [_run(one) for one in evaluation.tested if one.model == first]
    columns = [
        Column("split", "text", "What was held out.", "held out"),
        Column("run", "whole", "Its number.", "run"),
        Column("mix", "text", "Its mix.", "mix"),
        Column("target_tps", "number", "The TPS asked for; absent where none was.", "target TPS"),
        Column("achieved_tps", "number", "The TPS reached.", "achieved"),
        Column("captured_mean_per_s", "number", "The mean of Y.", "Y"),
        Column("foretold_mean_per_s", "number", f"The same, foretold by {first}.", "foretold"),
        Column("captured_deviation_per_s", "number", "The standard deviation of Y.", "σ of Y"),  # noqa: RUF001
        Column("foretold_deviation_per_s", "number", f"The same, foretold by {first}.", "foretold σ"),  # noqa: RUF001
        Column("divergence", "number", "The K-L divergence of Z, in nats.", "K-L of Z"),
        Column("miss_ratio", "number", "The mean distance of the miss-ratio curves.", "miss ratio"),
        Column("accesses", "whole", "Accesses to pages in the captured miss-ratio curve."),
        Column("sampled_share", "number", "The share of pages that were counted for it."),
        Column("reuse", "number", "Its mean distance from the curve of pages that never come again."),
    ]
    return Table("held-out-runs", f"Held-out runs, foretold by {first}", columns, rows)


def _settings(evaluation: Evaluation) -> Table:
    """Show the held-out runs, replicates of a setting as their means."""
    runs = _runs(evaluation)
    settings: dict[tuple[Any, ...], list[Row]] = {}
    for row in runs.rows:
        settings.setdefault((row["split"], row["mix"], row["target_tps"] or row["achieved_tps"]), []).append(
            row
        )
    means = [
        {
            name: float(np.mean([row[name] for row in of]))
            if isinstance(value, float) and all(row[name] is not None for row in of)
            else value
            for name, value in of[0].items()
        }
        | {"run": len(of)}
        for of in settings.values()
    ]
    columns = [replace(column, heading="runs") if column.name == "run" else column for column in runs.columns]
    return replace(runs, columns=columns, rows=means)


def _run(one: Tested) -> Row:
    curve = one.truth.curve
    return {
        "split": one.kind,
        "run": one.run.run.run,
        "mix": one.run.run.mix or None,
        "target_tps": one.run.run.target_tps,
        "achieved_tps": float(one.run.x.sum(axis=0).mean()),
        "captured_mean_per_s": one.truth.rhythm.mean,
        "foretold_mean_per_s": one.found.rhythm.mean,
        "captured_deviation_per_s": one.truth.rhythm.deviation,
        "foretold_deviation_per_s": one.found.rhythm.deviation,
        "divergence": one.errors["divergence"],
        "miss_ratio": one.errors["miss_ratio"],
        "accesses": None if curve is None else curve.accesses,
        "sampled_share": None if curve is None else curve.rate,
        "reuse": None if curve is None else reuse(curve),
    }


def _fits(evaluation: Evaluation) -> Table:
    rows: Sequence[Row] = [
        {
            "model": name,
            "fit_cpu_s": seconds,
            "bar_cpu_s": FIT_SECONDS if name == "mixture" else None,
            "holds": seconds <= FIT_SECONDS if name == "mixture" else None,
        }
        for name, seconds in evaluation.fit_seconds.items()
        if not is_informed(name)
    ]
    columns = [
        Column("model", "text", "The model.", "model"),
        Column("fit_cpu_s", "number", "The longest fit, in seconds of CPU.", "fit, CPU s"),
        Column("bar_cpu_s", "number", "What it should be at most.", "bar"),
        Column("holds", "flag", "Whether it is.", "holds"),
    ]
    return Table("fits", "Time to fit", columns, rows)
