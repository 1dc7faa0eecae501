"""The tables of described runs: a few that are shown, and in files all that the pictures are drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.statistics import quantile_rank
from nephoscope.storage.corpus import FOREGROUND, OPERATIONS
from nephoscope.storage.describing import (
    BOTH,
    HIGH_BURSTINESS,
    HOT_SHARE,
    MEDIUM_BURSTINESS,
    burst_of,
    by_segment,
    by_size,
    hot_and_cold,
    of_stream,
    streams_of,
)
from nephoscope.storage.features import READ, STREAMS, WRITE
from nephoscope.storage.reuse import cached_operations
from nephoscope.tables.columns import number, text, whole
from nephoscope.tables.model import Column, Table, figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.describing import DescribedRun
    from nephoscope.storage.reuse import MissRatioCurve
    from nephoscope.tables.model import Row

SYNC = OPERATIONS.index("sync")
PERCENTILES = (50, 95, 99)
CACHES = (0.01, 0.1, 0.5)
"""Sizes of a cache that are shown, as shares of the pages that are touched."""


def tables_of(runs: Sequence[DescribedRun]) -> list[Table]:
    """Make all tables of some runs, of one corpus or of several."""
    several = len({run.corpus for run in runs}) > 1
    return [
        _intensity(runs, several),
        _skew(runs, several),
        _processes(runs, several),
        _caches(runs, several),
        *_in_files(runs),
    ]


def notes_of(runs: Sequence[DescribedRun]) -> list[str]:
    """Define the words of the tables."""
    notes = [
        f"Hot segments are the fewest that take {HOT_SHARE:.0%} of the reads and writes; the others are cold.",
        (
            "Burstiness goes by the excess variation, sqrt(variance - mean) / mean of the requests a second: "
            f"low below {MEDIUM_BURSTINESS}, high from {HIGH_BURSTINESS}; Poisson arrivals have 0, and dispersion 1."
        ),
    ]
    curves = [curve for run in runs for curve in run.curves.values()]
    if curves:
        what = " or ".join(
            sorted({" and ".join(f"{name}s" for name in cached_operations(run.view)) for run in runs})
        )
        notes.append(
            f"Miss ratios are those of an LRU cache with pages of {curves[0].page_bytes} bytes, of {what}."
        )
    if any(run.view == "log" for run in runs):
        notes.append("In the view `log`, writes are redo: they belong to no page, and go through no cache.")
    if sampled := sum(not curve.is_exact for curve in curves):
        notes.append(f"{sampled} of {len(curves)} miss-ratio curves are of a sample of the pages.")
    return notes


def _of_run(run: DescribedRun, stream: str | None = None) -> Row:
    row: Row = {"corpus": run.corpus, "run": run.run.run}
    return row if stream is None else {**row, "stream": stream}


def _keys(several: bool, *, stream: bool = True) -> list[Column]:  # noqa: FBT001 - every caller has computed it
    keys = [
        text("corpus", "The corpus, as the user called it.", "corpus" if several else ""),
        whole("run", "The number of the run in its corpus.", "run"),
    ]
    told = "foreground, whose client waits; background, the server's own processes; or both."
    return [*keys, text("stream", told, "stream")] if stream else keys


def _intensity(runs: Sequence[DescribedRun], several: bool) -> Table:  # noqa: FBT001
    rows = [
        {**_of_run(run, stream), **_intensity_of(run, stream)} for run in runs for stream in streams_of(run)
    ]
    known = [row for row in rows if row["tps"] is not None]
    columns = [
        *_keys(several),
        text(
            "mix",
            "The mix of transactions; empty for a trace.",
            "mix" if any(row["mix"] for row in rows) else "",
        ),
        number("target_tps", "Transactions a second that were asked for.", "", ",.0f"),
        number("tps", "Transactions a second that ended.", "TPS" if known else "", ",.0f"),
        number("requests_per_s", "Reads and writes a second, mean.", "requests/s", ",.1f"),
        number(
            "requests_per_s_deviation",
            "The standard deviation of reads and writes by second.",
            "± dev.",
            ",.1f",
        ),
        number("requests_per_s_low", "The fewest reads and writes in a second."),
        number("requests_per_s_high", "The most reads and writes in a second."),
        text("range", "The fewest … the most reads and writes in a second.", "range"),
        number("dispersion", "The index of dispersion: variance over mean.", "dispersion", ".3g"),
        number("autocorrelation", "At a lag of one second.", "lag-1", ".2f"),
        number(
            "excess_variation",
            "sqrt(variance - mean) / mean, of reads and writes by second.",
            "excess",
            ".2f",
        ),
        text(
            "burstiness",
            f"low below {MEDIUM_BURSTINESS} of excess, high from {HIGH_BURSTINESS}.",
            "burstiness",
        ),
    ]
    return Table("storage_intensity", "Intensity", columns, rows)


def _intensity_of(run: DescribedRun, stream: str) -> Row:
    burst = burst_of(of_stream(run.features.y, stream))
    transactions = run.features.x
    return {
        "mix": run.run.mix,
        "target_tps": run.run.target_tps,
        "tps": float(transactions.sum() / run.run.seconds) if transactions.any() else None,
        "requests_per_s": burst.mean,
        "requests_per_s_deviation": burst.deviation,
        "requests_per_s_low": burst.low,
        "requests_per_s_high": burst.high,
        "range": f"{burst.low:,.0f} … {burst.high:,.0f}",
        "dispersion": burst.dispersion,
        "autocorrelation": burst.autocorrelation,
        "excess_variation": burst.excess,
        "burstiness": burst.word,
    }


def _skew(runs: Sequence[DescribedRun], several: bool) -> Table:  # noqa: FBT001
    rows = [{**_of_run(run, stream), **skew_of(run, stream)} for run in runs for stream in streams_of(run)]
    columns = [
        *_keys(several),
        whole("reads", "Reads."),
        whole("writes", "Writes."),
        number("read_share", "Reads per read or write.", "reads", ".1%"),
        whole("hot_segments", f"The fewest segments that take {HOT_SHARE:.0%} of the requests."),
        whole("cold_segments", "The other segments with requests."),
        text("hot_cold", "Hot segments : cold segments.", "hot : cold"),
        number("write_bytes_mean", "The mean size of a write in bytes.", "mean write", ",.0f", " B"),
        whole("write_bytes_largest", "The largest write in bytes.", "largest, B"),
        number("syncs_per_s", "Requests for durability (fsync) a second.", "syncs/s", ",.2f"),
    ]
    return Table("storage_skew", "Reads and writes, segments, sizes", columns, rows)


def skew_of(run: DescribedRun, stream: str) -> Row:
    """Return what a stream reads and writes, and where."""
    reads, writes, syncs = (int(of_stream(run.counts, stream)[place].sum()) for place in (READ, WRITE, SYNC))
    written = sum(
        taken.bytes for taken in run.taken if taken.operation == "write" and _is_of(taken.process, stream)
    )
    segments = np.array([both.sum() for both in by_segment(run, stream).values()])
    hot, cold = hot_and_cold(segments)
    largest = max(run.largest_write) if stream == BOTH else run.largest_write[STREAMS.index(stream)]
    return {
        "reads": reads,
        "writes": writes,
        "read_share": reads / (reads + writes) if reads + writes else None,
        "hot_segments": hot,
        "cold_segments": cold,
        "hot_cold": f"{hot} : {cold}",
        "write_bytes_mean": written / writes if writes else None,
        "write_bytes_largest": largest if writes else None,
        "syncs_per_s": syncs / run.run.seconds,
    }


def _is_of(process: str, stream: str) -> bool:
    return stream == BOTH or (process in FOREGROUND) == (stream == STREAMS[0])


def _processes(runs: Sequence[DescribedRun], several: bool) -> Table:  # noqa: FBT001
    rows = [
        {
            **_of_run(run),
            "process": taken.process,
            "operation": taken.operation,
            "requests": taken.requests,
            "requests_per_s": taken.requests / run.run.seconds,
            "bytes": taken.bytes,
            **_latency_of(taken.latency_us),
        }
        for run in runs
        for taken in run.taken
    ]
    is_known = any(row["latency_known"] for row in rows)
    columns = [
        *_keys(several, stream=False),
        text("process", "The kind of process that made the requests.", "process"),
        text("operation", "What the requests asked for.", "operation"),
        whole("requests", "Requests."),
        number("requests_per_s", "Requests a second, mean.", "requests/s", ",.2f"),
        Column("bytes", "whole", "Their bytes.", "MB", lambda row: f"{row['bytes'] / 1e6:,.1f}"),
        whole("latency_known", "Requests of which the latency is known."),
        number("latency_mean_us", "Their mean latency in µs."),
        *(
            number(
                f"latency_p{p}_us",
                f"The p{p} of the latency in µs.",
                f"p{p}" if is_known else "",
                ",.0f",
                " µs",
            )
            for p in PERCENTILES
        ),
        number("latency_max_us", "The longest latency in µs.", "longest" if is_known else "", ",.0f", " µs"),
    ]
    return Table("storage_processes", "Requests by process", columns, rows)


def _latency_of(known: NDArray[np.float32]) -> Row:
    """Return the mean and percentiles of sorted latencies."""
    row: Row = {"latency_known": len(known)}
    if not len(known):
        return row
    row |= {f"latency_p{p}_us": float(known[quantile_rank(p / 100, len(known)) - 1]) for p in PERCENTILES}
    return row | {"latency_mean_us": float(known.mean(dtype=float)), "latency_max_us": float(known[-1])}


def _caches(runs: Sequence[DescribedRun], several: bool) -> Table:  # noqa: FBT001
    rows = [
        {**_of_run(run, stream), **_cache_of(curve)} for run in runs for stream, curve in run.curves.items()
    ]
    columns = [
        *_keys(several),
        Column("touched_bytes", "number", "The pages touched, in bytes.", "touched", _touched),
        whole("accesses", "Accesses to pages."),
        *(
            number(
                f"miss_ratio_{share:g}",
                f"With a cache of {share:.0%} of them.",
                f"cache of {share:.0%}",
                ".1%",
            )
            for share in CACHES
        ),
        number("miss_ratio_1", "With a cache that holds them all: first accesses.", "of all", ".1%"),
        number(
            "sampled_share",
            "The share of pages that were counted.",
            "sampled" if _is_sampled(runs) else "",
            ".2%",
        ),
        number(
            "standard_error",
            "The largest standard error on the curve that the sampling adds.",
            "error" if _is_sampled(runs) else "",
            ".4f",
        ),
    ]
    return Table("storage_caches", "Miss ratios of an LRU cache", columns, rows)


def _is_sampled(runs: Sequence[DescribedRun]) -> bool:
    return any(not curve.is_exact for run in runs for curve in run.curves.values())


def _touched(row: Row) -> str:
    return f"{figure(row['touched_bytes'] / 2**20)} MiB"


def _cache_of(curve: MissRatioCurve) -> Row:
    sizes = np.log2(curve.cache_bytes)
    touched = curve.pages * curve.page_bytes

    def at(share: float) -> float | None:
        size = share * touched
        if not curve.cache_bytes[0] <= size:
            return None
        return float(np.interp(np.log2(size), sizes, curve.miss_ratio))

    return {
        "touched_bytes": touched,
        "accesses": curve.accesses,
        **{f"miss_ratio_{share:g}": at(share) for share in CACHES},
        "miss_ratio_1": float(curve.miss_ratio[-1]),
        "sampled_share": curve.rate,
        "standard_error": float(curve.standard_error.max()),
    }


def _in_files(runs: Sequence[DescribedRun]) -> Iterator[Table]:
    """Make the tables that are too long to be shown."""
    keys = _keys(several=True)
    segment = [whole("segment", "The number of the segment."), text("name", "What it is called.")]
    size = whole("size_kb", "The size in KB, rounded up; 0 are the reads.")
    requests = whole("requests", "Reads and writes.")
    each = [(run, stream) for run in runs for stream in streams_of(run)]
    counted = [whole(name, f"Requests of this operation: {name}.") for name in OPERATIONS]
    second = whole("second", "The second of the run, from 0.")
    yield _file("storage_seconds", [*keys, second, *counted], _seconds(each))
    of_type = [text("type", "The type of transaction."), whole("count", "Those that ended in the second.")]
    yield _file("storage_transactions", [*keys[:2], second, *of_type], _transactions(runs))
    both = [whole("reads", "Reads."), whole("writes", "Writes.")]
    yield _file("storage_segments", [*keys, *segment, *both], _segments(each))
    yield _file("storage_sizes", [*keys, size, requests], _sizes(each))
    yield _file("storage_cells", [*keys, *segment, size, requests], _cells(each))
    curve = [
        whole("cache_bytes", "The size of the cache in bytes."),
        number("miss_ratio", "Misses per access to a page, first accesses among them."),
        number("standard_error", "What the sampling of pages adds."),
    ]
    yield _file("storage_curves", [*keys, *curve], _curve_points(runs))


def _file(name: str, columns: Sequence[Column], rows: Iterator[Row]) -> Table:
    hidden = [Column(column.name, column.kind, column.meaning) for column in columns]
    return Table(name, "", hidden, list(rows), in_summary=False)


def _seconds(each: Sequence[tuple[DescribedRun, str]]) -> Iterator[Row]:
    for run, stream in each:
        for second, counts in enumerate(of_stream(run.counts, stream).T.tolist()):
            yield {**_of_run(run, stream), "second": second, **dict(zip(OPERATIONS, counts, strict=True))}


def _transactions(runs: Sequence[DescribedRun]) -> Iterator[Row]:
    for run in runs:
        for name, counts in zip(run.features.types, run.features.x.tolist(), strict=True):
            for second, count in enumerate(counts):
                yield {**_of_run(run), "second": second, "type": name, "count": int(count)}


def _segments(each: Sequence[tuple[DescribedRun, str]]) -> Iterator[Row]:
    for run, stream in each:
        for segment, (reads, writes) in by_segment(run, stream).items():
            row = {
                "segment": segment,
                "name": run.names.get(segment),
                "reads": int(reads),
                "writes": int(writes),
            }
            yield {**_of_run(run, stream), **row}


def _sizes(each: Sequence[tuple[DescribedRun, str]]) -> Iterator[Row]:
    for run, stream in each:
        for size, requests in by_size(run, stream).items():
            yield {**_of_run(run, stream), "size_kb": size, "requests": int(requests)}


def _cells(each: Sequence[tuple[DescribedRun, str]]) -> Iterator[Row]:
    for run, stream in each:
        for cell, requests in zip(
            run.features.cells, of_stream(run.features.z, stream).tolist(), strict=True
        ):
            if requests:
                named: dict[str, Any] = {"segment": cell.segment, "name": run.names.get(cell.segment)}
                yield {**_of_run(run, stream), **named, "size_kb": cell.size_kb, "requests": int(requests)}


def _curve_points(runs: Sequence[DescribedRun]) -> Iterator[Row]:
    for run in runs:
        for stream, curve in run.curves.items():
            columns = (curve.cache_bytes, curve.miss_ratio, curve.standard_error)
            for size, ratio, error in zip(*(column.tolist() for column in columns), strict=True):
                yield {
                    **_of_run(run, stream),
                    "cache_bytes": size,
                    "miss_ratio": ratio,
                    "standard_error": error,
                }
