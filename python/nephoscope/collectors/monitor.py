"""Metrics of the host and the server, sampled beside the load on the same clock."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.collectors import cassandra, mysql, postgres, sqlite
from nephoscope.collectors.endpoint import MetricsReader
from nephoscope.collectors.host import Host
from nephoscope.collectors.presence import Presence, company
from nephoscope.collectors.processes import Processes
from nephoscope.collectors.server import Collector, Sampler
from nephoscope.dialects import DIALECTS
from nephoscope.errors import MeasurementError
from nephoscope.store.protocol import SAMPLE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from nephoscope.collectors.server import Samples
    from nephoscope.store import RunWriter

_log = logging.getLogger(__name__)

LOOKS = 10
"""How often in a period the sessions of a server are looked at: what each of them waits for."""

_COLLECTORS: Mapping[str, Collector] = {
    "postgres": Collector(postgres.read, postgres.look),
    "mysql": Collector(mysql.read, mysql.look, mysql.LOOK_EVERY),
    "sqlite": Collector(sqlite.read),
    "cassandra": Collector(cassandra.read, nodes=cassandra.nodes),
}
"""The collectors of servers, by dialect."""
_PROCESSES = "processes"
_LOCAL = ("host", _PROCESSES)
"""The sources that need no connection to a server."""


class Monitor:
    """A thread that samples until it is stopped. It leaves out what it cannot read, and logs that."""

    def __init__(
        self,
        writer: RunWriter,
        origin_ns: int,
        dialect: str,
        servers: Mapping[str, str],
        presence: Presence,
        *,
        is_idle: Callable[[], bool] = lambda: False,
        processes: Callable[[], Collection[int]] = tuple,
        endpoints: Mapping[str, tuple[str, Collection[str]]] | None = None,
    ) -> None:
        """Begin to sample; ``servers`` are sources such as ``server:rw`` with the URLs of endpoints.

        Servers whose ``dialect`` has no collector are not sampled.
        Its sessions show the run's ``presence`` there, and what else is at work there becomes a warning of the run.
        While ``is_idle`` is true it has no connection to them: an idle system may pause.
        ``processes`` tells the servers' processes on this machine, as far as they are known.
        ``endpoints`` are machines and programs with metrics of their own, by name: a URL, and what to keep.
        """
        self._is_idle = is_idle
        self._writer = writer
        self._origin_ns = origin_ns
        self._ended = threading.Event()
        self._samplers: list[tuple[str, Callable[[float], Samples]]] = [("host", Host().sample)]
        self._samplers.append((_PROCESSES, Processes(processes).sample))
        self._met: set[str] = set()
        self._servers: list[Sampler] = []
        if dialect in _COLLECTORS:
            how = (DIALECTS.get(dialect), _COLLECTORS[dialect], presence, self._meet)
            for source, url in _sources(servers, _COLLECTORS[dialect]):
                self._servers.append(Sampler(url, *how))
                self._samplers.append((source, self._servers[-1].sample))
        self._endpoints = [
            MetricsReader(url, keep, partial(self._write_host, name), origin_ns)
            for name, (url, keep) in (endpoints or {}).items()
        ]
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and its connections."""
        self._ended.set()
        self._thread.join(timeout=10)
        for endpoint in self._endpoints:
            endpoint.stop()

    def _write_host(self, name: str, now: float, values: Mapping[str, float]) -> None:
        self._writer.metrics(now, f"host:{name}", values.items())

    def _run(self) -> None:
        silenced: set[str] = set()
        number = period = 0
        while True:
            # Looks whose time has passed meanwhile are left out: they would all see the same moment.
            number = max(number, int(self._now() * LOOKS / SAMPLE_S)) + 1
            if self._ended.wait(max(number * SAMPLE_S / LOOKS - self._now(), 0.0)):
                break
            idle = self._is_idle()
            if idle:
                self._let_go()
            for server in self._servers:
                server.look(number)
            if number // LOOKS > period:
                period = number // LOOKS
                self._sample(silenced, idle=idle)
        self._let_go()

    def _sample(self, silenced: set[str], *, idle: bool) -> None:
        """Write a sample of each source; ``silenced`` are those that never have one."""
        for source, sample in self._samplers:
            if source in silenced or (idle and source not in _LOCAL):
                continue
            try:
                now = self._now()
                for of, values in sample(now).items():
                    if values:
                        self._writer.metrics(now, of or source, values.items())
            except (MeasurementError, OSError, ValueError) as error:
                # A server that is down is what some runs are about; a host without /proc stays without.
                _log.info("no metrics of %s: %s", source, error)
                if source in _LOCAL:
                    silenced.add(source)

    def _meet(self, now: float, others: set[str]) -> None:
        """Write once who else works on a server."""
        if new := others - self._met:
            self._met |= new
            self._writer.event(now, "warning", message=company(new))

    def _let_go(self) -> None:
        for server in self._servers:
            server.close()

    def _now(self) -> float:
        return (_engine.monotonic_ns() - self._origin_ns) / 1e9


def _sources(servers: Mapping[str, str], collector: Collector) -> Iterator[tuple[str, str]]:
    """Give each source with its URL; a server of several nodes that tell only of themselves is one for each."""
    for source, url in servers.items():
        nodes = collector.nodes(url) if collector.nodes else {}
        if len(nodes) > 1:
            yield from ((f"{source}@{node}", of_node) for node, of_node in nodes.items())
        else:
            yield source, url
