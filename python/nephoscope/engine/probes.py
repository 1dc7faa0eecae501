"""Probes: light, timed measurements beside the load, written into its run.

Availability is probed at a fixed rate on each endpoint; replication lag by markers that are committed on the endpoint
that takes writes and looked for on the read-only ones; consistency by sessions that write and read registers. The
engine does it (``crates/engine/src/probes``); here are their tables, their samples, and what became of the writes that
were acknowledged.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field

from nephoscope import _engine
from nephoscope.dialects import KEYED
from nephoscope.errors import MeasurementError
from nephoscope.settings.base import Role, Settings
from nephoscope.settings.units import Duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from nephoscope.settings.loads import Reads
    from nephoscope.store import RunWriter
    from nephoscope.systems.base import System

_log = logging.getLogger(__name__)

_READ_S = 0.2
_WAIT_S = 0.05
_AGREED_S = 15.0
"""So long may nodes take to agree that a table has gone."""


class ProbeSettings(Settings):
    """How probes are sent."""

    rate: float = Field(default=200.0, ge=1, le=10_000)
    """Probes of availability a second, to each endpoint."""
    lanes: int = Field(default=8, ge=1, le=1000)
    """Connections to each endpoint for these probes."""
    timeout: Duration = 1.0
    """The timeout of a probe, of a look at a replica and of their connections; the first connections have 10 s."""
    marker_interval: Duration = 0.05
    """The time between the intended starts of two markers."""
    marker_timeout: Duration = 10.0
    """How long a marker is looked for."""
    setup_timeout: Duration = 30.0
    """The timeout for the tables to be on every replica, in s."""


@dataclass(frozen=True)
class Consistency:
    """Sessions that write and read registers; times in s."""

    readers: int
    read_interval: float
    writers: int
    write_interval: float
    keys: int
    read_from: Reads
    routing: Literal["affinity", "round_robin"]
    long_fork: bool
    limit: float
    """How long a write may take, and how long it is looked for."""
    level: str | None = None
    """The consistency level of all sessions; the system's default if left out."""

    def to_engine(self, settings: ProbeSettings) -> dict[str, Any]:
        """Describe them for the engine."""
        of = {name: getattr(self, name) for name in ("readers", "writers", "keys", "routing", "long_fork")}
        of |= {
            "read_from": self.read_from,
            "read_interval_ms": self.read_interval * 1000,
            "write_interval_ms": self.write_interval * 1000,
            "limit_ms": round(self.limit * 1000),
            "read_limit_ms": round(settings.timeout * 1000),
        }
        return {"consistency": of, "level": self.level}


@dataclass(frozen=True)
class Endpoint:
    """An endpoint that is probed."""

    role: Role
    node: str
    """Its name in samples."""
    url: str = field(repr=False)

    @staticmethod
    def of(system: System) -> tuple[Endpoint, ...]:
        """Name a system's endpoints by their role, and a number where there are several: ``rw``, ``ro1``, ``ro2``."""
        of_role: list[tuple[Role, tuple[str, ...]]] = [("rw", system.rw), ("ro", system.ro)]
        return tuple(
            Endpoint(role, f"{role}{number if len(urls) > 1 else ''}", url)
            for role, urls in of_role
            for number, url in enumerate(urls, start=1)
        )


@dataclass(frozen=True)
class Durability:
    """The writes of probes by outcome, each as the endpoint's name and the probe's number."""

    acknowledged: int
    """Writes whose commit was acknowledged."""
    lost: tuple[tuple[str, int], ...]
    """Acknowledged, and not there."""
    indeterminate: tuple[tuple[str, int], ...]
    """Not acknowledged, and there nevertheless."""


def set_up(endpoints: Sequence[Endpoint], timeout_s: float) -> None:
    """Create or empty the probes' tables, and wait until every read-only endpoint has them.

    Raises ``MeasurementError`` if they cannot be created, or not be seen in time.
    """
    mark = secrets.randbits(48)
    limit = time.monotonic() + timeout_s
    writers = [endpoint for endpoint in endpoints if endpoint.role == "rw"]
    if not writers:
        raise MeasurementError("probes need an endpoint that takes writes: their tables are made there")
    sql = _engine.probe_tables(writers[0].url)
    if "keyed" in sql:
        _set_up_keyed(endpoints, writers[0], sql, limit)
        return
    _query(writers[0], sql["create"], sql["empty"], f"{sql['stand']}{mark})", timeout_s=timeout_s)
    for endpoint in endpoints:
        while not _has(endpoint, sql["read"], mark, limit):
            if time.monotonic() > limit:
                raise MeasurementError(
                    f"probes of {endpoint.node}: the tables of probes, made on {writers[0].node},"
                    f" were not to be seen there within {timeout_s:g} s"
                )
            time.sleep(_WAIT_S)


def _set_up_keyed(
    endpoints: Sequence[Endpoint], writer: Endpoint, names: Mapping[str, str], limit: float
) -> None:
    """Make the table of registers where a system without SQL has tables, and wait until every endpoint has it."""
    system, table = KEYED.get(names["keyed"]), names["markers"]
    if system is None:
        return
    ask = _asking(writer, limit)
    if not system.exists(ask, table):
        system.make(ask, table, [("id", "integer"), ("number", "integer")])
    if not system.exists(ask, table):
        return  # there, rows alone make a table
    for endpoint in endpoints:
        while not system.exists(_asking(endpoint, limit), table):
            if time.monotonic() > limit:
                raise MeasurementError(
                    f"probes of {endpoint.node}: the {system.thing} {table} was not to be seen there in time"
                )
            time.sleep(_WAIT_S)


def _asking(endpoint: Endpoint, limit: float) -> Callable[[str], list[list[str | None]]]:
    return lambda words: _query(endpoint, words, timeout_s=max(limit - time.monotonic(), 0.1))


def _has(endpoint: Endpoint, sql: str, mark: int, limit: float) -> bool:
    try:
        rows = _query(endpoint, sql, timeout_s=max(limit - time.monotonic(), 0.1))
    except MeasurementError:
        # The replica may not have the table yet.
        return False
    return rows == [[str(mark)]]


def drop(endpoints: Sequence[Endpoint], timeout_s: float) -> None:
    """Drop the tables of probes. Raises ``MeasurementError``."""
    writer = next(endpoint for endpoint in endpoints if endpoint.role == "rw")
    sql = _engine.probe_tables(writer.url)
    if "keyed" not in sql:
        _query(writer, sql["drop"], timeout_s=timeout_s)
    elif (system := KEYED.get(sql["keyed"])) is not None:
        system.drop(_asking(writer, time.monotonic() + max(timeout_s, _AGREED_S)), sql["markers"])


def _query(endpoint: Endpoint, *statements: str, timeout_s: float) -> list[list[str | None]]:
    """Run statements one after the other; give the last one's rows."""
    try:
        admin = _engine.Admin(endpoint.url, connect_timeout_s=timeout_s, answer_timeout_s=timeout_s)
        try:
            rows: list[list[str | None]] = []
            for statement in statements:
                _, rows = admin.query(statement)
            return rows
        finally:
            admin.close()
    except MeasurementError as error:
        raise MeasurementError(f"probes of {endpoint.node}: {error}") from None


class Probes:
    """Probes within a context: it creates the tables, writes the samples and drops the tables.

    ``check`` and ``stop`` raise what has failed; until then the run goes on without probes.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        writer: RunWriter,
        origin_ns: int,
        settings: ProbeSettings,
        *,
        availability: bool = True,
        lag: bool = False,
        consistency: Consistency | None = None,
        watch: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        """Take what is to be probed; touch nothing yet."""
        self._endpoints = tuple(endpoints)
        self._writer = writer
        self._settings = settings
        self._spec = self._describe(origin_ns, availability=availability, lag=lag)
        if consistency is not None:
            self._spec |= consistency.to_engine(settings)
        self._watch = watch
        self._probes: _engine.Probes | None = None
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._failure: MeasurementError | None = None
        self._acknowledged: dict[str, set[int]] = {endpoint.node: set() for endpoint in endpoints}
        self.outcomes: Counter[tuple[str, str, str]] = Counter()
        """How many samples there were, by node, kind and outcome."""
        self.latest: dict[tuple[str, str], Mapping[str, Any]] = {}
        """The newest sample by node and probe."""

    def _describe(self, origin_ns: int, *, availability: bool, lag: bool) -> dict[str, Any]:
        settings = self._settings
        limit_ms = round(settings.timeout * 1000)
        return {
            "origin_ns": origin_ns,
            "endpoints": [
                {"role": endpoint.role, "node": endpoint.node, "url": endpoint.url}
                for endpoint in self._endpoints
            ],
            "availability": {"rate": settings.rate, "lanes": settings.lanes, "limit_ms": limit_ms}
            if availability
            else None,
            "lag": {
                "interval_ms": settings.marker_interval * 1000,
                "limit_ms": round(settings.marker_timeout * 1000),
                "poll_limit_ms": limit_ms,
                "setup_limit_ms": round(settings.setup_timeout * 1000),
            }
            if lag
            else None,
        }

    def __enter__(self) -> Self:
        """Make the tables and start. Raises ``InputError`` or ``MeasurementError``."""
        set_up(self._endpoints, self._settings.setup_timeout)
        self._probes = _engine.Probes(json.dumps(self._spec))
        self._thread = threading.Thread(target=self._read, name="probes", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, and drop the tables where possible: one that is left is emptied before its next use."""
        try:
            self.stop()
        except MeasurementError as failure:
            # The first error counts.
            if error is None:
                raise
            _log.warning("%s", failure)
        finally:
            try:
                drop(self._endpoints, self._settings.timeout)
            except MeasurementError as failure:
                _log.info("the tables of probes are left behind: %s", failure)

    def stop(self) -> None:
        """End the probes and write every sample. Raises the ``MeasurementError`` that has ended them."""
        if self._probes is not None:
            self._probes.stop()
            self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check()

    def check(self) -> None:
        """Raise the ``MeasurementError`` that has ended the probes, if one has."""
        if self._failure is not None:
            raise self._failure

    def _read(self) -> None:
        """Read samples until there are no more: a thread's work."""
        probes = self._probes
        try:
            while probes is not None:
                # Checked before the read, so that the engine's last samples are read.
                ended = self._ended.is_set()
                found = probes.next(0.0 if ended else _READ_S)
                if found is not None:
                    samples, checks = found
                    self._take(samples)
                    self._writer.checks(checks)
                elif ended:
                    return
        except MeasurementError as error:
            self._failure = error
            if probes is not None:
                probes.stop()

    def _take(self, lines: str) -> None:
        self._writer.probes(lines)
        for line in lines.splitlines():
            row = json.loads(line)
            self.outcomes[row["node"], row["kind"], row["outcome"]] += 1
            self.latest[row["node"], row["probe"]] = row
            if row["kind"] == "write" and row["outcome"] == "ok":
                self._acknowledged[row["node"]].add(row["number"])
            if self._watch is not None:
                self._watch(row)

    # --- durability -----------------------------------------------------------------------------------------

    def acknowledged(self) -> Mapping[str, frozenset[int]]:
        """Give the numbers of acknowledged writes by node; complete after ``stop``."""
        return {node: frozenset(numbers) for node, numbers in self._acknowledged.items() if numbers}

    def durability(self, url: str) -> Durability:
        """Look for acknowledged writes on an endpoint; call it after ``stop`` and before the tables are dropped.

        Raises ``MeasurementError`` where the endpoint cannot be read.
        """
        reader = Endpoint("rw", "durability", url)
        rows = _query(reader, _engine.probe_tables(url)["written"], timeout_s=self._settings.setup_timeout)
        names = [endpoint.node for endpoint in self._endpoints]
        there = {(names[int(index or 0)], int(number or 0)) for index, number in rows}
        sure = {(node, number) for node, numbers in self._acknowledged.items() for number in numbers}
        return Durability(len(sure), tuple(sorted(sure - there)), tuple(sorted(there - sure)))
