"""How the figures of one described run differ from those of another: captured against generated, or two replicates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nephoscope.storage.described_tables import skew_of
from nephoscope.storage.describing import BOTH, burst_of, of_stream
from nephoscope.storage.distances import SMOOTHING, curve_distance, named_cells, named_divergence
from nephoscope.tables.columns import text
from nephoscope.tables.model import ABSENT, Column, Table, figure

if TYPE_CHECKING:
    from nephoscope.storage.describing import DescribedRun
    from nephoscope.tables.model import Row


def differences(one: DescribedRun, other: DescribedRun) -> Table:
    """Make the table of the differences, of both streams together; those of relative errors are ``other / one - 1``."""
    bursts = [burst_of(of_stream(run.features.y, BOTH)) for run in (one, other)]
    skews = [skew_of(run, BOTH) for run in (one, other)]
    rows = [
        _relative("requests/s, mean", bursts[0].mean, bursts[1].mean),
        _relative("requests/s, standard deviation", bursts[0].deviation, bursts[1].deviation),
        _ratio("index of dispersion", bursts[0].dispersion, bursts[1].dispersion),
        _apart("autocorrelation at lag 1", bursts[0].autocorrelation, bursts[1].autocorrelation),
        _relative("read share", skews[0]["read_share"], skews[1]["read_share"]),
        _relative("mean write, bytes", skews[0]["write_bytes_mean"], skews[1]["write_bytes_mean"]),
        _apart("hot segments", skews[0]["hot_segments"], skews[1]["hot_segments"]),
        _relative("syncs/s", skews[0]["syncs_per_s"], skews[1]["syncs_per_s"]),
        _of_cells(one, other),
        _of_curves(one, other),
    ]
    columns = [
        text("figure", "What is compared.", "figure"),
        Column("one", "number", "Of the first run.", "first", lambda row: _shown(row["one"])),
        Column("other", "number", "Of the second run.", "second", lambda row: _shown(row["other"])),
        Column("difference", "number", "How far apart they are.", "difference", _difference),
        text("kind", "How the difference is computed.", "computed as"),
    ]
    return Table("storage_differences", "The second run against the first", columns, rows)


def _shown(value: float | None) -> str:
    return ABSENT if value is None else figure(value)


def _difference(row: Row) -> str:
    value = row["difference"]
    if value is None:
        return ABSENT
    return f"{value:+.1%}" if row["kind"] == _RELATIVE else f"{value:+.3g}"


_RELATIVE = "second / first - 1"


def _row(name: str, one: float | None, other: float | None, difference: float | None, kind: str) -> Row:
    return {"figure": name, "one": one, "other": other, "difference": difference, "kind": kind}


def _relative(name: str, one: float | None, other: float | None) -> Row:
    known = one is not None and other is not None and one > 0
    return _row(name, one, other, other / one - 1 if known else None, _RELATIVE)  # type: ignore[operator]


def _apart(name: str, one: float | None, other: float | None) -> Row:
    known = one is not None and other is not None
    return _row(name, one, other, other - one if known else None, "second - first")  # type: ignore[operator]


def _ratio(name: str, one: float | None, other: float | None) -> Row:
    known = bool(one and other)
    difference = math.log(other / one) if known else None  # type: ignore[operator]
    return _row(name, one, other, difference, "log(second / first)")


def _of_cells(one: DescribedRun, other: DescribedRun) -> Row:
    """Compare Z, of both streams: a segment is the same where it is called the same."""
    cells = [
        named_cells(run.features.cells, of_stream(run.features.z, BOTH), run.names) for run in (one, other)
    ]
    apart = named_divergence(*cells)
    counts = [float(len(found)) for found in cells]
    return _row(
        "cells of segment and size", counts[0], counts[1], apart, f"K-L divergence, smoothing {SMOOTHING:g}"
    )


def _of_curves(one: DescribedRun, other: DescribedRun) -> Row:
    curves = [run.whole_curve for run in (one, other)]
    known = [curve for curve in curves if curve is not None]
    ends = [None if curve is None else float(curve.miss_ratio[-1]) for curve in curves]
    apart = curve_distance(known[0], known[1]) if len(known) == len(curves) else None
    return _row("miss-ratio curve (its end)", ends[0], ends[1], apart, "mean distance over log(size)")
