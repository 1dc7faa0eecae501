"""The cells of a stored grid: what was asked for and what was reached."""

from __future__ import annotations

from nephoscope.evaluators.base import Measurements
from nephoscope.evaluators.points import read_points
from nephoscope.evaluators.stored import Stored  # noqa: TC001
from nephoscope.scoring.formulas import Absent

_KEPT = 0.95


def read_cells(stored: Stored) -> Measurements:
    """Read the points; warn of cells in which the system did not keep up with the rate."""
    read = read_points(stored, None)
    behind = [
        f"mix {point.mix}, replicate {point.repetition}: {point.tps:.4g} TPS of the {point.rate:g} asked for"
        for point in read.points
        if point.rate and point.tps < _KEPT * point.rate
    ]
    reason = "a grid of loads is no measurement of productivity; the evaluator throughput is"
    return Measurements(
        scores={"P": Absent(reason=reason)},
        points=read.points,
        warnings=[*read.warnings, *behind],
        shortfalls=read.shortfalls,
    )
