"""How near models come to runs that they have not seen, by figures that need nothing executed."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from nephoscope.errors import InputError
from nephoscope.statistics.intervals import MeanEstimate, mean_ci
from nephoscope.storage.distances import (
    Rhythm,
    cell_divergence,
    curve_distance,
    log_distance,
    mean_write_bytes,
    read_share,
    relative_error,
    reuse,
    rhythm,
)
from nephoscope.storage.models.base import VALIDATED, training
from nephoscope.storage.models.registry import halves, recipe, train
from nephoscope.storage.patterns import learn, located

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.corpus import Corpus
    from nephoscope.storage.curves import Curves
    from nephoscope.storage.features import Cell, Features
    from nephoscope.storage.forecast import Forecast
    from nephoscope.storage.models.base import Model, Training
    from nephoscope.storage.reuse import MissRatioCurve

Kind = Literal["higher TPS", "new mix"]
KINDS: tuple[Kind, ...] = ("higher TPS", "new mix")

DRAWS = 16
"""Sequences that are drawn of a model for a run; its figures are the means of theirs."""
BASELINES = ("constant", "poisson", "oracle")
"""Models that stand beside any other."""
REPLICATE = "replicate"
"""The name of the floor: another capture of the same setting in the place of a forecast."""


class Criterion(NamedTuple):
    """A figure of the comparison."""

    name: str
    meaning: str
    bars: tuple[float, float]
    """What it should be at most: at higher TPS, and with a new mix."""


FIGURES = (
    Criterion("mean", "Relative error of the mean of Y.", (0.03, 0.06)),
    Criterion("deviation", "Relative error of the standard deviation of Y.", (0.12, 0.12)),
    Criterion(
        "dispersion", "|ln| of the ratio of the indices of dispersion (variance / mean) of Y.", (0.3, 0.3)
    ),
    Criterion("lag1", "Difference of the autocorrelations of Y at a lag of one second.", (0.15, 0.15)),
    Criterion("divergence", "Kullback-Leibler divergence of Z, in nats.", (0.015, 0.025)),
    Criterion("read_share", "Relative error of the share of reads.", (0.03, 0.08)),
    Criterion("write_bytes", "Relative error of the mean size of writes.", (0.03, 0.03)),
    Criterion(
        "miss_ratio",
        "Mean distance of the miss-ratio curves of an LRU cache, of generated and of captured requests.",
        (0.05, 0.05),
    ),
)
FIT_SECONDS = 10.0
"""How long fitting the default model should take at most, in seconds of CPU."""


@dataclass(frozen=True)
class Sight:
    """What is compared of a run, or of what was foretold of it."""

    rhythm: Rhythm
    cells: Sequence[Cell]
    """C cells."""
    z: NDArray[np.float64]
    """Requests in each, or their shares: (C,)."""
    read_share: float
    write_bytes: float | None
    """The mean size of writes; None where there is none."""
    curve: MissRatioCurve | None = None
    """Of a forecast, that of requests generated from it; None where it was not asked for, or nothing is cached."""


def captured(run: Features) -> Sight:
    """Sum up what a run had."""
    z = run.z.sum(axis=0)
    written = mean_write_bytes(run.cells, z, run.write_bytes)
    return Sight(rhythm(run.y.sum(axis=0)), run.cells, z, read_share(run.cells, z), written)


def foretold(
    model: Model, rates: NDArray[np.float64], seconds: int, seed: int = 0, at: float | None = None
) -> Sight:
    """Sum up what a model foretells of S seconds at transactions a second by type, (T,); ``at`` as of ``predict``.

    The mean is the one expected; deviation, dispersion and autocorrelation are means over ``DRAWS`` sequences.
    """
    mean, weights, cells = model.predict(rates, at, seconds)
    drawn = [rhythm(model.counts(rates, seconds, seed + draw, at).sum(axis=0)) for draw in range(DRAWS)]
    of_draws = Rhythm(*np.mean(drawn, axis=0).tolist())._replace(mean=float(mean.sum()))
    z = mean @ weights
    if not z.sum():
        z = weights.sum(axis=0)
    written = mean_write_bytes(cells, z, model.write_bytes)
    return Sight(of_draws, cells, z, read_share(cells, z), written)


def errors(truth: Sight, found: Sight) -> dict[str, float | None]:
    """Compare, by the names of ``FIGURES``; None where the truth is 0 and a figure is relative to it."""
    written = truth.write_bytes or 0.0
    return {
        "mean": relative_error(found.rhythm.mean, truth.rhythm.mean),
        "deviation": relative_error(found.rhythm.deviation, truth.rhythm.deviation),
        "dispersion": log_distance(found.rhythm.dispersion, truth.rhythm.dispersion),
        "lag1": abs(found.rhythm.lag1 - truth.rhythm.lag1),
        "divergence": cell_divergence((truth.cells, truth.z), (found.cells, found.z)),
        "read_share": relative_error(found.read_share, truth.read_share),
        "write_bytes": relative_error(found.write_bytes or 0.0, written),
        "miss_ratio": curve_distance(truth.curve, found.curve) if truth.curve and found.curve else None,
    }


# --- splits -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """Which runs are learned from, and which are foretold; by their places."""

    kind: Kind
    held: str
    """What is held out, in words."""
    learned: Sequence[int]
    tested: Sequence[int]


def splits(
    runs: Sequence[Features], levels: int | None = None, mix: str | None = None
) -> tuple[list[Split], list[str]]:
    """Hold out the highest TPS levels, and each mix in turn; gives the reasons, too, where that cannot be done.

    Args:
        runs: All runs of a corpus.
        levels: How many of the highest TPS levels are held out; a third of them, rounded, if left out.
        mix: The only mix to hold out.

    Raises:
        InputError: there is no such mix, or nothing can be held out.

    """
    data = training(runs)
    found, reasons = [], []
    there = int(data.levels.max()) + 1
    held = max(1, round(there / 3)) if levels is None else levels
    if 1 <= held < there:
        found.append(_split("higher TPS", _words(data, there - held), data.levels >= there - held))
    elif levels is not None:
        raise InputError(f"{levels} TPS levels cannot be held out of {there}; allowed: 1 to {there - 1}")
    else:
        reasons.append("no forecast of higher TPS: the corpus has one TPS level")
    mixes = sorted(set(data.mixes))
    if mix is not None and mix not in mixes:
        raise InputError(f"the corpus has no mix {mix!r}; it has {', '.join(filter(None, mixes)) or 'none'}")
    if len(mixes) > 1:
        of = np.array(data.mixes)
        found += [_split("new mix", name, of == name) for name in mixes if mix in (None, name)]
    else:
        reasons.append("no forecast of a new mix: the corpus has one mix")
    if not found:
        raise InputError(f"nothing can be held out: {'; '.join(reasons)}")
    return found, reasons


def _split(kind: Kind, held: str, out: NDArray[np.bool_]) -> Split:
    return Split(kind, held, np.flatnonzero(~out).tolist(), np.flatnonzero(out).tolist())


def _words(data: Training, first: int) -> str:
    levels = [float(data.targets[data.levels == level].mean()) for level in range(int(data.levels.max()) + 1)]
    return f"{', '.join(f'{tps:.4g}' for tps in levels[first:])} TPS of {', '.join(f'{tps:.4g}' for tps in levels)}"


# --- evaluation ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tested:
    """What became of a forecast of a run."""

    kind: Kind
    model: str
    run: Features
    truth: Sight
    found: Sight
    errors: Mapping[str, float | None]
    forecast: Forecast | None = None
    """The first of the sequences that were drawn; None of the floor."""


@dataclass(frozen=True)
class Evaluation:
    """All forecasts."""

    splits: Sequence[Split]
    models: Sequence[str]
    """In the order in which they are shown; baselines and the floor last."""
    tested: Sequence[Tested]
    fit_seconds: Mapping[str, float]
    """The longest fit of each model in seconds of CPU; informed ones are not fitted."""
    reasons: Sequence[str]
    """What could not be evaluated, and why."""

    def error(self, kind: Kind, model: str, figure: str) -> MeanEstimate | None:
        """Give the mean error over held-out runs with its interval; None where no run has one."""
        found = [one.errors[figure] for one in self.tested if one.kind == kind and one.model == model]
        values = [value for value in found if value is not None]
        if not values:
            return None
        if not all(map(math.isfinite, values)):
            return MeanEstimate(math.inf, None, len(values), "one value")
        return mean_ci(values)

    def reuse(self, kind: Kind) -> float:
        """Give the mean distance of held-out runs' miss-ratio curves from that of pages that never come again."""
        curves = {one.run.run.run: one.truth.curve for one in self.tested if one.kind == kind}
        return float(np.mean([reuse(curve) for curve in curves.values() if curve is not None] or [0.0]))

    def holds(self, kind: Kind, model: str, figure: str) -> bool | None:
        """Tell whether a model keeps to a figure's bar; of Z it must be below the constant and the forest, too.

        None where it has no such error, or where the bar tells nothing: the pages of the held-out runs come again so
        seldom that the miss-ratio curve of any stream would keep to it.
        """
        found = self.error(kind, model, figure)
        if found is None:
            return None
        bar = next(one.bars for one in FIGURES if one.name == figure)[KINDS.index(kind)]
        if figure == "miss_ratio" and self.reuse(kind) <= bar:
            return None
        beaten = True
        if figure == "divergence":
            others = [self.error(kind, name, figure) for name in ("constant", "forest") if name != model]
            beaten = all(other is None or found.mean < other.mean for other in others)
        return found.mean <= bar and beaten


def evaluate(
    runs: Sequence[Features],
    models: Sequence[str],
    *,
    levels: int | None = None,
    mix: str | None = None,
    settings: Mapping[str, float] | None = None,
    curves: Curves | None = None,
) -> Evaluation:
    """Train models on a part of the runs, and compare what they foretell of the others.

    A run is foretold from its achieved transactions a second by type alone. What a model chooses for itself it
    chooses within the runs it learns from.

    Args:
        runs: All runs of a corpus.
        models: Their names; the baselines are added.
        levels: As of ``splits``.
        mix: As of ``splits``.
        settings: Settings of models; each takes those it has.
        curves: Makes the miss-ratio curves; they are left out without it.

    Raises:
        InputError: nothing can be held out, there is no such model, or an optional dependency is not installed.

    """
    held, reasons = splits(runs, levels, mix)
    names = list(dict.fromkeys([*models, *BASELINES]))
    tested: list[Tested] = []
    seconds: dict[str, float] = {}
    for split in held:
        learned = training([runs[at] for at in split.learned])
        truths = {at: captured(runs[at]) for at in split.tested}
        if curves is not None:
            truths = {at: replace(one, curve=curves.captured(runs[at].run)) for at, one in truths.items()}
        for name in names:
            fitted = _fitted(name, learned, settings, seconds)
            for at, truth in truths.items():
                model = fitted or _told(name, runs[at])
                run = runs[at]
                asked = (run.x.mean(axis=1), run.y.shape[1], run.run.run * DRAWS, run.run.run)
                found, forecast = foretold(model, *asked), model.sample(*asked)
                if curves is not None:
                    known = [runs[one].run.run for one in (split.learned if fitted else [at])]
                    found = replace(found, curve=curves.generated(model, forecast, run.run, known))
                tested.append(Tested(split.kind, name, run, truth, found, errors(truth, found), forecast))
        tested += _floor(split, runs, truths)
    if not any(one.model == REPLICATE for one in tested):
        reasons.append("no replicate floor: no held-out setting was captured twice")
    reasons += _without_curves(tested, curves)
    return Evaluation(held, [*names, REPLICATE], tested, seconds, reasons)


def _without_curves(tested: Sequence[Tested], curves: Curves | None) -> list[str]:
    if curves is None:
        return ["no miss-ratio curves: they were left out"]
    without = sum(one.errors["miss_ratio"] is None for one in tested)
    if not without:
        return []
    of = f"{without} of {len(tested)} forecasts"
    return [
        f"no distance of miss-ratio curves for {of}: of the run, or of what was generated, no {curves.accesses}"
    ]


def _fitted(
    name: str, learned: Training, settings: Mapping[str, float] | None, seconds: dict[str, float]
) -> Model | None:
    """Train a model, and note how long it took; None for one that is told the run."""
    if is_informed(name):
        return None
    began = time.process_time()
    model = train(name, learned, of_model(name, settings))
    seconds[name] = max(seconds.get(name, 0.0), time.process_time() - began)
    return model


def of_model(name: str, settings: Mapping[str, float] | None) -> dict[str, float]:
    """Give those settings that a model has."""
    known: set[str] = set().union(*(getattr(half, "SETTINGS", {}) for half in halves(name)))
    return {key: value for key, value in (settings or {}).items() if key in known}


@cache
def is_informed(name: str) -> bool:
    """Tell whether a model is told the run that it is to foretell. Raises ``InputError`` for no model."""
    return any(half.informed for half in halves(name))


def _told(name: str, run: Features) -> Model:
    return train(name, training([run]))


def _floor(split: Split, runs: Sequence[Features], truths: Mapping[int, Sight]) -> Iterator[Tested]:
    """Compare each held-out run with the next capture of its setting."""
    settings: dict[tuple[str, float | None], list[int]] = {}
    for at in split.tested:
        settings.setdefault((runs[at].run.mix, runs[at].run.target_tps), []).append(at)
    for (_, tps), same in settings.items():
        if tps is None or len(same) < 2:  # noqa: PLR2004 - a pair
            continue
        for at, other in zip(same, [*same[1:], same[0]], strict=True):
            compared = errors(truths[at], truths[other])
            yield Tested(split.kind, REPLICATE, runs[at], truths[at], truths[other], compared)


def trained(
    name: str,
    runs: Sequence[Features],
    settings: Mapping[str, float] | None,
    corpus: Corpus,
    *,
    validate: bool = True,
) -> Model:
    """Train a model on all runs of a corpus, and tell it where it comes from.

    With ``validate`` it also learns how far off it is where a TPS level is left out; with fewer than three levels
    that stays unknown.

    Raises:
        InputError: there is no such model or setting, it is a reference only, or an optional dependency is missing.

    """
    if recipe(name).of_one_run:
        raise InputError(
            f"{name} foretells only the run that it was told: it is a reference of storage evaluate"
        )
    model = train(name, training(runs), settings)
    known = replace(model.known, errors=_left_out(name, runs, settings)) if validate else model.known
    patterns = learn(corpus, [run.run.run for run in runs])
    return located(replace(model, known=known), corpus, patterns)


def _left_out(
    name: str, runs: Sequence[Features], settings: Mapping[str, float] | None
) -> NDArray[np.float64]:
    levels = training(runs).levels
    if levels.max() < _LEAST_LEVEL:
        return np.zeros((0, len(VALIDATED)))
    off = np.zeros((len(runs), len(VALIDATED)))
    for level in range(int(levels.max()) + 1):
        kept = [run for run, of in zip(runs, levels, strict=True) if of != level]
        other = train(name, training(kept), settings)
        for at in np.flatnonzero(levels == level).tolist():
            run = runs[at]
            found = foretold(other, run.x.mean(axis=1), run.y.shape[1], at * DRAWS, run.run.run)
            off[at] = [_log(*pair) for pair in zip(_values(found), _values(captured(run)), strict=True)]
    return off


_LEAST_LEVEL = 2


def _values(sight: Sight) -> tuple[float, ...]:
    """Give what ``VALIDATED`` names."""
    return (sight.rhythm.mean, sight.rhythm.deviation, sight.read_share, sight.write_bytes or 0.0)


def _log(found: float, truth: float) -> float:
    return math.log(max(found, _TINY) / max(truth, _TINY))


_TINY = 1e-6
