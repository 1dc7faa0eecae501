"""Main effects, interactions and curvature of a response, by ordinary least squares.

Levels are coded from −1 to +1, so that an effect is the change of the response from the first level to the last. A
factor of three or more numbers has a second-order term; one of three or more names has the deviation of each level
from the mean of all. Differences between replicates, or between the stretches in which the factors of the blocks stand
still, are taken out first. Those factors' own effects rest on the means of those stretches, as in a split plot (Box,
Hunter and Hunter, Statistics for Experimenters): a stretch is one setting of it, however many runs it has.
"""  # noqa: RUF002 - minus

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import pinvh, qr

from nephoscope.statistics import MeanEstimate
from nephoscope.statistics.distributions import t_quantile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.experiments.design import Design, Planned
    from nephoscope.study.factors import FactorTable

    Matrix = NDArray[np.float64]

_SAME = 1e-9


@dataclass(frozen=True)
class ModelTerm:
    """A term of the model: its column over the treatments, and how its coefficient becomes an effect."""

    factors: frozenset[str]
    label: str
    column: Matrix
    scale: float
    """2 where the effect is the change from −1 to +1."""  # noqa: RUF001 - minus
    kind: str
    """``effect``, ``curvature``, or ``deviation`` of a level."""


@dataclass(frozen=True)
class Effect:
    """An effect on a response, in its unit; in percent where the analysis is of logarithms."""

    label: str
    kind: str
    value: float
    ci95: tuple[float, float] | None
    clear: bool | None
    """Whether it differs from 0 at 5 % for all effects of the response together; None where there is no interval."""
    freedom: int
    """The degrees of freedom of its error."""
    aliases: tuple[str, ...] = ()
    """The terms up to two factors that the design cannot tell from it."""


@dataclass(frozen=True)
class Analysis:
    """The effects on a response."""

    response: str
    mean: float
    effects: tuple[Effect, ...]
    r_squared: float | None
    """The share of the variance between runs that the model explains."""
    freedom: int
    fitted: tuple[float, ...]
    """The model's value at each treatment."""
    notes: tuple[str, ...] = field(default=())
    logarithmic: bool = False
    """Whether it is an analysis of logarithms: the mean is the geometric one, and effects multiply."""


def terms_of(factors: Sequence[FactorTable], design: Design) -> list[ModelTerm]:
    """Return the model: the mean is left out; main effects, curvature, then products of two factors."""
    levels = np.asarray(design.treatments)
    first = {f.name: _main(f, levels[:, at]) for at, f in enumerate(factors)}
    found = [term for terms in first.values() for term in terms]
    for one, other in itertools.combinations(factors, 2):
        for a, b in itertools.product(first[one.name], first[other.name]):
            if "curvature" not in {a.kind, b.kind}:
                label = f"{a.label} × {b.label}"  # noqa: RUF001 - times
                kind = "deviation" if "deviation" in {a.kind, b.kind} else "effect"
                found.append(
                    ModelTerm(a.factors | b.factors, label, a.column * b.column, max(a.scale, b.scale), kind)
                )
    return found


def _main(factor: FactorTable, at: NDArray[np.int64]) -> list[ModelTerm]:
    own = frozenset({factor.name})
    if len(factor.levels) == 2:  # noqa: PLR2004
        return [ModelTerm(own, factor.name, np.asarray(2 * at - 1, dtype=np.float64), 2, "effect")]
    if (values := factor.values) is not None:
        coded = 2 * (np.asarray(values) - values[0]) / (values[-1] - values[0]) - 1
        line: Matrix = np.asarray(coded[at], dtype=np.float64)
        square: Matrix = np.asarray(line**2 - np.mean(line**2), dtype=np.float64)
        return [
            ModelTerm(own, factor.name, line, 2, "effect"),
            ModelTerm(own, f"{factor.name}²", square, 1, "curvature"),
        ]
    last = len(factor.levels) - 1
    return [
        ModelTerm(
            own,
            f"{factor.name}={name}",
            np.asarray((at == level) * 1.0 - (at == last) * 1.0, dtype=np.float64),
            1,
            "deviation",
        )
        for level, name in enumerate(factor.names[:-1])
    ]


def analyse(
    response: str,
    factors: Sequence[FactorTable],
    design: Design,
    runs: Sequence[Planned],
    values: Sequence[float | None],
    *,
    blocks: Sequence[str],
    logarithmic: bool = False,
) -> Analysis | None:
    """Compute the effects on a response; None where fewer than two runs have it.

    Values of 0 and less have no logarithm, and count as lacking.
    """
    if logarithmic:
        logs = [math.log(value) if value is not None and value > 0 else None for value in values]
        found = analyse(response, factors, design, runs, logs, blocks=blocks)
        return None if found is None else _exponential(found)
    kept = [(run, value) for run, value in zip(runs, values, strict=True) if value is not None]
    if len(kept) < 2:  # noqa: PLR2004
        return None
    at = np.array([run.treatment for run, _ in kept])
    y = np.array([value for _, value in kept])
    whole = len(kept) == len(runs)
    notes = [] if whole else [f"{response}: {len(runs) - len(kept)} of {len(runs)} runs lack it"]
    terms, aliases = _distinct(terms_of(factors, design), at, design)
    between = [term for term in terms if term.factors <= set(blocks)]
    stretch = np.array([run.block if blocks else run.replicate for run, _ in kept])
    inner = [term for term in terms if term not in between]
    fit = _Fit(y, np.column_stack([_indicators(stretch), *(term.column[at] for term in inner)]))
    strict = _strictness(len(terms))
    effects = [
        _effect(term, fit, at_column, strict, aliases)
        for at_column, term in enumerate(inner, fit.size - len(inner))
    ]
    if between:
        effects = [*_between(between, kept, strict, aliases, whole=whole), *effects]
        if not whole:
            notes.append(f"{response}: the effect of {', '.join(blocks)} needs every run")
    if not fit.freedom:
        notes.append(f"{response}: as many terms as runs: there are no intervals; more replicates give them")
    order = {term.label: place for place, term in enumerate(terms)}
    effects.sort(key=lambda effect: order[effect.label])
    model = _Fit(y, np.column_stack([np.ones(len(y)), *(term.column[at] for term in terms)]))
    coefficients = [1.0 * c for c in model.coefficients]
    fitted = coefficients[0] + sum(
        (c * t.column for c, t in zip(coefficients[1:], terms, strict=True)), np.zeros(len(design.treatments))
    )
    spread = float(((y - y.mean()) ** 2).sum())
    explained = 1 - model.rest / spread if spread > 0 and model.freedom else None
    return Analysis(
        response,
        float(y.mean()),
        tuple(effects),
        explained,
        fit.freedom,
        tuple(map(float, fitted)),
        tuple(notes),
    )


def _exponential(found: Analysis) -> Analysis:
    """Turn an analysis of logarithms into ratios: effects are changes in percent."""

    def percent(value: float) -> float:
        return 100 * math.expm1(value)

    effects = tuple(
        replace(
            effect,
            value=percent(effect.value),
            ci95=None if effect.ci95 is None else (percent(effect.ci95[0]), percent(effect.ci95[1])),
        )
        for effect in found.effects
    )
    fitted = tuple(map(math.exp, found.fitted))
    return replace(found, mean=math.exp(found.mean), effects=effects, fitted=fitted, logarithmic=True)


def _strictness(number: int) -> float:
    """Return the two-sided tail that each of so many effects has where all together have 5 %."""
    return 0.025 / max(number, 1)


def _distinct(
    terms: Sequence[ModelTerm], at: NDArray[np.int64], design: Design
) -> tuple[list[ModelTerm], dict[str, tuple[str, ...]]]:
    """Leave out the terms that the runs cannot tell from earlier ones, and say which those are."""
    basis = np.ones((len(at), 1))
    kept: list[ModelTerm] = []
    for term in terms:
        grown = np.column_stack([basis, term.column[at]])
        if (
            abs(
                qr(grown, mode="r", pivoting=False)[0][grown.shape[1] - 1, -1]
                if len(at) >= grown.shape[1]
                else 0
            )
            > _SAME
        ):
            basis = grown
            kept.append(term)
    aliases = {
        term.label: tuple(design.write(one) for one in design.aliases(term.factors) if len(one) <= 2)  # noqa: PLR2004
        for term in kept
    }
    return kept, aliases


def _indicators(groups: NDArray[np.int64]) -> Matrix:
    return np.asarray(groups[:, None] == np.unique(groups)[None, :], dtype=float)


class _Fit:
    """A least-squares fit with the covariance of its coefficients."""

    def __init__(self, y: Matrix, x: Matrix) -> None:
        inverse = pinvh(x.T @ x)
        self.size = x.shape[1]
        self._largest = float(np.abs(y).max())
        self.coefficients = inverse @ x.T @ y
        self.freedom = len(y) - int(np.linalg.matrix_rank(x))
        residual = y - x @ self.coefficients
        self.rest = float(residual @ residual)
        self.errors = (
            np.sqrt(np.maximum(np.diag(inverse), 0) * (self.rest / self.freedom))
            if self.freedom > 0
            else None
        )

    def settled(self, value: float) -> float:
        """Return a coefficient or an error, 0 where it is what rounding leaves of values without any difference."""
        return value if abs(value) > _SAME * self._largest else 0.0


def _effect(
    term: ModelTerm, fit: _Fit, column: int, tail: float, aliases: Mapping[str, tuple[str, ...]]
) -> Effect:
    value = fit.settled(float(term.scale * fit.coefficients[column]))
    if fit.errors is None:
        return Effect(term.label, term.kind, value, None, None, 0, aliases[term.label])
    error = fit.settled(float(term.scale * fit.errors[column]))
    half = t_quantile(fit.freedom, 0.975) * error
    clear = abs(value) > t_quantile(fit.freedom, 1 - tail) * error
    return Effect(
        term.label, term.kind, value, (value - half, value + half), clear, fit.freedom, aliases[term.label]
    )


def _between(
    terms: Sequence[ModelTerm],
    kept: Sequence[tuple[Planned, float]],
    tail: float,
    aliases: Mapping[str, tuple[str, ...]],
    *,
    whole: bool,
) -> list[Effect]:
    """Compute the effects of the factors of the blocks from the means of its stretches; none where runs are missing."""
    if not whole:
        return []
    stretches: dict[int, list[tuple[Planned, float]]] = {}
    for run, value in kept:
        stretches.setdefault(run.block, []).append((run, value))
    means = np.array([np.mean([value for _, value in of]) for of in stretches.values()])
    first = [of[0][0] for of in stretches.values()]
    replicates = _indicators(np.array([run.replicate for run in first]))
    columns = [term.column[[run.treatment for run in first]] for term in terms]
    fit = _Fit(means, np.column_stack([replicates, *columns]))
    return [_effect(term, fit, at, tail, aliases) for at, term in enumerate(terms, replicates.shape[1])]


def pooled_means(
    groups: Mapping[int, Sequence[float]], *, logarithmic: bool = False
) -> dict[int, MeanEstimate]:
    """Return the mean of each group with its interval by the spread within all groups, as the effects have it.

    Two values alone would often agree by chance, and then have an interval without any width. Where the values are
    ``logarithmic``, it is the spread of their logarithms: large values have wider intervals than small ones.
    """
    if logarithmic and all(value > 0 for values in groups.values() for value in values):
        logs = pooled_means({at: [math.log(value) for value in values] for at, values in groups.items()})
        return {
            at: replace(
                of,
                mean=math.fsum(groups[at]) / of.count,
                ci95=None if of.ci95 is None else (math.exp(of.ci95[0]), math.exp(of.ci95[1])),
            )
            for at, of in logs.items()
        }
    # The mean of equal values is that value: what rounding leaves is no spread.
    means = {at: v[0] if min(v) == max(v) else math.fsum(v) / len(v) for at, v in groups.items()}
    freedom = sum(len(values) - 1 for values in groups.values())
    rest = math.fsum((value - means[at]) ** 2 for at, values in groups.items() for value in values)
    found = {}
    for at, values in groups.items():
        ci95 = None
        if freedom:
            half = t_quantile(freedom, 0.975) * math.sqrt(rest / freedom / len(values))
            ci95 = (means[at] - half, means[at] + half)
        found[at] = MeanEstimate(means[at], ci95, len(values), "student t" if freedom else "one value")
    return found
