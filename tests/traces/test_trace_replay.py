"""Traces of tpcc on real servers, replayed on a copy of the data: the same statements, the same end of the tables."""

from __future__ import annotations

import json
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
from nephoscope.systems.postgres import settings
from recordings import recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 4
RATE = 60
FEW = 15
"""Of MariaDB, whose locks of gaps no trace tells of: side by side transactions would wait for each other."""
OPTIONS = {"items": 10000, "customers": 30}
CLOCKS = ("o_entry_d", "h_date", "ol_delivery_d")
"""Columns that have the server's clock: a replay is at another time."""
LATE_US = 50_000
"""A replay on a machine that runs is never so late."""


def study_of_tpcc(url: str, folder: Path, rate: int) -> Path:
    phase = {"duration": f"{SECONDS}s", "rate": rate, "mix": "TPCC"}
    study = folder / "study.toml"
    measure = {"evaluator": "load", "phases": [phase]}
    tables = study_of(url, measure, name="tpcc", options=OPTIONS, scale=1)
    study.write_text(tomli_w.dumps(tables))
    return study


def load_tpcc(url: str, folder: Path) -> None:
    loaded = call("load", study_of_tpcc(url, folder, 1))
    assert loaded.code == 0, loaded.err


def run_tpcc(url: str, folder: Path, rate: int = RATE) -> None:
    ended = call("run", study_of_tpcc(url, folder, rate), "--out", folder)
    assert ended.code == 0, ended.err


def imported(log: Path, folder: Path, database: str) -> Path:
    trace = folder / "trace.parquet"
    ended = call("trace", "import", log, "--out", trace, "--database", database)
    assert ended.code == 0, ended.err
    return trace


def wait_until_written(path: Path, mark: str) -> None:
    until = time.monotonic() + 20
    while not (path.exists() and mark.encode() in path.read_bytes()):
        assert time.monotonic() < until, f"{mark} is not in {path}"
        time.sleep(0.05)


def tables(url: str, schema: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, of those with a clock without it."""
    found = {}
    for (table,) in query(
        url, f"SELECT table_name FROM information_schema.tables WHERE table_schema = {schema}"
    ):
        columns = query(
            url,
            "SELECT column_name FROM information_schema.columns"
            f" WHERE table_schema = {schema} AND table_name = '{table}' ORDER BY ordinal_position",
        )
        shown = [
            f"({name} IS NULL)" if name in CLOCKS else str(name)
            for (name,) in columns
            if not str(table).startswith("nephoscope")
        ]
        if shown:
            rows = query(url, f"SELECT {', '.join(shown)} FROM {table}")
            found[str(table)] = sorted(tuple(map(str, row)) for row in rows)
    return found


def replayed(trace: Path, url: str, out: Path, *options: str) -> dict[str, Any]:
    ended = call("trace", "replay", trace, "--to", url, "--out", out, "--json", *options)
    assert ended.code == 0, ended.err
    told: dict[str, Any] = json.loads(ended.out)
    return told


def check_replay(trace: Path, out: Path, told: dict[str, Any]) -> None:
    """Every statement of the trace was sent, and none ended otherwise than when it was recorded."""
    recorded = Counter(pq.read_table(trace).column("fingerprint").to_pylist())
    sent = pq.read_table(out)
    assert Counter(sent.column("fingerprint").to_pylist()) == recorded
    assert told["statements"] == recorded.total() > SECONDS * FEW * 5
    assert told["left_out"] == {}
    # How many sessions do what is another matter at another time.
    diverged = [one for one in told["diverged"] if "pg_stat_get_activity" not in one["statement"]]
    everything = next(late for late in told["lateness"] if late["late"] == "all")
    if everything["max_us"] > LATE_US:
        diverged = [one for one in diverged if not is_other_answer(one)]
    assert (told["lost"], told["out_of_order"], diverged) == (0, 0, [])
    assert everything["statements"] == told["statements"]


def is_other_answer(diverged: dict[str, Any]) -> bool:
    """Say whether nothing but the answers of a query differ. One that does not name its rows keeps its time alone, so
    that of a late replay sees what was written meanwhile.
    """
    is_query = str(diverged["statement"]).startswith("select")
    return is_query and diverged["new_errors"] == diverged["missing_errors"] == 0


def check_state(original: str, copy: str, schemas: tuple[str, str]) -> None:
    first, second = tables(original, schemas[0]), tables(copy, schemas[1])
    assert set(first) == set(second) >= {"orders", "order_line", "stock", "customer", "history"}
    differing = [name for name in first if first[name] != second[name]]
    assert differing == []


@dataclass(frozen=True)
class Recorded:
    """A run of tpcc, recorded in two ways at the same time."""

    url: str
    """The database as the run has left it."""
    traces: dict[str, Path]
    """By the name of the copy, made before the run, that each is replayed on."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "OURS", settings.OURS - {"logging_collector", "log_destination"})
        with running_server(
            logging_collector=True, log_destination="csvlog", log_filename="trace.log"
        ) as server:
            url = server.new_database()
            name = url.rpartition("/")[2]
            log = Path(query(url, "SHOW data_directory")[0][0] or "") / "log" / "trace.csv"
            load_tpcc(url, folder)
            with psycopg.connect(server.url, autocommit=True) as other:
                for copy in ("logged", "passed"):
                    other.execute(f"CREATE DATABASE {copy} TEMPLATE {name}".encode())
                other.execute(f"ALTER DATABASE {name} SET log_min_duration_statement = 0".encode())
                wire = folder / "wire.parquet"
                with recording(url, wire, "--database", name, left_out=False) as through:
                    run_tpcc(through, folder)
                query(url, "SELECT 'the last statement'")
                wait_until_written(log, "the last statement")
                other.execute(f"ALTER DATABASE {name} RESET log_min_duration_statement".encode())
            yield Recorded(url, {"logged": imported(log, folder, name), "passed": wire})


def told_of(row: dict[str, Any]) -> str:
    """A floating-point number is written with an exponent in a recording, and without one in the general log."""
    kinds = row["kinds"].replace("[", "").replace("]", "")
    values = zip(kinds, row["parameters"], strict=True)
    return str({**row, "parameters": [float(value) if kind == "n" else value for kind, value in values]})


def check_same_statements(
    recorded: Recorded, columns: list[str], *beside: str, told: Callable[[dict[str, Any]], str] = str
) -> None:
    """The log has more: the statement that shows that it is written, and what its connection begins with."""
    logged, passed = (
        Counter(told(row) for row in pq.read_table(trace, columns=columns).to_pylist())
        for trace in recorded.traces.values()
    )
    more = sorted((logged - passed).elements())
    assert len(more) == 1 + len(beside), more
    assert all(any(text in one for one in more) for text in ("the last statement", *beside))
    assert sorted((passed - logged).elements()) == []
    assert passed.total() > SECONDS * FEW * 5


def test_the_log_and_the_recording_have_the_same_statements(recorded: Recorded) -> None:
    columns = ["fingerprint", "statement", "kinds", "parameters", "error", "database"]
    check_same_statements(recorded, columns)


@pytest.mark.parametrize("copy", ["logged", "passed"])
def test_tpcc_of_postgresql_ends_as_it_was_recorded(recorded: Recorded, tmp_path: Path, copy: str) -> None:
    trace, out = recorded.traces[copy], tmp_path / "statements.parquet"
    counted = pq.read_table(trace).column("rows").drop_null()
    assert (len(counted) > 0) == (copy == "passed")
    target = f"{recorded.url.rpartition('/')[0]}/{copy}"
    told = replayed(trace, target, out, "--order", "commits")
    check_replay(trace, out, told)
    check_state(recorded.url, target, ("'public'", "'public'"))


@pytest.fixture(scope="module")
def recorded_mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    folder = tmp_path_factory.mktemp("recorded-mariadb")
    with running_mariadb(general_log=True, log_output="TABLE") as server:
        url = server.new_database()
        name = url.rpartition("/")[2]
        log = Path(query(url, "SELECT @@datadir")[0][0] or "") / "mysql" / "general_log.CSV"
        load_tpcc(url, folder)
        for copy in ("logged", "passed"):
            query(url, f"CREATE DATABASE {copy}")
            for (table,) in query(url, "SHOW TABLES"):
                query(url, f"CREATE TABLE {copy}.{table} LIKE {table}")
                query(url, f"INSERT INTO {copy}.{table} SELECT * FROM {table}")
        query(url, "SELECT 'the copy'")
        wait_until_written(log, "the copy")
        before = log.stat().st_size
        wire = folder / "wire.parquet"
        with recording(url, wire, "--database", name, left_out=False) as through:
            run_tpcc(through, folder, FEW)
        query(url, "SELECT 'the last statement'")
        wait_until_written(log, "the last statement")
        run = folder / "general_log.CSV"
        run.write_bytes(log.read_bytes()[before:])
        yield Recorded(url, {"logged": imported(run, folder, name), "passed": wire})


def test_the_general_log_and_the_recording_have_the_same_statements(recorded_mariadb: Recorded) -> None:
    columns = ["fingerprint", "statement", "kinds", "parameters", "database"]
    check_same_statements(recorded_mariadb, columns, "set time_zone", told=told_of)


@pytest.mark.parametrize("copy", ["logged", "passed"])
def test_tpcc_of_mariadb_ends_as_it_was_recorded(
    recorded_mariadb: Recorded, tmp_path: Path, copy: str
) -> None:
    trace, out, url = recorded_mariadb.traces[copy], tmp_path / "statements.parquet", recorded_mariadb.url
    counted = pq.read_table(trace).column("rows").drop_null()
    assert (len(counted) > 0) == (copy == "passed")
    base, _, name = url.rpartition("/")
    told = replayed(trace, f"{base}/{copy}", out, "--order", "commits")
    check_replay(trace, out, told)
    check_state(url, f"{base}/{copy}", (f"'{name}'", f"'{copy}'"))
