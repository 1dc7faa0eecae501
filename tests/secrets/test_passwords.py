"""Passwords reach no output and no file, however they are given and whatever goes wrong."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from commands import Ended, finish, start, wait_for
from databases import Server, query, running_server, study_of
from sample_studies import Tables, phases, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PASSWORD = "s3cret/with:odd@signs#1%"
ENCODED = quote(PASSWORD, safe="")
WRONG = "n0t-the-passw0rd"
BRIEF = phases({"duration": "500ms", "mix": "RW", "concurrency": 2})


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        query(server.url, f"CREATE ROLE tester SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
        yield server


@pytest.fixture(scope="module")
def place(server: Server) -> str:
    """Host, port and database."""
    return server.new_database().partition("@")[2]


def execute(folder: Path, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> Ended:
    """Run a command with all that it logs; look for secrets in what it prints and leaves."""
    given = {"PGPASSFILE": os.devnull, **(environment or {})}
    with start("--verbose", *arguments, cwd=folder, environment=given) as process:
        ended = finish(process)
    check_output(ended)
    check_files(folder)
    return ended


def check_output(ended: Ended) -> None:
    for text in (ended.out, ended.err):
        for secret in (PASSWORD, ENCODED, WRONG):
            assert secret not in text


def check_files(folder: Path) -> None:
    files = [
        path for path in folder.rglob("*") if path.is_file() and path.suffix not in {".input", ".pgpass"}
    ]
    for path in files:
        content = path.read_bytes()
        for secret in (PASSWORD, ENCODED, WRONG):
            assert secret.encode() not in content, path


def study_file(folder: Path, tables: Tables) -> Path:
    """Write the study, which may hold the password: only what the command makes of it is looked at."""
    return write_study(folder, tables, "study.input")


def kept(folder: Path) -> str:
    return (folder / "runs" / "latest" / "study.toml").read_text()


@pytest.mark.survives(
    part="input",
    fault="a password in a URL",
    promise="no output, log or file of any command shows it, as it is or encoded: all are searched",
    on="PostgreSQL",
)
def test_a_password_in_the_url_is_kept_nowhere(tmp_path: Path, place: str) -> None:
    url = f"postgresql://tester:{ENCODED}@{place}"
    study = study_file(tmp_path, study_of(url, BRIEF))
    assert execute(tmp_path, "load", study).code == 0
    assert execute(tmp_path, "check", study).code == 0
    assert execute(tmp_path, "run", study, "--json").code == 0
    assert f"postgresql://tester:***@{place}" in kept(tmp_path)
    assert execute(tmp_path, "report", "runs/latest").code == 0
    assert execute(tmp_path, "compare", "runs/latest", "runs/latest").code == 0
    overridden = execute(tmp_path, "run", study, "--set", f'system.rw="{url}"', "--set", f"system.ro={url}")
    assert overridden.code == 0, overridden.err


def test_a_password_in_the_environment_is_kept_nowhere(tmp_path: Path, place: str) -> None:
    whole = {"DATABASE_URL": f"postgresql://tester:{ENCODED}@{place}"}
    study = study_file(tmp_path, study_of("${DATABASE_URL}", BRIEF))
    assert execute(tmp_path, "run", study, environment=whole).code == 0
    assert "${DATABASE_URL}" in kept(tmp_path)
    part = study_file(tmp_path, study_of(f"postgresql://tester:${{PASSWORD}}@{place}", BRIEF))
    assert execute(tmp_path, "run", part, environment={"PASSWORD": ENCODED}).code == 0
    assert f"postgresql://tester:${{PASSWORD}}@{place}" in kept(tmp_path)
    # What was kept can be run again by whoever has the variable.
    again = study_file(tmp_path, study_of("", BRIEF))
    again.write_text(kept(tmp_path))
    assert execute(tmp_path, "run", again, environment={"PASSWORD": ENCODED}).code == 0
    bare = study_file(tmp_path, study_of(f"postgresql://tester@{place}", BRIEF))
    assert execute(tmp_path, "run", bare, environment={"PGPASSWORD": PASSWORD}).code == 0


def test_a_password_in_a_file_is_kept_nowhere(tmp_path: Path, place: str) -> None:
    passwords = tmp_path / "my.pgpass"
    escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
    passwords.write_text(f"*:*:*:tester:{escaped}\n")
    passwords.chmod(0o600)
    study = study_file(tmp_path, study_of(f"postgresql://tester@{place}", BRIEF))
    ended = execute(tmp_path, "run", study, environment={"PGPASSFILE": str(passwords)})
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("url", "code"),
    [
        (f"postgresql://tester:{WRONG}@{{place}}", 1),
        (f"postgresql://nobody:{ENCODED}@{{place}}", 1),
        (f"postgresql://tester:{ENCODED}@{{place}}_none", 1),
        (f"postgresql://tester:{ENCODED}@127.0.0.1:9/db", 1),
        (f"postgresql://tester:{ENCODED}@no.such.host.invalid/db", 1),
        # Signs that should have been encoded: no part of the password may be taken for a host and told.
        ("postgresql://tester:{raw}@{place}", 2),
        (f"postgresql://tester:{ENCODED}@{{place}}?sslmode=nonsense", 2),
        (f"postgresql://tester:{ENCODED}@h:99999/db", 2),
        (f"mysql://tester:{ENCODED}@h/db", 2),
        (f"host=h user=tester password={WRONG}", 2),
    ],
)
@pytest.mark.survives(
    part="input",
    fault="a password in a URL that cannot be used",
    promise="the message does not show it, nor any file: not the whole, and no part of one that was not encoded",
    on="PostgreSQL",
)
def test_no_failure_tells_the_password(tmp_path: Path, place: str, url: str, code: int) -> None:
    address = url.replace("{place}", place).replace("{raw}", PASSWORD)
    study = study_file(tmp_path, study_of(address, BRIEF, load="never"))
    ended = execute(tmp_path, "run", study)
    assert ended.code == code, ended.err
    assert "s3cret" not in ended.out + ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "override",
    [
        "system.rw.x={url}",
        "{url}",
        "study.name={url}",
        "workload.name={url}",
        "load={url}",
        "load.threads={url}",
    ],
)
def test_a_url_in_the_wrong_place_is_not_told(tmp_path: Path, place: str, override: str) -> None:
    url = f"postgresql://tester:{ENCODED}@{place}"
    study = study_file(tmp_path, study_of(url, BRIEF))
    assert execute(tmp_path, "run", study, "--set", override.replace("{url}", url)).code == 2


def test_a_url_in_the_place_of_a_study_is_not_told(tmp_path: Path, place: str) -> None:
    for command in ("run", "load", "check"):
        assert execute(tmp_path, command, f"postgresql://tester:{ENCODED}@{place}").code == 2


@pytest.mark.survives(
    part="input",
    fault="a password in the URL of a run whose sessions are terminated and that is then killed",
    promise="no output, log or file shows it",
    on="PostgreSQL",
)
def test_a_run_that_is_killed_has_no_password_either(tmp_path: Path, place: str) -> None:
    url = f"postgresql://tester:{ENCODED}@{place}"
    endless = phases({"duration": "600s", "mix": "RW", "concurrency": 2})
    study = study_file(tmp_path, study_of(url, endless))
    with start("--verbose", "run", study, cwd=tmp_path) as process:
        journal = tmp_path / "runs" / "latest" / "intervals.jsonl"
        wait_for(journal.exists, "the run has begun")
        # Sessions that are cut off: what they tell and what the server says of them is written down.
        query(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        wait_for(lambda: "connection" in (journal.parent / "events.jsonl").read_text(), "the cut is told")
        process.send_signal(signal.SIGKILL)
        check_output(finish(process))
    check_files(tmp_path)
    assert execute(tmp_path, "report", "runs/latest").code == 0
