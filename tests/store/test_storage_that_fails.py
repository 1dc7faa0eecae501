"""A disk that is full and a folder that is deleted while a run goes on: one message, exit code 1, no endless run."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from commands import call, finish, start, wait_for
from nephoscope.store import FILES, StoredRun
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long
ENDLESS = phases({"duration": "600s", "concurrency": 4})


def journal(folder: Path) -> Path:
    return folder / "runs" / "latest" / str(FILES.interval_journal)


@pytest.mark.survives(
    part="tool",
    fault="the run directory is deleted in mid-run",
    promise="the run ends at once with exit code 1 and one message",
    on="the simulated database",
)
def test_a_run_whose_folder_is_deleted_ends_at_once(tmp_path: Path) -> None:
    with start("run", write_study(tmp_path, sim_study(ENDLESS)), cwd=tmp_path) as process:
        wait_for(journal(tmp_path).exists, "the run has begun")
        folder = journal(tmp_path).parent.resolve()
        # All at once: while one file after the other was taken away, the run could make another.
        shutil.rmtree(folder.rename(tmp_path / "aside"))
        ended = finish(process)
        lines = ended.err.splitlines()
        assert (ended.code, len(lines)) == (1, 1), ended.err
        assert lines[0].startswith(f"nephoscope: runs/{folder.name}/")
        assert lines[0].endswith("cannot be written: No such file or directory")


@pytest.mark.survives(
    part="tool",
    fault="a file of the run directory can grow no more, whichever it is (ulimit)",
    promise="exit code 1 and one message; with room again, what was measured is reported",
    on="the simulated database",
)
@pytest.mark.parametrize("blocks", [1, 8, 100])
def test_a_run_whose_files_cannot_grow_ends_with_one_message(tmp_path: Path, blocks: int) -> None:
    """Whichever file meets the limit: the manifest, a journal, a table, the report."""
    with start(
        *("run", write_study(tmp_path, sim_study(ENDLESS))),
        cwd=tmp_path,
        within=("bash", "-c", 'ulimit -f "$0"; exec "$@"', str(blocks)),
    ) as process:
        if blocks >= 100:
            wait_for(journal(tmp_path).exists, "a part is written")
            process.send_signal(signal.SIGINT)
        ended = finish(process)
        lines = ended.err.splitlines()
        assert (ended.code, len(lines)) == (1, 1), ended.err
        assert lines[0].startswith("nephoscope: runs/")
        assert lines[0].endswith(" cannot be written: File too large")
        folder = (tmp_path / "runs" / "latest").resolve()
        assert not [path for path in folder.iterdir() if path.name.endswith(".part")]
        if blocks >= 100:
            # What was measured is shown, though its report could not be written.
            assert "✓ every transaction is accounted for" in ended.out
        if blocks > 1:
            # With room again, what was measured is there.
            assert call("report", folder).code == 0
            assert StoredRun(folder).intervals.num_rows > 0


def within_a_disk_of(size: str, folder: Path) -> tuple[str, ...]:
    """Make a command that runs another one beside a small file system: it goes with the process."""
    script = f'mkdir -p runs && mount -t tmpfs -o size={size} none runs && exec "$@"'
    within = ("unshare", "--mount", "bash", "-c", script, "bash")
    probe = subprocess.run([*within, "true"], cwd=folder, capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("no file system can be mounted here")
    return within


def test_a_disk_without_room_for_the_report_leaves_the_scores_to_be_seen(tmp_path: Path) -> None:
    study = write_study(tmp_path, sim_study())
    within = within_a_disk_of("256k", tmp_path)
    with start("run", study, cwd=tmp_path, within=within) as process:
        ended = finish(process)
    assert (ended.code, len(ended.err.splitlines())) == (1, 1), ended.err
    assert ended.err.endswith("/report.html cannot be written: No space left on device\n")
    assert "P-Score: TPS per $/min" in ended.out
    assert "report:" not in ended.out
    with start("run", study, "--json", cwd=tmp_path, within=within_a_disk_of("256k", tmp_path)) as process:
        ended = finish(process)
    last = json.loads(ended.out.splitlines()[-1])
    assert (ended.code, last["status"], list(last["scores"])) == (1, "measured", ["P"])


@pytest.mark.survives(
    part="tool",
    fault="the disk of the run directory is full",
    promise="the run ends at once with exit code 1 and one message",
    on="the simulated database",
)
def test_a_full_disk_ends_a_run_with_one_message(tmp_path: Path) -> None:
    within = within_a_disk_of("64k", tmp_path)
    with start("run", write_study(tmp_path, sim_study(ENDLESS)), cwd=tmp_path, within=within) as process:
        ended = finish(process)
    assert ended.code == 1
    assert len(ended.err.splitlines()) == 1, ended.err
    assert ended.err.endswith(" cannot be written: No space left on device\n")


def test_a_folder_that_may_not_be_written_to_is_told_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    ended = call("run", write_study(tmp_path, sim_study(ENDLESS)), "--out", tmp_path / "runs")
    assert ended.code == 2
    assert ended.err == f"nephoscope: no run directory can be made in {tmp_path}/runs: Not a directory\n"
