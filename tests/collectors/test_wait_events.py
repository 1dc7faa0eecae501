"""What the sessions of a server wait for: looks become figures, and planted waits are read as they are."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from databases import running_mariadb
from nephoscope import _engine
from nephoscope.collectors import postgres
from nephoscope.collectors.monitor import Monitor
from nephoscope.collectors.presence import Presence
from nephoscope.collectors.processes import Processes
from nephoscope.collectors.server import Collector, Sampler, ServerReading
from nephoscope.collectors.waits import Waits
from nephoscope.dialects import DIALECTS
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from postgres_lab import Lab

WAITING = 3
"""So many sessions wait for one lock."""


class Notes:
    """Takes what a monitor writes."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, float]] = []

    def metrics(self, _time_s: float, source: str, values: Iterable[tuple[str, float]]) -> None:
        self.rows += [(source, metric, value) for metric, value in values]

    def of(self, metric: str) -> list[float]:
        return [value for _, name, value in self.rows if name == metric]


@contextmanager
def observed(url: str, dialect: str, processes: Callable[[], tuple[int, ...]] = tuple) -> Iterator[Notes]:
    notes: Any = Notes()
    servers = {"server:rw": url}
    monitor = Monitor(
        notes, _engine.monotonic_ns(), dialect, servers, Presence.of("test"), processes=processes
    )
    try:
        yield notes
    finally:
        monitor.stop()


@contextmanager
def waiting(url: str, begin: str, lock: str, seconds: float) -> Iterator[None]:
    """Hold a lock for a time that others wait for meanwhile."""
    holder = _engine.Admin(url)
    for sql in (begin, lock):
        holder.query(sql)

    def wait() -> None:
        one = _engine.Admin(url)
        for sql in (begin, lock, "ROLLBACK"):
            one.query(sql)
        one.close()

    threads = [threading.Thread(target=wait) for _ in range(WAITING)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    yield
    holder.query("ROLLBACK")
    holder.close()
    for thread in threads:
        thread.join()


def test_the_mean_is_over_all_looks_and_an_event_that_is_gone_is_zero() -> None:
    waits = Waits()
    assert waits.take() == {}
    waits.add({"Lock/tuple": 4.0, "CPU": 1.0})
    waits.add({"CPU": 2.0})
    assert waits.take() == {"wait:Lock/tuple": 2.0, "wait:CPU": 1.5}
    assert waits.take() == {}, "without a look nothing is known"
    waits.add({})
    assert waits.take() == {"wait:Lock/tuple": 0.0, "wait:CPU": 0.0}


@pytest.mark.parametrize("version", [18, 16])
def test_sessions_that_wait_for_a_lock_by_construction_are_read_as_such(lab: Lab, version: int) -> None:
    with lab.provider(version=version) as provider:
        url = provider.start().rw[0]
        admin = _engine.Admin(url)
        admin.query("CREATE TABLE wanted AS SELECT generate_series(1, 100000) AS value")
        with (
            observed(url, "postgres", provider.processes) as notes,
            waiting(url, "BEGIN", "LOCK TABLE wanted", 3.5),
        ):
            pass
        admin.close()
    # The holder is idle in its transaction: it is not at work, and waits for nothing.
    assert max(notes.of("wait:Lock/relation")) == WAITING
    of_waits = {metric for _, metric, value in notes.rows if metric.startswith("wait:") and value >= 1}
    assert of_waits == {"wait:Lock/relation"}
    for metric in ("wal_records_per_s", "io_written_bytes_per_s", "checkpoints_per_s", "cpu_us_per_s"):
        assert notes.of(metric), metric


def test_a_role_without_the_right_to_see_other_sessions_reads_nothing_of_them(lab: Lab) -> None:
    with lab.provider() as provider:
        url = provider.start().rw[0]
        admin = _engine.Admin(url)
        admin.query("CREATE ROLE stranger LOGIN PASSWORD 'known'")
        scheme, _, rest = url.partition("://")
        stranger = _engine.Admin(f"{scheme}://stranger:known@{rest.partition('@')[2]}")
        assert postgres.look(admin, 1.0) is not None
        assert postgres.look(stranger, 1.0) is None
        assert "io_reads" in postgres.read(stranger).counters
        stranger.close()
        admin.close()


def test_statements_that_wait_for_a_row_of_innodb_are_read_as_such() -> None:
    with running_mariadb() as server:
        url = server.new_database()
        admin = _engine.Admin(url)
        admin.query("CREATE TABLE wanted (id int PRIMARY KEY)")
        admin.query("INSERT INTO wanted VALUES (1)")
        with (
            observed(url, "mysql") as notes,
            waiting(url, "START TRANSACTION", "SELECT id FROM wanted WHERE id = 1 FOR UPDATE", 3.5),
        ):
            pass
        admin.close()
    assert max(notes.of("wait:Lock/row")) == WAITING
    assert notes.of("io_written_bytes_per_s")


def test_a_server_that_refuses_looks_goes_on_being_sampled_and_is_asked_no_more(lab: Lab) -> None:
    asked = []

    def refuse(_admin: _engine.Admin, _timeout_s: float) -> None:
        asked.append(1)
        raise MeasurementError("permission denied")

    def read(_admin: _engine.Admin) -> ServerReading:
        return ServerReading({"active": 1.0}, {"blocks_read": 0.0, "blocks_hit": 0.0})

    with lab.provider() as provider:
        url = provider.start().rw[0]
        how = (DIALECTS["postgres"], Collector(read, refuse), Presence.of("test"), lambda _now, _others: None)
        sampler = Sampler(url, *how)
        sampler.look(1)
        assert not asked, "there is no connection yet"
        for second in range(6):
            values = sampler.sample(float(second))[None]
            assert values["active"] == 1.0
            assert not [metric for metric in values if metric.startswith("wait:")]
            sampler.look(1)
            sampler.look(2)
        assert len(asked) == 3
        sampler.close()


def test_a_process_that_computes_is_read_and_one_that_has_ended_is_not() -> None:
    import os  # noqa: PLC0415 - only here

    processes = Processes(lambda: (os.getpid(), 2**22 + 1))
    assert processes.sample(0.0) == {None: {}}
    before = time.process_time()
    while time.process_time() - before < 0.3:
        pass
    values = processes.sample(1.0)[None]
    assert 250_000 <= values["cpu_us_per_s"] <= 1_000_000
    assert Processes(tuple).sample(0.0) == {None: {}}
