"""Writing a run directory while the run goes on."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow.parquet as pq

from nephoscope.errors import MeasurementError
from nephoscope.files import append_to, replacing
from nephoscope.store.layout import CHECKS, FILES, FORMAT, HISTOGRAM_HEADER, INTERVALS, PROBES, SYSTEM
from nephoscope.store.reader import journal_table
from nephoscope.store.schema import Manifest, Refused, check_event, parsed, validate
from nephoscope.store.wallclock import WallClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_HISTOGRAMS = {
    "latency": ("latency", "latency_max_ms"),
    "service": ("service", "service_max_ms"),
    "failed": ("failed_latency", "failed_latency_max_ms"),
    "censored": ("censored", "censored_max_ms"),
    "lateness": ("lateness", "lateness_max_ms"),
}
"""The kinds of histograms, and what a series calls each and its maximum."""
_SERIES_ONLY = frozenset({key for keys in _HISTOGRAMS.values() for key in keys} - {"latency_max_ms"})
"""What a series brings that goes to ``histograms`` and not into the table."""


class RunWriter:
    """Writes a run while it goes on, line by line: a killed run keeps all but its last interval.

    May be used from several threads. Every failure to write is a ``MeasurementError``.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any], study: str) -> None:
        """Begin a run in an empty folder."""
        self.folder = folder
        self.clock = WallClock()
        self._lock = threading.Lock()
        self._files: dict[str, TextIO] = {}
        self.manifest: dict[str, Any] = {"format": FORMAT, "status": "running", "reason": None, **manifest}
        self._write_whole(FILES.study, study)
        self.write_manifest()
        self._append(FILES.histograms, HISTOGRAM_HEADER)

    def write_manifest(self, **changes: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        """Write ``manifest.json`` anew, with changes to its top-level keys."""
        self.manifest.update(changes)
        text = json.dumps(self.manifest, indent=2, ensure_ascii=False) + "\n"
        with _readable(FILES.manifest):
            validate(Manifest, parsed(text))
        self._write_whole(FILES.manifest, text)

    def interval(self, record: Mapping[str, Any]) -> None:
        """Add an interval as the engine gives it: its rows, its histograms, the client's metrics."""
        start, end = record["start_s"], record["end_s"]
        rows, histograms = [], []
        for series in record["series"]:
            row = {"phase": record["phase"], "start_s": start, "end_s": end, **series}
            tag = "|".join((series["tenant"], series["role"], series["transaction"]))
            for kind, (key, most) in _HISTOGRAMS.items():
                if encoded := row.get(key):
                    place = f"{start:.6f},{end - start:.6f},{series[most]:.3f}"
                    histograms.append(f"Tag={kind}|{tag},{place},{encoded}\n")
            for key in _SERIES_ONLY:
                row.pop(key, None)
            rows.append(json.dumps(row) + "\n")
        # Histograms first: a run killed in between has an extra one, which no reader selects.
        self._append(FILES.histograms, "".join(histograms))
        self._append(FILES.interval_journal, "".join(rows))

    def event(self, time_s: float, event: str, **facts: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        """Add an event. Raises ``MeasurementError`` for one that could not be read again."""
        line = json.dumps({"time_s": round(time_s, 6), "event": event, **facts}, ensure_ascii=False)
        if event != "error":  # the engine's own, and there may be thousands
            with _readable(f"the event {event}"):
                check_event(json.loads(line))
        self._append(FILES.events, line + "\n")

    def metrics(self, time_s: float, source: str, values: Iterable[tuple[str, float]]) -> None:
        """Add metrics of the client, the host or a server."""
        lines = [
            json.dumps({"time_s": round(time_s, 6), "source": source, "metric": metric, "value": value})
            + "\n"
            for metric, value in values
        ]
        self._append(FILES.system_journal, "".join(lines))

    def probes(self, lines: str) -> None:
        """Add samples of probes, as the engine gives them: lines of JSON."""
        self._append(FILES.probe_journal, lines)

    def checks(self, lines: str) -> None:
        """Add what probes' checks have come to, as the engine gives it: lines of JSON."""
        self._append(FILES.check_journal, lines)

    def text(self, name: str, content: str) -> None:
        """Write a whole file: the scores, the report."""
        self._write_whole(name, content)

    def finish(self, status: str, reason: str | None, totals: Mapping[str, Any] | None = None) -> None:
        """End the run: the journals become tables, the manifest says how it ended."""
        self.close()
        seal(self.folder)
        clock = {**self.manifest.get("clock", {}), "finished": self.clock.now().isoformat()}
        self.write_manifest(status=status, reason=reason, clock=clock, totals=dict(totals or {}))

    def close(self) -> None:
        """Close the journals; what is written afterwards opens them again."""
        with self._lock:
            for file in self._files.values():
                with contextlib.suppress(OSError):  # what could not be written was told when it was tried
                    file.close()
            self._files.clear()

    def _append(self, name: str, text: str) -> None:
        if not text:
            return
        with self._lock:
            try:
                file = self._files.get(name)
                if file is None:
                    file = self._files[name] = append_to(self.folder / name)
                file.write(text)
                file.flush()
                # Else a run whose folder was deleted would fail only at its end.
                if not os.fstat(file.fileno()).st_nlink:
                    raise FileNotFoundError(errno.ENOENT, "deleted")
            except OSError as error:
                raise _cannot(self.folder / name, error) from None

    def _write_whole(self, name: str, text: str) -> None:
        write_whole(self.folder / name, text)


@contextlib.contextmanager
def _readable(what: str) -> Iterator[None]:
    """Refuse to write what the reader would refuse: third parties' evaluators and providers write events, too."""
    try:
        yield
    except Refused as error:
        raise MeasurementError(f"{what} cannot be kept in the run: {error}") from None


def write_whole(path: Path, text: str) -> None:
    """Write a file in one step: a reader finds the old content or the new one."""
    try:
        with replacing(path) as file:
            file.write(text.encode(errors="replace"))
    except OSError as error:
        raise _cannot(path, error) from None


def seal(folder: Path) -> None:
    """Turn the journals of a run into its tables."""
    for journal, name, schema in (
        (FILES.interval_journal, FILES.intervals, INTERVALS),
        (FILES.system_journal, FILES.system, SYSTEM),
        (FILES.probe_journal, FILES.probes, PROBES),
        (FILES.check_journal, FILES.checks, CHECKS),
    ):
        path = folder / name
        # Not every run has probes.
        if not (folder / journal).exists() and (path.exists() or schema in (PROBES, CHECKS)):
            continue
        try:
            with replacing(path) as file:
                pq.write_table(journal_table(folder / journal, schema), file, compression="zstd")
            (folder / journal).unlink(missing_ok=True)
        except OSError as error:
            raise _cannot(path, error) from None


def _cannot(path: Path, error: OSError) -> MeasurementError:
    # By its number: Parquet's own words for it are long.
    why = os.strerror(error.errno) if error.errno else error
    return MeasurementError(f"{path} cannot be written: {why}")
