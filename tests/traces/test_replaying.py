"""Replays of small traces: who was late, what comes after what, what is left out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from commands import call
from databases import query, running_server
from nephoscope.interrupts import Interrupted
from nephoscope.traces import replaying
from nephoscope.traces.replayed import Outcomes
from nephoscope.traces.replaying import ReplayOptions, replay_trace
from server_logs import log_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Replayed = tuple[dict[str, Any], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server() as server:
        url = server.new_database()
        query(url, "CREATE TABLE t (id int PRIMARY KEY, v text)")
        query(url, "INSERT INTO t VALUES (1, ''), (2, '')")
        yield url


def trace_of(folder: Path, *statements: tuple[float, str, float, str]) -> Path:
    """Import statements of second, session, milliseconds and SQL."""
    log, trace = folder / "server.csv", folder / "trace.parquet"
    log.write_text(log_of(*statements))
    assert call("trace", "import", log, "--out", trace).code == 0
    return trace


def replay(trace: Path, url: str, *options: str) -> Replayed:
    """Give what is told, and the statements' rows."""
    out = trace.with_name("out.parquet")
    ended = call("trace", "replay", trace, "--to", url, "--out", out, "--json", *options)
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out), pq.read_table(out).to_pylist()


def by_session(rows: list[dict[str, Any]]) -> Mapping[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["session"], []).append(row)
    return found


def test_who_was_late_is_told(url: str, tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        (1.0, "1", 1, "SELECT pg_sleep(0.4)"),
        (1.1, "1", 1, "SELECT v FROM t WHERE id = 2"),
        (1.1, "2", 1, "SELECT 'of another session'"),
    )
    told, rows = replay(trace, url)
    (_, second), (other,) = by_session(rows).values()
    assert (second["late"], other["late"]) == ("server", "nephoscope")
    assert second["lateness_us"] > 250_000
    assert second["sent_us"] > rows[0]["answered_us"] > 400_000
    assert all(row["sent_us"] >= row["planned_us"] and row["fate"] == "done" for row in rows)
    late = {found["late"]: found["statements"] for found in told["lateness"]}
    assert late == {"all": 3, "server": 1, "nephoscope": 2, "added by nephoscope": 3}
    own = next(found for found in told["lateness"] if found["late"] == "added by nephoscope")
    assert own["max_us"] < second["lateness_us"], "what the server held up is not nephoscope's"


def test_a_statement_comes_after_the_commits_of_its_rows_if_asked_for(url: str, tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        (1.00, "1", 1, "BEGIN"),
        (1.01, "1", 1, "UPDATE t SET v = 'a' WHERE id = 1"),
        (1.02, "1", 1, "SELECT pg_sleep(0.4)"),
        (1.03, "1", 1, "COMMIT"),
        (1.10, "2", 1, "SELECT v FROM t WHERE id = 1"),
        (1.10, "3", 1, "UPDATE t SET v = 'b' WHERE id = 2"),
    )
    for order in ("sessions", "commits"):
        _, rows = replay(trace, url, "--order", order)
        (*_, commit), (reader,), (other,) = by_session(rows).values()
        assert other["answered_us"] < commit["sent_us"]
        is_after = reader["sent_us"] > commit["answered_us"]
        assert is_after == (order == "commits")
        assert reader["late"] == ("server" if is_after else "nephoscope")


def test_what_ends_otherwise_is_told_and_a_lost_transaction_is_left_out(url: str, tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        (1.00, "1", 1, "BEGIN"),
        (1.01, "1", 1, "SELECT pg_terminate_backend(pg_backend_pid())"),
        (1.02, "1", 1, "UPDATE t SET v = 'never' WHERE id = 2"),
        (1.03, "1", 1, "COMMIT"),
        (1.04, "1", 1, "SELECT v FROM t WHERE id = 2"),
        (1.05, "2", 1, "SELECT missing FROM t"),
        (1.06, "2", 1, "SELECT pg_sleep(30)"),
        (1.07, "2", 1, "BEGIN; SELECT 1; COMMIT"),
    )
    told, rows = replay(trace, url, "--answer-timeout", "300ms")
    fates = [(row["fate"], row["error"]) for row in rows]
    assert fates[0] == ("done", None)
    assert fates[1][0] == "failed"
    assert fates[2:5] == [("left out", None), ("left out", None), ("done", None)]
    assert fates[5:] == [("failed", "42703"), ("failed", "statement_timeout"), ("done", None)]
    assert (told["failed"], told["lost"]) == (3, 2)
    codes = {found["statement"]: found["codes"] for found in told["diverged"]}
    assert codes["select missing from t"] == {"42703": 1}
    assert query(url, "SELECT count(*) FROM t WHERE v = 'never'") == [["0"]]


def test_transactions_of_which_a_part_is_missing_are_left_out(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        (1.00, "1", 1, "UPDATE t SET v = 'a' WHERE id = 1"),
        (1.01, "1", 1, "COMMIT"),
        (1.02, "1", 1, "BEGIN"),
        (1.03, "1", 1, "COMMIT"),
        (1.04, "2", 1, "BEGIN"),
        (1.05, "2", 1, "ALTER ROLE u PASSWORD 'hunter2'"),
        (1.06, "2", 1, "COMMIT"),
        (1.07, "2", 1, "COPY t FROM STDIN"),
        (1.08, "3", 1, "BEGIN"),
        (1.09, "3", 1, "SELECT 1"),
    )
    told, rows = replay(trace, "noop://")
    assert [row["row"] for row in rows] == [2, 3, 7, 8]
    assert sorted(told["left_out"].values()) == [1, 3]
    assert told["unfinished"] == 1
    told, rows = replay(trace, "noop://", "--partial")
    assert len(rows) == 8
    assert list(told["left_out"].values()) == [1]


def test_the_speed_divides_the_planned_times(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, *((1 + at / 5, "1", 1, f"SELECT {at}") for at in range(6)))
    for speed, last in (("10", 100_000), ("2.5", 400_000)):
        told, rows = replay(trace, "noop://", "--speed", speed)
        assert [row["planned_us"] for row in rows][-1] == pytest.approx(last)
        assert told["speed_reached"] < float(speed) * 1.5
        assert min(row["lateness_us"] for row in rows) >= 0
    told, rows = replay(trace, "noop://", "--speed", "max")
    assert (told["speed"], told["lateness"], rows[0]["planned_us"]) == (None, [], None)
    assert told["replayed_s"] < 1
    shown = call("trace", "replay", trace, "--to", "noop://", "--speed", "10")
    assert "6 statements" in shown.out
    assert "added by nephoscope" in shown.out


def test_what_was_measured_before_an_interruption_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = trace_of(tmp_path, (1, "1", 1, "SELECT 1"), (50, "1", 1, "SELECT 2"))

    class Interrupting(Outcomes):
        def take(self, found: Mapping[str, Any] | None) -> bool:
            more = super().take(found)
            if found is not None and self.is_answered.any() and not self.errors:
                self.errors[-1] = "interrupted once"
                raise Interrupted("interrupted by SIGINT")
            return more

    monkeypatch.setattr(replaying, "Outcomes", Interrupting)
    out = tmp_path / "out.parquet"
    told = replay_trace(trace, "noop://", ReplayOptions(), out)
    assert (told.statements, told.not_reached, told.interrupted) == (1, 1, "interrupted by SIGINT")
    assert pq.read_table(out).column("fate").to_pylist() == ["done", "not reached"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--speed", "20"], "--speed 20: no such speed (allowed: 0.1 to 10, or max)"),
        (["--order", "time"], "--order time: no such order (allowed: sessions, commits)"),
        (["--answer-timeout", "0s"], "--answer-timeout 0s: no such limit (allowed: more than 0, up to 24h)"),
        (["--database", "other"], "--database other: no statement is of it (allowed: shop)"),
        (["--to", "mysql://u@h/d"], "understands the dialect mysql, and the trace has postgres"),
        (["--to", "nosuch://h"], 'the scheme "nosuch" has no driver'),
    ],
)
def test_what_cannot_be_replayed_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    trace = trace_of(tmp_path, (1, "1", 1, "SELECT 1"))
    before = set(tmp_path.iterdir())
    ended = call("trace", "replay", trace, "--to", "noop://", "--out", tmp_path / "out.parquet", *options)
    assert ended.code == 2
    assert message in " ".join(ended.err.split())
    assert set(tmp_path.iterdir()) == before
