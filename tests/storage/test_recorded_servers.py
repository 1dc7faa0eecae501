"""Real servers that record their I/O: what they did is known, and has to be in the records."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from postgres_lab import Lab, expect, server_of, wait_for
from products import needs_mariadb

from databases import MariadbLab, query
from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.storage.corpus import OPERATIONS, PROCESSES
from nephoscope.systems.machine.folders import fast_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nephoscope.systems.cluster.embedded import EmbeddedCluster

PAGE = 8192
INNODB_PAGE = 16384
FOREVER = 1 << 63


class Recorded:
    """What a provider's server has recorded since a time."""

    def __init__(self, provider: EmbeddedCluster, since_ns: int = 0) -> None:
        folder = provider.io_records()
        assert folder is not None
        recording = _engine.StorageRecording(folder)
        assert (recording.lost, recording.ended) == (0, [])
        segments = _engine.StorageSegments(1 << 40)
        columns = recording.page_view(since_ns, FOREVER, provider.relation_files(), segments)
        names = segments.table()[0]
        self.time_us = np.frombuffer(columns["time_us"], "i8")
        self.offset = np.frombuffer(columns["offset"], "u8")
        self.bytes = np.frombuffer(columns["bytes"], "u4")
        self.what = list(
            zip(
                [names[segment] for segment in np.frombuffer(columns["segment"], "u4")],
                [OPERATIONS[place] for place in columns["operation"]],
                [PROCESSES[place] for place in columns["process"]],
                strict=True,
            )
        )

    def count(self, name: str, operation: str) -> Counter[str]:
        """Count the requests of something, by process."""
        return Counter(process for *what, process in self.what if what == [name, operation])

    def of(self, name: str, operation: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Choose the requests of something."""
        return np.array([what[:2] == (name, operation) for what in self.what], dtype=bool)


def in_a_plain_folder(lab: Lab) -> Lab:
    """Let the server's folder be one that the loader takes a library from."""
    plain = lab.base / "server"
    if lab.folder.exists():
        lab.folder.rename(plain)
    lab.folder = plain
    return lab


@pytest.fixture
def postgres_lab(ready_lab: Lab) -> Lab:
    return in_a_plain_folder(ready_lab)


@pytest.fixture
def mariadb_lab(lab_of: Callable[[type[Lab]], Lab], monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    # In memory InnoDB maps its log.
    monkeypatch.setattr("postgres_lab.fast_folder", lambda: "/var/tmp")
    lab = MariadbLab()
    lab.take_database_of(lab_of(MariadbLab))
    yield in_a_plain_folder(lab)
    lab.close()


@pytest.mark.parametrize("version", [18, 16])
def test_a_table_is_read_page_by_page_after_a_restart(lab: Lab, version: int) -> None:
    in_a_plain_folder(lab)
    quiet = {"autovacuum": False}
    with lab.provider(version=version, record_io=True, settings=quiet) as provider:
        url = provider.start().rw[0]
        query(url, "CREATE TABLE known AS SELECT i, repeat('x', 500) AS pad FROM generate_series(1, 5000) i")
        query(url, "VACUUM known")
    with lab.provider(version=version, record_io=True, settings=quiet) as provider:
        url = provider.start().rw[0]
        before = _engine.monotonic_ns()
        [[pages]] = query(url, f"SELECT pg_relation_size('known') / {PAGE}")
        query(url, "SELECT count(*) FROM known")
        seen = Recorded(provider, before)
    reads = seen.of("known", "read")
    assert pages is not None
    assert int(seen.bytes[reads].sum()) == int(pages) * PAGE
    starts, lengths = seen.offset[reads], seen.bytes[reads]
    touched = {
        page
        for at, size in zip(starts, lengths, strict=True)
        for page in range(at // PAGE, (at + size) // PAGE)
    }
    assert touched == set(range(int(pages)))
    assert set(seen.count("known", "read")) == {"backend"}
    assert (np.diff(seen.time_us) >= 0).all()


def test_a_checkpoint_writes_by_the_checkpointer(postgres_lab: Lab) -> None:
    with postgres_lab.provider(
        record_io=True, settings={"autovacuum": False, "bgwriter_lru_maxpages": 0}
    ) as provider:
        url = provider.start().rw[0]
        query(url, "CREATE TABLE dirty (i int) WITH (fillfactor = 10)")
        query(url, "INSERT INTO dirty SELECT generate_series(1, 5000)")
        [[pages]] = query(url, f"SELECT pg_relation_size('dirty') / {PAGE}")
        before = _engine.monotonic_ns()
        query(url, "CHECKPOINT")
        seen = Recorded(provider, before)
    assert pages is not None
    writes = seen.of("dirty", "write")
    assert int(seen.bytes[writes].sum()) == int(pages) * PAGE
    assert set(seen.count("dirty", "write")) == {"checkpointer"}
    assert seen.count("dirty", "sync")["checkpointer"] >= 1
    assert seen.count("global/pg_control", "write")["checkpointer"] >= 1


def test_each_commit_writes_and_syncs_the_log_by_its_backend(postgres_lab: Lab) -> None:
    commits = 25
    with postgres_lab.provider(record_io=True, settings={"autovacuum": False}) as provider:
        url = provider.start().rw[0]
        query(url, "CREATE TABLE paid (i int)")
        before = _engine.monotonic_ns()
        admin = _engine.Admin(url)
        for i in range(commits):
            admin.query(f"INSERT INTO paid VALUES ({i})")
        seen = Recorded(provider, before)
        admin.close()
    assert commits <= seen.count("pg_wal", "sync")["backend"] <= commits + 5
    assert seen.count("pg_wal", "write")["backend"] >= commits


def test_a_killed_backend_loses_nothing_that_it_recorded(postgres_lab: Lab) -> None:
    commits = 30
    with postgres_lab.provider(record_io=True, settings={"autovacuum": False}) as provider:
        url = provider.start().rw[0]
        query(url, "CREATE TABLE paid (i int)")
        admin = _engine.Admin(url)
        [[pid]] = admin.query("SELECT pg_backend_pid()")[1]
        assert pid is not None
        for i in range(commits):
            admin.query(f"INSERT INTO paid VALUES ({i})")
        folder = provider.io_records()
        assert folder is not None
        os.kill(int(pid), signal.SIGKILL)
        wait_for(lambda: server_of(provider).folder.says("all server processes terminated"))
        files = list(folder.glob(f"{pid}-*"))
        others = [file for file in folder.iterdir() if file not in files]
        for file in others:
            file.rename(file.with_suffix(".other"))
        recording = _engine.StorageRecording(folder)
        columns = recording.page_view(0, FOREVER, {}, _engine.StorageSegments(1 << 40))
        for file in others:
            file.with_suffix(".other").rename(file)
    assert columns["operation"].count(OPERATIONS.index("sync")) >= commits
    assert set(columns["process"]) == {PROCESSES.index("backend")}


@pytest.mark.parametrize("ordinary", [False, True], ids=["ourselves", "ordinary user"])
def test_the_server_of_any_user_records(postgres_lab: Lab, ordinary: bool) -> None:  # noqa: FBT001
    then = "print('recorded', len(list(provider.io_records().iterdir())), flush=True)"
    process = postgres_lab.holding(then, ordinary=ordinary, record_io=True)
    assert int(expect(process, "recorded")[0]) >= 1
    process.wait(60)


def test_nothing_is_recorded_unless_it_is_asked_for(postgres_lab: Lab) -> None:
    with postgres_lab.provider() as provider:
        provider.start()
        assert provider.io_records() is None
    assert not (postgres_lab.folder / "io").exists()


def test_settings_and_folders_that_prevent_recording_are_refused(ready_lab: Lab) -> None:
    with (
        ready_lab.provider(record_io=True, settings={"io_method": "worker"}) as provider,
        pytest.raises(InputError, match=r"needs? io_method = sync"),
    ):
        provider.start()
    assert " " in ready_lab.folder.name
    with (
        ready_lab.provider(record_io=True) as provider,
        pytest.raises(MeasurementError, match="space or a colon"),
    ):
        provider.start()


@needs_mariadb
def test_innodb_counts_as_many_reads_as_are_recorded(mariadb_lab: Lab) -> None:
    with mariadb_lab.provider(record_io=True) as provider:
        url = provider.start().rw[0]
        query(url, "CREATE TABLE known (i INT PRIMARY KEY, pad TEXT)")
        query(url, "INSERT INTO known SELECT seq, repeat('x', 500) FROM seq_1_to_5000")
    with mariadb_lab.provider(record_io=True) as provider:
        url = provider.start().rw[0]
        before = _engine.monotonic_ns()
        counted = int(status(url, "Innodb_data_read"))
        query(url, "SELECT sum(length(pad)) FROM known")
        counted = int(status(url, "Innodb_data_read")) - counted
        seen = Recorded(provider, before)
    names = {what[0] for what in seen.what}
    reads = seen.of("known", "read")
    assert "known" in names
    # 500 bytes a row, and a page is filled to 15/16 at most.
    assert int(seen.bytes[reads].sum()) >= 5000 * 500
    spaces = sum(
        int(size)
        for size, (name, operation, _) in zip(seen.bytes, seen.what, strict=True)
        if operation == "read" and size >= INNODB_PAGE and "/" not in name
    )
    assert spaces == counted


@needs_mariadb
def test_a_log_that_is_mapped_is_refused(lab_of: Callable[[type[Lab]], Lab]) -> None:
    if fast_folder() != "/dev/shm":
        pytest.skip("no file system in memory is here")
    lab = MariadbLab()
    try:
        lab.take_database_of(lab_of(MariadbLab))
        with (
            in_a_plain_folder(lab).provider(record_io=True) as provider,
            pytest.raises(MeasurementError, match="ib_logfile0 by a mapping"),
        ):
            provider.start()
    finally:
        lab.close()


@needs_mariadb
def test_a_commit_of_mariadb_syncs_its_logs(mariadb_lab: Lab) -> None:
    commits = 20
    with mariadb_lab.provider(record_io=True) as provider:
        url = provider.start().rw[0]
        query(url, "CREATE TABLE paid (i INT PRIMARY KEY)")
        admin = _engine.Admin(url)
        before = _engine.monotonic_ns()
        for i in range(commits):
            admin.query(f"INSERT INTO paid VALUES ({i})")
        seen = Recorded(provider, before)
        admin.close()
    assert seen.count("binlog", "sync")["backend"] >= commits
    assert seen.count("ib_logfile0", "sync")["backend"] >= commits
    assert seen.count("binlog", "write")["backend"] >= commits


def status(url: str, name: str) -> str:
    """Ask for a counter of the server."""
    [[_, value]] = query(url, f"SHOW GLOBAL STATUS LIKE '{name}'")
    assert value is not None
    return value
