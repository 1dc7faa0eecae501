"""Reading a run directory: also one whose run was killed."""

from __future__ import annotations

import contextlib
import json
from bisect import bisect_right
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.files import check_regular, open_regular, read_regular
from nephoscope.store.fitting import check_names, fitting, has_long_text
from nephoscope.store.layout import (
    CHECKS,
    FILES,
    FORMAT,
    INTERVALS,
    LATER,
    LIMITS,
    MOST_ROWS,
    MOST_TABLE_BYTES,
    PROBES,
    SYSTEM,
    fits,
    optional_columns,
    table_of,
)
from nephoscope.store.protocol import ALL, Phase, Selection
from nephoscope.store.schema import (
    MOST_NAME,
    MOST_SECONDS,
    Manifest,
    Refused,
    check_event,
    is_time,
    parsed,
    validate,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_TAG_PARTS = 4
_LINE_PARTS = 5


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
    """Read a file of JSON lines; a last line that was cut off, or one that is damaged, is left out.

    Raises ``InputError`` for what is no file of a run directory.
    """
    with _refusing(path), _opened(path) as file:
        return [row for line in file if isinstance(row := _row(line), dict)] if file else []


def _row(line: bytes) -> object:
    try:
        return json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None


def journal_table(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a journal as a table; rows that were damaged are left out."""
    try:
        later = {name: value for name, value in LATER.items() if name in schema.names}
        rows = [{**later, **row} for row in read_journal(path)]
        table = table_of([row for row in rows if fits(row, schema)], schema)
        return table.filter(pa.array(fitting(table, optional_columns(schema))))
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | None]:
    """Open a file of a run directory, which may be missing: then it is None."""
    try:
        path.lstat()
    except FileNotFoundError:
        yield None
    else:
        with open_regular(path, LIMITS[path.name], links=False) as file:
            yield file


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn errors into an ``InputError`` that names the file."""
    try:
        yield
    except (OSError, Refused, pa.ArrowException) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> InputError:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    reason = next(iter(said.splitlines()), type(error).__name__)
    return InputError(f"{path} cannot be read: {reason}")


def _read_table(file: BinaryIO, schema: pa.Schema) -> pa.Table:
    """Read a Parquet table in batches: its size does not tell how much memory it takes."""
    texts = [field.name for field in schema if field.type == pa.string()]
    # As dictionaries: a long text that is in every row is held once.
    parquet = pq.ParquetFile(file, read_dictionary=texts, memory_map=False)
    found = parquet.schema_arrow
    held = [name for name in schema.names if name in found.names or name not in LATER]
    if missing := [name for name in held if name not in found.names]:
        raise Refused(f"it has no column {missing[0]}")
    if nested := [name for name in held if pa.types.is_nested(found.field(name).type)]:
        raise Refused(f"its column {nested[0]} is no column of single values")
    if parquet.metadata.num_rows > MOST_ROWS:
        raise Refused(f"it has more than {MOST_ROWS:,} rows")
    pieces, size, rows = [], 0, 0
    for batch in parquet.iter_batches(columns=held):
        if has_long_text(batch):
            raise Refused(f"a name has more than {MOST_NAME:,} characters")
        pieces.append(_completed(pa.Table.from_batches([batch]), schema))
        size, rows = size + pieces[-1].nbytes, rows + batch.num_rows
        if size > MOST_TABLE_BYTES or rows > MOST_ROWS:
            raise Refused(f"it takes more than {MOST_TABLE_BYTES // 2**20:,} MiB, or {MOST_ROWS:,} rows")
    table = pa.concat_tables(pieces) if pieces else schema.empty_table()
    if not fitting(table, optional_columns(schema)).all():
        raise Refused("a row holds what no run writes: a null, a number beyond all measure, or a long name")
    check_names(table)
    return table


def _completed(piece: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give a batch the columns of its schema, including those of later formats."""
    for name in [name for name in schema.names if name not in piece.column_names]:
        piece = piece.append_column(name, pa.array([LATER[name]] * piece.num_rows, schema.field(name).type))
    return piece.select(schema.names).cast(schema)


class StoredRun:
    """A run directory, read. Implements what the report needs (``nephoscope.report.RunReader``)."""

    def __init__(self, folder: Path) -> None:
        """Open a run directory. Raises ``InputError`` if it is none, or one of a later format."""
        self.folder = folder.resolve()
        try:
            content = read_regular(folder / FILES.manifest, LIMITS[FILES.manifest], links=False)
            manifest = parsed(content)
        except OSError as error:
            raise InputError(f"{folder} is no run directory: {FILES.manifest}: {error.strerror}") from None
        except Refused as error:
            raise InputError(f"{folder} is no run directory: {FILES.manifest}: {error}") from None
        except ValueError:
            raise InputError(f"{folder} is no run directory: {FILES.manifest} is not JSON") from None
        if not isinstance(manifest, dict) or type(manifest.get("format")) is not int:
            raise InputError(f"{folder} is no run directory: {FILES.manifest} has no format")
        if manifest["format"] > FORMAT:
            raise InputError(f"{folder} was written by a later nephoscope (format {manifest['format']})")
        with _refusing(self.folder / FILES.manifest):
            validate(Manifest, manifest)
        self._check_files()
        self.was_killed = manifest["status"] in ("running", "killed")
        if manifest["status"] == "running":
            manifest["status"] = "killed"
            manifest["reason"] = "the run has no end: it was killed, or is still going on"
        self._manifest: dict[str, Any] = manifest

    def _check_files(self) -> None:
        """Refuse links, pipes and the like under the names of a run's files, whether they would be read or not."""
        for name in vars(FILES).values():
            with _refusing(self.folder / name):
                check_regular(self.folder / name)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def manifest(self) -> Mapping[str, Any]:
        """``manifest.json``; a run without an end has the status ``killed``."""
        return self._manifest

    @property
    def inputs(self) -> Mapping[str, Any] | None:
        """What the run keeps of its workload and its price books; None of a run that an older nephoscope wrote."""
        return self._manifest.get("inputs")

    def scored(self, scores: Mapping[str, Any]) -> StoredRun:
        """Return the same run with other scores than those that are stored."""
        other = copy(self)
        other.__dict__["scores"] = scores
        return other

    @cached_property
    def study(self) -> str:
        """``study.toml`` as text; empty if there is none."""
        return self._read(FILES.study).decode(errors="replace")

    @cached_property
    def scores(self) -> Mapping[str, Any] | None:
        """``scores.json``, or None if there is none that can be read."""
        try:
            scores = parsed(self._read(FILES.scores))
        except ValueError:
            return None
        return scores if isinstance(scores, dict) else None

    def _read(self, name: str) -> bytes:
        with _refusing(self.folder / name), _opened(self.folder / name) as file:
            return file.read() if file else b""

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

    @cached_property
    def checks(self) -> pa.Table:
        """``checks.parquet``, or its journal as the same table; without rows where nothing was checked."""
        return self._table(FILES.checks, FILES.check_journal, CHECKS)

    def _table(self, name: str, journal: str, schema: pa.Schema) -> pa.Table:
        path = self.folder / name
        try:
            with _refusing(path), _opened(path) as file:
                if file is not None:
                    return _read_table(file, schema)
        except (KeyError, ValueError, TypeError) as error:
            raise _unreadable(path, error) from None
        return journal_table(self.folder / journal, schema)

    @cached_property
    def events(self) -> Sequence[Mapping[str, Any]]:
        """``events.jsonl``; lines that a killed run has damaged are left out, and of another run they are refused."""
        path = self.folder / FILES.events
        rows: list[Mapping[str, Any]] = []
        phase = (-1, -MOST_SECONDS)
        for row in read_journal(path):
            try:
                check_event(row)
                if _is_phase(row):
                    phase = _after(phase, row)
            except Refused as error:
                if not self.was_killed:
                    raise InputError(f"{path} cannot be read: event {len(rows) + 1}: {error}") from None
            else:
                rows.append(row)
        return rows

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
            # Events have whole microseconds: the end is the same before the next phase has begun and afterwards.
            end = after[0] if after else round(bounds.get(number, (start, start))[1], 6)
            labels = event.get("labels") or {}
            phases.append(Phase(number, str(event.get("name")), str(event.get("kind")), labels, start, end))
        return sorted(phases, key=lambda phase: phase.number)

    # --- histograms -----------------------------------------------------------------------------------------

    @cached_property
    def _entries(self) -> list[_Entry]:
        path = self.folder / FILES.histograms
        with _refusing(path), _opened(path) as file:
            entries = []
            for number, line in enumerate(file or (), 1):
                if (entry := _entry(line.decode(errors="replace"))) is not None:
                    entries.append(entry)
                elif line.startswith(b"Tag=") and not self.was_killed:
                    raise Refused(f"line {number} is no histogram")
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
            if (histogram := self._histogram(entry)) is not None:
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
        self, windows: Sequence[tuple[float, float]], percentiles: Sequence[float], selection: Selection = ALL
    ) -> Sequence[Sequence[float | None]]:
        """Return percentiles in ns for each window of time, of the selected histograms added up."""
        return [
            [float(total.quantile(p / 100)) if total and total.count else None for p in percentiles]
            for total in self.merged_by_window(windows, selection)
        ]

    def histograms(
        self, windows: Sequence[tuple[float, float]], selection: Selection = ALL
    ) -> Sequence[Sequence[tuple[int, int]]]:
        """Return the selected histograms of each window of time as buckets; windows as for `percentiles`."""
        return [total.buckets() if total else [] for total in self.merged_by_window(windows, selection)]

    def merged_by_window(
        self, windows: Sequence[tuple[float, float]], selection: Selection
    ) -> list[_engine.Histogram | None]:
        """Add up the selected histograms of each window of time; windows as for `percentiles`."""
        sums: list[_engine.Histogram | None] = [None] * len(windows)
        starts = [start for start, _ in windows]
        for entry in self._selected(selection):
            place = bisect_right(starts, entry.middle_s) - 1
            inside = place >= 0 and entry.middle_s < windows[place][1]
            if not inside or (histogram := self._histogram(entry)) is None:
                continue
            if (known := sums[place]) is None:
                sums[place] = histogram
            else:
                known.add(histogram)
        return sums

    def _histogram(self, entry: _Entry) -> _engine.Histogram | None:
        """Decode a histogram; one that a killed run has damaged is left out, and of another run it is refused."""
        try:
            return _engine.Histogram.decode(entry.encoded)
        except ValueError as error:
            if self.was_killed:
                return None
            raise _unreadable(self.folder / FILES.histograms, error) from None

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


def _is_phase(event: Mapping[str, Any]) -> bool:
    return bool(event["event"] == "phase")


def _after(last: tuple[int, float], event: Mapping[str, Any]) -> tuple[int, float]:
    """Return a phase's number and time. Raises `Refused` where it does not come after the last one."""
    number, time_s = event["phase"], float(event["time_s"])
    if number <= last[0] or time_s < last[1]:
        raise Refused(f"phase {number} at {time_s:g} s does not come after the one before it")
    return number, time_s


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
    if not (is_time(start) and is_time(length)):
        return None
    return _Entry(start, length, tag[0], tag[1], tag[2], tag[3], parts[4])
