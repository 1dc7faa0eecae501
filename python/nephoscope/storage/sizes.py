"""The sizes of writes in bytes: those of one relation are alike, whichever segment of it they go to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.corpus import Relations
    from nephoscope.storage.features import Cell

    Sizes = NDArray[np.uint32]

KB = 1024
ALL = -1
"""In the place of a relation's number: all of them together."""
_KEPT = 1024


@dataclass(frozen=True)
class WriteSizes:
    """What writes have in bytes, by relation and by the size of the buffer in KB, rounded up."""

    relation: NDArray[np.int64]
    """The number of each segment's relation (see ``corpus.Relations``): (M,)."""
    found: Mapping[tuple[int, int], Sizes]
    """Sizes in bytes, rising and equally likely, by relation, ``ALL`` too, and ``size_kb``; at most 1,024 of each."""

    def key(self, cell: Cell) -> tuple[int, int]:
        """Give the relation and the size of a cell; a segment that is not known is a relation of its own."""
        segment, size_kb = cell
        return int(self.relation[segment]) if segment < len(self.relation) else segment, size_kb

    def of(self, cell: Cell) -> Sizes:
        """Give the sizes of a cell's writes: its relation's, else those of all relations, else ``size_kb`` KB."""
        own, others = self.found.get(self.key(cell)), self.found.get((ALL, cell.size_kb))
        known = others if own is None else own
        return np.array([cell.size_kb * KB], np.uint32) if known is None else known

    def pooled(self) -> WriteSizes:
        """Forget which relation has which sizes."""
        return replace(self, relation=np.full_like(self.relation, ALL))

    def means(self, cells: Sequence[Cell]) -> NDArray[np.float64]:
        """Give the mean size of each cell's writes in bytes, (C,); 0 for a read."""
        mean = {key: float(sizes.mean()) for key, sizes in self.found.items()}
        return np.array(
            [
                (mean.get(self.key(cell)) or float(self.of(cell).mean())) if cell.size_kb else 0.0
                for cell in cells
            ]
        )


def in_kb(written: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Round sizes in bytes up to KB; 1 at least: a write of no bytes would be taken for a read."""
    return np.maximum(-(-written.astype(np.int64) // KB), 1)


def write_sizes(
    segment: NDArray[np.integer[Any]], written: NDArray[np.uint32], relations: Relations
) -> WriteSizes:
    """Gather the sizes of writes: the segment of each, (W,), and its bytes, (W,)."""
    of = np.concatenate([relations.number(segment), np.full(len(segment), ALL)])
    both = np.tile(written, 2)
    keys, which = np.unique(np.column_stack([of, in_kb(both)]), axis=0, return_inverse=True)
    ordered, ends = both[np.argsort(which.ravel())], np.cumsum(np.bincount(which.ravel())).tolist()
    parts = (ordered[begin:end] for begin, end in pairwise([0, *ends]))
    return WriteSizes(
        relations.of,
        {(of, size): _thinned(part) for (of, size), part in zip(keys.tolist(), parts, strict=True)},
    )


def merged(sizes: Sequence[WriteSizes]) -> WriteSizes:
    """Put the sizes of several runs of one corpus together."""
    keys = sorted(set().union(*(one.found for one in sizes)))
    found = {
        key: _thinned(np.concatenate([one.found[key] for one in sizes if key in one.found])) for key in keys
    }
    return replace(sizes[0], found=found)


def _thinned(sizes: Sizes) -> Sizes:
    """Sort sizes, and choose at most 1,024 of them evenly."""
    ordered = np.sort(sizes)
    kept = min(len(ordered), _KEPT)
    return ordered[(2 * np.arange(kept) + 1) * len(ordered) // (2 * max(kept, 1))]
