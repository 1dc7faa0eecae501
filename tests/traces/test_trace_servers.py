"""Logs of real servers as traces: what was run is known, and has to be in them."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow.parquet as pq
import pytest
import tomli_w

from commands import call
from databases import query, running_mariadb, running_server, study_of
from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.postgres import settings
from nephoscope.traces.importing import import_log
from recordings import recording

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PLANTED = ["it's", 'a "b", $1 = c', "line\nbreak \\ tab\t", "Grüße, 日本", "", None, "-17", "plantedword"]
SECRET = "hunter2-never-kept"


def wait_for(path: Path, mark: str) -> None:
    """A server's log is written by another process of it."""
    until = time.monotonic() + 20
    while not (path.exists() and mark.encode() in path.read_bytes()):
        assert time.monotonic() < until, f"{mark} is not in {path}"
        time.sleep(0.05)


def rows(trace: Path, *columns: str) -> list[tuple[Any, ...]]:
    table = pq.read_table(trace)
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def by_session(trace: Path, *, times: bool = True) -> Counter[str]:
    """Each session's rows, with its transactions numbered by themselves.

    Sessions that log at the same moment stand in the two logs in different orders, so their numbers differ.
    """
    sessions: dict[int, list[tuple[Any, ...]]] = {}
    transactions: dict[int, dict[int, int]] = {}
    timed = ("time_us", "duration_us") if times else ()
    columns = (*timed, "fingerprint", "statement", "kinds", "parameters", "error", "database")
    for session, place, transaction, *told in rows(trace, "session", "place", "transaction", *columns):
        known = transactions.setdefault(session, {})
        sessions.setdefault(session, []).append((place, known.setdefault(transaction, len(known)), *told))
    return Counter(repr(of) for of in sessions.values())


def fingerprints(statements: Sequence[tuple[str, int]], dialect: str) -> Counter[int]:
    counted: Counter[int] = Counter()
    for sql, count in statements:
        counted[_engine.fingerprint_sql(sql, dialect)[1]] += count
    return counted


@dataclass(frozen=True)
class Ran:
    """What was run on a PostgreSQL server, and what tells of it."""

    logs: Path
    traces: dict[str, Path]
    """Of both logs, and of what passed through the recorder meanwhile."""
    run: Counter[int]
    """By a client of ours."""
    votes: int
    """How many a run has left."""


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "OURS", settings.OURS - {"logging_collector", "log_destination"})
        with running_server(
            logging_collector=True,
            log_destination="csvlog,jsonlog",
            log_filename="trace.log",
            log_min_duration_statement=0,
        ) as server:
            url = server.new_database()
            folder = tmp_path_factory.mktemp("run")
            traces = {form: folder / f"{form}.parquet" for form in ("csv", "json", "wire")}
            with recording(url, traces["wire"]) as through:
                run = _client(through)
                study = folder / "study.toml"
                measure = {
                    "evaluator": "load",
                    "phases": [{"duration": "1s", "concurrency": 2, "mix": "VOTER"}],
                }
                study.write_text(tomli_w.dumps(study_of(through, measure, name="voter", scale=0.01)))
                ended = call("run", study, "--out", study.parent)
                assert ended.code == 0, ended.err
            ran = int(query(url, "SELECT count(*) FROM votes")[0][0] or 0)
            logs = Path(query(url, "SHOW data_directory")[0][0] or "") / "log"
            query(url, "SELECT 'the last statement'")
            for form in ("csv", "json"):
                wait_for(logs / f"trace.{form}", "the last statement")
                import_log([str(logs / f"trace.{form}")], traces[form], log_format=f"postgresql-{form}")
            yield Ran(logs, traces, run, ran)


def _client(url: str) -> Counter[int]:
    """Run statements of every kind; gives how often each fingerprint was run."""
    run: list[tuple[str, int]] = []
    with psycopg.connect(url, autocommit=True, prepare_threshold=2) as connection:
        connection.execute("CREATE TABLE planted (a int, b text)")
        connection.execute(f"CREATE ROLE stranger PASSWORD '{SECRET}'")
        with connection.transaction():
            for at, value in enumerate(PLANTED):
                connection.execute("INSERT INTO planted (a, b) VALUES (%s, %s)", (at, value))
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("SELECT missing FROM planted")
        for count in (1, 2, 5):
            listed = ", ".join(map(str, range(count)))
            connection.execute(f"SELECT b FROM planted WHERE a IN ({listed})".encode())
    run = [
        ("CREATE TABLE planted (a int, b text)", 1),
        ("INSERT INTO planted (a, b) VALUES ($1, $2)", len(PLANTED)),
        ("SELECT missing FROM planted", 1),
        ("SELECT b FROM planted WHERE a IN (1)", 3),
    ]
    return fingerprints(run, "postgres")


def test_logs_and_recording_tell_the_same(postgres: Ran) -> None:
    # As a whole: a difference of thousands of rows takes minutes to be worded.
    is_same = by_session(postgres.traces["csv"]) == by_session(postgres.traces["json"])
    assert is_same
    # The log has sessions of other clients, too, which did not come through the recorder.
    wire, logged = (by_session(postgres.traces[form], times=False) for form in ("wire", "csv"))
    is_within = wire <= logged
    assert is_within
    assert wire.total() > 2


@pytest.mark.parametrize("form", ["csv", "json", "wire"])
def test_what_was_run_is_in_the_trace(postgres: Ran, form: str) -> None:
    trace, run, votes = postgres.traces[form], postgres.run, postgres.votes
    assert SECRET.encode() not in trace.read_bytes()
    made = pq.read_table(trace)
    found = Counter(made.column("fingerprint").to_pylist())
    assert {print_: found[print_] for print_ in run} == dict(run)
    voted = [count for text, count in _by_text(made).items() if text.startswith("insert into votes")]
    # What was on its way at the run's end may have been rolled back.
    assert sum(voted) >= votes > 0
    assert sum(voted) <= votes + 2
    inserted = [
        (kinds, values, error, within)
        for text, kinds, values, error, within in rows(
            trace, "statement", "kinds", "parameters", "error", "transaction"
        )
        if text.startswith("insert into planted")
    ]
    assert [values for _, values, _, _ in inserted] == [[str(at), value] for at, value in enumerate(PLANTED)]
    assert len({within for *_, within in inserted}) == 1
    errors = rows(trace, "statement", "error")
    assert [text for text, error in errors if error == "42703"] == ["select missing from planted"]


def _by_text(table: Any) -> Counter[str]:
    return Counter(table.column("statement").to_pylist())


def test_nothing_planted_is_in_a_masked_trace(postgres: Ran, tmp_path: Path) -> None:
    run, out = postgres.run, tmp_path / "masked.parquet"
    assert import_log([str(postgres.logs / "trace.csv")], out, mask=True).meta.masked
    values = {value for (given,) in rows(out, "parameters") for value in given if value}
    assert not values & {value for value in PLANTED if value and len(value) > 3}
    assert b"plantedword" not in out.read_bytes()
    found = Counter(print_ for (print_,) in rows(out, "fingerprint"))
    assert {print_: found[print_] for print_ in run} == dict(run)


def test_the_general_log_is_read_in_both_forms(tmp_path: Path) -> None:
    run = [
        ("create table planted (a int, b text)", 1),
        ("insert into planted values (1, 'x')", 2),
        ("select * from planted where a in (1, 2)", 2),
        ("begin", 1),
        ("commit", 1),
    ]
    with running_mariadb(general_log=True, log_output="FILE,TABLE") as server:
        url = server.new_database()
        for sql in (
            "CREATE TABLE planted (a int, b text)",
            "BEGIN",
            "INSERT INTO planted VALUES (1, 'it\\'s\nso'), (-2, \"d\\\\\\\"é\")",
            "INSERT INTO planted VALUES (3, '')",
            "COMMIT",
            "SELECT * FROM planted WHERE a IN (1)",
            "SELECT * FROM planted WHERE a IN (1, 2, 3)",
        ):
            query(url, sql)
        with pytest.raises((InputError, MeasurementError)):
            query(url, f"SET PASSWORD FOR 'nobody' = PASSWORD('{SECRET}')")
        query(url, "SELECT 'the last statement'")
        ((folder, name),) = query(url, "SELECT @@datadir, @@general_log_file")
        forms = {
            "mariadb-general": Path(folder or "") / (name or ""),
            "mariadb-general-table": Path(folder or "") / "mysql" / "general_log.CSV",
        }
        for form, path in forms.items():
            wait_for(path, "the last statement")
            out = tmp_path / f"{form}.parquet"
            assert import_log([str(path)], out).meta.format == form
            assert SECRET.encode() not in out.read_bytes()
            found = Counter(print_ for (print_,) in rows(out, "fingerprint"))
            wanted = fingerprints(run, "mysql")
            assert {print_: found[print_] for print_ in wanted} == dict(wanted)
            inserted = [
                given for text, given in rows(out, "statement", "parameters") if "into planted" in text
            ]
            assert inserted == [["1", "it's\nso", "-2", 'd\\"é'], ["3", ""]]
