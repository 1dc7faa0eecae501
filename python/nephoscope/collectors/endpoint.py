"""Metrics of another machine or program, from an endpoint that speaks Prometheus's text format."""

from __future__ import annotations

import re
import threading
import urllib.request
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.error import URLError

from nephoscope import _engine
from nephoscope.collectors.server import PATIENCE_S
from nephoscope.errors import InputError
from nephoscope.store.protocol import SAMPLE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from prometheus_client.metrics_core import Metric

_MOST_BYTES = 16 << 20
_MIB = float(1 << 20)

_CPU, _LOAD = "node_cpu_seconds_total", "node_load1"
_MEMORY, _AVAILABLE = "node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes"
_BYTES = {
    "node_disk_read_bytes_total": "disk_read_mb_per_s",
    "node_disk_written_bytes_total": "disk_written_mb_per_s",
    "node_network_receive_bytes_total": "network_received_mb_per_s",
    "node_network_transmit_bytes_total": "network_sent_mb_per_s",
}
_OF_A_HOST = frozenset({_CPU, _LOAD, _MEMORY, _AVAILABLE, *_BYTES})
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_NOT_COUNTED = re.compile(r"lo$|dm-|loop|ram|zram")
"""Devices whose bytes are none of a disk or a network, or are another's once more."""

Series = tuple[str, tuple[tuple[str, str], ...]]
"""A metric's name and its labels."""


class Exposition:
    """What an endpoint showed at one moment: of the metrics that are wanted, their series."""

    def __init__(self, text: str, wanted: Collection[str]) -> None:
        """Read a text. Raises ``ValueError`` where it is not in the format."""
        self.values: dict[Series, float] = {}
        self.counters = set[str]()
        for family in _families(text, wanted):
            for sample in family.samples:
                if sample.name in wanted:
                    self.values[sample.name, tuple(sorted(sample.labels.items()))] = float(sample.value)
                    if family.type in ("counter", "histogram", "summary"):
                        self.counters.add(sample.name)


def _families(text: str, wanted: Collection[str]) -> Iterator[Metric]:
    """Parse the lines of the metrics that are wanted alone: a node_exporter has a thousand, and that takes 20 ms."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 - an optional dependency

    bases = {re.sub("_(total|bucket|sum|count)$", "", name) for name in wanted}
    lines = []
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name = line[7:].partition(" ")[0]
            if name in wanted or name in bases:
                lines.append(line)
        elif (found := _NAME.match(line)) and found[0] in wanted:
            lines.append(line)
    return iter(text_string_to_metric_families("\n".join(lines) + "\n"))


def figures(
    before: Exposition, after: Exposition, seconds: float, keep: Collection[str]
) -> Mapping[str, float]:
    """Tell what a machine did between two moments, in the words of our own host's metrics, and what ``keep`` names.

    Counters of ``keep`` become rates, ``NAME_per_s``; other metrics stay as they are. A counter that fell was begun
    anew, and is left out; so is what the endpoint does not have.
    """
    grown = {
        series: value - before.values[series]
        for series, value in after.values.items()
        if series[0] in after.counters and value >= before.values.get(series, value + 1)
    }
    found = dict(_processors(grown))
    if levels := [value for (name, _), value in after.values.items() if name == _LOAD]:
        found["load_average"] = levels[0]
    memory = {name: value for (name, _), value in after.values.items() if name in (_MEMORY, _AVAILABLE)}
    if len(memory) == 2:  # noqa: PLR2004 - both
        found["memory_used_mb"] = (memory[_MEMORY] - memory[_AVAILABLE]) / _MIB
    for name, metric in _BYTES.items():
        of = [
            value
            for (counter, labels), value in grown.items()
            if counter == name and not _NOT_COUNTED.match(dict(labels).get("device", ""))
        ]
        if of:
            found[metric] = sum(of) / _MIB / seconds
    for series, value in after.values.items():
        if series[0] in keep:
            if series[0] not in after.counters:
                found[_shown(series)] = value
            elif series in grown:
                found[f"{_shown(series)}_per_s"] = grown[series] / seconds
    return found


def _processors(grown: Mapping[Series, float]) -> Iterator[tuple[str, float]]:
    """Give the shares of all processors' time, as of our own host."""
    spent: dict[str, float] = {}
    for (name, labels), value in grown.items():
        if name == _CPU:
            mode = dict(labels).get("mode", "")
            spent[mode] = spent.get(mode, 0.0) + value
    if (total := sum(spent.values())) > 0:
        idle, waiting = spent.get("idle", 0.0), spent.get("iowait", 0.0)
        yield "cpu_busy", 1 - (idle + waiting) / total
        yield "cpu_io_wait", waiting / total
        yield "cpu_stolen", spent.get("steal", 0.0) / total


def _shown(series: Series) -> str:
    name, labels = series
    return name + ("{" + ",".join(f'{key}="{value}"' for key, value in labels) + "}" if labels else "")


class MetricsReader:
    """Asks one endpoint once a second, in a thread of its own: one that is slow delays no other."""

    def __init__(
        self,
        url: str,
        keep: Collection[str],
        write: Callable[[float, Mapping[str, float]], None],
        origin_ns: int,
    ) -> None:
        """Begin to ask; figures go to ``write`` with their time in s since ``origin_ns``."""
        self._url, self._keep = url, keep
        self._write = write
        self._origin_ns = origin_ns
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="endpoint", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join(timeout=2 * PATIENCE_S)

    def _run(self) -> None:
        last: tuple[float, Exposition] | None = None
        while not self._ended.wait(SAMPLE_S - self._now() % SAMPLE_S):
            now = self._now()
            try:
                seen = Exposition(fetch(self._url), _OF_A_HOST | set(self._keep))
            except (OSError, ValueError):
                # What it would have told since is not known.
                last = None
                continue
            if last is not None and (found := figures(last[1], seen, now - last[0], self._keep)):
                self._write(now, found)
            last = now, seen

    def _now(self) -> float:
        return (_engine.monotonic_ns() - self._origin_ns) / 1e9


def fetch(url: str) -> str:
    """Fetch what an endpoint shows now. Raises ``OSError``, and ``ValueError`` where that is no text."""
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:  # noqa: S310 - settings allow HTTP alone
        body = answer.read(_MOST_BYTES + 1)
    if len(body) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES >> 20} MiB")
    return str(body, "utf-8")


def check(name: str, url: str, keep: Collection[str]) -> None:
    """Ask an endpoint once, before a run. Raises ``InputError`` where it shows nothing that a run would keep."""
    where = f"system.metrics.{name}: {url}"
    if find_spec("prometheus_client") is None:
        raise InputError(
            f"{where} needs a library that is not installed: pip install 'nephoscope[prometheus]'"
        )
    wanted = _OF_A_HOST | set(keep)
    try:
        seen = {name for name, _ in Exposition(fetch(url), wanted).values}
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise InputError(f"{where} shows no metrics: {reason}") from None
    if missing := set(keep) - seen:
        raise InputError(f"{where} has no metric {min(missing)}, which keep names")
    if not seen:
        raise InputError(f"{where} is no node_exporter; keep must name what of it to keep")
