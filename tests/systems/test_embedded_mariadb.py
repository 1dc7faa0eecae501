"""What is MariaDB's own in the clusters that the tool starts: settings, accounts, copies, transactions."""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from postgres_lab import copies, node_of, password_of, server_of, users_of, wait_for
from products import MariadbWords, needs_mariadb
from pydantic import ValidationError

from databases import query, shows
from nephoscope.errors import InputError, MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.systems.machine import processes
from nephoscope.systems.machine.capacity import GIB, Machine
from nephoscope.systems.mariadb import install as mariadb_install
from nephoscope.systems.mariadb import server as mariadb_server
from nephoscope.systems.mariadb.embedded import EmbeddedMariadb, EmbeddedMariadbSettings
from nephoscope.systems.mariadb.node import _is_beyond
from nephoscope.systems.mariadb.settings import assigned, sane_settings

if TYPE_CHECKING:
    from postgres_lab import Lab

pytestmark = needs_mariadb

WORDS = MariadbWords()


@pytest.fixture(scope="module")
def words() -> MariadbWords:
    """MariaDB alone."""
    return WORDS


# --- one server


def test_gives_a_server_on_loopback_by_accounts_of_its_own(full_lab: Lab) -> None:
    with full_lab.provider() as provider:
        system = provider.start()
        port = system.facts["port"]
        assert re.fullmatch(rf"mysql://nephoscope:[\w-]{{30,}}@127\.0\.0\.1:{port}/nephoscope", system.rw[0])
        [[user, version]] = query(system.rw[0], "SELECT current_user(), version()")
        assert user == "nephoscope@127.0.0.1"
        assert version == f"{system.facts['package_version']}-log"
        assert query(system.rw[0], "SELECT @@bind_address, @@socket, @@port") == [
            ["127.0.0.1", "", str(port)]
        ]
        users = server_of(provider).ask("SELECT user, host FROM mysql.global_priv ORDER BY user").splitlines()
        assert users == ["mariadb.sys\tlocalhost", "nephoscope\t127.0.0.1", "root\t127.0.0.1"]
    assert not users_of(full_lab.folder)


def test_each_setting_is_what_it_was_set_to(full_lab: Lab) -> None:
    with full_lab.provider(settings={}, replicas=1, synchronous="semi-sync") as provider:
        system = provider.start()
        settings = system.facts["settings"]
        assert settings.items() >= sane_settings(Machine(1, GIB), GIB).items() - {
            ("innodb_buffer_pool_size", GIB // 2),
            ("innodb_log_file_size", 64 << 20),
        }
        for name, value in settings.items():
            wanted = {True: "ON", False: "OFF"}[value] if isinstance(value, bool) else str(value)
            shown = "time_zone" if name == "default_time_zone" else name
            assert provider.parameter(shown) == wanted, name
        assert provider.parameter("tmpdir") == "../tmp"
        assert (full_lab.folder / "tmp").stat().st_mode & 0o777 == 0o700
        for name, value in {"skip_name_resolve": "ON", "log_bin": "ON", "gtid_strict_mode": "ON"}.items():
            assert provider.parameter(name) == value
        with pytest.raises(MeasurementError, match="has no setting no_such_thing"):
            provider.parameter("no_such_thing")


def test_settings_are_sized_by_the_machine_within_bounds() -> None:
    small, large = sane_settings(Machine(1, GIB), GIB), sane_settings(Machine(64, 512 * GIB), 4096 * GIB)
    assert (small["innodb_buffer_pool_size"], large["innodb_buffer_pool_size"]) == (GIB // 2, 8 * GIB)
    assert (small["innodb_log_file_size"], large["innodb_log_file_size"]) == (64 << 20, GIB)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "DEFAULT"),
        (True, "ON"),
        (7, "7"),
        ("64M", "67108864"),
        ("2g", "2147483648"),
        ("it's", "'it''s'"),
    ],
)
def test_values_are_written_as_set_global_reads_them(value: Any, text: str) -> None:
    assert assigned(value) == text


@pytest.mark.parametrize(
    "table",
    [
        {"version": "10"},
        {"version": 10.11},
        {"database": "mysql"},
        {"settings": {"port": 1}},
        {"settings": {"server_id": 1}},
        {"settings": {"max-connections": 1}},
        {"settings": {"init_connect": "two\nlines"}},
        {"synchronous": "remote_apply"},
        {"replica_delay": 0.5},
    ],
    ids=str,
)
def test_a_table_that_makes_no_sense_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EmbeddedMariadbSettings(**table)


def test_a_wrong_setting_of_a_study_is_named_with_the_servers_words(full_lab: Lab) -> None:
    with (
        pytest.raises(InputError, match=r"(?s)does not start with these system\.settings.*no_such_thing"),
        full_lab.provider(settings={"no_such_thing": 1}) as provider,
    ):
        provider.start()
    assert not users_of(full_lab.folder)


def test_another_version_than_the_machines_is_refused(full_lab: Lab) -> None:
    with (
        pytest.raises(InputError, match=r"system\.version is 5\.5, and this machine has MariaDB \d+\.\d+"),
        full_lab.provider(version="5.5") as provider,
    ):
        provider.start()
    (full_lab.folder / "data" / "mysql_upgrade_info").write_text("5.5.1-MariaDB")
    with (
        pytest.raises(InputError, match=r"holds a database of MariaDB 5\.5"),
        full_lab.provider() as provider,
    ):
        provider.start()


def test_a_missing_program_is_named(full_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_install, "NEEDED", ("mariadbd", "mariadb-no-such"))
    with (
        pytest.raises(MeasurementError, match=r"no program mariadb-no-such.*mariadb-server"),
        full_lab.provider() as provider,
    ):
        provider.start()


def test_a_failed_mariadb_install_dbshows_its_words(new_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_server, "_ACCOUNTS", "CREATE NONSENSE;\n")
    with (
        pytest.raises(MeasurementError, match=r"(?s)mariadb-install-db could not make.*NONSENSE"),
        new_lab.provider() as provider,
    ):
        provider.start()


def test_each_series_has_a_folder_in_the_cache(full_lab: Lab) -> None:
    folder = EmbeddedMariadb(EmbeddedMariadbSettings())._folder()
    assert folder.parent == full_lab.base / "cache"
    assert re.fullmatch(r"mariadb-\d+\.\d+", folder.name)


# --- copies


def test_a_copy_has_all_that_users_have_made(full_lab: Lab) -> None:
    with full_lab.provider(front=True) as provider:
        [rw] = provider.start().rw
        for statement in (
            "CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT, bytes blob, words text)",
            "INSERT INTO t (bytes, words) VALUES (x'00ff0a27', 'naïve'), (NULL, 'it''s')",
            "CREATE TRIGGER later BEFORE INSERT ON t FOR EACH ROW SET NEW.words = concat(NEW.words, '!')",
            "CREATE DATABASE `two words`",
            "CREATE VIEW `two words`.v AS SELECT words FROM nephoscope.t",
            "CREATE USER reader@127.0.0.1 IDENTIFIED BY 'reader'",
            "GRANT SELECT ON *.* TO reader@127.0.0.1",
        ):
            query(rw, statement)
        assert provider.act(Action.ADD_NODE).detail["how"] == "mariadb-dump"
        query(rw, "INSERT INTO t (words) VALUES ('after')")
        [ro] = provider.endpoints("ro")
        everything = "SELECT id, hex(bytes), words FROM t ORDER BY id"
        wait_for(lambda: len(query(ro, everything)) == 3)
        assert query(ro, everything) == query(rw, everything)
        assert query(ro, everything)[-1] == ["3", None, "after!"]
        as_reader = ro.replace(f"nephoscope:{password_of(ro)}", "reader:reader")
        assert query(as_reader, "SELECT count(*) FROM `two words`.v") == [["3"]]
        assert not list(full_lab.folder.rglob("copy.sql"))
        provider.act(Action.PROMOTE)  # and others can follow a node that began as a copy
        query(rw, "INSERT INTO t (words) VALUES ('later')")
        wait_for(lambda: query(provider.endpoints("ro")[0], "SELECT count(*) FROM t") == [["4"]])


@pytest.mark.parametrize("damage", ["lineage", "half copied"])
def test_a_replica_that_does_not_fit_is_made_anew(
    full_lab: Lab, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    with full_lab.provider(replicas=1) as provider:
        provider.start()
    data = full_lab.folder / "node2" / "data"
    if damage == "lineage":
        (data / "lineage").write_text("elsewhere 1\n")
    else:
        shutil.copy(data / "lineage", data / "copy.sql")
    made = copies(monkeypatch)
    with full_lab.provider(replicas=1) as provider:
        system = provider.start()
        assert made == ["node2"]
        assert WORDS.is_replica(system.ro[0])


# --- transactions that one node has and another has not


def test_a_replica_that_has_more_than_the_new_primary_is_copied_anew(
    full_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with full_lab.provider(replicas=2) as provider:
        system = provider.start()
        made = copies(monkeypatch)
        node_of(provider, "node3").server.ask("STOP SLAVE IO_THREAD")
        query(system.rw[0], "CREATE TABLE ahead AS SELECT 1")
        wait_for(partial(shows, system.ro[0], "ahead"))
        provider.act(Action.KILL)
        done = provider.act(Action.PROMOTE, node="node3")
        assert made == ["node2", "node1"]
        assert done.detail["how"] == {"node2": "mariadb-dump", "node1": "mariadb-dump"}
        query(system.rw[0], "CREATE TABLE after AS SELECT 45 AS answer")
        for url in provider.endpoints("ro"):
            wait_for(partial(shows, url, "after"))
            assert not shows(url, "ahead")


@pytest.mark.parametrize(
    ("position", "beyond"),
    [("", False), ("0-1-5", False), ("0-1-6", True), ("0-2-9", False), ("0-2-12", False), ("0-3-1", True)],
)
def test_a_position_is_beyond_a_log_that_cannot_have_it(position: str, *, beyond: bool) -> None:
    assert _is_beyond(position, "0-1-5,0-2-10", "2") == beyond


def test_commits_wait_while_no_replica_has_received_them(full_lab: Lab) -> None:
    with full_lab.provider(replicas=1, synchronous="semi-sync") as provider:
        [rw] = provider.start().rw
        query(rw, "CREATE TABLE t (a int PRIMARY KEY)")
        provider.act(Action.PAUSE, node="node2")
        waits = "SELECT count(*) FROM information_schema.processlist WHERE state LIKE '%semi-sync ACK%'"
        with ThreadPoolExecutor(1) as threads:
            committing = threads.submit(query, rw, "INSERT INTO t VALUES (1)")
            wait_for(lambda: query(rw, waits) == [["1"]])
            assert query(rw, "SELECT count(*) FROM t") == [["0"]]
            assert not committing.done()
            provider.act(Action.RESUME, node="node2")
            committing.result(20)
        assert query(rw, "SELECT count(*) FROM t") == [["1"]]
        provider.act(Action.KILL, node="node2")  # and who has gone is not waited for
        query(rw, "INSERT INTO t VALUES (2)")


def test_a_promotion_that_fails_ends_in_time_and_leaves_no_second_primary(
    full_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with full_lab.provider(replicas=1) as provider:
        [rw] = provider.start().rw
        query(rw, "CREATE TABLE kept AS SELECT 1")
        node = node_of(provider, "node2")
        candidate, before = node.server, node.received()
        candidate.ask("STOP SLAVE SQL_THREAD")
        query(rw, "INSERT INTO kept VALUES (2)")
        wait_for(lambda: node.received() > before)
        monkeypatch.setattr(WORDS.node, "PROMOTE_S", 0.3)
        provider.act(Action.KILL)
        pid = candidate.pid
        with pytest.raises(MeasurementError, match="node2 did not become the primary within 0 s"):
            provider.act(Action.PROMOTE)
        assert not processes.family(pid)
        provider.act(Action.START, node="node1")
        provider.act(Action.START, node="node2")
        assert query(rw, "SELECT count(*) FROM kept") == [["2"]]
        assert query(provider.endpoints("ro")[0], "SELECT count(*) FROM kept") == [["2"]]
