"""A run directory that somebody else has made: nothing outside it is written, shown, run or waited for."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commands import call, finish, start
from nephoscope.errors import InputError
from nephoscope.measuring.measurement import write_results
from nephoscope.store import FILES, StoredRun, reader
from nephoscope.store.layout import LIMITS
from sample_studies import phases, sim_study, write_study
from stored_runs import Step, write_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

NAMES = tuple(vars(FILES).values())
JOURNALS = {
    FILES.interval_journal: FILES.intervals,
    FILES.system_journal: FILES.system,
    FILES.probe_journal: FILES.probes,
    FILES.check_journal: FILES.checks,
}
"""The table that stands for each journal once a run has ended."""
READ_WHERE_ASKED: Mapping[str, Callable[[StoredRun], object]] = {
    FILES.scores: lambda run: run.scores,  # nothing is made of what was scored by somebody else
    **dict.fromkeys((FILES.checks, FILES.check_journal), lambda run: run.checks),
}
"""Files that a report of this run does not need."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    steps = [Step({"mix": "SELECT", "concurrency": 1}, [2] * 6, [2.0] * 6)]
    tables = sim_study(phases({"concurrency": 1, "duration": "600ms"}))
    return write_run(tmp_path_factory.mktemp("runs") / "made", tables, steps)


@pytest.fixture
def foreign(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "foreign")


@pytest.mark.parametrize("status", ["measured", "running"])
def test_links_with_the_names_of_unfinished_files_are_not_followed(
    foreign: Path, tmp_path: Path, status: str
) -> None:
    manifest = foreign / FILES.manifest
    manifest.write_text(manifest.read_text().replace('"measured"', f'"{status}"'))
    mine = tmp_path / "mine"
    mine.write_text("precious")
    for name in NAMES:
        (foreign / f".{name}.part").symlink_to(mine)
    assert call("report", foreign, "--tables", foreign).code == 0
    assert mine.read_text() == "precious"


def test_a_table_that_is_a_link_is_replaced_and_not_followed(foreign: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("precious")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "points.csv").symlink_to(mine)
    assert call("report", foreign, "--tables", tmp_path / "tables").code == 0
    assert mine.read_text() == "precious"
    assert "SELECT" in (tmp_path / "tables" / "points.csv").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_link_in_a_run_directory_is_refused(foreign: Path, tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("geheim")
    (foreign / name).unlink(missing_ok=True)
    (foreign / name).symlink_to(secret)
    commands: tuple[list[str | Path], ...] = (
        ["report", foreign],
        ["compare", foreign, foreign],
        ["report", foreign, foreign.parent / "x"],
    )
    for command in commands:
        ended = call(*command)
        assert ended.code == 2
        assert name in ended.err
        assert "it is a link; allowed: a regular file" in ended.err
        assert "geheim" not in ended.out + ended.err
    assert secret.read_text() == "geheim"


def obstacle(path: Path, kind: str) -> str:
    """Put something in the place of a file; gives what it is called."""
    match kind:
        case "fifo":
            os.mkfifo(path)
            return "a pipe (FIFO)"
        case "folder":
            path.mkdir()
            return "a folder"
        case _:
            listener = socket.socket(socket.AF_UNIX)
            # A path of a socket is short.
            here = Path.cwd()
            os.chdir(path.parent)
            try:
                listener.bind(path.name)
            finally:
                os.chdir(here)
                listener.close()
            return "a socket"


@pytest.mark.parametrize("kind", ["fifo", "folder", "socket"])
@pytest.mark.parametrize(
    "name", [FILES.manifest, FILES.study, FILES.intervals, FILES.events, FILES.histograms]
)
def test_what_is_no_file_is_refused_at_once(foreign: Path, name: str, kind: str) -> None:
    (foreign / name).unlink()
    called = obstacle(foreign / name, kind)
    with start("report", foreign, cwd=foreign.parent) as process:
        ended = finish(process)
    assert ended.code == 2
    assert ended.err.endswith(f": it is {called}; allowed: a regular file\n")


@pytest.mark.parametrize("name", [name for name in NAMES if name != FILES.report])
def test_each_file_has_a_limit(foreign: Path, name: str) -> None:
    """A file of nothing but a hole takes no room, and as much memory as it is long."""
    if name in JOURNALS:
        (foreign / JOURNALS[name]).unlink(missing_ok=True)
    with (foreign / name).open("ab") as file:
        file.truncate(LIMITS[name] + 1)
    said = f"it is larger than {LIMITS[name] // 2**20:,} MiB"
    if (read := READ_WHERE_ASKED.get(name)) is not None:
        with pytest.raises(InputError, match=said):
            read(StoredRun(foreign))
        return
    ended = call("report", foreign, "--out", foreign.parent / "page.html")
    assert (ended.code, said in ended.err.replace("\n", " ")) == (2, True), ended


def test_a_table_is_measured_by_what_it_takes_in_memory(
    foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MOST_ROWS", 5)
    with pytest.raises(InputError, match=r"intervals\.parquet cannot be read: it has more than 5 rows"):
        _ = StoredRun(foreign).intervals
    monkeypatch.setattr(reader, "MOST_ROWS", 6)
    monkeypatch.setattr(reader, "MOST_TABLE_BYTES", 100)
    with pytest.raises(InputError, match="it takes more than"):
        _ = StoredRun(foreign).intervals


def modes(folder: Path) -> dict[str, str]:
    """Tell what others may write to, by path."""
    paths = [folder, *folder.rglob("*")]
    writable = [
        path
        for path in paths
        if not path.is_symlink() and path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ]
    return {str(path.relative_to(folder)): oct(path.stat().st_mode) for path in writable}


def test_nothing_that_is_made_can_be_changed_by_others(tmp_path: Path) -> None:
    study = write_study(tmp_path, sim_study(phases({"concurrency": 1, "duration": "300ms"})))
    out = tmp_path / "made"
    commands: tuple[list[str | Path], ...] = (
        ["run", study, "--out", out],
        ["report", out / "latest", "--out", out / "page.html", "--tables", out / "tables"],
    )
    for command in commands:
        with start(*command, cwd=tmp_path, within=("bash", "-c", 'umask 0; exec "$@"', "bash")) as process:
            ended = finish(process)
        assert ended.code == 0, ended.err
    assert (out / "tables" / "points.csv").exists()
    assert modes(out) == {}


# --- where nothing can be written


@pytest.fixture
def read_only(made: Path, tmp_path: Path) -> Iterator[tuple[Path, Sequence[str]]]:
    """A run in a folder that nothing can be written to, and the command within which that is so."""
    folder = tmp_path / "read only"
    shutil.copytree(made, folder / "run")
    if os.geteuid() != 0:
        for place in (folder, folder / "run"):
            place.chmod(0o555)
        yield folder, ()
        for place in (folder, folder / "run"):
            place.chmod(0o755)
        return
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    within = ("unshare", "--mount", "bash", "-c", script, str(folder))
    if subprocess.run([*within, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield folder, within


def test_a_run_that_cannot_be_written_to_is_shown_and_its_report_can_lie_elsewhere(
    read_only: tuple[Path, Sequence[str]], tmp_path: Path
) -> None:
    folder, within = read_only
    page = tmp_path / "page.html"
    with start("report", folder / "run", cwd=tmp_path, within=within) as process:
        shown = finish(process)
    assert shown.code == 1
    assert "every transaction is accounted for" in shown.out
    assert len(shown.err.splitlines()) == 1
    assert shown.err.endswith("; --out FILE writes the report elsewhere\n")
    with start("report", folder / "run", "--out", page, cwd=tmp_path, within=within) as process:
        written = finish(process)
    assert (written.code, written.err) == (0, "")
    assert written.out.endswith(f"report: {page}\n")
    assert "</html>" in page.read_text()


def test_where_no_run_can_be_kept_is_told_before_the_system_is_started(
    read_only: tuple[Path, Sequence[str]], tmp_path: Path
) -> None:
    folder, within = read_only
    # A system that nobody could start.
    study = write_study(tmp_path, sim_study(system={"rw": "postgresql://u@127.0.0.1:9/db"}))
    for out in (folder, folder / "new" / "runs"):
        with start("run", study, "--out", out, cwd=tmp_path, within=within) as process:
            ended = finish(process)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith(f"nephoscope: no run directory can be made in {out}: ")


def test_a_report_elsewhere_leaves_the_run_as_it_is(foreign: Path, tmp_path: Path) -> None:
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in foreign.iterdir()}
    assert call("report", foreign, "--out", tmp_path / "page.html").code == 0
    assert before == {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in foreign.iterdir()}
    write_results(foreign)
    assert (tmp_path / "page.html").read_bytes() == (foreign / FILES.report).read_bytes()


@pytest.mark.parametrize(
    ("target", "kind"), [("/dev/null", "a device"), ("fifo", "a pipe (FIFO)"), (".", "a folder")]
)
def test_a_page_takes_the_place_of_no_device(foreign: Path, tmp_path: Path, target: str, kind: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    for runs in ([foreign], [foreign, tmp_path / "other"]):
        ended = call("report", *runs, "--out", tmp_path / target)
        assert (ended.code, ended.out) == (2, "")
        assert f"{tmp_path / target} cannot be written: it is {kind}; allowed: a regular file" in ended.err
