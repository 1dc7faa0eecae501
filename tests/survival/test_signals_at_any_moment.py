"""A signal may come at any moment, the first millisecond included: there is one line at most, and no traceback."""

from __future__ import annotations

import random
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from commands import Ended, finish, start, wait_for
from nephoscope.store import StoredRun
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    from pathlib import Path
    from signal import Signals

pytestmark = pytest.mark.long

TIMES = 24
LONGEST_S = 2.5
"""Longer than the command takes on a machine at rest."""


def interrupted_after(folder: Path, delay_s: float, number: Signals) -> Ended:
    folder.mkdir()
    study = write_study(folder, sim_study(phases({"duration": "300ms", "concurrency": 2})))
    with start("run", study, cwd=folder) as process:
        time.sleep(delay_s)
        process.send_signal(number)
        return finish(process)


def is_of_python_itself(ended: Ended) -> bool:
    """Whether Python was interrupted before it read the first line of ours: nobody can keep it from saying so."""
    files = re.findall(r'File "([^"]*)"', ended.err)
    # The site module runs the lines of .pth files, and they import files of packages.
    # Line 0 of the command is where Python begins it, before its first.
    is_before_ours = "init_import_site" in ended.err or 'nephoscope", line 0, ' in ended.err
    is_before_ours |= all(file.startswith("<frozen ") for file in files)
    return "KeyboardInterrupt" in ended.err and is_before_ours


@pytest.mark.survives(
    part="tool",
    fault="SIGINT, SIGTERM or SIGHUP at any moment",
    promise="one line at most and no traceback, but for Python's own at a SIGINT before it reads the command; a run"
    " directory that was begun can be read",
    on="the simulated database",
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_any_moment_gives_no_traceback(tmp_path: Path, number: Signals) -> None:
    chance = random.Random(number)  # noqa: S311 - no secret
    # Half of them while Python and the modules start.
    delays = [chance.uniform(0, LONGEST_S if place % 2 else 0.3) for place in range(TIMES)]
    with ThreadPoolExecutor(4) as pool:
        folders = [tmp_path / str(place) for place in range(TIMES)]
        found = list(pool.map(interrupted_after, folders, delays, [number] * TIMES))
    for folder, delay, ended in zip(folders, delays, found, strict=True):
        if is_of_python_itself(ended):
            continue
        assert ended.err in ("", f"nephoscope: interrupted by {number.name}\n"), f"{delay}: {ended.err}"
        assert ended.code in (0, 1, -number), delay
        runs = [run for run in (folder / "runs").glob("*") if not run.is_symlink()]
        assert all(StoredRun(run).manifest["status"] != "failed" for run in runs)
    assert {ended.code for ended in found} & {1, -number}, "some were interrupted"


def test_nohup_keeps_a_run_from_the_end_of_its_terminal(tmp_path: Path) -> None:
    study = write_study(tmp_path, sim_study(phases({"duration": "1s", "concurrency": 2})))
    with start("run", study, cwd=tmp_path, within=["nohup"]) as process:
        wait_for((tmp_path / "runs" / "latest").exists, "the run has begun", process)
        process.send_signal(signal.SIGHUP)
        assert finish(process).code == 0
