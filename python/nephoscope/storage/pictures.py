"""Pictures of what a storage tier sees: one run, or two on shared axes (CDSBen's Figures 3 to 5, 10 and 11).

A captured run, a generated one and a forecast are drawn alike: each is a :class:`Side`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nephoscope.report.kit.buckets import MOST_POINTS, bucket_length
from nephoscope.report.kit.charts import (
    Axis,
    BarChart,
    Bars,
    HeatChart,
    Line,
    TimeChart,
    TimeLine,
    XYChart,
    category,
    transaction_look,
)
from nephoscope.report.kit.histograms import Buckets
from nephoscope.storage.describing import BOTH, HOT_SHARE, burst_of, hot_and_cold
from nephoscope.storage.distances import named_cells, named_divergence
from nephoscope.storage.features import STREAMS
from nephoscope.tables.numbers import number, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.report.kit.charts import Dash
    from nephoscope.storage.describing import DescribedRun
    from nephoscope.storage.features import Cell, Features
    from nephoscope.storage.forecast import Forecast
    from nephoscope.storage.reuse import MissRatioCurve

MOST_ROWS = 40
"""The most segments that have a row of their own; the coldest share one."""
MOST_COLUMNS = 24
"""The most sizes that have a column of their own; more are drawn in ranges."""
DECADES = 4
"""How far below the largest share the colours reach."""
_OTHERS = " others"


@dataclass(frozen=True)
class Side:
    """A run that is drawn: S seconds, T transaction types, C cells."""

    name: str
    y: NDArray[np.float64]
    """Reads and writes a second, by stream: (2, S)."""
    cells: Sequence[Cell]
    z: NDArray[np.float64]
    """Requests in each cell, or their probabilities, by stream: (2, C)."""
    names: Mapping[int, str]
    """What segments are called; two sides share a segment by its name."""
    types: Sequence[str] = ()
    x: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    """Transactions that ended, by type and second: (T, S)."""
    curves: Mapping[str, MissRatioCurve] = field(default_factory=dict)
    """Miss-ratio curves by stream."""
    latencies_us: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """Known latencies by what has them, such as ``read, backend``."""

    @classmethod
    def of_run(cls, run: DescribedRun, name: str) -> Self:
        """Draw a run that was described."""
        latencies = {
            f"{taken.operation}, {taken.process}": taken.latency_us
            for taken in run.taken
            if len(taken.latency_us)
        }
        made = cls.of_features(run.features, run.names, name)
        return cls(**{**vars(made), "curves": run.curves, "latencies_us": latencies})

    @classmethod
    def of_features(cls, run: Features, names: Mapping[int, str], name: str) -> Self:
        """Draw what models see of a run."""
        return cls(name, run.y, run.cells, run.z, names, run.types, run.x)

    @classmethod
    def of_forecast(cls, forecast: Forecast, names: Mapping[int, str], name: str) -> Self:
        """Draw what a model foretells."""
        y = forecast.counts.astype(float)
        return cls(name, y, forecast.cells, forecast.weights * y.sum(axis=1, keepdims=True), names)

    def segment_name(self, segment: int) -> str:
        """Return what a segment is called."""
        return self.names.get(segment, f"segment {segment}")


def timeline(sides: Sequence[Side], *, slider: bool = False) -> TimeChart:
    """Draw reads and writes a second by stream (Figures 3, 5a, 10a, 11a)."""
    length, middles = _buckets(sides)
    lines = []
    said = []
    for at, side in enumerate(sides):
        for place, stream in enumerate(STREAMS):
            if not side.y[place].any():
                continue
            color = category(at if len(sides) > 1 else place)[0]
            y = _means(side.y[place], length, len(middles))
            dash: Dash = "dashed" if place and len(sides) > 1 else "solid"
            lines.append(TimeLine(name=_labelled(sides, side, stream), color=color, dash=dash, y=y))
            burst = burst_of(side.y[place])
            word = f", burstiness {burst.word}" if burst.word else ""
            told = f"{number(burst.mean, 3)} ± {number(burst.deviation, 3)} a second{word}"
            said.append(f"{_labelled(sides, side, stream)} {told}")
    return TimeChart(
        id="storage-timeline",
        title="Requests",
        unit="reads and writes a second",
        message=f"Mean and standard deviation: {'; '.join(said)}." if said else "There is none.",
        note="" if length == 1 else f"Each point is the mean of {length} seconds.",
        x=tuple(middles),
        lines=tuple(lines),
        slider=slider,
    )


def transactions(sides: Sequence[Side]) -> TimeChart | None:
    """Draw the transactions a second by type; None where none is known."""
    length, middles = _buckets(sides)
    lines = []
    for at, side in enumerate(sides):
        for place, (name, x) in enumerate(zip(side.types, side.x, strict=True)):
            color = transaction_look(place)[0]
            y = _means(x, length, len(middles))
            dash = "dashed" if at else transaction_look(place)[1]
            lines.append(TimeLine(name=_labelled(sides, side, name), color=color, dash=dash, y=y))
    if not lines:
        return None
    means = [f"{side.name} {number(float(side.x.sum(axis=0).mean()))}" for side in sides if side.x.size]
    return TimeChart(
        id="storage-transactions",
        title="Transactions",
        unit="per second",
        message=f"Transactions that ended a second: {', '.join(means)}.",
        x=tuple(middles),
        lines=tuple(lines),
        style="stack" if len(sides) == 1 else "lines",
        size="medium",
        slider=True,
    )


def by_segment(sides: Sequence[Side], *, reads: bool) -> BarChart:
    """Draw reads, or writes, by segment (Figures 4a, 4b), in the rows of :func:`heat_maps`."""
    rows, row_of = _rows(sides)
    what = "reads" if reads else "writes"
    series = []
    said = []
    for at, side in enumerate(sides):
        counts: dict[int, float] = {}
        by_row = np.zeros(len(rows))
        for cell, requests in _requests(side):
            if (cell.size_kb == 0) == reads:
                by_row[row_of(side, cell)] += requests
                counts[cell.segment] = counts.get(cell.segment, 0.0) + requests
        values = by_row / max(by_row.sum(), 1e-300) * 100
        series.append(Bars(name=side.name, color=category(at)[0], values=tuple(values.tolist())))
        hot, cold = hot_and_cold(np.array(list(counts.values())))
        said.append(
            f"{side.name}: {hot} of {hot + cold} segments take {HOT_SHARE:.0%} of the {what}" if hot else ""
        )
    return BarChart(
        id=f"storage-{what}-by-segment",
        title=f"{what.capitalize()} by segment",
        unit=f"% of the {what}",
        message=_joined(said) or f"There are no {what}.",
        names=tuple(rows),
        series=tuple(series),
        flat=True,
    )


def by_size(sides: Sequence[Side]) -> BarChart:
    """Draw the writes by the size of their buffer (Figure 4c)."""
    labels, column_of = _columns(sides, reads=False)
    series = []
    said = []
    for at, side in enumerate(sides):
        counts = np.zeros(len(labels))
        weighted = 0.0
        for cell, requests in _requests(side):
            if cell.size_kb:
                counts[column_of(cell.size_kb)] += requests
                weighted += requests * cell.size_kb
        total = float(counts.sum())
        series.append(
            Bars(
                name=side.name,
                color=category(at)[0],
                values=tuple((counts / max(total, 1e-300) * 100).tolist()),
            )
        )
        said.append(f"{side.name}: {number(weighted / total, 3)} KB on average" if total else "")
    return BarChart(
        id="storage-sizes",
        title="Writes by size",
        unit="% of the writes",
        message=_joined(said) or "There are no writes.",
        note="Sizes are rounded up to whole KB.",
        names=tuple(labels),
        names_title="size in KB",
        series=tuple(series),
    )


def heat_maps(sides: Sequence[Side]) -> list[HeatChart]:
    """Draw segments by sizes (Figures 4d, 10, 11): a map for each side, and of two their difference.

    All have the same rows, columns and colours: shares of each side's requests.
    """
    rows, row_of = _rows(sides)
    labels, column_of = _columns(sides, reads=True)
    shares = []
    for side in sides:
        share = np.zeros((len(labels), len(rows)))
        for cell, requests in _requests(side):
            share[column_of(cell.size_kb), row_of(side, cell)] += requests
        shares.append(share / max(share.sum(), 1e-300) * 100)
    alone = _alone(rows)
    high = max(float(share[:, :alone].max(initial=0)) for share in shares) or 1.0
    common: dict[str, Any] = {"columns": tuple(labels), "columns_title": "size in KB", "rows": tuple(rows)}
    charts = [
        HeatChart(
            id=f"storage-heat-{at}",
            title=side.name,
            unit="% of the requests",
            message=_told_of_heat(share, rows, labels),
            note=_folded(rows),
            cells=_drawn(share),
            low=high / 10**DECADES,
            high=high,
            ticks=_decades(high),
            **common,
        )
        for at, (side, share) in enumerate(zip(sides, shares, strict=True))
    ]
    return charts if len(sides) == 1 else [*charts, _difference(sides, shares, common)]


def miss_ratios(sides: Sequence[Side]) -> XYChart | None:
    """Draw the miss ratios of an LRU cache by its size; None where none is known."""
    lines = []
    said = []
    streams = (*STREAMS, BOTH) if len(sides) == 1 else (BOTH, *STREAMS)
    for at, side in enumerate(sides):
        known = [stream for stream in streams if stream in side.curves]
        for place, stream in enumerate(known if len(sides) == 1 else known[:1]):
            curve = side.curves[stream]
            size = (curve.cache_bytes / 2**20).tolist()
            line = Line(
                name=side.name if len(sides) > 1 else stream,
                color=category(at if len(sides) > 1 else place)[0],
                data=tuple(zip(size, (curve.miss_ratio * 100).tolist(), strict=True)),
            )
            lines.append(line)
            touched = curve.pages * curve.page_bytes / 2**20
            end = percent(float(curve.miss_ratio[-1]))
            error = (
                ""
                if curve.is_exact
                else f" (standard error up to {number(float(curve.standard_error.max()), 2)})"
            )
            said.append(f"{line.name}: {number(touched)} MiB touched, {end} first accesses{error}")
    if not lines:
        return None
    pages = next(iter(next(side for side in sides if side.curves).curves.values())).page_bytes
    return XYChart(
        id="storage-miss-ratios",
        title="Miss ratio of an LRU cache",
        unit="% of the accesses to pages",
        message=_joined(said),
        note=f"Pages of {pages:,} bytes.",
        x=Axis(title="Size of the cache", unit="MiB", scale="log10"),
        y=Axis(title="miss ratio", unit="%", low=0, high=100),
        lines=tuple(lines),
    )


def tails(sides: Sequence[Side]) -> XYChart | None:
    """Draw the tails of the latencies of reads, writes and syncs; None where no latency is known."""
    lines = []
    said = []
    for at, side in enumerate(sides):
        for place, (what, latencies) in enumerate(side.latencies_us.items()):
            values, counts = np.unique(np.round(latencies.astype(float) * 1000), return_counts=True)
            buckets = Buckets(list(zip(values.astype(int).tolist(), counts.tolist(), strict=True)))
            color, dash = category(place)
            name = _labelled(sides, side, what)
            data = tuple((x, max(ms * 1000, 0.001)) for x, ms in buckets.tail())
            lines.append(Line(name=name, color=color, dash="dashed" if at else dash, data=data))
            said.append(f"{name} {number((buckets.at(99) or 0.0) * 1000, 3)} µs")
    if not lines:
        return None
    return XYChart(
        id="storage-latencies",
        title="Latency of requests",
        unit="µs",
        message=f"The 99th percentiles: {', '.join(said)}.",
        x=Axis(title="Percentile", scale="percentile"),
        y=Axis(title="latency", unit="µs", scale="log10"),
        lines=tuple(lines),
    )


def _told(sides: Sequence[Side]) -> str:
    apart = named_divergence(*(named_cells(side.cells, side.z.sum(axis=0), side.names) for side in sides[:2]))
    return "" if apart is None else f"; Kullback-Leibler divergence {number(apart, 3)} nats"


def _labelled(sides: Sequence[Side], side: Side, what: str) -> str:
    return what if len(sides) == 1 else f"{side.name}: {what}"


def _joined(said: Sequence[str]) -> str:
    told = "; ".join(part for part in said if part)
    return f"{told}." if told else ""


def _buckets(sides: Sequence[Side]) -> tuple[int, list[float]]:
    """Return the seconds that a point stands for, and the middles of the points."""
    seconds = max(side.y.shape[1] for side in sides)
    length = int(bucket_length(seconds, 1.0, MOST_POINTS))
    return length, [start + length / 2 for start in range(0, seconds, length)]


def _means(values: NDArray[np.float64], length: int, points: int) -> tuple[float | None, ...]:
    means = [float(values[at : at + length].mean()) for at in range(0, len(values), length)]
    return (*means, *[None] * (points - len(means)))


def _requests(side: Side) -> list[tuple[Cell, float]]:
    return list(zip(side.cells, side.z.sum(axis=0).tolist(), strict=True))


def _rows(sides: Sequence[Side]) -> tuple[list[str], Callable[[Side, Cell], int]]:
    """Return the names of the rows, the hottest segment first, and which row a cell is in."""
    shares: dict[str, float] = {}
    for side in sides:
        total = max(float(side.z.sum()), 1e-300)
        for cell, requests in _requests(side):
            name = side.segment_name(cell.segment)
            shares[name] = shares.get(name, 0.0) + requests / total
    ordered = sorted(
        (name for name, share in shares.items() if share > 0), key=lambda name: (-shares[name], name)
    )
    is_folded = len(ordered) > MOST_ROWS
    rows = ordered[: MOST_ROWS - 1] if is_folded else ordered
    places = {name: at for at, name in enumerate(rows)}
    if is_folded:
        rows = [*rows, f"{len(ordered) - len(rows):,}{_OTHERS}"]
    return rows, lambda side, cell: places.get(side.segment_name(cell.segment), len(rows) - 1)


def _folded(rows: Sequence[str]) -> str:
    """Say what the last row is, where it stands for several segments."""
    said = (
        "The coldest segments share the last row; the scale is made for the others. "
        if _is_folded(rows)
        else ""
    )
    return f"{said}Segments are sorted by their requests. An empty cell has none."


def _columns(sides: Sequence[Side], *, reads: bool) -> tuple[list[str], Callable[[int], int]]:
    """Return the labels of the columns of sizes, and which column a size in KB is in."""
    found = {cell.size_kb for side in sides for cell, requests in _requests(side) if requests}
    written = sorted(found - {0})
    uppers = written
    if len(written) > MOST_COLUMNS:
        # Two ranges to a factor of two.
        uppers = [1, 2, 3, 4]
        while uppers[-1] < written[-1]:
            uppers.append(uppers[-2] * 2)
    lowers = [0, *uppers][: len(uppers)]
    labels = [
        str(high) if uppers is written or high == low + 1 else f"{low + 1}–{high}"  # noqa: RUF001 - a range
        for low, high in zip(lowers, uppers, strict=True)
    ]
    if not reads:
        return labels, lambda size: int(np.searchsorted(uppers, size))
    has_reads = int(0 in found)
    return [
        "read"
    ] * has_reads + labels, lambda size: int(np.searchsorted(uppers, size)) + has_reads if size else 0


def _drawn(values: NDArray[np.float64]) -> tuple[tuple[int, int, float], ...]:
    return tuple(
        (int(column), int(row), float(values[column, row]))
        for column, row in zip(*np.nonzero(values), strict=True)
    )


def _alone(rows: Sequence[str]) -> int:
    """Return how many rows stand for a segment of their own: the scale of the colours is made for these."""
    return len(rows) - int(_is_folded(rows))


def _is_folded(rows: Sequence[str]) -> bool:
    return len(rows) == MOST_ROWS and rows[-1].endswith(_OTHERS)


def _decades(high: float) -> tuple[tuple[float, str], ...]:
    labels = [number(high / 10 ** (DECADES - n), 2) for n in range(DECADES + 1)]
    return tuple((n / DECADES, label if n < DECADES else f"{label} %") for n, label in enumerate(labels))


def _told_of_heat(share: NDArray[np.float64], rows: Sequence[str], labels: Sequence[str]) -> str:
    share = share[:, : _alone(rows)]
    if not share.any():
        return "There are no requests."
    column, row = divmod(int(share.argmax()), share.shape[1])
    what = "reads" if labels[column] == "read" else f"writes of {labels[column]} KB"
    return f"The most are {what} in {rows[row]}: {number(float(share[column, row]), 3)} % of the requests."


def _difference(
    sides: Sequence[Side], shares: Sequence[NDArray[np.float64]], common: Mapping[str, Any]
) -> HeatChart:
    apart = shares[1] - shares[0]
    most = float(np.abs(apart[:, : _alone(common["rows"])]).max(initial=0)) or 1.0
    moved = float(np.abs(apart).sum()) / 2
    one, other = (side.name for side in sides[:2])
    return HeatChart(
        id="storage-heat-difference",
        title="Difference",
        unit="percentage points",
        message=f"{number(moved, 3)} % of the requests are in other cells ({one} against {other}){_told(sides)}.",
        note=f"More in {other} on the right of the scale, more in {one} on the left.",
        cells=_drawn(apart),
        scale="difference",
        low=-most,
        high=most,
        ticks=tuple((n / 2, f"{number(most * (n - 1), 2)}") for n in range(3)),
        **common,
    )
