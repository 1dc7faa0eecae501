"""What ``w:load`` makes is loaded, counted and broken off like the rest of the data."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from commands import call
from sample_studies import throughput, write_study

if TYPE_CHECKING:
    from pathlib import Path

LUA = """local w = workload "graph"
w:table("node", {{ rows = 20, columns = {{ {{ "n_id", serial() }} }} }})
w:load({{ parts = 4 }}, function(tx, part, parts, pick)
  {body}
  tx:begin()
  for place = part, 100, parts do tx:queue("add", place, pick.row("node").n_id, pick.integer(1, 1000)) end
  tx:commit()
end)
w:transaction("look", {{ read_only = true }}, function(tx, pick) tx:one("find", pick.key(1, 100)) end)
w:mix("READ", {{ look = 1 }})
"""
SQL = """-- name: add
INSERT INTO edge (e_id, e_node, e_weight) VALUES (:id, :node, :weight);
-- name: find
SELECT e_weight FROM edge WHERE e_id = :id;
"""
SCHEMA = """-- name: create
CREATE TABLE node (n_id bigint PRIMARY KEY);
CREATE TABLE edge (e_id bigint, e_node bigint, e_weight bigint);
-- name: keys
CREATE UNIQUE INDEX edge_key ON edge (e_id);
-- name: drop
DROP TABLE IF EXISTS edge;
DROP TABLE IF EXISTS node;
"""


def study(folder: Path, body: str = "", threads: int = 1) -> Path:
    workload = folder / "graph"
    workload.mkdir(parents=True, exist_ok=True)
    (workload / "workload.lua").write_text(LUA.format(body=body))
    (workload / "statements.sql").write_text(SQL)
    (workload / "schema.sql").write_text(SCHEMA)
    tables = {
        "study": {"name": "procedural"},
        "system": {"provider": "url", "rw": f"sqlite://{folder / 'data.db'}?synchronous=off"},
        "workload": {"name": str(workload), "load_threads": threads},
        "measure": [throughput(mixes=["READ"])],
    }
    return write_study(folder, tables)


def edges(folder: Path) -> list[tuple[int, int, int]]:
    with closing(sqlite3.connect(folder / "data.db")) as database:
        return database.execute("SELECT * FROM edge ORDER BY e_id").fetchall()


def test_the_data_is_loaded_whatever_the_number_of_threads(tmp_path: Path) -> None:
    found = []
    for threads in (1, 3):
        loaded = call("load", study(tmp_path / str(threads), threads=threads))
        assert loaded.code == 0, loaded.err
        assert "loaded 20 rows and 100 statements of w:load" in loaded.out + loaded.err
        found.append(edges(tmp_path / str(threads)))
    assert len(found[0]) == 100
    assert found[0] == found[1]


def test_a_part_that_fails_leaves_a_load_that_broke_off(tmp_path: Path) -> None:
    file = study(tmp_path, body='if part == 3 then error("on purpose") end')
    failed = call("load", file)
    assert failed.code == 1
    assert "w:load, part 3 of 4: workload.lua:4: on purpose" in failed.err
    assert "a load broke off" in call("check", file).err
    assert call("load", study(tmp_path), "--force").code == 0
    assert len(edges(tmp_path)) == 100
