"""The data and the draws of built-in workloads follow the laws that their sources state."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from scipy.stats import binomtest, chisquare

from commands import call
from nephoscope.store import StoredRun
from sample_studies import phases, throughput, workload_study, write_study
from simulated import UNLIKELY

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def study_of(folder: Path, workload: str, *, mix: dict[str, float] | None = None, **table: Any) -> Path:
    url = f"sqlite://{folder / 'data.db'}?begin=immediate&synchronous=off"
    measure = phases({"concurrency": 1, "mix": mix}) if mix else throughput(mixes=["1:0"])
    return write_study(folder, workload_study(url, workload, measure, **table))


def loaded(folder: Path, workload: str, **table: Any) -> sqlite3.Connection:
    ended = call("load", study_of(folder, workload, **table))
    assert ended.code == 0, ended.err
    return sqlite3.connect(folder / "data.db")


def counted(database: sqlite3.Connection, query: str) -> Sequence[int]:
    return [count for (count,) in database.execute(query)]


def test_subscribers_have_the_types_that_tatp_states(tmp_path: Path) -> None:
    database = loaded(tmp_path, "tatp", scale=0.02)
    for table, kind in (("access_info", "ai_type"), ("special_facility", "sf_type")):
        each = counted(database, f"SELECT count(*) FROM {table} GROUP BY {kind} ORDER BY {kind}")
        assert len(each) == 4
        assert all(binomtest(count, 2000, 0.625).pvalue > UNLIKELY for count in each), each
        numbers = counted(
            database,
            f"SELECT count(*) FROM (SELECT count(*) AS n FROM {table} GROUP BY s_id) GROUP BY n ORDER BY n",
        )
        assert len(numbers) == 4
        assert chisquare(numbers).pvalue > UNLIKELY, numbers
    active, facilities = database.execute("SELECT sum(is_active), count(*) FROM special_facility").fetchone()
    assert binomtest(active, facilities, 0.85).pvalue > UNLIKELY
    starts = counted(database, "SELECT count(*) FROM call_forwarding GROUP BY start_time ORDER BY start_time")
    assert len(starts) == 3
    assert all(binomtest(count, facilities, 0.5).pvalue > UNLIKELY for count in starts), starts


def test_as_many_transactions_of_tatp_find_something_as_it_states(tmp_path: Path) -> None:
    names = ("get_access_data", "update_subscriber_data")
    study = study_of(tmp_path, "tatp", mix=dict.fromkeys(names, 1.0), scale=0.02)
    ended = call("run", study, "--out", tmp_path / "runs")
    assert ended.code == 0, ended.err
    rows = StoredRun(tmp_path / "runs" / "latest").intervals.to_pylist()
    for name in names:
        of_it = [row for row in rows if row["transaction"] == name]
        found, missed = (sum(row[outcome] for row in of_it) for outcome in ("committed", "aborted"))
        # The data is one draw of its own: its share of subscribers with a type is known to about 1 %.
        assert found / (found + missed) == pytest.approx(0.625, abs=0.05), (name, found, missed)


@pytest.mark.parametrize(
    ("law", "share_of_1"),
    [("uniform", 1 / 100), ("zipfian", 1 / sum(length**-0.99 for length in range(1, 101)))],
)
def test_fields_are_as_long_as_the_law_says(tmp_path: Path, law: str, share_of_1: float) -> None:
    database = loaded(tmp_path, "ycsb", scale=2, options={"fields": 3, "field_length_distribution": law})
    lengths = [
        n for field in range(3) for n in counted(database, f"SELECT length(field{field}) FROM usertable")
    ]
    assert len(lengths) == 6000
    assert (min(lengths), max(lengths) <= 100) == (1, True)
    assert binomtest(lengths.count(1), len(lengths), share_of_1).pvalue > UNLIKELY


def test_each_follower_of_a_user_follows_the_user(tmp_path: Path) -> None:
    database = loaded(tmp_path, "twitter", scale=1)
    numbers = counted(database, "SELECT count(*) FROM follows GROUP BY f1")
    assert len(numbers) == 500
    whole = sum(number**-1.75 for number in range(1, 51))
    # Each number of 1 to 50 occurs once at least, so the frequent ones occur a little less often.
    assert 500 / whole - 50 < numbers.count(1) < 500 / whole + 2
    assert counted(database, "SELECT count(*) FROM follows WHERE f1 = f2") == [0]
