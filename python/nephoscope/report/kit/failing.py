"""What charts of failures share: the load's throughput, and the probes that were not served."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nephoscope.report.kit.charts import Line
from nephoscope.tables.numbers import finite

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nephoscope.report.kit.run import Run, ShownPhase

_MOST_STEPS = 600


def throughput(run: Run, phase: ShownPhase, zero_s: float) -> tuple[tuple[float, float], ...]:
    """Return the TPS of each interval of a phase over the time since ``zero_s``, as steps.

    An interval in which nothing ended has no row in the run, and is 0.
    """
    length = finite(run.table("load").get("interval_s")) or run.intervals.length_s
    length *= max(1, -(-round((phase.end_s - phase.start_s) / length) // _MOST_STEPS))
    steps = max(1, round((phase.end_s - phase.start_s) / length))
    rows = run.intervals.among({phase.number})
    places = ((run.intervals.middle[rows] - phase.start_s) / length).astype(int)
    committed = np.bincount(
        np.clip(places, 0, steps - 1), weights=run.intervals.counts("committed")[rows], minlength=steps
    )
    starts = phase.start_s - zero_s + np.arange(steps + 1) * length
    rates = [*(committed / length).tolist(), float(committed[-1] / length)]
    return tuple(zip(starts.tolist(), rates, strict=True))


def rugs(run: Run, role: str, phase: ShownPhase, *, zero_s: float, late_s: float) -> list[Line]:
    """Mark when a role's probes were due that failed or were missing, and those that were late, since ``zero_s``."""
    due, took, ok = _availability(run.reader.probes, role)
    inside = (due >= phase.start_s) & (due < phase.end_s)
    late = inside & ok & (took > late_s)
    named = (("probe failed", "problem", inside & ~ok), ("probe late", "c4", late))
    return [
        Line(name=name, color=color, style="rug", data=tuple((at - zero_s, 0.0) for at in due[rows].tolist()))
        for name, color, rows in named
        if rows.any()
    ]


def _availability(
    table: pa.Table, role: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return when a role's probes were due, how long they took, and whether they were served."""
    wanted = {"probe": "availability", "role": role}
    for name, value in wanted.items():
        table = table.filter(pc.equal(table.column(name), pa.scalar(value)))
    due, end = (table.column(name).to_numpy(zero_copy_only=False) for name in ("time_s", "end_s"))
    # One that was not sent has no end.
    took = np.nan_to_num(np.asarray(end, float) - np.asarray(due, float))
    return np.asarray(due, float), took, np.asarray(table.column("outcome").to_pylist(), str) == "ok"
