"""Metrics of the host and the server, sampled beside the load on the same clock."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.collectors.presence import Presence, company, labels
from nephoscope.dialects import DIALECTS
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nephoscope.store import RunWriter

_log = logging.getLogger(__name__)

PERIOD_S = 1.0
"""The time between two samples, in s. A sample costs the client about a millisecond."""

_MIB = 1 << 20
_SECTOR = 512

_DIALECT = DIALECTS["postgres"]
_SERVER = """SELECT sum(xact_commit), sum(xact_rollback), sum(blks_read), sum(blks_hit),
  sum(tup_returned), sum(tup_inserted) + sum(tup_updated) + sum(tup_deleted),
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND state = 'active'),
  (SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'),
  CASE WHEN pg_is_in_recovery() THEN 0 ELSE pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') END
FROM pg_stat_database"""
_REPLICAS = """SELECT application_name,
  CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_flush_lsn(), replay_lsn) END,
  1000 * extract(epoch FROM replay_lag)
FROM pg_stat_replication WHERE state = 'streaming' ORDER BY application_name, pid"""
"""What a primary knows of its replicas; a role without the right to read it sees nulls."""
_RATES = ("commits_per_s", "rollbacks_per_s", "blocks_read_per_s", "blocks_hit_per_s", "rows_read_per_s",
          "rows_written_per_s")  # fmt: skip
_PATIENCE_S = 2.0
"""The timeout of a server's sample, in s: the other servers are sampled after it."""
_LEVELS = ("connections", "active", "waiting_for_locks")


_Samples = dict[str | None, dict[str, float]]
"""Values by metric, by source: None stands for the sampled source itself."""


class Monitor:
    """A thread that samples until it is stopped. It leaves out what it cannot read, and logs that."""

    def __init__(
        self,
        writer: RunWriter,
        origin_ns: int,
        servers: dict[str, str],
        presence: Presence,
        is_idle: Callable[[], bool] = lambda: False,
    ) -> None:
        """Begin to sample; ``servers`` are sources such as ``server:rw`` with the URLs of PostgreSQL endpoints.

        Its sessions show the run's ``presence`` there, and what else is at work there becomes a warning of the run.
        While ``is_idle`` is true it has no connection to them: an idle system may pause.
        """
        self._is_idle = is_idle
        self._writer = writer
        self._origin_ns = origin_ns
        self._ended = threading.Event()
        self._samplers: list[tuple[str, Callable[[float], _Samples]]] = [("host", _Host().sample)]
        self._servers = [_Server(url, presence, self._meet) for url in servers.values()]
        self._met: set[str] = set()
        self._samplers += [(name, server.sample) for name, server in zip(servers, self._servers, strict=True)]
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and its connections."""
        self._ended.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        silenced: set[str] = set()
        while not self._ended.wait(PERIOD_S - self._now() % PERIOD_S):
            idle = self._is_idle()
            if idle:
                self._let_go()
            for source, sample in self._samplers:
                if source in silenced or (idle and source != "host"):
                    continue
                try:
                    now = self._now()
                    for of, values in sample(now).items():
                        self._writer.metrics(now, of or source, values.items())
                except (MeasurementError, OSError, ValueError) as error:
                    # A server that is down is what some runs are about; a host without /proc stays without.
                    _log.info("no metrics of %s: %s", source, error)
                    if source == "host":
                        silenced.add(source)
        self._let_go()

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


def rss_mb() -> float:
    """Return the memory of this process, in MB; 0 if the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - once per interval, kept plain
            return int(file.read().split()[1]) * 4096 / _MIB
    except OSError:
        return 0.0


class _Host:
    """The machine that the load comes from, by Linux's /proc."""

    def __init__(self) -> None:
        self._last: tuple[float, list[float], list[float]] | None = None

    def sample(self, now: float) -> _Samples:
        cpu = [float(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        disk = self._disk()
        memory = {
            line.split(":")[0]: float(line.split()[1]) / 1024
            for line in Path("/proc/meminfo").read_text().splitlines()[:8]
        }
        values = {
            "memory_used_mb": memory["MemTotal"] - memory["MemAvailable"],
            "load_average": os.getloadavg()[0],
        }
        if self._last is not None:
            before, last_cpu, last_disk = self._last
            spent = [new - old for new, old in zip(cpu, last_cpu, strict=True)]
            if (total := sum(spent)) > 0:
                idle, waiting, stolen = spent[3], spent[4], spent[7]
                values["cpu_busy"] = 1 - (idle + waiting) / total
                values["cpu_io_wait"] = waiting / total
                values["cpu_stolen"] = stolen / total
            seconds = max(now - before, 1e-3)
            read, written = (max(new - old, 0) for new, old in zip(disk, last_disk, strict=True))
            values["disk_read_mb_per_s"] = read * _SECTOR / _MIB / seconds
            values["disk_written_mb_per_s"] = written * _SECTOR / _MIB / seconds
        self._last = (now, cpu, disk)
        return {None: values}

    @staticmethod
    def _disk() -> list[float]:
        """Sectors read and written by whole disks; partitions are not counted again."""
        read = written = 0.0
        blocks = Path("/sys/block")
        disks = {path.name for path in blocks.iterdir()} if blocks.is_dir() else set()
        for line in Path("/proc/diskstats").read_text().splitlines():
            words = line.split()
            if words[2] in disks and not words[2].startswith(("loop", "ram", "dm-")):
                read += float(words[5])
                written += float(words[9])
        return [read, written]


class _Server:
    """A PostgreSQL server, by its statistics views."""

    def __init__(self, url: str, presence: Presence, meet: Callable[[float, set[str]], None]) -> None:
        self._url = url
        self._presence = presence
        self._meet = meet
        self._others = set[str]()
        self._admin: _engine.Admin | None = None
        self._last: tuple[float, list[float], float] | None = None

    def sample(self, now: float) -> _Samples:
        try:
            if self._admin is None:
                self._admin = _engine.Admin(
                    self._url,
                    connect_timeout_s=_PATIENCE_S,
                    on_connect=[self._presence.announce(_DIALECT)],
                    answer_timeout_s=_PATIENCE_S,
                )
            _, rows = self._admin.query(_SERVER)
            _, replicas = self._admin.query(_REPLICAS)
            others = labels(self._admin, _DIALECT) - {self._presence.label}
        except MeasurementError:
            self.close()
            self._last = None
            raise
        # Seen in two samples, so it is not a session that was just ending.
        self._meet(now, others & self._others)
        self._others = others
        if not rows:
            # A server that is no PostgreSQL may answer like this; it is asked again.
            self._last = None
            raise MeasurementError("its statistics have no row")
        cells = [float(cell or 0) for cell in rows[0]]
        counters, levels, wal = cells[: len(_RATES)], cells[len(_RATES) : -1], cells[-1]
        values = dict(zip(_LEVELS, levels, strict=True))
        if self._last is not None:
            before, last, last_wal = self._last
            seconds = max(now - before, 1e-3)
            rates = [max(new - old, 0) / seconds for new, old in zip(counters, last, strict=True)]
            values |= dict(zip(_RATES, rates, strict=True))
            values["wal_mb_per_s"] = max(wal - last_wal, 0) / _MIB / seconds
            read, hit = rates[2], rates[3]
            if read + hit > 0:
                values["cache_hit_ratio"] = hit / (read + hit)
        self._last = (now, counters, wal)
        return {None: values, **_behind(replicas)}

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None


def _behind(rows: Sequence[Sequence[str | None]]) -> _Samples:
    """Return how far each replica is behind, as the primary sees it: bytes of log, and milliseconds.

    ``replay_lag_ms`` is PostgreSQL's ``replay_lag``: from the flush of recent log on the primary to the replica's word
    that it is replayed (documentation of pg_stat_replication); none where nothing was written lately.
    """
    found: _Samples = {}
    for number, (name, distance, lag) in enumerate(rows, start=1):
        source = f"replica:{name or number}"
        if source in found:  # replicas that have not been told apart
            source = f"{source}-{number}"
        values = {"bytes_behind": distance, "replay_lag_ms": lag}
        found[source] = {metric: float(value) for metric, value in values.items() if value is not None}
    return found
