"""The default: Z as a mixture over transaction types, Y by a law of its mean and the shapes that runs had."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from nephoscope.storage.distances import divergence
from nephoscope.storage.models.base import Intensity, Placement, expect, in_whole, scaled, shares
from nephoscope.storage.models.means import CHANCE, MeanLaw, by_chance, fit_mean, nonnegative
from nephoscope.storage.models.shapes import CHOICES, Choice, Shapes, choose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.models.base import State, Training, Vector

_SEED = 15


class MixtureIntensity(Intensity):
    """Mean: linear in the mix times a power of the TPS. Shape: blocks of the training runs' seconds, rescaled."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self.laws: Sequence[MeanLaw] = ()
        """Of each stream."""
        self.following: Vector = np.zeros(2)
        """By how much each stream goes along with the transactions of the same second, 1 for fully: (2,)."""
        self.shapes: Shapes
        """Deviations from the mean."""
        self.residuals: Shapes
        """What is left of them once the transactions of the same second are known."""
        self.choice: Choice
        """How shapes are drawn."""

    def fit(self, data: Training) -> None:
        """Learn; what is chosen is chosen by leaving one TPS level out."""
        self.laws = [fit_mean(data, stream) for stream in range(2)]
        modulations = [x.sum(axis=0) / x.sum(axis=0).mean() - 1 for x in data.x]
        deviations = [_deviations(y) for y in data.y]
        power = sum(float(m @ m) for m in modulations)
        together = np.sum([d @ m for d, m in zip(deviations, modulations, strict=True)], axis=0)
        self.following = np.asarray(together / power) if power else np.zeros(2)
        rest = [d - self.following[:, None] * m for d, m in zip(deviations, modulations, strict=True)]
        self.shapes = Shapes(deviations, data.means, data.tps, data.levels)
        self.residuals = Shapes(rest, data.means, data.tps, data.levels)
        self.choice = choose(self.shapes, data.y, _SEED)

    def mean(self, rates: Vector) -> Vector:
        """Foretell the mean requests a second by stream, (2,), at transactions a second by type, (T,)."""
        return np.array([float(law(rates)) for law in self.laws])

    def sample(self, rates: Vector, seconds: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Draw the requests of S seconds by stream, (2, S), at transactions a second by type, (T,)."""
        mean = self.mean(rates)
        shape = self.shapes.draw(self.choice, mean, float(rates.sum()), seconds, random)
        return in_whole(mean[:, None] * shape, random)

    def follow(self, course: Vector, random: np.random.Generator) -> NDArray[np.int64]:
        """Draw the requests, (2, S), of a given course of transactions by type and second, (T, S)."""
        rates = course.mean(axis=1)
        mean = self.mean(rates)
        modulation = course.sum(axis=0) / max(float(rates.sum()), np.finfo(float).tiny) - 1
        rest = self.residuals.draw(self.choice, mean, float(rates.sum()), course.shape[1], random)
        return in_whole(mean[:, None] * (rest + self.following[:, None] * modulation), random)

    def state(self) -> State:
        """Give all that was learned."""
        lengths = [one.shape[1] for one in self.shapes.deviations]
        return {
            "exponents": np.array([law.exponent for law in self.laws]),
            "per_type": np.array([law.per_type for law in self.laws]),
            "constants": np.array([law.constant for law in self.laws]),
            "following": self.following,
            "choice": np.array([CHOICES.index(self.choice)]),
            "lengths": np.array(lengths),
            "deviations": np.concatenate(self.shapes.deviations, axis=1),
            "residuals": np.concatenate(self.residuals.deviations, axis=1),
            "means": self.shapes.means,
            "tps": self.shapes.tps,
            "levels": self.shapes.levels.astype(np.int64),
        }

    def restore(self, state: State) -> None:
        """Take it back."""
        per_type = expect(state, "per_type", (2, None))
        exponents, constants = (expect(state, name, (2,)) for name in ("exponents", "constants"))
        self.laws = [MeanLaw(float(exponents[at]), per_type[at], float(constants[at])) for at in range(2)]
        self.following = expect(state, "following", (2,))
        self.choice = CHOICES[int(expect(state, "choice", (1,), "i")[0]) % len(CHOICES)]
        lengths = expect(state, "lengths", (None,), "i")
        runs = len(lengths)
        if not runs or (lengths <= 0).any():
            raise ValueError("lengths are not those of runs")
        shared = (
            expect(state, "means", (runs, 2)),
            expect(state, "tps", (runs,)),
            expect(state, "levels", (runs,), "i").astype(np.intp),
        )
        whole = int(lengths.sum())
        cuts = np.cumsum(lengths)[:-1]
        self.shapes, self.residuals = (
            Shapes(np.split(expect(state, name, (2, whole)), cuts, axis=1), *shared)
            for name in ("deviations", "residuals")
        )


def _deviations(y: Vector) -> Vector:
    mean = y.mean(axis=1, keepdims=True)
    return np.asarray(np.divide(y, mean, out=np.ones_like(y), where=mean > 0) - 1)


class Rows(NamedTuple):
    """What parts are fitted to: R runs."""

    rates: Vector
    """Transactions a second by type: (R, T)."""
    targets: Vector
    """Requests a transaction, (R, C), the growth with TPS taken out."""
    weight: Vector
    """What each run counts for: (R,)."""
    chance: Vector
    """The variance of its shares by chance: (R,)."""

    def only(self, kept: NDArray[np.bool_]) -> Rows:
        """Leave out runs."""
        return Rows(*(column[kept] for column in self))


class Form(NamedTuple):
    """How a stream's requests a transaction depend on the TPS besides the mix."""

    exponent: float | None
    """Of the TPS, in a column besides those of the types; None for no such column."""
    ridge: float
    """How strongly cells are drawn to what all runs together have."""


FORMS = [Form(exponent, ridge) for ridge in (3e-4, 3e-3, 3e-2) for exponent in (None, -1.0, -0.5, 0.5)]


class MixturePlacement(Placement):
    """Requests a transaction in each cell: a non-negative mixture over the types, and a part that changes with TPS.

    How many requests of each size a relation has, all its segments together, is a mixture of its own, over the types
    alone. A sum over cells is biased: no cell is fitted below 0, and what many rare ones have by chance adds up.
    """

    drifts = True

    def __init__(self) -> None:
        """Know nothing yet."""
        self.parts: Vector = np.zeros((2, 1, 0))
        """Requests a transaction of each type, and the further part, by stream and cell: (2, T + 1, C)."""
        self.exponents: Vector = np.zeros(2)
        """The further part's exponent of the TPS, by stream."""
        self.groups: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        """The group of each cell, those of one relation and one size: (C,)."""
        self.of_groups: Vector = np.zeros((2, 1, 0))
        """Requests a transaction as ``parts`` has them, by stream and group: (2, T + 1, G)."""
        self.middle = 1.0
        """The TPS at which the further part counts once."""
        self.forms: Sequence[Form] = ()
        """Of each stream, once they are chosen."""

    def refitted(self, data: Training) -> Self:
        """Fit another one to other cells of the same runs, in the forms of this one."""
        other = type(self)()
        other.forms = self.forms
        other.fit(data)
        return other

    def fit(self, data: Training) -> None:
        """Learn; each stream's form is chosen by leaving one TPS level out."""
        self.middle = float(np.exp(np.mean(np.log(np.maximum(data.tps, np.finfo(float).tiny)))))
        self.groups = data.groups
        parts, of_groups, forms = [], [], []
        for stream in range(2):
            counts = data.z[:, stream]
            # Requests as foretold, placed as captured: an episode in one run must not outweigh the others.
            law = fit_mean(data, stream)
            targets = shares(counts) * (law(data.rates) / data.tps**law.exponent)[:, None]
            rows = Rows(data.rates, targets, _weight(counts.sum(axis=1)), by_chance(data.rates, data.seconds))
            form = self.forms[stream] if self.forms else self._chosen(rows, counts, data.levels)
            parts.append(_solve(self._design(data.rates, form), rows, form))
            grouped = rows._replace(targets=_added_up(targets, self.groups))
            of_groups.append(_solve(self._design(data.rates, FORMS[0]), grouped, FORMS[0]))
            forms.append(form)
        self.forms = forms
        self.parts, self.exponents = np.array(parts), np.array([form.exponent or 0.0 for form in forms])
        self.of_groups = np.array(of_groups)

    def _design(self, rates: Vector, form: Form) -> Vector:
        further = np.zeros(len(rates))
        if form.exponent is not None:
            further = (np.maximum(rates.sum(axis=1), np.finfo(float).tiny) / self.middle) ** form.exponent
        return np.column_stack([shares(rates), further])

    def _chosen(self, rows: Rows, counts: Vector, levels: NDArray[np.intp]) -> Form:
        present = np.unique(levels)
        if len(present) < _LEVELS or not counts.sum():
            return FORMS[0]
        errors = []
        for form in FORMS:
            design, error = self._design(rows.rates, form), 0.0
            for level in present:
                out = levels == level
                found = _solve(design[~out], rows.only(~out), form)
                pairs = zip(counts[out], design[out] @ found, strict=True)
                error += float(np.mean([divergence(p, q) for p, q in pairs if p.sum()] or [0.0]))
            errors.append(error)
        return FORMS[int(np.argmin(errors))]

    def weights(self, rates: Vector) -> Vector:
        """Foretell each cell's share by stream, (2, C), at transactions a second by type, (T,)."""
        rows = []
        groups = self._design(rates[None], FORMS[0]) @ self.of_groups
        for stream, exponent in enumerate(self.exponents):
            found = self._design(rates[None], Form(float(exponent), 0.0)) @ self.parts[stream]
            rows.append(scaled(found[0], groups[stream, 0], self.groups))
        return shares(np.array(rows))

    def state(self) -> State:
        """Give all that was learned."""
        return {
            "parts": self.parts,
            "exponents": self.exponents,
            "middle": np.array([self.middle]),
            "groups": self.groups,
            "of_groups": self.of_groups,
        }

    def restore(self, state: State) -> None:
        """Take it back."""
        self.parts = expect(state, "parts", (2, None, None))
        self.exponents = expect(state, "exponents", (2,))
        self.middle = float(expect(state, "middle", (1,))[0])
        self.groups = expect(state, "groups", (self.parts.shape[2],), "i").astype(np.intp)
        self.of_groups = expect(state, "of_groups", (2, self.parts.shape[1], None))
        if (self.parts < 0).any() or (self.of_groups < 0).any() or self.middle <= 0:
            raise ValueError("parts or middle are less than 0")
        if (self.groups < 0).any() or (self.groups >= self.of_groups.shape[2]).any():
            raise ValueError("cells are of groups that are not there")


_LEVELS = 3


def _added_up(of_cells: Vector, groups: NDArray[np.intp]) -> Vector:
    """Add up what is given by cell, (R, C), by group: (R, G)."""
    return np.array([np.bincount(groups, row) for row in of_cells])


def _weight(requests: Vector) -> Vector:
    """Give each run its weight by how many requests it has, (R,): one with many more than others is no better."""
    whole = float(np.median(requests[requests > 0])) if requests.any() else 1.0
    return np.sqrt(requests / (requests + whole))


def _solve(design: Vector, rows: Rows, form: Form) -> Vector:
    """Fit the parts, (T + 1, C), to requests a transaction at a design, (R, T + 1)."""
    _, targets, weight, chance = rows
    pooled = np.average(targets, axis=0, weights=weight) if weight.any() else targets.mean(axis=0)
    columns = design.shape[1]
    pull = np.full(columns, np.sqrt(weight**2 @ (form.ridge + CHANCE * chance)))
    pull[-1] = np.sqrt(weight**2 @ np.full(len(weight), form.ridge))
    drawn_to = np.repeat(pooled[None], columns, axis=0)
    drawn_to[-1] = 0  # the further part, to nothing
    return nonnegative(
        np.concatenate([design * weight[:, None], np.diag(pull)]),
        np.concatenate([targets * weight[:, None], pull[:, None] * drawn_to]),
    )
