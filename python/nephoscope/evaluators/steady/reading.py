"""How a load should be measured, read from its repetitions in a stored run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.evaluators.client_metrics import ClientMetrics
from nephoscope.evaluators.connected import Connections
from nephoscope.evaluators.points import measured_phases, series_of
from nephoscope.statistics import plan_measurement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nephoscope.evaluators.connected import Shortfall
    from nephoscope.evaluators.steady.settings import SteadySettings
    from nephoscope.evaluators.stored import Stored

_MOST_VALUES = 200
"""So many values of the course are kept, each of several intervals where there are more."""


def read_plans(
    stored: Stored, settings: SteadySettings
) -> tuple[dict[str, dict[str, Any]], list[str], list[Shortfall]]:
    """Read a plan for each mix, warnings, and the phases whose sessions were not connected."""
    table = stored.run.intervals
    columns = {name: table.column(name).to_numpy() for name in ("phase", "start_s", "end_s", "committed")}
    connections = Connections(stored.run, ClientMetrics(stored.run))
    phases, warnings = measured_phases(stored.run, stored.index)
    shortfalls: list[Shortfall] = []
    mixes: dict[str, list[NDArray[np.float64]]] = {}
    for phase in phases:
        if (shortfall := connections.shortfall(phase)) is not None:
            shortfalls.append(shortfall)
            continue
        rates = series_of(columns, columns["phase"] == phase.number).rates(phase, stored.interval_s)
        mixes.setdefault(str(phase.labels.get("mix")), []).append(rates)
    found = {}
    for mix, series in mixes.items():
        if len(series) > 1 and (plan := _plan(series, settings, stored.interval_s)) is not None:
            found[mix] = plan
            if plan["warm_up_s"] is None:
                warnings.append(f"steady: {mix} had no steady part: a repetition must be longer")
        else:
            warnings.append(f"steady: {mix} has no two repetitions with commits that count")
    return found, warnings, shortfalls


def _plan(
    series: Sequence[NDArray[np.float64]], settings: SteadySettings, interval_s: float
) -> dict[str, Any] | None:
    plan = plan_measurement(series, settings.precision, settings.rest / interval_s)
    if plan is None:
        return None
    warm_up_s = None if plan.warm_up is None else plan.warm_up * interval_s
    window_s = plan.window * interval_s
    each_s = settings.rest + (warm_up_s or 0.0) + window_s
    return {
        "tps": plan.mean,
        "measured": len(series),
        "warm_up_s": warm_up_s,
        "window_s": window_s,
        "within": plan.within,
        "between": plan.between,
        "repetitions": plan.repetitions,
        "repetitions_at_most": plan.repetitions_at_most,
        "takes_s": None if plan.repetitions is None else plan.repetitions * each_s,
        "course": _course(series, interval_s),
    }


def _course(series: Sequence[NDArray[np.float64]], interval_s: float) -> dict[str, Any]:
    """Return the mean TPS of all repetitions over the time since their start, and the lowest and the highest."""
    length = min(map(len, series))
    together = -(-length // _MOST_VALUES)
    whole = length - length % together
    each = np.array([one[:whole].reshape(-1, together).mean(axis=1) for one in series])
    return {
        "step_s": together * interval_s,
        "mean": each.mean(axis=0).tolist(),
        "low": each.min(axis=0).tolist(),
        "high": each.max(axis=0).tolist(),
    }
