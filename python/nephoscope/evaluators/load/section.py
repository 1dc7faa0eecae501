"""What each stream of a load did in each phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.report.kit import scored
from nephoscope.report.kit.charts import category
from nephoscope.report.kit.parts import Estimate, Number, Part
from nephoscope.tables.numbers import finite, number, plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.report.kit.run import Run

PLACE, ANCHOR, LABEL = 15, "streams", "Streams"
HIDDEN = {"streams"}


class StreamRow(Part):
    """A stream in a phase."""

    name: str
    color: str
    mix: str
    level: str
    tps: Estimate
    p50_ms: Number = None
    p99_ms: Number = None


class StreamPhase(Part):
    """A phase with its streams."""

    name: str
    rows: tuple[StreamRow, ...]


class StreamsSection(Part):
    """Loads side by side on the same data."""

    statement: str
    phases: tuple[StreamPhase, ...]


def build(run: Run) -> StreamsSection | None:
    """Return the section; None where no load had streams."""
    phases: dict[str, list[Mapping[str, Any]]] = {}
    for entry in scored.entries(run, "load").values():
        for stream in map(scored.table, scored.sequence(entry.get("streams"))):
            phases.setdefault(str(stream.get("phase")), []).append(stream)
    if not phases:
        return None
    built = tuple(_phase(streams) for streams in phases.values())
    most = max(built, key=lambda phase: len(phase.rows))
    rates = ", ".join(f"{row.name} ({row.mix}) {number(row.tps.value)}" for row in most.rows)
    return StreamsSection(statement=f"TPS of each stream in {most.name}: {rates}.", phases=built)


def _phase(streams: Sequence[Mapping[str, Any]]) -> StreamPhase:
    repetition = scored.whole(streams[0].get("repetition")) or 1
    name = str(streams[0].get("name"))
    rows = tuple(_row(place, stream) for place, stream in enumerate(streams))
    return StreamPhase(name=name if repetition == 1 else f"{name}, repetition {repetition}", rows=rows)


def _row(place: int, stream: Mapping[str, Any]) -> StreamRow:
    latency = scored.table(stream.get("latency_ms"))
    sessions, rate = finite(stream.get("concurrency")), finite(stream.get("rate"))
    return StreamRow(
        name=str(stream.get("stream")),
        color=category(place)[0],
        mix=str(stream.get("mix")),
        level=f"c = {plain(sessions)}" if sessions is not None else f"{plain(rate)}/s",
        tps=Estimate(value=finite(stream.get("tps")), ci95=scored.ci95(stream.get("ci95"))),
        p50_ms=finite(latency.get("p50")),
        p99_ms=finite(latency.get("p99")),
    )
