"""A transaction whose Lua has no end ends the run with one message, and what was measured before it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commands import call, finish, start
from nephoscope.store import FILES, StoredRun
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    from pathlib import Path

WORKLOAD = """\
local w = workload "stuck"
local turns = 0
local function helper()
  {lua}
end
w:transaction("t", function(tx)
  tx:exec("touch")
  turns = turns + 1
  if turns > 300 then helper() end
end)
w:mix("ALL", {{ t = 1 }})
"""
PATIENCE_S = 240.0
"""It takes 15 s of processor time, of which a busy machine has less than of time."""
LOOP = "while true do pcall(function() while true do end end) end"
LIBRARY = '("a"):rep(60):find(("a-"):rep(30) .. "b")'


@pytest.mark.parametrize(
    ("lua", "message"),
    [
        (
            LOOP,
            "workload.lua:4: the transaction has run for 10 s without an end; is this a loop?",
        ),
        (
            LIBRARY,
            "it has run for 10 s without an end, and is within a function of Lua's library that cannot be interrupted",
        ),
    ],
    ids=["loop", "library"],
)
def test_a_transaction_without_an_end_ends_the_run(tmp_path: Path, lua: str, message: str) -> None:
    folder = tmp_path / "stuck"
    folder.mkdir()
    (folder / "workload.lua").write_text(WORKLOAD.format(lua=lua))
    (folder / "statements.sql").write_text("-- name: touch\nSELECT 1;\n")
    tables = sim_study(
        phases({"duration": "300s", "concurrency": 2, "mix": "ALL"}),
        workload={"name": str(folder)},
        load={"threads": 1},
    )
    with start("run", write_study(tmp_path, tables), cwd=tmp_path) as process:
        ended = finish(process, PATIENCE_S)
    assert ended.code == 1
    message = f"workload stuck, transaction t: {message}"
    assert ended.err.startswith(f"nephoscope: the run failed: {message}")
    assert ended.err.count("without an end") == 1
    if lua == LOOP:
        assert "in workload.lua:4: in upvalue 'helper'" in ended.err
    run = (tmp_path / "runs" / "latest").resolve()
    kept = StoredRun(run)
    assert kept.manifest["status"] == "failed"
    assert kept.manifest["reason"].startswith(message)
    committed = int(kept.intervals.column("committed").to_numpy().sum())
    # The open interval is lost with a worker that is given up.
    assert committed > 100
    assert bool(kept.manifest["totals"]) == (lua == LOOP)
    reported = call("report", run)
    assert reported.code == 0, reported.err
    assert "<html" in (run / FILES.report).read_text()
