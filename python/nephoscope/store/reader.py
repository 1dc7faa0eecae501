"""Reading a run directory: also one whose run was killed."""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.report.reader import ALL, Selection
from nephoscope.store.layout import FILES, FORMAT, INTERVALS, PROBES, SYSTEM, fits, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_TAG_PARTS = 4
_LINE_PARTS = 5
_ENDLESS = 1e12
"""No run takes so many seconds."""


@dataclass(frozen=True)
class Phase:
    """A phase of a run, as its event and its intervals tell it."""

    number: int
    name: str
    kind: str
    labels: Mapping[str, Any]
    start_s: float
    end_s: float


@dataclass(frozen=True)
class _Entry:
    """A line of ``histograms``."""

    start_s: float
    length_s: float
    kind: str
    tenant: str
    role: str
    transaction: str
    encoded: str

    @property
    def middle_s(self) -> float:
        return self.start_s + self.length_s / 2


def read_journal(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines; a last line that was cut off, or one that is damaged, is left out."""
    rows = []
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(row, dict):
                    rows.append(row)
    except OSError:
        return []
    return rows


def journal_table(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a journal as a table; rows that were damaged are left out."""
    try:
        return table_of([row for row in read_journal(path) if fits(row, schema)], schema)
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return InputError(f"{path} cannot be read: {reason}")


class StoredRun:
    """A run directory, read. Implements what the report needs (``nephoscope.report.RunReader``)."""

    def __init__(self, folder: Path) -> None:
        """Open a run directory. Raises ``InputError`` if it is none, or one of a later format."""
        self.folder = folder.resolve()
        try:
            manifest = json.loads((folder / FILES.manifest).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{folder} is no run directory: {FILES.manifest}: {error.strerror}") from None
        except (ValueError, RecursionError):
            raise InputError(f"{folder} is no run directory: {FILES.manifest} is not JSON") from None
        if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
            raise InputError(f"{folder} is no run directory: {FILES.manifest} has no format")
        if manifest["format"] > FORMAT:
            raise InputError(f"{folder} was written by a later nephoscope (format {manifest['format']})")
        if manifest.get("status") == "running":
            manifest["status"] = "killed"
            manifest["reason"] = "the run has no end: it was killed, or is still going on"
        self._manifest: dict[str, Any] = manifest

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def manifest(self) -> Mapping[str, Any]:
        """``manifest.json``; a run without an end has the status ``killed``."""
        return self._manifest

    @cached_property
    def study(self) -> str:
        """``study.toml`` as text."""
        try:
            return str((self.folder / FILES.study).read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return ""

    @cached_property
    def scores(self) -> Mapping[str, Any] | None:
        """``scores.json``, or None if there is none."""
        try:
            scores = json.loads((self.folder / FILES.scores).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        return scores if isinstance(scores, dict) else None

    @cached_property
    def intervals(self) -> pa.Table:
        """``intervals.parquet``, or its journal as the same table."""
        return self._table(FILES.intervals, FILES.interval_journal, INTERVALS)

    @cached_property
    def system_metrics(self) -> pa.Table:
        """``system.parquet``, or its journal as the same table."""
        return self._table(FILES.system, FILES.system_journal, SYSTEM)

    @cached_property
    def probes(self) -> pa.Table:
        """``probes.parquet``, or its journal as the same table; without rows where there were no probes."""
        return self._table(FILES.probes, FILES.probe_journal, PROBES)

    def _table(self, name: str, journal: str, schema: pa.Schema) -> pa.Table:
        path = self.folder / name
        if not path.exists():
            return journal_table(self.folder / journal, schema)
        try:
            return pq.read_table(path).select(schema.names).cast(schema)
        except (OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
            raise _unreadable(path, error) from None

    @cached_property
    def events(self) -> Sequence[Mapping[str, Any]]:
        """``events.jsonl``."""
        rows = read_journal(self.folder / FILES.events)
        return [row for row in rows if isinstance(row.get("event"), str) and _is_finite(row.get("time_s"))]

    @cached_property
    def phases(self) -> list[Phase]:
        """The phases that have intervals, in their order."""
        known = {event["phase"]: event for event in self.events if _is_phase(event)}
        bounds: dict[int, tuple[float, float]] = {}
        table = self.intervals
        columns = (table.column(name).to_pylist() for name in ("phase", "start_s", "end_s"))
        for number, start, end in zip(*columns, strict=True):
            if number is None or start is None or end is None:
                continue
            low, high = bounds.get(number, (start, end))
            bounds[number] = (min(low, start), max(high, end))
        # A phase in which nothing ended has no row: its events say when it was.
        starts = sorted(float(event["time_s"]) for event in known.values())
        phases = []
        for number, event in known.items():
            start = float(event["time_s"])
            after = [later for later in starts if later > start]
            end = after[0] if after else bounds.get(number, (start, start))[1]
            labels = event.get("labels") or {}
            phases.append(Phase(number, str(event.get("name")), str(event.get("kind")), labels, start, end))
        return sorted(phases, key=lambda phase: phase.number)

    # --- histograms -----------------------------------------------------------------------------------------

    @cached_property
    def _entries(self) -> list[_Entry]:
        entries = []
        try:
            with (self.folder / FILES.histograms).open(encoding="utf-8", errors="replace") as file:
                entries = [entry for line in file if (entry := _entry(line)) is not None]
        except OSError:
            return []
        return entries

    @cached_property
    def _bounds(self) -> tuple[list[float], list[int]]:
        """Starts and numbers of the phases, to find the phase of a time."""
        phases = sorted(self.phases, key=lambda phase: phase.start_s)
        return [phase.start_s for phase in phases], [phase.number for phase in phases]

    def _phase_at(self, time_s: float) -> int | None:
        starts, numbers = self._bounds
        place = bisect_right(starts, time_s)
        return numbers[place - 1] if place else None

    @cached_property
    def _decoded(self) -> dict[tuple[int | None, str, str, str, str], _engine.Histogram]:
        """The histograms of each phase and series, added up: what most selections are made of."""
        sums: dict[tuple[int | None, str, str, str, str], _engine.Histogram] = {}
        for entry in self._entries:
            key = (self._phase_at(entry.middle_s), entry.kind, entry.tenant, entry.role, entry.transaction)
            if (histogram := _decode(entry.encoded)) is not None:
                if key in sums:
                    sums[key].add(histogram)
                else:
                    sums[key] = histogram
        return sums

    def merged(self, selection: Selection = ALL) -> _engine.Histogram:
        """Add up the selected histograms."""
        total = _engine.Histogram()
        for (phase, kind, tenant, role, transaction), histogram in self._decoded.items():
            if (
                kind == selection.kind
                and (selection.phases is None or phase in selection.phases)
                and selection.tenant in (None, tenant)
                and selection.role in (None, role)
                and selection.transaction in (None, transaction)
            ):
                total.add(histogram)
        return total

    def histogram(self, selection: Selection = ALL) -> Sequence[tuple[int, int]]:
        """Return the selected histograms, added up, as buckets: (highest value in ns, count), ascending."""
        return self.merged(selection).buckets()

    def percentiles(
        self,
        windows: Sequence[tuple[float, float]],
        percentiles: Sequence[float],
        selection: Selection = ALL,
    ) -> Sequence[Sequence[float | None]]:
        """Return percentiles in ns for each window of time, of the selected histograms added up."""
        sums: list[_engine.Histogram | None] = [None] * len(windows)
        starts = [start for start, _ in windows]
        for entry in self._selected(selection):
            place = bisect_right(starts, entry.middle_s) - 1
            if place < 0 or entry.middle_s >= windows[place][1]:
                continue
            if (histogram := _decode(entry.encoded)) is None:
                continue
            if (known := sums[place]) is None:
                sums[place] = histogram
            else:
                known.add(histogram)
        return [
            [
                None if total is None or not total.count else float(total.quantile(p / 100))
                for p in percentiles
            ]
            for total in sums
        ]

    def _selected(self, selection: Selection) -> Iterator[_Entry]:
        for entry in self._entries:
            if (
                entry.kind == selection.kind
                and selection.tenant in (None, entry.tenant)
                and selection.role in (None, entry.role)
                and selection.transaction in (None, entry.transaction)
                and (selection.phases is None or self._phase_at(entry.middle_s) in selection.phases)
            ):
                yield entry


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _ENDLESS


def _is_phase(event: Mapping[str, Any]) -> bool:
    number, labels = event.get("phase"), event.get("labels")
    return event["event"] == "phase" and type(number) is int and isinstance(labels or {}, dict)


def _entry(line: str) -> _Entry | None:
    """Read a line of ``histograms``; None for comments, headings and what was cut off."""
    if not line.startswith("Tag=") or not line.endswith("\n"):
        return None
    parts = line.rstrip("\n").split(",")
    tag = parts[0].removeprefix("Tag=").split("|")
    if len(parts) != _LINE_PARTS or len(tag) != _TAG_PARTS:
        return None
    try:
        start, length = float(parts[1]), float(parts[2])
    except ValueError:
        return None
    if not (_is_finite(start) and _is_finite(length)):
        return None
    return _Entry(start, length, tag[0], tag[1], tag[2], tag[3], parts[4])


def _decode(encoded: str) -> _engine.Histogram | None:
    try:
        return _engine.Histogram.decode(encoded)
    except ValueError:
        return None
