"""The common data of the report's sections: a run's phases, its measured points, its intervals as arrays."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.report.kit import told
from nephoscope.report.kit.charts import category
from nephoscope.report.kit.histograms import Buckets
from nephoscope.store.protocol import tenant_of
from nephoscope.tables.numbers import count, finite, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from nephoscope.store.protocol import RunReader, Selection

MEASURE = "measure"

# Errors by class stand in the columns from the first of these to the second.
_FIRST_CLASS, _LAST_CLASS = "serialization", "other"

_NOT_A_POINT = frozenset({"repetition"})
_NOT_SHOWN = frozenset({"repetition", "measure", "planned_s"})
"""Labels that every evaluator gives its phases; those of one alone are ``HIDDEN`` in its section."""


@dataclass(frozen=True)
class ShownPhase:
    """A phase of the run."""

    number: int
    name: str
    kind: str
    labels: Mapping[str, Any]
    start_s: float
    end_s: float

    @property
    def measured(self) -> bool:
        """Whether its figures count: warm-up, ramp-down and pauses do not."""
        return self.kind == MEASURE

    @property
    def mix(self) -> str:
        """The mix, or the pattern, that ran in it; empty if the evaluator named none."""
        return str(self.labels.get("mix") or self.labels.get("pattern") or "")

    @property
    def load(self) -> str:
        """The load and whatever else its labels say, in words."""
        return load_text({key: value for key, value in self.labels.items() if key not in ("mix", "pattern")})

    @property
    def repetition(self) -> int | None:
        """Which repetition it is."""
        given = finite(self.labels.get("repetition"))
        return None if given is None else round(given)

    @property
    def point(self) -> tuple[tuple[str, str], ...]:
        """The labels that its repetitions have in common."""
        return tuple(
            sorted((key, str(value)) for key, value in self.labels.items() if key not in _NOT_A_POINT)
        )

    @property
    def text(self) -> str:
        """All that names it, for a reader."""
        repetition = None if self.repetition is None else f"repetition {self.repetition}"
        parts = [part for part in (self.mix, self.load, repetition) if part]
        return " · ".join(parts) or self.name


@dataclass(frozen=True)
class ShownPoint:
    """A measured point: a mix at one load, with all its repetitions."""

    mix: str
    load: str
    concurrency: float | None
    rate: float | None
    phases: tuple[ShownPhase, ...]

    @property
    def offered(self) -> float | None:
        """The load as a number: sessions of a closed loop, arrivals per second of an open one."""
        return self.rate if self.concurrency is None else self.concurrency

    @property
    def is_step(self) -> bool:
        """Whether it is a step of the search for saturation: scores and headlines leave those out."""
        return bool(self.phases[0].labels.get("search"))

    @property
    def is_of_mix(self) -> bool:
        """Whether it measures a mix's throughput: not a pattern of load, a failure, or a load beside probes."""
        return not told.labels("NO_MIX") & {name for phase in self.phases for name in phase.labels}

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of its phases."""
        return frozenset(phase.number for phase in self.phases)

    @property
    def repetitions(self) -> int:
        """How often it was measured."""
        return len({phase.repetition for phase in self.phases})

    @property
    def name(self) -> str:
        """The name of the phase for the reader."""
        return self.mix or "all transactions"


def class_name(name: str) -> str:
    """Return a class of errors in words."""
    return {"serialization": "serialization failure", "read_only": "read-only"}.get(
        name, name.replace("_", " ")
    )


def load_text(labels: Mapping[str, Any]) -> str:
    """Labels in words: ``16 sessions``, ``2,000 per s``, ``slot 2``."""
    parts = []
    hidden = _NOT_SHOWN | told.labels("HIDDEN")
    for key, value in labels.items():
        if key in hidden or value is None:
            continue
        if key == "concurrency":
            parts.append(f"{count(value)} {'session' if value == 1 else 'sessions'}")
        elif key == "search":
            parts.append("step of the search")
        elif key == "rate":
            parts.append(f"{number(value)} per s" if finite(value) is not None else f"rate {value}")
        else:
            parts.append(f"{key} {value}")
    return " · ".join(parts)


class Intervals:
    """``intervals.parquet`` as arrays, one per column."""

    def __init__(self, table: pa.Table) -> None:
        """Take the table apart; columns that it lacks read as zeros."""
        self._table = table
        self.rows = table.num_rows
        self.start = self.floats("start_s")
        self.end = self.floats("end_s")
        self.phase = self.counts("phase")
        self.middle = (self.start + self.end) / 2

    def counts(self, column: str) -> NDArray[np.int64]:
        """Return a column of counts; null counts as zero."""
        return np.nan_to_num(self.floats(column)).astype(np.int64)

    def floats(self, column: str) -> NDArray[np.float64]:
        """Return a column of floats; null reads as NaN."""
        if column not in self._table.column_names:
            return np.zeros(self.rows)
        values = self._table.column(column).to_numpy(zero_copy_only=False)
        return np.asarray(values, dtype=np.float64)

    def strings(self, column: str) -> NDArray[np.str_]:
        """Return a column of names."""
        if column not in self._table.column_names:
            return np.full(self.rows, "", dtype=np.str_)
        return np.asarray([str(value) for value in self._table.column(column).to_pylist()], dtype=np.str_)

    @cached_property
    def error_classes(self) -> tuple[str, ...]:
        """The classes of errors that the store knows, in its order."""
        names = self._table.column_names
        if _FIRST_CLASS not in names or _LAST_CLASS not in names:
            return ()
        return tuple(names[names.index(_FIRST_CLASS) : names.index(_LAST_CLASS) + 1])

    @cached_property
    def transactions(self) -> NDArray[np.str_]:
        """The transaction of each row."""
        return self.strings("transaction")

    @cached_property
    def tenants(self) -> NDArray[np.str_]:
        """The tenant of each row."""
        return self.strings("tenant")

    def among(self, phases: Iterable[int]) -> NDArray[np.bool_]:
        """Which rows belong to these phases."""
        return np.isin(self.phase, list(phases))

    def total(self, column: str, where: NDArray[np.bool_] | None = None) -> int:
        """Return the sum of a column of counts."""
        values = self.counts(column)
        return int(values.sum() if where is None else values[where].sum())

    @cached_property
    def length_s(self) -> float:
        """The length of a whole interval; 1 s if there are none. The last one of a phase may be shorter."""
        return round(float((self.end - self.start).max()), 3) if self.rows else 1.0


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct names, in the order of their first appearance."""
    return tuple(dict.fromkeys(names))


class Run:
    """A run as the sections see it."""

    def __init__(self, reader: RunReader) -> None:
        """Read the data that every section needs, once."""
        self.reader = reader
        self.manifest: Mapping[str, Any] = reader.manifest
        self.scores: Mapping[str, Any] = reader.scores or {}
        self.events: Sequence[Mapping[str, Any]] = reader.events
        self.intervals = Intervals(reader.intervals)
        self.phases = _phases(self.events, self.intervals)
        self._merged: dict[Selection, Buckets] = {}

    def histogram(self, selection: Selection) -> Buckets:
        """Return the selected histograms, added up; sections that ask for the same share the answer."""
        if selection not in self._merged:
            self._merged[selection] = Buckets(self.reader.histogram(selection))
        return self._merged[selection]

    def events_of(self, *kinds: str) -> list[Mapping[str, Any]]:
        """Return the events of these kinds."""
        return [event for event in self.events if event.get("event") in kinds]

    def table(self, *path: str) -> Mapping[str, Any]:
        """Return a table of the manifest, such as ``table("load")``; empty if it is absent or no table."""
        found: Any = self.manifest
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}

    @cached_property
    def measures(self) -> list[Mapping[str, Any]]:
        """The entries of ``[[measure]]`` of the resolved study; none if it cannot be read."""
        try:
            entries = tomllib.loads(self.reader.study).get("measure")
        except tomllib.TOMLDecodeError:
            return []
        return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []

    @cached_property
    def end_s(self) -> float:
        """When the load ended."""
        return max((phase.end_s for phase in self.phases), default=0.0)

    @cached_property
    def counted(self) -> tuple[ShownPhase, ...]:
        """The phases whose figures count; of a run without a measured one (it was cut short), all of them."""
        return tuple(phase for phase in self.phases if phase.measured) or self.phases

    @cached_property
    def nothing_measured(self) -> bool:
        """Whether the run ended before its first measured phase."""
        return not any(phase.measured for phase in self.phases)

    @cached_property
    def points(self) -> tuple[ShownPoint, ...]:
        """The measured points, in the order in which they were first measured."""
        found: dict[tuple[tuple[str, str], ...], list[ShownPhase]] = {}
        for phase in self.counted:
            found.setdefault(phase.point, []).append(phase)
        return tuple(
            ShownPoint(
                mix=phases[0].mix,
                load=phases[0].load,
                concurrency=finite(phases[0].labels.get("concurrency")),
                rate=finite(phases[0].labels.get("rate")),
                phases=tuple(phases),
            )
            for phases in found.values()
        )

    def points_of(self, mix: str, *, steps: bool = False) -> list[ShownPoint]:
        """Return a mix's points, without (or only) the steps of a search."""
        return [point for point in self.points if point.name == mix and point.is_step == steps]

    @cached_property
    def mixes(self) -> tuple[str, ...]:
        """The mixes, in the order in which they were measured."""
        return in_order(point.name for point in self.points)

    @cached_property
    def transactions(self) -> tuple[str, ...]:
        """The transactions' names, in the order of the store."""
        return in_order(str(name) for name in self.intervals.transactions)

    @cached_property
    def tenants(self) -> tuple[str, ...]:
        """The tenants' names, in the order of the store."""
        return in_order(str(name) for name in self.intervals.tenants)

    @property
    def part_of_load(self) -> str:
        """What the names in ``tenants`` are: tenants, or streams of one."""
        return "tenant" if all(tenant_of(name) == name for name in self.tenants) else "stream"

    def mix_color(self, mix: str) -> str:
        """Return the colour of a mix: the same wherever it appears."""
        return category(self.mixes.index(mix))[0] if mix in self.mixes else "muted"

    def phase_at(self, time_s: float) -> ShownPhase | None:
        """Return the phase in which something happened."""
        return next((phase for phase in self.phases if phase.start_s <= time_s < phase.end_s), None)


def _phases(events: Sequence[Mapping[str, Any]], intervals: Intervals) -> tuple[ShownPhase, ...]:
    """Return the phases.

    One lasts until the next begins, the last until the end (or until the last interval, if the run was
    killed).
    """
    begun = [event for event in events if event.get("event") == "phase"]
    if not begun:
        begun = [
            {"phase": int(number), "time_s": float(intervals.start[intervals.phase == number].min())}
            for number in np.unique(intervals.phase)
        ]
    last = float(intervals.end.max()) if intervals.rows else 0.0
    ends = [finite(event.get("time_s")) or 0.0 for event in events if event.get("event") == "end"]
    starts = [finite(event.get("time_s")) or 0.0 for event in begun]
    limits = [*starts[1:], max([last, *ends, *starts])][: len(starts)]
    return tuple(
        ShownPhase(
            number=round(finite(event.get("phase")) or 0),
            name=str(event.get("name") or f"phase {event.get('phase')}"),
            kind=str(event.get("kind") or MEASURE),
            labels=event.get("labels") or {},
            start_s=start,
            end_s=end,
        )
        for event, start, end in zip(begun, starts, limits, strict=True)
    )
