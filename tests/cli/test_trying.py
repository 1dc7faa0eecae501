"""``nephoscope workloads X --try``: a slip in a workload is found without a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from nephoscope.measuring import trying
from nephoscope.study.packaged import packaged_workloads

if TYPE_CHECKING:
    from pathlib import Path

    from nephoscope.measuring.trying import Tried

SOUND = """local w = workload "probe"
local size = w:option("size", "integer", 10, "how many")
w:table("item", { rows = size * w.scale, columns = { { "i_id", serial() }, { "i_x", constant(1) } } })
w:schema("create", "CREATE TABLE item (i_id int, i_x int)")
w:schema("drop", "DROP TABLE IF EXISTS item")
w:statement("find", "SELECT i_x AS x, :size AS size FROM item WHERE i_id = :id")
w:statement("bad", "SELECT i_id FROM item WHERE i_x <> 1")
w:invariant("bad", "all are 1")
"""


def tried(folder: Path, lua: str, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Try a workload; gives the exit code, what became of it by dialect, and the message."""
    folder.joinpath("workload.lua").write_text(SOUND + lua)
    ended = call("workloads", folder, "--try", "--json", *arguments)
    trials = json.loads(ended.out) if ended.out else []
    return ended.code, {trial["dialect"]: trial for trial in trials}, ended.err


SMALL = ("--set", "items=1000", "--set", "customers=30")
"""TPC-C with few rows: its smallest scale is a whole warehouse."""


@pytest.mark.parametrize("name", packaged_workloads())
def test_the_workloads_that_come_with_nephoscope_run(name: str) -> None:
    ended = call("workloads", name, "--try", "--json", *(SMALL if name in ("tpcc", "chbenchmark") else ()))
    assert ended.code == 0, ended.out
    trials = {trial["dialect"]: trial for trial in json.loads(ended.out)}
    assert [trial["database"] for trial in trials.values()] == [False, False, True]
    for dialect, trial in trials.items():
        assert not trial["not_tried"]
        # Where no database answers, rows are made up, and a transaction may always find what makes it abort.
        ends = ["committed"] if trial["database"] else ["committed", "aborted"]
        counts = {one["transaction"]: sum(one[end] for end in ends) for one in trial["transactions"]}
        assert all(counts.values()), (dialect, counts)


def test_a_machine_too_busy_to_begin_gets_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the outcomes of runs the first is replaced by that of one in which nothing began."""
    outcome = trying._outcome
    asked: list[str] = []

    def late(run: Any, transaction: str, used: dict[str, int]) -> Tried | None:
        asked.append(transaction)
        found = outcome(run, transaction, used)
        return None if asked.count(transaction) == 1 else found

    monkeypatch.setattr(trying, "_SECONDS", (0.01, 0.2))
    monkeypatch.setattr(trying, "_outcome", late)
    assert call("workloads", "tpcb", "--try", "--json").code == 0
    monkeypatch.setattr(trying, "_outcome", lambda *_: None)
    ended = call("workloads", "tpcb", "--try", "--json")
    assert ended.code == 1
    assert "it did not begin within 0.2 s" in ended.out


def test_lua_and_sql_run_on_sqlite_and_lua_alone_elsewhere(tmp_path: Path) -> None:
    lua = """w:transaction("read", { read_only = true }, function(tx, pick)
      local row = tx:one("find", { size = size, id = pick.item() })
      assert(row.x == 1 and row.size == 7, "made up and real rows are alike here")
    end)"""
    code, trials, _ = tried(tmp_path, lua, "--set", "size=7", "--scale", "3")
    assert code == 0, trials
    assert {name: trial["database"] for name, trial in trials.items()} == {
        "postgres": False,
        "mysql": False,
        "sqlite": True,
    }
    assert {trial["scale"] for trial in trials.values()} == {3.0}
    assert all(trial["transactions"][0]["committed"] > 10 for trial in trials.values())


def test_a_slip_in_a_rare_branch_is_found_on_every_dialect(tmp_path: Path) -> None:
    lua = """w:transaction("sound", function(tx, pick) tx:one("find", 1, pick.item()) end)
    w:transaction("rare", function(tx, pick)
      if pick.chance(0.05) then return tx:comit() end
      tx:one("find", 1, pick.item())
    end)"""
    code, trials, message = tried(tmp_path, lua)
    assert code == 1
    assert "does not run as it should" in message
    for trial in trials.values():
        sound, rare = trial["transactions"]
        assert (sound["fault"], sound["committed"] > 0) == ("", True)
        assert 'workload.lua:11: tx has no "comit"' in rare["fault"]
        assert trial["scale"] == (0.1 if trial["dialect"] == "sqlite" else 1.0), "each table has a row"


def test_sql_that_is_wrong_is_found_where_it_runs(tmp_path: Path) -> None:
    lua = """w:statement("slip", "SELEC 1")
    w:transaction("slip", function(tx) tx:one("slip") end)"""
    code, trials, _ = tried(tmp_path, lua)
    assert code == 1
    assert 'near "SELEC"' in trials["sqlite"]["transactions"][0]["fault"]
    assert trials["postgres"]["transactions"][0]["fault"] == ""


def test_an_invariant_that_the_loaded_data_breaks_is_found(tmp_path: Path) -> None:
    lua = """w:statement("none", "SELECT count(*) AS rows FROM item")
    w:invariant("none", "there is nothing")
    w:transaction("read", function(tx) tx:one("find", 1, 1) end)"""
    code, trials, _ = tried(tmp_path, lua, "--dialect", "sqlite", "--scale", "1")
    assert (code, list(trials)) == (1, ["sqlite"])
    assert trials["sqlite"]["checks"] == ["invariant none: rows 10"]


def test_what_a_dialect_refuses_is_not_tried_there(tmp_path: Path) -> None:
    lua = """w:needs "generated_keys"
    w:transaction("add", function(tx) tx:key("find", 1, 1) end)"""
    code, trials, _ = tried(tmp_path, lua)
    assert code == 0
    assert "needs generated_keys" in trials["postgres"]["not_tried"]
    assert trials["mysql"]["transactions"][0]["committed"] > 0
    code, _, message = tried(tmp_path, lua, "--dialect", "postgres")
    assert (code, "needs generated_keys" in message) == (2, True)


def test_a_schema_that_sqlite_does_not_know_is_told_and_is_wrong_only_where_it_was_asked_for(
    tmp_path: Path,
) -> None:
    lua = """w:schema("keys", "ALTER TABLE item ADD PRIMARY KEY (i_id)")
    w:transaction("read", function(tx) tx:one("find", 1, 1) end)"""
    code, trials, _ = tried(tmp_path, lua)
    assert code == 0
    assert "the section keys of the schema of probe" in trials["sqlite"]["not_tried"]
    code, _, message = tried(tmp_path, lua, "--dialect", "sqlite")
    assert (code, "cannot be tried on sqlite" in message) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--try"], "--try needs the name of a workload"),
        (["--set", "size=1"], "--set needs the name of a workload"),
        (["sales", "--set", "size"], "--set size: expected option=value, such as products=1000"),
        (["sales", "--set", "sise=1"], "sales has no option"),
        (
            ["sales", "--dialect", "oracle"],
            "there is no dialect 'oracle'; dialects are postgres, mysql, sqlite",
        ),
        (["sales", "--try", "--dialect", "oracle"], "there is no dialect 'oracle'"),
        (["sales", "--try", "--scale", "0"], "workload.scale is 0; it must be above 0"),
        (["tpcb", "--try", "--scale", "0.1"], "has no rows at scale 0.1"),
    ],
)
def test_wrong_input_is_told(arguments: list[str], message: str) -> None:
    ended = call("workloads", *arguments)
    assert ended.code == 2
    assert message in ended.err


def test_what_is_tried_is_printed() -> None:
    ended = call("workloads", "tpcb", "--try", "--dialect", "mysql")
    assert ended.code == 0
    heading, about, first, *_ = ended.out.strip().splitlines()
    assert heading == "mysql"
    assert about.startswith("Lua alone")
    assert first.startswith("tpcb_like: ")
    assert first.endswith(" committed")


def test_options_and_dialect_hold_for_what_is_shown(tmp_path: Path) -> None:
    lua = 'w:statement("own", "SELECT \'" .. w.dialect .. "\'") w:transaction("t", function() end)'
    tmp_path.joinpath("workload.lua").write_text(SOUND + lua)
    ended = call("workloads", tmp_path, "--set", "size=3", "--dialect", "mysql", "--json", "--scale", "2")
    (told,) = json.loads(ended.out)
    assert told["tables"][0]["rows"] == 6
    assert told["statements"][-1]["sql"] == "SELECT 'mysql'"
