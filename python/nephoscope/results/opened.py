"""A run directory for a notebook or a script: ``nephoscope.open(RUN)``."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.files import parse_toml
from nephoscope.results.scores import scores_of
from nephoscope.results.tables import tables_of
from nephoscope.store import StoredRun
from nephoscope.store.protocol import Selection
from nephoscope.tables.columns import RunFigures
from nephoscope.tables.model import arrow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from nephoscope.store import Phase

HistogramKind = Literal["latency", "service", "failed", "censored", "lateness"]
_NS_PER_MS = 1e6
_RAW = ("intervals", "system", "probes")
"""Tables of the run directory itself; the others are those of ``nephoscope report --tables``."""


class LatencyHistogram:
    """Histograms that were added up: any percentile of them is exact to three digits. Times are in ms."""

    def __init__(self, merged: _engine.Histogram) -> None:
        """Take a histogram of nanoseconds."""
        self._merged = merged

    @property
    def count(self) -> int:
        """How many transactions it holds."""
        return self._merged.count

    @property
    def mean(self) -> float | None:
        """Their mean in ms; None where there are none."""
        return self._merged.mean / _NS_PER_MS if self.count else None

    @property
    def max(self) -> float | None:
        """The longest in ms; None where there is none."""
        return self.percentile(100)

    def percentile(self, percentile: float) -> float | None:
        """Return a percentile, 0 to 100, in ms; None where there is nothing. Raises ``InputError``."""
        if not 0 <= percentile <= 100:  # noqa: PLR2004
            raise InputError(f"a percentile of {percentile}; allowed: 0 to 100")
        return self._merged.quantile(percentile / 100) / _NS_PER_MS if self.count else None

    def percentiles(
        self, percentiles: Sequence[float] = (50, 90, 95, 99, 99.9, 100)
    ) -> dict[float, float | None]:
        """Return several percentiles in ms, by percentile."""
        return {percentile: self.percentile(percentile) for percentile in percentiles}

    def share_within(self, milliseconds: float) -> float | None:
        """Return the share of transactions that took no longer; None where there are none."""
        within = self._merged.count_up_to(round(milliseconds * _NS_PER_MS))
        return within / self.count if self.count else None

    def table(self) -> pa.Table:
        """Return the buckets that hold anything: ``up_to_ms`` (their highest value), ``count``."""
        buckets = self._merged.buckets()
        return pa.table(
            {
                "up_to_ms": pa.array([value / _NS_PER_MS for value, _ in buckets], pa.float64()),
                "count": pa.array([count for _, count in buckets], pa.int64()),
            }
        )

    def __add__(self, other: LatencyHistogram) -> LatencyHistogram:
        """Add up two histograms, without loss."""
        total = _engine.Histogram()
        total.add(self._merged)
        total.add(other._merged)
        return LatencyHistogram(total)

    def __repr__(self) -> str:
        """Say how many transactions it holds, and their median and p99."""
        if not self.count:
            return "LatencyHistogram(empty)"
        p50, p99 = (self.percentile(percentile) or 0.0 for percentile in (50, 99))
        return f"LatencyHistogram({self.count:,} transactions, p50 {p50:.3g} ms, p99 {p99:.3g} ms)"


class OpenedRun:
    """A run, read. Nothing of its folder is changed; figures are computed anew from what was measured."""

    def __init__(self, run: str | PathLike[str]) -> None:
        """Open a run directory, such as ``runs/latest``. Raises ``InputError`` for what is none."""
        self._stored = StoredRun(Path(run))

    def __repr__(self) -> str:
        """Name the run and how it ended."""
        return f"<run {self.name}: {self.manifest['status']}>"

    @property
    def name(self) -> str:
        """The folder's name."""
        return self._stored.name

    @property
    def folder(self) -> Path:
        """The folder."""
        return self._stored.folder

    @property
    def manifest(self) -> Mapping[str, Any]:
        """``manifest.json``: versions, host, system, workload, totals."""
        return self._stored.manifest

    @cached_property
    def study(self) -> Mapping[str, Any]:
        """The study as it was run, every default written out."""
        return parse_toml(self._stored.study)

    @property
    def events(self) -> Sequence[Mapping[str, Any]]:
        """What happened and when, as in ``events.jsonl``."""
        return self._stored.events

    @property
    def phases(self) -> Sequence[Phase]:
        """The phases: number, name, kind, labels, ``start_s``, ``end_s``."""
        return self._stored.phases

    @cached_property
    def results(self) -> Mapping[str, Any]:
        """All that ``scores.json`` holds, computed anew. Raises ``InputError`` of a damaged run."""
        return scores_of(self._stored)

    @property
    def scores(self) -> Mapping[str, Mapping[str, Any]]:
        """The scores by letter: ``value``, ``unit``, ``ci95``, ``repetitions``, ``detail``."""
        found: Mapping[str, Mapping[str, Any]] = self.results["scores"]
        return found

    @property
    def absent(self) -> Mapping[str, str]:
        """Why scores are absent, by letter."""
        found: Mapping[str, str] = self.results["absent"]
        return found

    @property
    def verdicts(self) -> Sequence[Mapping[str, str]]:
        """The verdicts: ``level``, ``verdict``, ``detail``."""
        found: Sequence[Mapping[str, str]] = self.results["verdicts"]
        return found

    @property
    def warnings(self) -> Sequence[str]:
        """The warnings."""
        found: Sequence[str] = self.results["warnings"]
        return found

    @cached_property
    def _made(self) -> Mapping[str, pa.Table]:
        figures = RunFigures(self.name, self._stored, self.results)
        return {table.name: arrow(table) for table in tables_of([figures])}

    @property
    def tables(self) -> list[str]:
        """The names of the tables: the run directory's own, then those that its report shows."""
        return [*_RAW, *self._made]

    def table(self, name: str) -> pa.Table:
        """Return a table; ``.to_pandas()`` and ``polars.from_arrow`` make theirs of it. Raises ``InputError``."""
        match name:
            case "intervals":
                return self._stored.intervals
            case "system":
                return self._stored.system_metrics
            case "probes":
                return self._stored.probes
            case _ if name in self._made:
                return self._made[name]
        raise InputError(f"{self.name} has no table {name!r}; tables are {', '.join(self.tables)}")

    def histogram(
        self,
        *,
        kind: HistogramKind = "latency",
        tenant: str | None = None,
        role: str | None = None,
        transaction: str | None = None,
        window: tuple[float, float] | None = None,
        **labels: Any,  # noqa: ANN401 - whatever a phase's labels hold
    ) -> LatencyHistogram:
        """Add up histograms of measured phases.

        ``labels`` are those of phases (``mix="RW"``, ``concurrency=16``, ``repetition=1``): all measured phases if none
        is given. ``window`` is a stretch of time in seconds since the start of the load, to its end exclusively: with
        it and without labels every phase counts, warm-up too. Raises ``InputError`` where no phase has the labels.
        """
        every = window is not None and not labels
        phases = None if every else self._phases_with(labels)
        selection = Selection(phases, tenant, role, transaction, kind)
        if window is None:
            return LatencyHistogram(self._stored.merged(selection))
        (found,) = self._stored.merged_by_window([window], selection)
        return LatencyHistogram(found if found is not None else _engine.Histogram())

    def _phases_with(self, labels: Mapping[str, Any]) -> frozenset[int]:
        measured = [phase for phase in self.phases if phase.kind == "measure"]
        found = frozenset(
            phase.number
            for phase in measured
            if all(phase.labels.get(name) == value for name, value in labels.items())
        )
        if labels and not found:
            wanted = ", ".join(f"{name}={value!r}" for name, value in labels.items())
            names = dict.fromkeys(name for phase in measured for name in phase.labels)
            known = {
                name: sorted({repr(phase.labels[name]) for phase in measured if name in phase.labels})
                for name in names
            }
            shown = "; ".join(f"{name}: {', '.join(values[:8])}" for name, values in known.items())
            raise InputError(f"{self.name} has no measured phase with {wanted}; labels are {shown or 'none'}")
        return found
