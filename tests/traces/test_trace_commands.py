"""``nephoscope trace``: what it prints, what it makes, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import call
from server_logs import log_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.csv"
    lines: list[tuple[float, str, float, str]] = []
    for at in range(30):
        second = 1 + at / 10
        lines += [
            (second, "1", 1, "BEGIN"),
            (second + 0.01, "1", 2, f"UPDATE account SET balance = balance - 5 WHERE id = {1000 + at}"),
            (second + 0.02, "1", 1, "COMMIT"),
            (second + 0.03, "2", 1, f"SELECT name FROM customer WHERE name = 'Anna{at}'"),
        ]
    lines.append((9, "3", 8500, "SELECT pg_sleep(8.5)"))
    lines.append((9.1, "3", 1, "ALTER ROLE u PASSWORD 'hunter2'"))
    path.write_text(log_of(*lines))
    return path


def test_a_log_is_imported_and_described(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "made.parquet"
    ended = call("trace", "import", log, "--out", out)
    assert (ended.code, ended.err) == (0, "")
    assert "121 statements of 122 records (postgresql-csv)" in ended.out
    assert "left out: 1 statements that may hold a password or a key" in ended.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.parquet", "server.csv"]
    assert b"hunter2" not in out.read_bytes()

    table = pq.read_table(out)
    assert table.column("time_us").to_pylist()[0] == 0
    sleeping = [row for row in table.to_pylist() if "pg_sleep" in row["statement"]]
    assert [(row["duration_us"], row["parameters"], row["kinds"]) for row in sleeping] == [
        (8_500_000, ["8.5"], "n")
    ]

    told = json.loads(call("trace", "describe", out, "--json").out)
    assert (told["sessions"], told["transactions"], told["statements"]) == (3, 61, 121)
    assert [(kind["count"], len(kind["statements"])) for kind in told["mix"]] == [(30, 3), (30, 1), (1, 1)]
    assert (told["reads"], told["writes"]) == (pytest.approx(31 / 121), pytest.approx(30 / 121))
    assert told["arrivals"]["sessions_most"] == 3
    assert (told["arrivals"]["least"], told["arrivals"]["most"]) == (12, 20)
    assert told["meta"]["zone"] == "UTC"
    shown = call("trace", "describe", out).out
    assert "update account set balance = balance - $1 where id = $2" in shown
    assert "index of dispersion" in shown


def test_a_trace_is_masked_afterwards_as_when_it_is_imported(log: Path, tmp_path: Path) -> None:
    plain, masked, again = (tmp_path / f"{name}.parquet" for name in ("plain", "masked", "again"))
    assert call("trace", "import", log, "--out", plain).code == 0
    assert call("trace", "import", log, "--out", masked, "--mask").code == 0
    assert call("trace", "mask", plain, "--out", again).code == 0
    first = pq.read_table(plain)
    for made in (masked, again):
        assert json.loads(call("trace", "describe", made, "--json").out)["meta"]["masked"] is True
        table = pq.read_table(made)
        assert table.drop(["parameters"]) == first.drop(["parameters"])
        given: list[Any] = [one.column("parameters").to_pylist() for one in (first, table)]
        pairs = {pair for lists in zip(*given, strict=True) for pair in zip(*lists, strict=True)}
        olds = [old for old, _ in pairs]
        assert len(olds) == len(set(olds)), "the same value has the same replacement"
        assert all(len(old) == len(new) for old, new in pairs)
        assert not any(old == new for old, new in pairs if old.startswith("Anna"))


def test_logs_are_read_from_a_pipe_and_from_several_files(log: Path, tmp_path: Path) -> None:
    lines = log.read_text().splitlines(keepends=True)
    parts = [tmp_path / "1.csv", tmp_path / "2.csv"]
    parts[0].write_text("".join(lines[:50]))
    parts[1].write_text("".join(lines[50:]))
    whole, pieces = tmp_path / "whole.parquet", tmp_path / "pieces.parquet"
    assert call("trace", "import", log, "--out", whole, "--database", "shop").code == 0
    assert call("trace", "import", *parts, "--out", pieces).code == 0
    assert pq.read_table(whole).equals(pq.read_table(pieces))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("no log\n", [], "its format is not certain: name it by --format (postgresql-csv, postgresql-json"),
        ("no log\n", ["--format", "x"], "--format x: no such format of logs (allowed: postgresql-csv"),
        ("a,b\n", ["--format", "postgresql-csv"], "server.csv: line 1: it has 2 columns (allowed: 26"),
        (log_of((1, "1", 1, "SELECT 1")) + "x\n", [], "server.csv: line 2: it has 1 columns"),
        (log_of((1, "1", 1, "SELECT 1")), ["--database", "other"], "no statement is in this log"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, text: str, options: list[str], message: str) -> None:
    path = tmp_path / "server.csv"
    path.write_text(text)
    ended = call("trace", "import", path, "--out", tmp_path / "made.parquet", *options)
    assert ended.code == 2
    assert message in " ".join(ended.err.split())
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    assert call("trace", "describe", path).code == 2
    pq.write_table(pa.table({"a": [1]}), path)
    ended = call("trace", "describe", path)
    assert (ended.code, "is no trace of SQL" in ended.err) == (2, True)
    path.write_text("text")
    assert call("trace", "mask", path, "--out", tmp_path / "made").code == 2
    assert list(tmp_path.iterdir()) == [path]
