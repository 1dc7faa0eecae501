"""A workload and a study made of a trace: its mix, its rates, its values."""

from __future__ import annotations

import tomllib
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from commands import call
from databases import query, running_server
from nephoscope.store import StoredRun
from server_logs import log_of

if TYPE_CHECKING:
    from pathlib import Path

WRITES, READS = 45, 15


def planted(folder: Path) -> Path:
    """Make a trace: 20 transactions in its first second, none in the second, 40 in the third; three of four write."""
    statements: list[tuple[float, str, float, str]] = []
    for number in range(WRITES + READS):
        second = number / 20 if number < 20 else 2 + (number - 20) / 40
        if number % 4 == 0:
            statements.append((second, "a", 0.1, f"SELECT v FROM t WHERE id = {number} -- it's a comment"))
            continue
        inner = (f"UPDATE t SET v = 'it''s :{number} \\ \"\n' WHERE id = {number}", 'SELECT 1 AS "one:two"')
        statements += [
            (second + at / 1e3, "b", 0.1, sql) for at, sql in enumerate(("BEGIN", *inner, "COMMIT"))
        ]
    log, trace = folder / "server.csv", folder / "trace.parquet"
    log.write_text(log_of(*statements))
    assert call("trace", "import", log, "--out", trace).code == 0
    return trace


def test_its_transactions_run_at_its_rates_with_its_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "made"
    made = call("trace", "workload", planted(tmp_path), "--out", folder, "--slot", "1s")
    assert (made.code, made.err) == (0, "")
    assert "60 transactions of 2 shapes, 60 examples; 3 slots of 1 s" in made.out
    phases = tomllib.loads((folder / "study.toml").read_text())["measure"][0]["phases"]
    assert [phase.get("rate", 0) for phase in phases] == [20, 0, 40]
    with running_server() as server:
        url = server.new_database()
        query(url, "CREATE TABLE t (id int PRIMARY KEY, v text)")
        query(url, "INSERT INTO t SELECT number, '' FROM generate_series(0, 59) AS number")
        monkeypatch.setenv("RW_URL", url)
        ended = call("run", folder / "study.toml", "--out", tmp_path / "runs")
        assert ended.code == 0, ended.out + ended.err
        rows = query(url, "SELECT id, v FROM t WHERE v <> ''")
    run = StoredRun(tmp_path / "runs" / "latest")
    committed: Counter[str] = Counter()
    for row in run.intervals.to_pylist():
        committed[row["transaction"]] += row["committed"]
        assert row["failed"] == row["aborted"] == 0
    # Two Poisson processes of three seconds in all: no count is further from its mean in a million runs.
    assert 25 < committed["t1"] + committed["t2"] < 105
    assert committed["t1"] > committed["t2"] > 0
    assert rows
    assert all(value == f"it's :{number} \\ \"\n" and int(str(number)) % 4 for number, value in rows)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--slot", "0s"], "--slot 0s: no such length"),
        (["--slot", "soon"], "--slot soon"),
        (["--examples", "0"], "--examples 0: allowed are 1 to 10,000"),
        (["--out", "."], "is there already"),
    ],
)
def test_what_cannot_be_made_is_refused(tmp_path: Path, options: list[str], why: str) -> None:
    trace = planted(tmp_path)
    ended = call("trace", "workload", trace, "--out", tmp_path / "made", *options)
    assert (ended.code, why in ended.err) == (2, True), ended.err
    assert not (tmp_path / "made").exists()
