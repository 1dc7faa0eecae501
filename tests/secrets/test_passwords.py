"""Passwords reach no output and no file, however they are given and whatever goes wrong."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from commands import Ended, finish, start, wait_for
from databases import Server, query, running_server, study_of
from nephoscope import masking
from sample_studies import Tables, phases, sim_study, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PASSWORD = "s3cret/with:odd@signs#1%"
ENCODED = quote(PASSWORD, safe="")
WRONG = "n0t-the-passw0rd"
OF_FILE = "fr0m:the:file"
SECRETS = (PASSWORD, ENCODED, WRONG, OF_FILE, OF_FILE.replace(":", "\\:"))
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
        for secret in SECRETS:
            assert secret not in text


def check_files(folder: Path) -> None:
    files = [
        path for path in folder.rglob("*") if path.is_file() and path.suffix not in {".input", ".pgpass"}
    ]
    for path in files:
        content = path.read_bytes()
        for secret in SECRETS:
            assert secret.encode() not in content, path


def study_file(folder: Path, tables: Tables) -> Path:
    """Write the study, which may hold the password: only what the command makes of it is looked at."""
    return write_study(folder, tables, "study.input")


def write_passwords(folder: Path, where: str, password: str) -> Path:
    """Write a password file, with its escapes."""
    file = folder / "my.pgpass"
    escaped = password.replace("\\", "\\\\").replace(":", "\\:")
    file.write_text(f"{where}:{escaped}\n")
    file.chmod(0o600)
    return file


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
    passwords = write_passwords(tmp_path, "*:*:*:tester", PASSWORD)
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
        (f"mysql://tester:{ENCODED}@{{place}}?ssl-mode=nonsense", 2),
        (f"oracle://tester:{ENCODED}@h/db", 2),
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


LEAKY = """local w = workload "leaky"
w:transaction("leak", { read_only = true }, function(tx, pick) tx:one("leak") end)
w:mix("LEAK", { leak = 1 })
"""


SAID = """
echo the variable: $PGPASSWORD
echo another: token=$APP_TOKEN
echo the file: $(cat $PGPASSFILE)
echo of the file: $(cut -d: -f5- $PGPASSFILE | tr -d '\\\\')
echo encoded: $ENCODED
exit 3
"""


def test_a_hook_that_fails_and_prints_secrets_does_not_tell_them(tmp_path: Path) -> None:
    environment = {
        "PGPASSWORD": PASSWORD,
        "APP_TOKEN": WRONG,
        "PGPASSFILE": str(write_passwords(tmp_path, "elsewhere:*:*:*", OF_FILE)),
        "ENCODED": ENCODED,
    }
    failover = {
        "evaluator": "failover",
        "mix": "SELECT",
        "concurrency": 1,
        "before": "300ms",
        "after": "300ms",
        "hold": "100ms",
        "repetitions": 1,
    }
    hooked = {"rw": "sim://hooked?latency=constant(2ms)", "hooks": {"restart": SAID}}
    study = study_file(tmp_path, sim_study(failover, system=hooked))
    ended = execute(tmp_path, "run", study, environment=environment)
    assert ended.code == 1
    assert "system.hooks.restart ended with exit code 3. It said:\nthe variable: ***\n" in ended.err
    for line in ("another: token=***", "the file: elsewhere:*:*:*:***", "of the file: ***", "encoded: ***"):
        assert line in ended.err
    assert execute(tmp_path, "report", "runs/latest", environment=environment).code == 0


def test_a_secret_that_sessions_set_is_kept_nowhere(tmp_path: Path, place: str) -> None:
    tables = study_of(f"postgresql://tester:{ENCODED}@{place}", BRIEF)
    sql = ["SET app.key = '${APP_KEY}'", f"SET app.other = '{PASSWORD}'"]
    tables["load"] = {"interval": "100ms", "on_connect": sql}
    study = study_file(tmp_path, tables)
    ended = execute(tmp_path, "run", study, environment={"APP_KEY": WRONG})
    assert ended.code == 0, ended.err
    assert "SET app.key = '${APP_KEY}'" in kept(tmp_path)
    assert "SET app.other = '***'" in kept(tmp_path)
    unset = execute(tmp_path, "run", study)
    assert unset.code == 2
    assert "load.on_connect: the environment variable APP_KEY is not set" in unset.err
    # It is put in as it is: without quotes it is wrong SQL, of which the server tells.
    tables["load"]["on_connect"] = ["SET app.key = ${APP_KEY}"]
    refused = execute(tmp_path, "run", study_file(tmp_path, tables), environment={"APP_KEY": WRONG})
    assert refused.code == 1
    assert "SET app.key = ***" in refused.err


def test_a_secret_that_the_server_repeats_is_kept_nowhere(tmp_path: Path, place: str) -> None:
    workload = tmp_path / "leaky"
    workload.mkdir()
    (workload / "workload.lua").write_text(LEAKY)
    (workload / "statements.sql").write_text("-- name: leak\nSELECT current_setting('app.key')::integer;\n")
    leak = phases({"duration": "500ms", "mix": "LEAK", "concurrency": 2})
    tables = study_of(f"postgresql://tester:{ENCODED}@{place}", leak)
    tables["workload"] = {"name": "./leaky", "external": True}
    tables["load"] = {"interval": "100ms", "on_connect": ["SET app.key = '${APP_KEY}'"]}
    study = study_file(tmp_path, tables)
    ended = execute(tmp_path, "run", study, environment={"APP_KEY": WRONG})
    assert 'invalid input syntax for type integer: "***"' in ended.out
    events = (tmp_path / "runs" / "latest" / "events.jsonl").read_text()
    assert "invalid input syntax for type integer" in events


@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what other tests have used, and the environment's secrets."""
    monkeypatch.setattr(masking, "_known", set())
    monkeypatch.setattr(os, "environ", {"HOME": "/nowhere", "PWD": "/some/where"})


@pytest.mark.usefixtures("nothing_known")
def test_a_known_secret_is_masked_in_every_form() -> None:
    masking.know_url("postgresql://u:it%27s%20a%3Akey@h/d?sslpassword=an0ther&application_name=x")
    for form in ("it's a:key", "it%27s%20a%3Akey", "it''s a:key", "it's a\\:key", "an0ther"):
        assert masking.masked(f"said <{form}>") == "said <***>", form
    assert masking.masked("postgresql://u@h:5432/d: refused") == "postgresql://u@h:5432/d: refused"
    assert masking.masked("postgresql://v:never_seen@h/d, and on") == "postgresql://v:***@h/d, and on"


@pytest.mark.usefixtures("nothing_known")
def test_a_short_secret_is_masked_as_a_word_of_its_own() -> None:
    masking.know_url("postgresql://u:ab@h/d")
    assert masking.masked("ab was not able: (ab)") == "*** was not able: (***)"


@pytest.mark.usefixtures("nothing_known")
def test_variables_are_secrets_by_their_names() -> None:
    os.environ |= {
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtn",
        "MYSQL_PWD": "geheim1",
        "TOKEN_TIMES": "12",
        "PGPASSFILE": "/etc/motd",
        "CITY": "Springfield",
    }
    text = "wJalrXUtn geheim1 12 /etc/motd Springfield /some/where"
    assert masking.masked(text) == "*** *** 12 /etc/motd Springfield /some/where"
