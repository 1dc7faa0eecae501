"""Traces of tpcc on real servers, replayed on a copy of the data: the same statements, the same end of the tables."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow.parquet as pq
import pytest
import tomli_w

from commands import call
from databases import query, running_mariadb, running_server, study_of
from nephoscope.systems.postgres import settings

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 4
RATE = 60
FEW = 15
"""Of MariaDB, whose locks of gaps no trace tells of: side by side transactions would wait for each other."""
OPTIONS = {"items": 10000, "customers": 30}
CLOCKS = ("o_entry_d", "h_date", "ol_delivery_d")
"""Columns that have the server's clock: a replay is at another time."""


def run_tpcc(url: str, folder: Path, copy: Callable[[], object], *record: str, rate: int = RATE) -> None:
    """Load tpcc, have it copied, begin to record, and run it."""
    phase = {"duration": f"{SECONDS}s", "rate": rate, "mix": "TPCC"}
    study = folder / "study.toml"
    measure = {"evaluator": "load", "phases": [phase]}
    tables = study_of(url, measure, name="tpcc", options=OPTIONS, scale=1)
    study.write_text(tomli_w.dumps(tables))
    loaded = call("load", study)
    assert loaded.code == 0, loaded.err
    copy()
    for sql in record:
        query(url, sql)
    ended = call("run", study, "--out", folder)
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
    assert (told["lost"], told["out_of_order"], told["diverged"]) == (0, 0, [])
    assert next(late["statements"] for late in told["lateness"]) == told["statements"]


def check_state(original: str, copy: str, schemas: tuple[str, str]) -> None:
    first, second = tables(original, schemas[0]), tables(copy, schemas[1])
    assert set(first) == set(second) >= {"orders", "order_line", "stock", "customer", "history"}
    differing = [name for name in first if first[name] != second[name]]
    assert differing == []


def test_tpcc_of_postgresql_ends_as_it_was_recorded(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "OURS", settings.OURS - {"logging_collector", "log_destination"})
        with running_server(
            logging_collector=True, log_destination="csvlog", log_filename="trace.log"
        ) as server:
            url = server.new_database()
            base, _, name = url.rpartition("/")
            with psycopg.connect(server.url, autocommit=True) as other:

                def copied() -> None:
                    other.execute(f"CREATE DATABASE copied TEMPLATE {name}".encode())

                run_tpcc(url, tmp_path, copied, f"ALTER DATABASE {name} SET log_min_duration_statement = 0")
            log = Path(query(url, "SHOW data_directory")[0][0] or "") / "log" / "trace.csv"
            query(url, "SELECT 'the last statement'")
            wait_until_written(log, "the last statement")
            query(url, f"ALTER DATABASE {name} RESET log_min_duration_statement")
            trace = imported(log, tmp_path, name)
            out = tmp_path / "statements.parquet"
            told = replayed(trace, f"{base}/copied", out, "--order", "commits")
            check_replay(trace, out, told)
            check_state(url, f"{base}/copied", ("'public'", "'public'"))


def test_tpcc_of_mariadb_ends_as_it_was_recorded(tmp_path: Path) -> None:
    with running_mariadb(general_log=True, log_output="TABLE") as server:
        url = server.new_database()
        base, _, name = url.rpartition("/")
        log = Path(query(url, "SELECT @@datadir")[0][0] or "") / "mysql" / "general_log.CSV"

        def copied() -> None:
            query(url, "CREATE DATABASE copied")
            for (table,) in query(url, "SHOW TABLES"):
                query(url, f"CREATE TABLE copied.{table} LIKE {table}")
                query(url, f"INSERT INTO copied.{table} SELECT * FROM {table}")
            query(url, "SELECT 'the copy'")
            wait_until_written(log, "the copy")
            sizes.append(log.stat().st_size)

        sizes: list[int] = []
        run_tpcc(url, tmp_path, copied, rate=FEW)
        query(url, "SELECT 'the last statement'")
        wait_until_written(log, "the last statement")
        run = tmp_path / "general_log.CSV"
        run.write_bytes(log.read_bytes()[sizes[0] :])
        trace = imported(run, tmp_path, name)
        out = tmp_path / "statements.parquet"
        told = replayed(trace, f"{base}/copied", out, "--order", "commits")
        check_replay(trace, out, told)
        check_state(url, f"{base}/copied", (f"'{name}'", "'copied'"))
