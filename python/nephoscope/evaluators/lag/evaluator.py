"""The evaluator ``lag``: how long commits take to be seen on the read-only endpoints, and the C-Score.

METRICS, section 3, "C: replication lag"; CloudyBench, section II-G, equation 6.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nephoscope.engine.probes import ProbeSettings
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.lag.server_view import ServerView
from nephoscope.evaluators.lag.settings import LagSettings
from nephoscope.evaluators.points import measured_phases
from nephoscope.scoring.formulas import Absent, Score, c_score, over_repetitions
from nephoscope.settings.loads import Load, LoadBeside
from nephoscope.statistics import Survival, block_bootstrap_ci, expected

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.store import Phase, StoredRun
    from nephoscope.study.workload import DescribedWorkload

KINDS = ("insert", "update", "delete")
"""The kinds of markers, in the order of equation 6."""


_MIX = "IUD"
"""The mix of inserts, updates and deletes that a workload may have, its transactions in this order."""


@dataclass(frozen=True)
class LagSummary:
    """The lags of some markers, in milliseconds."""

    count: int
    unseen: int
    """Markers that were not seen within the limit: their lag, and figures that depend on it, are lower bounds."""
    mean: float
    p50: float
    p95: float
    p99: float
    max: float
    half_width_p50: float
    """The median half-width of a sample: the probe's resolution."""
    half_width_mean: float
    """The mean half-width: the true mean of the markers that were seen lies no further from ``mean``."""


class Lag(Evaluator):
    """Commits markers and looks for them on every read-only endpoint, idle and under load."""

    name: ClassVar[str] = "lag"
    summary: ClassVar[str] = "replication lag of inserts, updates and deletes, idle and under load (C)"
    settings_type: ClassVar[type[MeasureSettings]] = LagSettings

    def __init__(self, settings: LagSettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the loads' mixes."""
        self._settings = settings
        self._index = index
        loads = settings.loads or _default_loads(workload)
        where = f"measure.{index}.loads"
        self._loads = [
            (load.name, workload.mix(load.mix, f"{where}.{place}.mix")[1] if load.mix is not None else None)
            for place, load in enumerate(loads)
        ]
        self._access = {load.name: settings.access or workload.access(load.mix) for load in loads}
        self._any_mix = {workload.transactions[0]: 1.0}

    def seconds(self) -> float:
        """All loads, all repetitions."""
        of = self._settings
        return len(self._loads) * of.repetitions * (of.warmup + of.duration)

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give each load that is not idle."""
        del sessions
        for name, mix in self._loads:
            if mix is not None:
                yield Demand(f"lag, {name}", (self._settings.concurrency,), mix)

    # --- driving --------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Run the loads, with the probe beside each."""
        of, load = self._settings, means.load
        if not means.system.ro:
            means.unsupported(self._index, "no read-only endpoint to lag behind")
            return
        settings = ProbeSettings(marker_interval=of.marker_interval, marker_timeout=of.limit)
        # Before the first load, so that no load contains the creation of the probes' tables.
        load.phase("lag: warm-up", "warm_up", of.warmup, self._level(), self.labels(self._index))
        with means.probes(settings, availability=False, lag=True):
            for repetition in range(1, of.repetitions + 1):
                for name, mix in self._loads:
                    labels = self.labels(self._index, load=name, repetition=repetition)
                    if of.warmup > 0:
                        warming = f"lag, {name}: warm-up"
                        load.phase(warming, "warm_up", of.warmup, self._level(name, mix), labels)
                    load.phase(f"lag, {name}", "measure", of.duration, self._level(name, mix), labels)
            load.wait()

    def _level(self, name: str = "", mix: Mapping[str, float] | None = None) -> Load:
        """Make a load of a mix; without one the system is idle."""
        of = self._settings
        concurrency = float(of.concurrency) if mix is not None else 0.0
        return Load(concurrency=concurrency, mix=mix or self._any_mix, access=self._access.get(name))

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read the lags by load and kind, and C from those under load."""
        phases, warnings = measured_phases(stored.run, stored.index)
        samples = _Samples(stored.run)
        by_load = {
            name: {
                kind: samples.of([phase for phase in phases if phase.labels.get("load") == name], kind)
                for kind in KINDS
            }
            for name, _ in self._loads
        }
        score = self._score(samples, phases, by_load, stored)
        if unseen := samples.unseen(phases):
            said = ", ".join(f"{count:,} on {node}" for node, count in unseen.items())
            warnings.append(
                f"{sum(unseen.values()):,} markers were not seen within {self._settings.limit:g} s, or before the end"
                f" ({said}): C is a lower bound"
            )
        if failed := samples.failed(phases):
            said = ", ".join(f"{count:,} {outcome}" for outcome, count in failed.items())
            warnings.append(f"markers could not be committed ({said}): C is of the others")
        return Measurements(scores={"C": score}, warnings=warnings)

    def _score(
        self,
        samples: _Samples,
        phases: Sequence[Phase],
        by_load: Mapping[str, Mapping[str, LagSummary | None]],
        stored: Stored,
    ) -> Score | Absent:
        # Idle lags are shown, and do not count where the paper's loads were measured.
        counted = [name for name, mix in self._loads if mix is not None] or [name for name, _ in self._loads]
        values = []
        for repetition in sorted({int(phase.labels.get("repetition", 1)) for phase in phases}):
            of = [p for p in phases if p.labels.get("repetition") == repetition]
            lags = {
                kind: [
                    summary.mean
                    for name in counted
                    if (summary := samples.of([p for p in of if p.labels.get("load") == name], kind))
                ]
                for kind in KINDS
            }
            if missing := [kind for kind, means in lags.items() if len(means) < len(counted)]:
                reason = f"no {' or '.join(missing)} was seen beside every load"
                return Absent(reason=f"repetition {repetition}: {reason}")
            insert, update, delete = (sum(lags[kind]) / len(lags[kind]) / 1000 for kind in KINDS)
            values.append(c_score(insert, update, delete, len(samples.nodes)))
        if not values:
            return Absent(reason=stored.why_not() or "no load was measured whole")
        known = [summary for name in counted for summary in by_load.get(name, {}).values() if summary]
        of_servers = ServerView(stored.run)
        detail = {
            "replicas": len(samples.nodes),
            "counted": counted,
            "resolution_s": max(summary.half_width_p50 for summary in known) / 1000,
            "at_least": any(summary.unseen for summary in known),
            "lag_ms": {
                name: {kind: vars(summary) for kind, summary in of.items() if summary}
                for name, of in by_load.items()
            },
            "server_view": {
                name: of_servers.during([p for p in phases if p.labels.get("load") == name])
                for name in by_load
            },
        }
        within = (
            _within(samples, phases, counted, values[0])
            if len(values) == 1 and isinstance(values[0], float)
            else None
        )
        return over_repetitions("C", values, within=within, detail=detail)


def _within(
    samples: _Samples, phases: Sequence[Phase], counted: Sequence[str], value: float
) -> tuple[float, float] | None:
    """Join the intervals of the mean lags, for a single repetition: they are of different markers."""
    below, above = [], []
    for name in counted:
        of = [phase for phase in phases if phase.labels.get("load") == name]
        for kind in KINDS:
            lags = samples.lags(of, kind)
            ci95 = block_bootstrap_ci(lags).ci95 if len(lags) else None
            if ci95 is None:
                return None
            share = 1 / (1000 * len(counted) * len(samples.nodes))
            below.append((float(lags.mean()) - ci95[0]) * share)
            above.append((ci95[1] - float(lags.mean())) * share)
    # No lag is below 0.
    return max(value - math.hypot(*below), 0.0), value + math.hypot(*above)


def _default_loads(workload: DescribedWorkload) -> list[LoadBeside]:
    loads = [LoadBeside(name="idle")]
    if any(known["name"] == _MIX for known in workload.description["mixes"]):
        weights = workload.mix(_MIX, "")[1]
        loads.append(LoadBeside(name=_MIX, mix=_MIX))
        loads += [LoadBeside(name=transaction, mix={transaction: 1.0}) for transaction in weights]
    return loads


class _Samples:
    """The lag samples of a run."""

    def __init__(self, run: StoredRun) -> None:
        table = run.probes
        rows = np.asarray([kind == "lag" for kind in table.column("probe").to_pylist()], bool)

        def texts(name: str) -> NDArray[np.object_]:
            column: NDArray[np.object_] = np.asarray(table.column(name).to_pylist(), object)
            selected: NDArray[np.object_] = column[rows]
            return selected

        def numbers(name: str) -> NDArray[np.float64]:
            column: NDArray[np.float64] = np.asarray(table.column(name).to_pylist(), np.float64)
            selected: NDArray[np.float64] = column[rows]
            return selected

        self._kind, self._outcome = texts("kind"), texts("outcome")
        self._node, self._role = texts("node"), texts("role")
        self._time, self._lower, self._upper = numbers("time_s"), numbers("lower_ms"), numbers("upper_ms")
        # They were written as they were seen; neighbours in time resemble each other.
        order = np.argsort(self._time, kind="stable")
        for name in ("_kind", "_outcome", "_node", "_role", "_time", "_lower", "_upper"):
            setattr(self, name, getattr(self, name)[order])

    @property
    def nodes(self) -> list[str]:
        """The read-only endpoints that were looked at."""
        # A marker whose commit failed is a sample of the endpoint that takes writes.
        return sorted(set(self._node[self._role == "ro"].tolist()))

    def _inside(self, phases: Sequence[Phase]) -> NDArray[np.bool_]:
        """Select the samples of some phases."""
        inside = np.zeros(len(self._time), bool)
        for phase in phases:
            inside |= (self._time >= phase.start_s) & (self._time <= phase.end_s)
        return inside

    def failed(self, phases: Sequence[Phase]) -> dict[str, int]:
        """Count the markers that were not committed, by the error's class; ``missing`` were not sent in time."""
        bad = self._inside(phases) & np.isnan(self._lower)
        return dict(sorted(Counter(self._outcome[bad].tolist()).items()))

    def unseen(self, phases: Sequence[Phase]) -> dict[str, int]:
        """Count the markers that were not seen, by the read-only endpoint."""
        bad = self._inside(phases) & ~np.isnan(self._lower) & np.isnan(self._upper)
        return dict(sorted(Counter(self._node[bad].tolist()).items()))

    def _bounds(self, phases: Sequence[Phase], kind: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the bounds of the lags of a kind in some phases, in ms; the upper is NaN for what was not seen."""
        found = self._inside(phases) & (self._kind == kind) & ~np.isnan(self._lower)
        return self._lower[found], self._upper[found]

    def lags(self, phases: Sequence[Phase], kind: str) -> NDArray[np.float64]:
        """Return the lags, in ms, of the markers of a kind that were committed in some phases, in their order.

        In place of a lag that is known only to be at least so long stands the mean of those that are longer.
        """
        lower, upper = self._bounds(phases, kind)
        return expected(_middles(lower, upper), np.isnan(upper)) if len(lower) else lower

    def of(self, phases: Sequence[Phase], kind: str) -> LagSummary | None:
        """Sum up the markers of a kind that were committed in some phases."""
        lower, upper = self._bounds(phases, kind)
        lags, unseen = _middles(lower, upper), np.isnan(upper)
        if len(lags) == 0:
            return None
        widths = ((upper - lower) / 2)[~unseen]
        p50, p95, p99 = (lag_quantile(lags, unseen, share) for share in (0.5, 0.95, 0.99))
        return LagSummary(
            count=len(lags),
            unseen=len(lags) - len(widths),
            mean=float(expected(lags, unseen).mean()),
            p50=p50,
            p95=p95,
            p99=p99,
            max=float(lags.max()),
            half_width_p50=float(np.median(widths)) if len(widths) else 0.0,
            half_width_mean=float(widths.mean()) if len(widths) else 0.0,
        )


def lag_quantile(lags: NDArray[np.float64], unseen: NDArray[np.bool_], share: float) -> float:
    """Return a quantile of lags, some of which are known only to be at least so long."""
    if unseen.any():
        return Survival.of(lags, unseen).quantile(share)
    return float(np.quantile(lags, share))


def _middles(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take the middle of each lag's bounds; the lag of an unseen marker is at least the time of the search."""
    return np.where(np.isnan(upper), lower, (lower + upper) / 2)
