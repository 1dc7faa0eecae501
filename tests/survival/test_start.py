"""Connections that cannot be had at the start of a run: one message within the time limit, and no run directory."""

from __future__ import annotations

import json
import re
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tls_server import TlsServer, tls_server

from commands import PATIENCE_S, call
from databases import Server, query, running_server, study_of
from nephoscope import _engine
from sample_studies import phases, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BRIEF = phases({"duration": "300ms", "mix": "RW", "concurrency": 2})
HOLE = {"to_server": {"black_hole": True}, "to_client": {"black_hole": True}}
SILENT = "accepted the connection and did not answer within the time limit"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server(max_connections=20) as server:
        yield server


@pytest.fixture(scope="module")
def secure() -> Iterator[TlsServer]:
    with tls_server() as server:
        yield server


def refused(folder: Path, url: str, **load: Any) -> str:
    """Run a study that cannot connect; return the one message."""
    tables = study_of(url, BRIEF)
    tables["load"] |= load
    begun = time.monotonic()
    ended = call("run", write_study(folder, tables), "--out", folder / "runs")
    assert time.monotonic() - begun < PATIENCE_S
    assert ended.code == 1, ended.err
    assert ended.err.startswith("nephoscope: ")
    assert len(ended.err.splitlines()) == 1, ended.err
    assert not (folder / "runs").exists(), "nothing is half-written"
    return ended.err


def case(fault: str, *values: Any, on: str = "PostgreSQL", promise: str = "exit code 1, one message") -> Any:
    mark = pytest.mark.survives(part="start", fault=fault, promise=f"{promise}; no run directory", on=on)
    return pytest.param(*values, marks=mark, id=fault)


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        case(
            "a wrong password", r":[\w-]+@", ":wrong@", 'password authentication failed for user "postgres"'
        ),
        case(
            "an unknown host", r"@127[^/]+", "@no.such.host.invalid", 'host "no.such.host.invalid": failed to'
        ),
        case("a database that is not there", r"$", "_none", '_none" does not exist (3D000)'),
        case("a port where nobody listens", r"(@.+):\d+/", r"\1:9/", "127.0.0.1:9: Connection refused"),
        case("a server without TLS, where TLS is required", r"$", "?sslmode=require", "does not offer TLS"),
    ],
)
def test_what_cannot_connect_is_told_in_one_message(
    tmp_path: Path, server: Server, pattern: str, replacement: str, message: str
) -> None:
    url = re.sub(pattern, replacement, server.new_database(), count=1)
    assert message in refused(tmp_path, url)


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        case("an endpoint in a black hole", HOLE, SILENT, on="PostgreSQL behind the fault proxy"),
        case(
            "a server that accepts and never answers",
            {"accept": "silent"},
            SILENT,
            on="PostgreSQL behind the fault proxy",
        ),
        case(
            "a slow-loris server: a byte a second",
            {"to_client": {"rate": 1}},
            SILENT,
            on="PostgreSQL behind the fault proxy",
        ),
        case(
            "garbage in place of the protocol",
            {"to_client": {"garbage_after": {"after": 0, "bytes": b"HTTP/1.1 400\r\n".hex()}}},
            "the server sent data before the TLS handshake",
            on="PostgreSQL behind the fault proxy",
        ),
        case(
            "connections that are reset",
            {"accept": "reset"},
            "Connection reset by peer",
            on="PostgreSQL behind the fault proxy",
        ),
    ],
)
def test_what_does_not_answer_is_given_up_within_its_time_limit(
    tmp_path: Path, server: Server, faults: dict[str, Any], message: str
) -> None:
    url = server.new_database()
    place = url.partition("@")[2].partition("/")[0]
    proxy = _engine.FaultProxy(place)
    try:
        proxy.set(json.dumps(faults))
        through = url.replace(place, proxy.address)
        assert message in refused(tmp_path, through, connect_timeout="1s")
    finally:
        proxy.close()


def test_every_connection_of_a_command_has_the_time_limit_of_its_study(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = []
    admin = _engine.Admin

    def spy(url: str, connect_timeout_s: float = 10.0, **more: Any) -> _engine.Admin:
        limits.append(connect_timeout_s)
        return admin(url, connect_timeout_s, **more)

    monkeypatch.setattr(_engine, "Admin", spy)
    # Long enough for the monitor to connect, too, on a machine that has much else to do.
    tables = study_of(server.new_database(), phases({"duration": "2s", "mix": "RW", "concurrency": 2}))
    limits.clear()
    tables["load"] |= {"connect_timeout": "7s"}
    study = write_study(tmp_path, tables)
    for command in ("load", "check", "run"):
        assert call(command, study, *(("--out", tmp_path / "runs") if command == "run" else ())).code == 0
    # The monitor has a limit of its own: it must not wait while it should sample. Nor is the room waited for.
    assert set(limits) == {7.0, 5.0, 2.0}


@pytest.mark.survives(
    part="start",
    fault="more sessions than the server takes connections",
    promise="exit code 2, one message that names the step, its sessions and the server's limit; nothing is loaded",
    on="PostgreSQL",
)
def test_what_can_never_fit_is_refused_before_anything_is_loaded(tmp_path: Path, server: Server) -> None:
    url = server.new_database()
    crowd = study_of(url, phases({"duration": "300ms", "mix": "RW", "concurrency": 40}))
    ended = call("run", write_study(tmp_path, crowd), "--out", tmp_path / "runs")
    assert (ended.code, len(ended.err.splitlines())) == (2, 1), ended.err
    assert "wants 40 sessions" in ended.err
    assert ended.err.endswith(": max_connections is 20\n"), ended.err
    assert query(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [["0"]]


@pytest.mark.survives(
    part="start",
    fault="others have left fewer connections than a study wants",
    promise="exit code 1, one message with the server's words (53300); the run directory says why, and opens",
    on="PostgreSQL",
)
def test_too_many_connections_at_the_start_are_told_in_the_servers_words(
    tmp_path: Path, server: Server
) -> None:
    url = server.new_database()
    study = write_study(
        tmp_path, study_of(url, phases({"duration": "300ms", "mix": "RW", "concurrency": 16}))
    )
    assert call("load", study).code == 0
    with ExitStack() as others_connected:
        for _ in range(8):
            others_connected.callback(_engine.Admin(url).close)
        ended = call("run", study, "--out", tmp_path / "runs")
    assert ended.code == 1
    assert "places are free now: max_connections is 20" in ended.out
    assert len(ended.err.splitlines()) == 1, ended.err
    assert ended.err.endswith("too many clients already (53300)\n"), ended.err
    latest = tmp_path / "runs" / "latest"
    manifest = json.loads((latest / "manifest.json").read_text())
    assert manifest["status"] == "failed"
    assert "53300" in manifest["reason"]
    assert call("report", latest).code == 0
    others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    assert int(query(server.url, others)[0][0] or 0) < 10, "no connection is left behind"


CERTIFICATES = [
    case("a certificate of another name, under verify-full", "DNS:db.example.com", {}, "not for localhost"),
    case(
        "a certificate that has expired, under verify-full",
        "DNS:localhost",
        {"end": "20200131000000Z"},
        "expired",
    ),
    case(
        "a certificate that is not yet valid, under verify-full",
        "DNS:localhost",
        {"start": "20480101000000Z"},
        "it is not valid before 2048-01-01",
    ),
]


@pytest.mark.parametrize(("names", "dates", "message"), CERTIFICATES)
def test_a_certificate_that_does_not_fit_is_refused(
    tmp_path: Path, secure: TlsServer, names: str, dates: dict[str, str], message: str
) -> None:
    url = f"postgresql://postgres@{secure.place}?sslmode=verify-full&sslrootcert={secure.root}"
    secure.certificates.sign("wrong", names, **dates)
    secure.show("wrong")
    assert message in refused(tmp_path, url)
    # It is the certificate alone: with the right one the same URL will do.
    secure.show("right")
    assert call("run", write_study(tmp_path, study_of(url, BRIEF)), "--out", tmp_path / "runs").code == 0
