"""What a user may get wrong in a study or a workload: one message that names the place, and no traceback."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from commands import PATIENCE_S, Ended, finish, start
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    from pathlib import Path

REFUSED = "exit code 2, one message that names the place; nothing is touched"
ENDED = "the run ends at once with exit code 1 and one message; what was measured is kept"
DECLARED = 'local w = workload "own"\n'
WORK = DECLARED + "w:transaction('work', { help = 'its' }, function(tx, pick)\n"


def case(fault: str, *values: Any, promise: str = REFUSED, on: str = "the simulated database") -> Any:
    mark = pytest.mark.survives(part="input", fault=fault, promise=promise, on=on)
    return pytest.param(*values, marks=mark, id=fault)


def execute(folder: Path, study: Path, *arguments: str) -> Ended:
    """Run a study in a process of its own, whose end is waited for."""
    begun = time.monotonic()
    with start("run", study, *arguments, cwd=folder) as process:
        ended = finish(process)
    assert time.monotonic() - begun < PATIENCE_S
    assert "Traceback" not in ended.err + ended.out
    assert ended.err.startswith("nephoscope: ")
    return ended


@pytest.mark.parametrize(
    ("override", "message"),
    [
        case(
            "an unknown key in a study", "load.thraeds=1", "load.thraeds: there is no such key; allowed are"
        ),
        case("an unknown table in a study", "laod.threads=1", "laod: there is no such table; tables are"),
        case("a negative rate", "measure.0.phases.0={rate=-5,mix='SELECT',duration=1}", "phases.0.rate: "),
        case("a load of nobody: concurrency 0", "measure.0.phases.0.concurrency=0", "no phase has a load"),
        case(
            "a sweep over zero concurrency", "measure.0={evaluator='throughput',concurrency=[0]}", "ncy.0: "
        ),
        case("an interval without length", "load.interval=0", "load.interval: "),
    ],
)
def test_a_wrong_study_is_refused_before_anything_is_touched(
    tmp_path: Path, override: str, message: str
) -> None:
    study = write_study(tmp_path, sim_study(phases({"concurrency": 2})))
    ended = execute(tmp_path, study, "--set", override)
    assert (ended.code, ended.out) == (2, "")
    assert len(ended.err.splitlines()) == 1
    assert message in ended.err
    assert list(tmp_path.iterdir()) == [study]


def own_workload(folder: Path, lua: str) -> Path:
    """Write a workload of one's own and a study of it, that would take ten minutes."""
    own = folder / "own"
    own.mkdir()
    (own / "workload.lua").write_text(lua)
    (own / "statements.sql").write_text("-- name: one\nSELECT 1;\n")
    measure = phases({"duration": "600s", "concurrency": 2, "mix": {"work": 1}})
    return write_study(folder, sim_study(measure, workload={"name": str(own), "external": True}))


@pytest.mark.parametrize(
    ("lua", "message"),
    [
        case("a workload that is no Lua", DECLARED + "if then\n", "workload.lua:2: unexpected symbol near"),
        case("an error of Lua while a workload is read", DECLARED + "error('no')\n", "workload.lua:2: no\n"),
    ],
)
def test_a_workload_that_cannot_be_read_is_refused(tmp_path: Path, lua: str, message: str) -> None:
    study = own_workload(tmp_path, lua)
    ended = execute(tmp_path, study)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        case(
            "an error of Lua in a transaction",
            "  local x = nil\n  x.y = 1\nend)\n",
            "workload.lua:4: attempt to index local 'x'",
            promise=ENDED,
        ),
        case(
            "memory of Lua without end",
            '  local all = {}\n  while true do all[#all + 1] = ("x"):rep(1e6) .. #all end\nend)\n',
            "not enough memory: the workload's values take more than 256 MiB",
            promise=ENDED,
        ),
    ],
)
def test_a_workload_that_fails_ends_the_run(tmp_path: Path, body: str, message: str) -> None:
    ended = execute(tmp_path, own_workload(tmp_path, WORK + body))
    assert ended.code == 1
    assert ended.err.startswith("nephoscope: the run failed: workload own, transaction work: ")
    assert message in ended.err
    assert "✓ every transaction is accounted for" in ended.out
    folder = tmp_path / "runs" / "latest"
    assert json.loads((folder / "manifest.json").read_text())["status"] == "failed"
    assert "<html" in (folder / "report.html").read_text()
