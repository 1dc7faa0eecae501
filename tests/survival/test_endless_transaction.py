"""Lua without an end: a transaction ends the run, and what was measured is kept; a workload file is bad input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commands import call, finish, start
from nephoscope.store import FILES, StoredRun
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    import subprocess
    from contextlib import AbstractContextManager
    from pathlib import Path

pytestmark = pytest.mark.long
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


PROMISE = (
    "exit code 1, one message that names the transaction (of a loop also the function and the line); "
    "what was measured is kept and reported"
)


def start_with(folder: Path, lua: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start a run of a workload that does this after some hundred transactions."""
    workload = folder / "stuck"
    workload.mkdir(parents=True)
    (workload / "workload.lua").write_text(WORKLOAD.format(lua=lua))
    (workload / "statements.sql").write_text("-- name: touch\nSELECT 1;\n")
    tables = sim_study(
        phases({"duration": "300s", "concurrency": 2, "mix": "ALL"}),
        workload={"name": str(workload)},
        load={"threads": 1},
    )
    return start("run", write_study(folder, tables), cwd=folder)


def check_end(process: subprocess.Popen[str], folder: Path, message: str) -> StoredRun:
    """Check how the run ends, and what is left of it."""
    ended = finish(process, PATIENCE_S)
    assert ended.code == 1
    message = f"workload stuck, transaction t: {message}"
    assert ended.err.startswith(f"nephoscope: the run failed: {message}")
    assert ended.err.count("without an end") == 1
    run = (folder / "runs" / "latest").resolve()
    kept = StoredRun(run)
    assert kept.manifest["status"] == "failed"
    assert kept.manifest["reason"].startswith(message)
    assert int(kept.intervals.column("committed").to_numpy().sum()) > 100
    reported = call("report", run)
    assert reported.code == 0, reported.err
    assert "<html" in (run / FILES.report).read_text()
    if "loop" in message:
        assert "in workload.lua:4: in upvalue 'helper'" in ended.err
    return kept


@pytest.mark.survives(
    part="input",
    fault="a transaction of Lua without an end, be it a loop under pcall or a function of Lua's library",
    promise=PROMISE,
    on="the simulated database",
)
def test_a_transaction_without_an_end_ends_the_run(tmp_path: Path) -> None:
    loop, library = tmp_path / "loop", tmp_path / "library"
    # Side by side: each takes more than ten seconds of processor time.
    with start_with(loop, LOOP) as looping, start_with(library, LIBRARY) as searching:
        message = "workload.lua:4: the transaction has run for 10 s without an end; is this a loop?"
        assert check_end(looping, loop, message).manifest["totals"]
        message = (
            "it has run for 10 s without an end, and is within a function of Lua's library"
            " that cannot be interrupted"
        )
        # The open interval is lost with a worker that is given up, and so are its totals.
        assert not check_end(searching, library, message).manifest["totals"]


@pytest.mark.survives(
    part="input",
    fault="a workload file that does not come to an end within a pattern that matches in too many ways",
    promise="after 10 s of processor time exit code 2, one message that names the file and what to look for; nothing is"
    " touched",
    on="the simulated database",
)
def test_a_workload_file_without_an_end_is_bad_input(tmp_path: Path) -> None:
    workload = tmp_path / "endless"
    workload.mkdir()
    (workload / "workload.lua").write_text(
        f'local w = workload "endless"\nw:transaction("t", function() end)\nlocal _ = {LIBRARY}\n'
    )
    (workload / "statements.sql").write_text("-- name: none\nSELECT 1;\n")
    study = write_study(tmp_path, sim_study(workload={"name": str(workload)}))
    with start("run", study, cwd=tmp_path) as process:
        ended = finish(process, PATIENCE_S)
    assert ended.code == 2, ended
    assert ended.err.startswith("nephoscope: workload.lua: the file has run for 10 s without an end")
    assert "is this a pattern that matches in too many ways?" in " ".join(ended.err.split())
    assert not (tmp_path / "runs").exists()
