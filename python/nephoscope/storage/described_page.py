"""The view of the page of ``nephoscope storage describe``: one run, or two side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope import __version__
from nephoscope.report.kit.charts import BarChart, HeatChart, TimeAxis, TimeChart, XYChart, category
from nephoscope.report.kit.parts import Grid, Part, grid
from nephoscope.storage import pictures
from nephoscope.storage.pictures import Side
from nephoscope.tables.numbers import count, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.storage.describing import DescribedRun
    from nephoscope.tables.model import Table

TEMPLATE = "nephoscope.storage/described.html.j2"
"""The page's template, as ``report.page.render_with`` takes it."""

FACTS = ("View", "Mix", "Target TPS", "TPS", "Seconds", "Requests", "Segments")


class DrawnRun(Part):
    """A run as the page introduces it."""

    name: str
    color: str
    facts: tuple[str, ...]


class StorageView(Part):
    """The page."""

    title: str
    runs: tuple[DrawnRun, ...]
    facts: tuple[str, ...] = FACTS
    axis: TimeAxis
    timelines: tuple[TimeChart, ...]
    skew: tuple[BarChart, ...]
    sizes: tuple[BarChart, ...]
    heat: tuple[HeatChart, ...]
    caches: tuple[XYChart, ...]
    latencies: tuple[XYChart, ...]
    tables: tuple[Grid, ...]
    notes: tuple[str, ...]
    generator: str


def build(runs: Sequence[DescribedRun], tables: Sequence[Table], notes: Sequence[str]) -> StorageView:
    """Compute the page of one run or two, with tables of these."""
    names = _names(runs)
    sides = [Side.of_run(run, name) for run, name in zip(runs, names, strict=True)]
    transactions = pictures.transactions(sides)
    requests = pictures.timeline(sides, slider=transactions is None)
    caches, latencies = pictures.miss_ratios(sides), pictures.tails(sides)
    return StorageView(
        title=" and ".join(names),
        runs=tuple(_drawn(at, name, run) for at, (name, run) in enumerate(zip(names, runs, strict=True))),
        axis=TimeAxis(start_s=0, end_s=max(run.run.seconds for run in runs)),
        timelines=(requests,) if transactions is None else (requests, transactions),
        skew=tuple(pictures.by_segment(sides, reads=reads) for reads in (True, False)),
        sizes=(pictures.by_size(sides),),
        heat=tuple(pictures.heat_maps(sides)),
        caches=() if caches is None else (caches,),
        latencies=() if latencies is None else (latencies,),
        tables=tuple(grid(table) for table in tables if table.shown),
        notes=tuple(notes),
        generator=f"nephoscope {__version__}",
    )


def _names(runs: Sequence[DescribedRun]) -> list[str]:
    """Name the runs by their corpora, with their folders where two are called alike."""
    names = [f"{Path(run.corpus).name}, run {run.run.run}" for run in runs]
    if len(set(names)) < len(names):
        names = [f"{run.corpus}, run {run.run.run}" for run in runs]
    return names if len(set(names)) == len(names) else [f"{name} ({at})" for at, name in enumerate(names, 1)]


def _drawn(at: int, name: str, run: DescribedRun) -> DrawnRun:
    made, found = run.run, run.features
    tps = found.x.sum() / made.seconds if found.x.any() else None
    facts = (
        run.view,
        made.mix or "–",  # noqa: RUF001 - a dash for what is absent
        number(made.target_tps),
        number(None if tps is None else float(tps)),
        count(made.seconds),
        count(float(found.y.sum())),
        count(len({cell.segment for cell in found.cells})),
    )
    return DrawnRun(name=name, color=category(at)[0], facts=facts)
