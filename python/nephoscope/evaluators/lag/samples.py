"""The lag samples of a run, as the evaluator ``lag`` reads them: for the report's section and for its tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nephoscope.report.kit.parts import Estimate
from nephoscope.statistics import Survival, block_bootstrap_ci, expected, mean_ci, no_less_than_0

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nephoscope.report.kit.run import Run

KINDS = ("insert", "update", "delete")
"""The kinds of markers, in the order of the paper's equation 6."""

_AFTER_MS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000)
_MOST_TIMES = 8


def _lags(probes: pa.Table) -> pa.Table:
    """Leave out the availability probes, of which there are hundreds a second."""
    return probes.filter(pc.equal(probes.column("probe"), pa.scalar("lag")))


@dataclass(frozen=True)
class LagSamples:
    """Markers beside named loads; every array has an entry for each marker and replica."""

    time_s: NDArray[np.float64]
    lag_ms: NDArray[np.float64]
    """The middle of the bounds; of an unseen marker the time of the search for it."""
    half_width_ms: NDArray[np.float64]
    """NaN for a marker that was not seen."""
    load: NDArray[np.str_]
    repetition: NDArray[np.int64]
    kind: NDArray[np.str_]
    node: NDArray[np.str_]

    @classmethod
    def of(cls, run: Run) -> LagSamples:
        """Read the markers that were committed in a measured phase with a load's name."""
        rows = [
            (row["time_s"], row["kind"], row["node"], row["lower_ms"], row["upper_ms"])
            for row in _lags(run.reader.probes).to_pylist()
            if row["lower_ms"] is not None
        ]
        found = []
        for time_s, kind, node, lower, upper in sorted(rows, key=lambda row: row[:3]):
            phase = run.phase_at(time_s)
            if phase is None or not phase.measured or "load" not in phase.labels:
                continue
            lag, half = (lower, np.nan) if upper is None else ((lower + upper) / 2, (upper - lower) / 2)
            found.append((time_s, lag, half, str(phase.labels["load"]), phase.repetition or 1, kind, node))
        columns = list(zip(*found, strict=True)) or [()] * 7
        kinds = (float, float, float, str, np.int64, str, str)
        return cls(*(np.asarray(column, kind) for column, kind in zip(columns, kinds, strict=True)))

    def __len__(self) -> int:
        """How many there are."""
        return len(self.time_s)

    def where(self, rows: NDArray[np.bool_]) -> LagSamples:
        """Return some of them."""
        return LagSamples(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def beside(self, load: str) -> LagSamples:
        """Return those beside a load."""
        return self.where(self.load == load)

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """Which were not seen within the limit: their lag is at least the limit."""
        return np.isnan(self.half_width_ms)

    @cached_property
    def loads(self) -> tuple[str, ...]:
        """The loads, in the order in which they were measured."""
        return tuple(dict.fromkeys(self.load.tolist()))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that there are, in the paper's order."""
        return tuple(kind for kind in KINDS if kind in self.kind)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The read-only endpoints, by name."""
        return tuple(sorted(set(self.node.tolist())))

    @cached_property
    def survival(self) -> Survival:
        """Which share of lags is longer than some time; there has to be one."""
        return Survival.of(self.lag_ms, self.unseen)

    def quantile(self, share: float) -> float | None:
        """Return a quantile in ms; a lower bound where it falls on unseen markers."""
        if not len(self):
            return None
        return self.survival.quantile(share) if self.unseen.any() else float(np.quantile(self.lag_ms, share))

    @property
    def half_width(self) -> float | None:
        """The median half-width in ms: the probe's resolution."""
        seen = self.half_width_ms[~self.unseen]
        return float(np.median(seen)) if len(seen) else None

    def mean(self) -> Estimate:
        """Return the mean in ms: its interval over repetitions, or over blocks of markers where there is one.

        Of markers that were not seen, it is at least that.
        """
        if not len(self):
            return Estimate()
        lags = expected(self.lag_ms, self.unseen)
        means = [float(lags[self.repetition == n].mean()) for n in sorted(set(self.repetition.tolist()))]
        found = mean_ci(means) if len(means) > 1 else block_bootstrap_ci(lags)
        return Estimate(value=float(lags.mean()), ci95=no_less_than_0(found.ci95))

    def stale(self, after_ms: float) -> Estimate:
        """P(a read is stale | that long after the write): the share of markers whose lag is longer.

        By Kaplan and Meier: a marker that was not seen counts as stale for as long as it was looked for.
        """
        if not len(self):
            return Estimate()
        return Estimate(value=self.survival.longer(after_ms), ci95=self.survival.interval(after_ms))

    def times_ms(self) -> tuple[float, ...]:
        """Return round times at which the share of stale reads is worth a column: from nearly all to nearly none."""
        seen = self.lag_ms[~self.unseen]
        if not len(seen):
            return ()
        low, high = np.quantile(seen, [0.01, 0.999])
        inside = [t for t in _AFTER_MS if low <= t <= high]
        beyond = next((t for t in _AFTER_MS if t > high), None)
        times = [*inside, *([beyond] if beyond is not None else [])]
        step = -(-len(times) // _MOST_TIMES) if times else 1
        return tuple(float(t) for t in times[::-1][::step][::-1])
