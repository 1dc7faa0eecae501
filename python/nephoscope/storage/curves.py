"""Miss-ratio curves of held-out runs, and of the requests that are generated from forecasts of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.storage.corpus import native_columns
from nephoscope.storage.generating import batches, foreseen, plan
from nephoscope.storage.patterns import learn, located
from nephoscope.storage.reuse import cached_operations, is_cached, miss_ratio_curve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.bursts import Bursts
    from nephoscope.storage.corpus import CapturedRun, Corpus
    from nephoscope.storage.forecast import Forecast
    from nephoscope.storage.models.base import Model
    from nephoscope.storage.patterns import State
    from nephoscope.storage.reuse import MissRatioCurve

COUNTED = 1_000_000
"""Of a run with more requests than this, the share of the pages that makes about so many is counted (SHARDS)."""


class Curves:
    """Makes the curves of one corpus. Those of captured runs, and what was learned of offsets, are kept."""

    def __init__(self, corpus: Corpus) -> None:
        """Read nothing yet."""
        self._corpus = corpus
        self._captured: dict[int, MissRatioCurve | None] = {}
        self._learned: dict[tuple[int, ...], State] = {}
        self._bursts: dict[int, Sequence[Bursts]] = {}

    @property
    def accesses(self) -> str:
        """What goes through the cache, in words."""
        return " and ".join(f"{name}s" for name in cached_operations(self._corpus.meta.view))

    def captured(self, run: CapturedRun) -> MissRatioCurve | None:
        """Make the curve of a captured run; None where no request of it goes through the cache.

        Raises:
            InputError: a file of the corpus is damaged.

        """
        if run.run not in self._captured:
            columns = self._corpus.requests(run.run)
            inside = (columns["time_us"] >= 0) & (columns["time_us"] < run.seconds * 1_000_000)
            found = self._cached({name: column[inside] for name, column in columns.items()})
            self._captured[run.run] = _curve(found, min(1.0, COUNTED / max(len(found["segment"]), 1)))
        return self._captured[run.run]

    def generated(
        self, model: Model, forecast: Forecast, run: CapturedRun, learned: Sequence[int]
    ) -> MissRatioCurve | None:
        """Generate requests of a model's forecast of a run as ``storage generate`` does, and make their curve.

        Args:
            model: The model, which says whether offsets follow a law.
            forecast: What it foretells.
            run: The run, of which only the number of requests is used: for the share of the pages that is counted.
            learned: The numbers of the runs from which offsets are learned.

        Returns:
            None where the captured run, or what was generated, has no request that goes through the cache.

        """
        truth = self.captured(run)
        if truth is None:
            return None
        made = located(model, self._corpus, self._patterns(learned))
        found = [
            self._cached(native_columns(columns))
            for columns in batches(plan(foreseen(made), [forecast], run.run))
        ]
        return _curve({name: np.concatenate([part[name] for part in found]) for name in _NEEDED}, truth.rate)

    def _patterns(self, runs: Sequence[int]) -> State:
        key = tuple(runs)
        if key not in self._learned:
            self._learned[key] = learn(self._corpus, runs, self._bursts)
        return self._learned[key]

    def _cached(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        here = is_cached(self._corpus.meta.view, columns["operation"])
        return {name: columns[name][here] for name in _NEEDED}


_NEEDED = ("segment", "offset", "bytes")


def _curve(columns: Mapping[str, NDArray[Any]], rate: float) -> MissRatioCurve | None:
    curve = miss_ratio_curve(columns, rate=rate)
    return curve if len(curve.cache_bytes) else None
