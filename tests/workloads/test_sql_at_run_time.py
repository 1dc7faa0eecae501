"""SQL that transactions make, lists of any length and isolation of a transaction's own, on every dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commands import call
from databases import SERVERS, Server
from nephoscope.store import StoredRun
from sample_studies import write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LUA = """local w = workload "texts"
w:table("item", { rows = 50, columns = { { "i_id", serial() }, { "i_stock", integer(1, 9) } } })
w:table("note", { rows = 0, columns = { { "n_id", serial() }, { "n_text", letters(1, 9) } } })
w:load({ parts = 2 }, function(tx, part)
  tx:queue(tx:query("UPDATE item SET i_stock = i_stock + 0 WHERE i_id = " .. part))
  tx:exec(tx:query("UPDATE item SET i_stock = 0 WHERE i_id > :first AND i_id <= :last"), part * 25 - 25, part * 25)
end)
w:session(function(tx) return tx:query("SELECT i_stock FROM item WHERE i_id = :id") end)
w:transaction("text", function(tx, pick, find)
  tx:begin()
  local id, add = tx.session, pick.integer(1, 400)
  local before = tx:one(find, id).i_stock
  tx:queue(tx:query("UPDATE item SET i_stock = i_stock + 1 WHERE i_id = " .. id))
  assert(tx:one(find, { id = id }).i_stock == before + 1)
  local more = tx:query("UPDATE item SET i_stock = i_stock + :more - " .. add .. " WHERE i_id = :id")
  assert(tx:exec(more, add, id) == 1)
  tx:commit()
  tx:tally("added", 1)
end)
w:transaction("words", function(tx, pick)
  tx:exec(tx:query("BEGIN"))
  assert(tx:exec(tx:query("UPDATE item SET i_stock = i_stock + 1 WHERE i_id = 50")) == 1)
  tx:exec(tx:query(pick.chance(0.5) and "ROLLBACK" or "COMMIT"))
end)
w:transaction("lists", function(tx, pick)
  local ids, rows = {}, {}
  for place = 1, pick.integer(1, 12) do ids[place] = place * 2 end
  for place = 1, #ids do rows[place] = { pick.new("note"), "it's" } end
  assert(#tx:rows("find", ids) == #ids)
  assert(tx:exec("fill", rows) == #rows)
  tx:tally("noted", #rows)
end)
w:transaction("strict", { isolation = "serializable", read_only = true }, function(tx, pick, find)
  tx:begin()
  assert(tx:one(find, pick.item()).i_stock >= 0)
  tx:commit()
end)
w:mix("ALL", { text = 2, words = 1, lists = 1, strict = 1 })
w:invariant("notes_are_there", "each note that was committed is there")
"""
SQL = """-- name: find
SELECT i_id FROM item WHERE i_id IN (:ids…);
-- name: fill
INSERT INTO note (n_id, n_text) VALUES :rows...;
-- name: notes_are_there
SELECT count(*) AS wrong FROM note HAVING abs(count(*) - :tally_noted) > :uncertain_noted;
"""
SCHEMA = """-- name: create
CREATE TABLE item (i_id integer, i_stock integer);
CREATE TABLE note (n_id integer, n_text varchar(9));
-- name: keys
CREATE UNIQUE INDEX item_key ON item (i_id);
CREATE UNIQUE INDEX note_key ON note (n_id);
-- name: drop
DROP TABLE IF EXISTS item;
DROP TABLE IF EXISTS note;
"""


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with SERVERS[request.param]() as server:
        yield server


@pytest.mark.parametrize(
    ("mode", "pipeline"), [("prepared", 0), ("prepared", 1), ("extended", 1), ("simple", 0)]
)
def test_what_is_made_at_run_time_runs_and_is_counted(
    server: Server, mode: str, pipeline: int, tmp_path: Path
) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, text in (("workload.lua", LUA), ("statements.sql", SQL), ("schema.sql", SCHEMA)):
        (folder / name).write_text(text)
    url = server.new_database()
    url += "?begin=immediate&synchronous=off" if url.startswith("sqlite:") else ""
    study = write_study(
        tmp_path,
        {
            "study": {"name": "texts"},
            "system": {"provider": "url", "rw": url},
            "workload": {"name": str(folder)},
            "load": {"interval": "100ms", "statement_mode": mode, "pipeline": bool(pipeline)},
            "measure": [
                {"evaluator": "load", "phases": [{"duration": "1s", "concurrency": 2, "mix": "ALL"}]}
            ],
        },
    )
    ended = call("run", study, "--out", tmp_path / "runs")
    assert ended.code == 0, ended.err + ended.out
    intervals = StoredRun(tmp_path / "runs" / "latest").intervals.to_pylist()
    committed = {
        name: sum(row["committed"] for row in intervals if row["transaction"] == name)
        for name in ("text", "words", "lists", "strict")
    }
    assert all(committed.values()), committed
    assert not any(row["other"] for row in intervals), (
        ended.err + (tmp_path / "runs" / "latest" / "events.jsonl").read_text()
    )
    checked = call("check", study)
    assert checked.code == 0, checked.err + checked.out
