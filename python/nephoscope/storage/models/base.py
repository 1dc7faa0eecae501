"""What a model is: one half for how many requests there are (Y), another for where they go (Z); and its file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from nephoscope.errors import InputError
from nephoscope.storage.distances import cell_divergence
from nephoscope.storage.features import STREAMS, Cell, relations_of
from nephoscope.storage.forecast import Forecast
from nephoscope.storage.sizes import merged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.corpus import Relations
    from nephoscope.storage.features import Features, NearEnds
    from nephoscope.storage.models.drift import Drift
    from nephoscope.storage.models.growth import Growth
    from nephoscope.storage.sizes import WriteSizes

    Vector = NDArray[np.float64]
    State = Mapping[str, NDArray[Any]]

SAME_LEVEL = 1.05
"""Runs whose targets differ by less than this factor from the next are of one TPS level."""
_SAME_UNASKED = 1.2
"""The same of what was reached where nothing was asked for."""


@dataclass(frozen=True)
class Training:
    """Runs as models learn from them: R runs, T types, C cells. Nothing of any other run is in it."""

    types: Sequence[str]
    """The T names."""
    cells: Sequence[Cell]
    """The C cells in which any of the runs has requests, in order."""
    x: Sequence[Vector]
    """For each run, transactions by type and second: (T, S)."""
    y: Sequence[Vector]
    """For each run, requests by stream and second: (2, S)."""
    z: Vector
    """Requests in each cell: (R, 2, C)."""
    mixes: Sequence[str]
    """The name of each run's mix."""
    targets: Vector
    """The TPS asked for, (R,); where none was, the mean of what runs without one reached that are of one level."""
    write_bytes: WriteSizes
    """The sizes of writes of all runs."""
    order: Vector
    """The number of each run in its corpus, which is its place in time: (R,)."""
    relations: Relations
    """To which relations segments belong."""
    near: Sequence[NearEnds] = ()
    """Z of each run by distance from the ends of relations; none where that is not known."""

    @cached_property
    def rates(self) -> Vector:
        """The achieved transactions a second, by run and type: (R, T)."""
        return np.array([x.mean(axis=1) for x in self.x])

    @cached_property
    def tps(self) -> Vector:
        """The achieved transactions a second of each run: (R,)."""
        return np.asarray(self.rates.sum(axis=1))

    @cached_property
    def seconds(self) -> Vector:
        """How long each run is: (R,)."""
        return np.array([y.shape[1] for y in self.y], dtype=float)

    @cached_property
    def means(self) -> Vector:
        """The mean requests a second, by run and stream: (R, 2)."""
        return np.array([y.mean(axis=1) for y in self.y])

    @cached_property
    def size_kb(self) -> NDArray[np.int64]:
        """The size of each cell in KB, 0 for a read: (C,)."""
        return np.array([cell.size_kb for cell in self.cells], dtype=np.int64)

    @cached_property
    def groups(self) -> NDArray[np.intp]:
        """The number of each cell's group, (C,): the cells of one relation that have one size."""
        of = np.column_stack([relations_of(self.cells, self.relations), self.size_kb])
        return np.unique(of, axis=0, return_inverse=True)[1].ravel()

    @cached_property
    def levels(self) -> NDArray[np.intp]:
        """The number of each run's TPS level, from 0 for the lowest: (R,)."""
        return _together(self.targets, SAME_LEVEL)


def training(runs: Sequence[Features]) -> Training:
    """Bring runs to one list of cells.

    Raises:
        InputError: there is no run, or one without transactions or requests, from which nothing can be learned.

    """
    if not runs:
        raise InputError("no run is left to learn from")
    for one in runs:
        for what, counted in (("transactions", one.x), ("requests", one.y)):
            if not counted.sum():
                raise InputError(
                    f"run {one.run.run} of the corpus has no {what}: a model cannot learn from it"
                )
    cells = sorted(set().union(*(one.cells for one in runs)))
    place = {cell: at for at, cell in enumerate(cells)}
    z = np.zeros((len(runs), len(STREAMS), len(cells)))
    for number, one in enumerate(runs):
        z[number][:, [place[cell] for cell in one.cells]] = one.z
    near = [one.near for one in runs if one.near is not None]
    asked = [one.run.target_tps for one in runs]
    achieved = np.array([float(one.x.sum(axis=0).mean()) for one in runs])
    alike = _together(achieved, _SAME_UNASKED)
    targets = [
        float(np.mean(achieved[alike == of])) if tps is None else tps
        for tps, of in zip(asked, alike, strict=True)
    ]
    return Training(
        types=runs[0].types,
        cells=cells,
        x=[one.x for one in runs],
        y=[one.y for one in runs],
        z=z,
        mixes=[one.run.mix for one in runs],
        targets=np.array(targets),
        write_bytes=merged([one.write_bytes for one in runs]),
        order=np.array([one.run.run for one in runs], dtype=float),
        relations=runs[0].relations,
        near=near if len(near) == len(runs) else (),
    )


def _together(values: Vector, factor: float) -> NDArray[np.intp]:
    """Give values numbers, (R,), from 0 for the lowest; those within a factor of the next have the same."""
    order = np.argsort(values, kind="stable")
    ordered = np.maximum(values[order], np.finfo(float).tiny)
    numbers = np.empty(len(order), dtype=np.intp)
    numbers[order] = np.concatenate([[0], np.cumsum(ordered[1:] > factor * ordered[:-1])])
    return numbers


class Half(ABC):
    """One half of a model. ``state`` is all it has learned, as arrays; ``restore`` takes it back."""

    informed: ClassVar[bool] = False
    """Whether it is told the run that it is to foretell: a reference to hold others against, no forecast."""

    @abstractmethod
    def fit(self, data: Training) -> None:
        """Learn."""

    @abstractmethod
    def state(self) -> State:
        """Give all that was learned, as arrays of numbers."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Take back what ``state`` gave. Raises ``ValueError`` or ``KeyError`` where it is not as it should be."""


class Intensity(Half):
    """How many requests there are in each second."""

    @abstractmethod
    def mean(self, rates: Vector) -> Vector:
        """Foretell the mean requests a second by stream, (2,), at transactions a second by type, (T,)."""

    @abstractmethod
    def sample(self, rates: Vector, seconds: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Draw the requests of S seconds by stream, (2, S), at transactions a second by type, (T,)."""

    def follow(self, course: Vector, random: np.random.Generator) -> NDArray[np.int64]:
        """Draw the requests, (2, S), of a given course of transactions by type and second, (T, S).

        What this does not override makes requests go up and down with the transactions.
        """
        whole = course.mean(axis=1)
        modulation = course.sum(axis=0) / max(whole.sum(), np.finfo(float).tiny)
        return in_whole(self.mean(whole)[:, None] * modulation, random)


class Placement(Half):
    """Where requests go: the joint distribution of segment and size."""

    drifts: ClassVar[bool] = False
    """Whether forecasts are corrected as of a time (see ``models.drift``)."""

    any_page: ClassVar[bool] = False
    """Whether any page is as likely as any other: no learned law of offsets, and none of each relation's sizes."""

    def refitted(self, data: Training) -> Self:
        """Fit another one to other cells of the same runs; what this one has chosen is kept where it can be."""
        other = type(self)()
        other.fit(data)
        return other

    @abstractmethod
    def weights(self, rates: Vector) -> Vector:
        """Foretell each cell's share by stream, (2, C), at transactions a second by type, (T,).

        Each row adds up to 1, or is 0 throughout where the stream has no requests.
        """


def in_whole(expected: Vector, random: np.random.Generator) -> NDArray[np.int64]:
    """Round to whole numbers up or down by chance, so that means stay: any shape."""
    return np.floor(np.maximum(expected, 0) + random.random(expected.shape)).astype(np.int64)


def shares(weights: Vector) -> Vector:
    """Let each row of (…, C) add up to 1; rows of zeros stay."""
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))


def scaled(of_cells: Vector, totals: NDArray[Any], groups: NDArray[np.integer[Any]]) -> Vector:
    """Scale what is given by cell, (C,), so that it adds up to the totals of groups, (G,); zeros stay."""
    found = np.bincount(groups, of_cells, len(totals))
    factor: Vector = np.divide(totals, found, out=np.zeros(len(totals)), where=found > 0)
    return np.asarray(of_cells * factor[groups])


def expect(state: State, name: str, shape: Sequence[int | None], kind: str = "f") -> NDArray[Any]:
    """Take an array out of a state.

    Raises ``ValueError`` where its dimensions or its kind (``f`` or ``i``) are others, or a number is not finite;
    ``None`` stands for any length.
    """
    found = state[name]
    if len(found.shape) != len(shape) or any(
        w not in (None, h) for w, h in zip(shape, found.shape, strict=True)
    ):
        wanted = "x".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{name} has the shape {found.shape}; allowed: {wanted}")
    if found.dtype.kind != kind:
        raise ValueError(f"{name} is of the type {found.dtype}")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} has a number that is not finite")
    return found


class Prediction(NamedTuple):
    """What a model expects."""

    mean: Vector
    """Requests a second by stream: (2,)."""
    weights: Vector
    """Each cell's share by stream: (2, C)."""
    cells: Sequence[Cell]
    """The C cells."""


VALIDATED = ("mean", "deviation", "read_share", "write_bytes")
"""Figures of which a model knows how far off it was: of Y, of reads, of writes."""


@dataclass(frozen=True)
class Known:
    """What a model was trained on, kept so that a forecast can tell how far it is from that."""

    rates: Vector
    """The achieved transactions a second of each run by type: (R, T)."""
    targets: Vector
    """The TPS asked for: (R,)."""
    mixes: Sequence[str] = ()
    """The name of each run's mix."""
    errors: Vector = field(default_factory=lambda: np.zeros((0, len(VALIDATED))))
    """Logarithms of foretold / captured, of what ``VALIDATED`` names, for each run when its TPS level was left out:
    (R, 4); no rows where that was not tried."""

    def nearest(self, rates: Vector) -> int:
        """Give the run that is nearest to transactions a second by type, (T,).

        The distance is |ln| of the ratio of the sums, plus the sum of the differences of the shares.
        """
        sums = np.log(np.maximum(self.rates.sum(axis=1), 1e-9)) - np.log(max(rates.sum(), 1e-9))
        apart = np.abs(sums) + np.abs(shares(self.rates) - shares(rates)).sum(axis=1)
        return int(apart.argmin())


@dataclass(frozen=True)
class Model:
    """Both halves of a model, and what they were trained on."""

    name: str
    intensity: Intensity
    placement: Placement
    types: Sequence[str]
    cells: Sequence[Cell]
    write_bytes: WriteSizes
    known: Known
    origin: Mapping[str, Any] = field(default_factory=dict)
    """The corpus: ``view``, ``segment_bytes``, ``source``, and ``segments`` as lists of number, name and chunk."""
    patterns: State = field(default_factory=dict)
    """What other parts have learned, as arrays by name: offsets inside segments, and bursts."""
    drift: Drift | None = None
    """How it changes with time; None where it does not."""
    growth: Growth | None = None
    """How relations grow; ``cells`` then has distances from their ends. None where none grows."""

    def predict(self, rates: Vector, at: float | None = None, seconds: float = 0.0) -> Prediction:
        """Foretell means and shares at transactions a second by type, (T,).

        ``at`` is the number of the run at whose time this would be; None for the last one that was learned from.
        ``seconds`` is how long it would last: so long do tables grow in it.
        """
        mean = self.intensity.mean(rates)
        cells, weights = self._placed(rates, at, seconds)
        return Prediction(mean if self.drift is None else mean * self.drift.mean(at), weights, cells)

    def sample(self, rates: Vector, seconds: int, seed: int, at: float | None = None) -> Forecast:
        """Foretell S seconds at transactions a second by type, (T,); ``at`` as of ``predict``."""
        return self._forecast(self.counts(rates, seconds, seed, at), rates, at)

    def counts(self, rates: Vector, seconds: int, seed: int, at: float | None = None) -> NDArray[np.int64]:
        """Foretell the requests of these seconds by stream alone, (2, S), and not where they go."""
        random = np.random.default_rng(seed)
        return self._drifted(self.intensity.sample(rates, seconds, random), random, at)

    def follow(self, course: Vector, seed: int) -> Forecast:
        """Foretell what a given course of transactions by type and second, (T, S), brings."""
        random = np.random.default_rng(seed)
        counts = self._drifted(self.intensity.follow(course, random), random, None)
        return self._forecast(counts, course.mean(axis=1), None)

    def _drifted(
        self, counts: NDArray[np.int64], random: np.random.Generator, at: float | None
    ) -> NDArray[np.int64]:
        return counts if self.drift is None else in_whole(counts * self.drift.mean(at)[:, None], random)

    def _forecast(self, counts: NDArray[np.int64], rates: Vector, at: float | None) -> Forecast:
        cells, weights = self._placed(rates, at, counts.shape[1])
        return Forecast(counts, cells, weights, self.write_bytes, self.known.nearest(rates))

    def _placed(
        self, rates: Vector, at: float | None, seconds: float, without: float | None = None
    ) -> tuple[Sequence[Cell], Vector]:
        weights = self.placement.weights(rates)
        if self.drift is not None:
            weights = self.drift.weights(weights, at, without)
        if self.growth is None:
            return self.cells, weights
        return self.growth.placed(self.cells, weights, self.growth.ends_at(rates, seconds, at, without))

    def apart(self, data: Training) -> float:
        """Give the mean K-L divergence of Z of the runs that it was trained on, in nats.

        Of each run, what time and growth change is foretold from the other runs.
        """
        found = []
        for run, (at, rates, z) in enumerate(zip(data.order, data.rates, data.z, strict=True)):
            cells, weights = self._placed(rates, float(at), float(data.seconds[run]), float(at))
            found.append(cell_divergence((data.cells, z.sum(axis=0)), (cells, z.sum(axis=1) @ weights)))
        return float(np.mean(found))
