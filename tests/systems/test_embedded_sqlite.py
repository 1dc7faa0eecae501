"""SQLite as a system: its data is loaded once, measured, and checked to the last transaction."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from commands import call
from nephoscope.errors import InputError, MeasurementError
from nephoscope.store import StoredRun
from nephoscope.systems.embedded_sqlite import EmbeddedSqlite, EmbeddedSqliteSettings

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """
study.name = "small"
[system]
provider = "embedded-sqlite"
data = "{data}"
settings = {{ begin = "immediate", synchronous = "off" }}
[workload]
name = "{workload}"
scale = {scale}
[load]
interval = "100ms"
[[measure]]
evaluator = "load"
[[measure.phases]]
duration = "1s"
concurrency = 4
mix = {mix}
"""
ALL = "{new_orderline=1, order_payment=1, order_status=1, delete_orderline=1, new_order=1}"


def study_of(folder: Path, workload: str = "sales", scale: float = 0.01, mix: str = ALL) -> str:
    file = folder / "small.toml"
    file.write_text(STUDY.format(data=folder / "data", workload=workload, scale=scale, mix=mix))
    return str(file)


@pytest.mark.parametrize(("workload", "scale", "mix"), [("sales", 0.01, ALL), ("tpcb", 1, '"TPCB"')])
def test_a_workload_is_loaded_run_and_holds_its_invariants(
    tmp_path: Path, workload: str, scale: float, mix: str
) -> None:
    study = study_of(tmp_path, workload, scale, mix)
    said = []
    for _ in range(2):
        ended = call("run", study, "--out", tmp_path / "runs")
        assert ended.code == 0, ended.err
        said.append(f"{workload}: loaded" in ended.out)
    assert said == [True, False], "data is loaded once"
    assert "the database ran on the threads of the load" in ended.out
    assert "the client was" not in ended.out
    checked = call("check", study)
    assert checked.code == 0, checked.out
    assert "✗" not in checked.out
    runs = [StoredRun(run) for run in (tmp_path / "runs").glob("2*")]
    for run in runs:
        loaded = run.manifest["load"]
        assert (loaded["threads"], loaded["sessions"], loaded["sessions_per_thread"]) == (1, 4, 4)
    counted = sum(int(count or 0) for run in runs for count in run.intervals["committed"].to_pylist())
    with sqlite3.connect(tmp_path / "data" / f"nephoscope_{workload}.db") as database:
        if workload == "tpcb":
            assert database.execute("SELECT count(*) FROM pgbench_history").fetchone() == (counted,)
        database.execute("UPDATE pgbench_tellers SET tbalance = 0") if workload == "tpcb" else None
        table = {"sales": "customer SET c_credit = c_credit + 1", "tpcb": "pgbench_accounts SET abalance = 1"}
        database.execute(f"UPDATE {table[workload]} WHERE rowid = 7")
    assert call("check", study).code == 1, "what was changed behind its back is found"


def test_each_workload_has_a_database_of_its_own(tmp_path: Path) -> None:
    for workload, scale, mix in (("sales", 0.01, ALL), ("tpcb", 1, '"TPCB"')):
        ended = call("load", study_of(tmp_path, workload, scale, mix))
        assert ended.code == 0, ended.err
    made = {file.name for file in (tmp_path / "data").glob("*.db")}
    assert made == {"nephoscope_sales.db", "nephoscope_tpcb.db"}
    named = call("load", study_of(tmp_path), "--set", 'system.database="chosen"')
    assert named.code == 0, named.err
    assert (tmp_path / "data" / "chosen.db").exists()


def test_a_table_of_somebody_else_is_never_dropped(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    with sqlite3.connect(folder / "nephoscope_sales.db") as database:
        database.execute("CREATE TABLE customer (mine int)")
    ended = call("load", study_of(tmp_path), "--force")
    assert ended.code == 1
    assert "was not made by nephoscope" in ended.err
    with sqlite3.connect(folder / "nephoscope_sales.db") as database:
        assert [name for (name,) in database.execute("SELECT name FROM sqlite_schema")] == ["customer"]


def test_what_sqlite_has_not_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    for setting, message in (
        (
            "load.isolation='read committed'",
            "load.isolation: sqlite has no 'read committed'; allowed is 'serializable'",
        ),
        (
            "system.settings.journal_mode=none",
            'system.settings: journal_mode "none" is not known; allowed are delete,',
        ),
        (
            "system.settings.cache=1",
            'system.settings: parameter "cache" is not known; allowed are mode, begin,',
        ),
    ):
        ended = call("run", study, "--set", setting)
        assert ended.code == 2, ended.err
        assert message in ended.err
    assert not (tmp_path / "data").exists()


def test_a_folder_is_one_run_s_at_a_time(tmp_path: Path) -> None:
    settings = EmbeddedSqliteSettings(data=tmp_path / "data")
    with EmbeddedSqlite(settings) as first:
        first.start()
        with pytest.raises(MeasurementError, match="in use"), EmbeddedSqlite(settings) as second:
            second.start()
    with EmbeddedSqlite(settings) as second:
        second.start()
    with pytest.raises(InputError, match="begin"):
        EmbeddedSqlite(EmbeddedSqliteSettings(data=tmp_path, settings={"begin": "late"}))
