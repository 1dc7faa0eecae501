"""Tables that grow are written at their ends: what lies near the end of a relation is placed from there, and moves.

A segment is a fixed piece of a relation. While the relation grows, requests at its end go to one segment and then to
the next, within a run or two, which no correction by neighbouring runs foretells. So cells near the ends of relations
that grow are learned by their distance from the end (``features.NEAR``), which stays the same, and are put back into
segments by where the end is during the run that is foretold: between the ends that the runs before and after it had,
and moving by what its own transactions add.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.storage.features import BINS, EDGES, NEAR, STREAMS, Cell
from nephoscope.storage.models.base import expect
from nephoscope.storage.models.means import nonnegative

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.models.base import State, Training, Vector

LEAST = 1 / 16
"""A relation whose end moves by less than this part of a segment while it is captured does not grow."""
_STEPS = 16
"""Into how many parts a run and a bin are cut to tell which segments they meet."""


@dataclass(frozen=True)
class Growth:
    """G relations that grow, over R runs and T types of transactions. Ends are in segments from a relation's begin."""

    relations: NDArray[np.int64]
    """The number of each relation, as ``Relations`` has it: (G,)."""
    segments: NDArray[np.int64]
    """The segment of each chunk, -1 where there is none: (G, K)."""
    order: Vector
    """The number of each run, rising: (R,)."""
    ends: Vector
    """Where each relation ended when a run began, and when it ended: (R, G, 2)."""
    per_transaction: Vector
    """By how much a transaction moves the end, by type: (G, T)."""

    def ends_at(
        self, rates: Vector, seconds: float, at: float | None, without: float | None = None
    ) -> Vector:
        """Give the ends, (G, 2), during a run of a number; None for the last one's end, where nothing moves any more.

        ``rates`` are transactions a second by type, (T,); ``without`` is the number of a run that must not be known.
        """
        if at is None:
            return np.repeat(self.ends[-1, :, 1:], 2, axis=1)
        known = np.ones(len(self.order), dtype=bool) if without is None else self.order != without
        here = np.flatnonzero(known & (self.order == at))
        if len(here):
            return np.asarray(self.ends[here[0]])
        before, after = (np.flatnonzero(known & side) for side in (self.order < at, self.order > at))
        own = self.per_transaction @ rates * seconds
        if not len(after) or not len(before):
            return self._beyond(own, at, before, after)
        first, last = before[-1], after[0]
        low, high = self.ends[first, :, 1], self.ends[last, :, 0]
        part = (at - self.order[first]) / (self.order[last] - self.order[first])
        middle = low + part * (high - low)
        moving = np.stack([middle - own / 2, middle + own / 2], axis=1)
        return np.asarray(np.clip(moving, low[:, None], np.maximum(low, high)[:, None]))

    def _beyond(self, own: Vector, at: float, before: NDArray[np.intp], after: NDArray[np.intp]) -> Vector:
        """Give the ends of a run that all known ones are on one side of: they go on at their mean pace."""
        known = before if len(before) else after
        first, last = known[0], known[-1]
        pace = (self.ends[last, :, 1] - self.ends[first, :, 0]) / (self.order[last] - self.order[first] + 1)
        if len(before):
            begin = self.ends[last, :, 1] + pace * (at - self.order[last] - 1)
            return np.stack([begin, begin + own], axis=1)
        end = self.ends[first, :, 0] - pace * (self.order[first] - at - 1)
        return np.asarray(np.maximum(np.stack([end - own, end], axis=1), 0))

    def placed(self, cells: Sequence[Cell], weights: Vector, ends: Vector) -> tuple[list[Cell], Vector]:
        """Put cells by distance, with weights (2, C), back into segments; gives C' cells and their weights, (2, C')."""
        spread = {
            int(relation) * BINS + number: self._segments_of(place, number, ends[place])
            for place, relation in enumerate(self.relations)
            for number in range(BINS)
        }
        moved: dict[Cell, Vector] = {}
        for cell, weight in zip(cells, weights.T, strict=True):
            near = spread[cell.segment - NEAR] if cell.segment >= NEAR else [(cell.segment, 1.0)]
            for segment, part in near:
                there = Cell(segment, cell.size_kb)
                moved[there] = moved.get(there, 0.0) + part * weight
        found = sorted(moved)
        return found, np.array([moved[cell] for cell in found]).reshape(-1, len(weights)).T

    def _segments_of(self, place: int, number: int, ends: Vector) -> list[tuple[int, float]]:
        """Give the segments that a bin of distances meets while the end moves, and the share of each."""
        middles = (np.arange(_STEPS) + 0.5) / _STEPS
        end = ends[0] + middles * (ends[1] - ends[0])
        distance = EDGES[number] + middles * (EDGES[number + 1] - EDGES[number])
        chunks = np.floor(end[:, None] - distance)
        known = np.flatnonzero(self.segments[place] >= 0)
        # What no capture has reached has no number: it stays in the last segment that has one.
        nearest = known[np.abs(known[:, None] - chunks.ravel()).argmin(axis=0)]
        found, counts = np.unique(self.segments[place][nearest], return_counts=True)
        return [(int(one), float(count) / chunks.size) for one, count in zip(found, counts, strict=True)]

    def state(self) -> State:
        """Give all that was learned, as arrays of numbers."""
        return {
            "relations": self.relations,
            "segments": self.segments,
            "order": self.order,
            "ends": self.ends,
            "per_transaction": self.per_transaction,
        }

    @classmethod
    def restored(cls, state: State, cells: Sequence[Cell], types: int) -> Growth:
        """Take back what ``state`` gave. Raises ``ValueError`` or ``KeyError`` where it is not as it should be."""
        relations = expect(state, "relations", (None,), "i")
        segments = expect(state, "segments", (len(relations), None), "i")
        order = expect(state, "order", (None,))
        ends = expect(state, "ends", (len(order), len(relations), 2))
        near = {(cell.segment - NEAR) // BINS for cell in cells if cell.segment >= NEAR}
        if not len(order) or (ends < 0).any() or not (segments >= 0).any(axis=1).all():
            raise ValueError("growth has no runs, ends before the begin, or a relation without a segment")
        if (segments >= NEAR).any() or not near <= set(relations.tolist()):
            raise ValueError(
                "growth lacks relations that cells belong to, or has segments that there cannot be"
            )
        return cls(
            relations, segments, order, ends, expect(state, "per_transaction", (len(relations), types))
        )


def fit_growth(data: Training) -> Growth | None:
    """Learn where the ends of relations that grow are; None where none does."""
    order = np.argsort(data.order, kind="stable")
    relations = sorted({relation for near in data.near for relation in near.ends})
    if not relations or data.relations is None:
        return None
    ends = np.full((len(order), len(relations), 2), -np.inf)
    for place, run in enumerate(order):
        for relation, found in data.near[run].ends.items():
            ends[place, relations.index(relation)] = found
    # An end never moves back; a run that did not go there tells nothing.
    running = np.maximum.accumulate(ends.transpose(1, 0, 2).reshape(len(relations), -1), axis=1)
    first = np.array([row[np.isfinite(row)][0] for row in running])
    running = np.maximum(running, first[:, None])
    growing = running[:, -1] - running[:, 0] >= LEAST
    if not growing.any():
        return None
    kept = np.array(relations, dtype=np.int64)[growing]
    ends = running.reshape(len(relations), len(order), 2).transpose(1, 0, 2)[:, growing]
    transactions = data.rates[order] * data.seconds[order, None]
    moved = nonnegative(transactions, ends[:, :, 1] - ends[:, :, 0])
    return Growth(kept, data.relations.segments_of(kept), data.order[order], ends, moved.T)


def by_distance(data: Training, growing: NDArray[np.int64]) -> Training:
    """Let the cells near the ends of relations be those of a distance; ``growing`` are the numbers of relations."""
    relations = data.relations
    if relations is None:
        return data
    names = []
    for near in data.near:
        segment, size, place = near.rows.T
        relation = relations.of[segment]
        moved = np.isin(relation, growing) & (place >= 0)
        names.append(np.column_stack([np.where(moved, NEAR + relation * BINS + place, segment), size]))
    cells, at = np.unique(np.concatenate(names), axis=0, return_inverse=True)
    at = at.ravel()
    z = np.zeros((len(names), len(STREAMS), len(cells)))
    begins = np.cumsum([0, *(len(one) for one in names)])
    for run, near in enumerate(data.near):
        own = at[begins[run] : begins[run + 1]]
        for stream, counts in enumerate(near.z):
            np.add.at(z[run, stream], own, counts)
    return replace(data, cells=[Cell(*cell) for cell in cells.tolist()], z=z)
