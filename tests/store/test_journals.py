"""The run directory: what is written is read back, and damaged journals give what was whole."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephoscope.errors import InputError, MeasurementError
from nephoscope.measuring.measurement import write_results
from nephoscope.results import side_by_side
from nephoscope.results.compare import compare_runs
from nephoscope.store import FILES, RunWriter, StoredRun, new_run_directory
from nephoscope.store.layout import check_runs
from nephoscope.store.protocol import Selection
from sample_studies import phases, sim_study
from stored_runs import Step, begin_run


def write_run(folder: Path, intervals: int = 6) -> RunWriter:
    """Write a small run, its end left out."""
    tables = sim_study(phases({"concurrency": 1, "duration": intervals / 10}))
    latencies = [2.0 + number for number in range(intervals)]
    return begin_run(folder, tables, [Step({"mix": "SELECT", "concurrency": 1}, [2] * intervals, latencies)])


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    writer = write_run(tmp_path)
    during = StoredRun(tmp_path)
    assert during.manifest["status"] == "killed"
    writer.finish("measured", None, {"started": 12, "committed": 12})
    after = StoredRun(tmp_path)
    assert (after.manifest["status"], after.manifest["totals"]) == (
        "measured",
        {"started": 12, "committed": 12},
    )
    assert after.intervals.equals(during.intervals)
    assert after.system_metrics.equals(during.system_metrics)
    assert after.probes.equals(during.probes)
    assert after.checks.equals(during.checks)
    assert after.checks.column("hits").to_pylist() == [1, 0] * 3
    assert after.probes.column("outcome").to_pylist() == ["ok", "ok", "missing"] * 2
    assert after.intervals.column("committed").to_pylist() == [2] * 6
    assert after.merged().count == 12
    assert after.merged().max == pytest.approx(7e6, rel=0.001)
    assert after.merged(Selection(phases=frozenset({1}))).count == 0
    assert after.percentiles([(0, 0.3), (0.3, 0.6)], [100])[1][0] == pytest.approx(7e6, rel=0.001)
    assert [(phase.name, phase.kind, phase.start_s) for phase in after.phases] == [
        ("SELECT c=1", "measure", 0)
    ]
    assert not (tmp_path / FILES.interval_journal).exists()
    assert not (tmp_path / FILES.probe_journal).exists()
    assert StoredRun(tmp_path).study == during.study


JOURNALS = (
    FILES.interval_journal,
    FILES.histograms,
    FILES.events,
    FILES.system_journal,
    FILES.probe_journal,
    FILES.check_journal,
)


def test_a_run_without_probes_has_no_file_of_them(tmp_path: Path) -> None:
    writer = write_run(tmp_path)
    writer.close()
    (tmp_path / FILES.probe_journal).unlink()
    (tmp_path / FILES.check_journal).unlink()
    writer.finish("measured", None)
    assert not (tmp_path / FILES.probes).exists()
    assert not (tmp_path / FILES.checks).exists()
    assert StoredRun(tmp_path).probes.num_rows == StoredRun(tmp_path).checks.num_rows == 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    write_run(folder, intervals=3).close()
    return folder


@pytest.mark.parametrize("name", JOURNALS)
def test_a_journal_that_is_cut_off_anywhere_gives_its_whole_lines(
    whole: Path, tmp_path: Path, name: str
) -> None:
    for file in whole.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    content = (whole / name).read_bytes()
    lines = [line for line in content.splitlines(keepends=True) if line.startswith((b"{", b"Tag="))]
    heading = content[: content.index(lines[0])]
    for length in range(len(content)):
        (tmp_path / name).write_bytes(content[:length])
        complete = content[:length].removeprefix(heading).count(b"\n") if length > len(heading) else 0
        # A line of JSON that lacks only its end is whole.
        ended = complete + (content[length : length + 1] == b"\n" and name != FILES.histograms and length > 0)
        assert count(StoredRun(tmp_path), name) == ended, length


def count(run: StoredRun, name: str) -> int:
    """Count what was read from a journal, by its lines."""
    counts = {
        FILES.interval_journal: lambda: run.intervals.num_rows,
        FILES.histograms: lambda: len(run._entries),
        FILES.events: lambda: len(run.events),
        FILES.system_journal: lambda: run.system_metrics.num_rows,
        FILES.probe_journal: lambda: run.probes.num_rows,
        FILES.check_journal: lambda: run.checks.num_rows,
    }
    return counts[name]()


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("name", JOURNALS)
def test_a_run_with_a_journal_cut_off_is_reported(
    whole: Path, tmp_path: Path, name: str, share: float
) -> None:
    for file in whole.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    content = (whole / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(len(content) * share)])
    write_results(tmp_path)
    assert StoredRun(tmp_path).manifest["status"] == "killed"
    assert "</html>" in (tmp_path / FILES.report).read_text()


garbage = st.binary(max_size=80) | st.sampled_from(
    [
        b"null\n",
        b"[1]\n",
        b'{"phase": "x"}\n',
        b'{"phase": 0, "start_s": null, "end_s": []}\n',
        b'{"event": "phase"}\n',
        b'{"event": "phase", "phase": "x", "time_s": {}}\n',
        b'{"event": "error", "time_s": 1}\n',
        b'{"time_s": "soon", "source": 3, "metric": null, "value": "much"}\n',
        b'{"time_s": 1, "probe": "lag", "kind": null, "number": 1.5, "sent_s": null, "outcome": "ok"}\n',
        b"Tag=latency|a|b|c,nan,1,1,HISTFAAA\n",
        b"Tag=latency|default|rw|select_only,0.1,0.1,1,HISTFAAAAEV42pNpmSzMwMDAzAABMJoRTM2YzmD/AQA=\n",
        b"\x00" * 64,
        b'{"committed": 1' + b"9" * 40 + b"}\n",
        b"[" * 3000 + b"\n",
    ]
)


@pytest.mark.long
@settings(deadline=None, max_examples=100)
@given(st.sampled_from(JOURNALS), garbage, st.floats(0, 1))
def test_garbage_in_a_journal_keeps_nobody_from_reading_the_rest(
    name: str, junk: bytes, share: float
) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_run(folder, intervals=3).close()
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        at = round(share * len(lines))
        (folder / name).write_bytes(b"".join([*lines[:at], junk, b"\n", *lines[at:]]))
        run = StoredRun(folder)
        assert count(run, name) >= len([line for line in lines if line.startswith((b"{", b"Tag="))])
        write_results(folder)
        assert "</html>" in (folder / FILES.report).read_text()


@pytest.mark.parametrize(
    ("event", "facts", "message"),
    [
        (
            "phase",
            {"phase": 9, "name": "x", "kind": "measure", "labels": {"repetition": "first"}},
            "labels.repetition: ",
        ),
        ("tell", {"value": float("nan")}, "nan is no number that is measured"),
        ("allocation", {"resources": {"vcores": 1}}, "resources.memory_gb: "),
    ],
)
def test_what_could_not_be_read_again_is_not_written(
    tmp_path: Path, event: str, facts: dict[str, Any], message: str
) -> None:
    writer = write_run(tmp_path)
    with pytest.raises(MeasurementError, match=f"the event {event} cannot be kept in the run: {message}"):
        writer.event(9.0, event, **facts)
    with pytest.raises(MeasurementError, match=r"manifest\.json cannot be kept in the run: "):
        writer.write_manifest(system={"facts": {"load": float("inf")}})
    writer.close()
    assert StoredRun(tmp_path).phases


# --- what is no run directory


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is no run directory: manifest.json: No such file or directory"),
        ("", "is no run directory: manifest.json is not JSON"),
        ("{", "is no run directory: manifest.json is not JSON"),
        ("[]", "is no run directory: manifest.json has no format"),
        ("{}", "is no run directory: manifest.json has no format"),
        ('{"format": "1"}', "is no run directory: manifest.json has no format"),
        ('{"format": 99}', "was written by a later nephoscope (format 99)"),
        ("\udcff", "is no run directory: manifest.json is not JSON"),
    ],
)
def test_what_is_no_run_directory_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / FILES.manifest).write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(InputError) as refused:
        StoredRun(tmp_path)
    assert str(refused.value) == f"{tmp_path} {message}"


def test_a_damaged_table_is_told_with_its_name(tmp_path: Path) -> None:
    write_run(tmp_path).finish("measured", None)
    (tmp_path / FILES.intervals).write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(InputError, match=r"intervals\.parquet cannot be read: "):
        _ = StoredRun(tmp_path).intervals


# --- folders


def test_runs_of_the_same_second_have_folders_of_their_own(tmp_path: Path) -> None:
    folders = [new_run_directory(tmp_path / "runs", "study") for _ in range(5)]
    assert len(set(folders)) == 5
    assert (tmp_path / "runs" / "latest").resolve() == folders[-1]
    assert not [path for path in (tmp_path / "runs").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("obstacle", ["file", "latest"])
def test_where_no_run_directory_can_be_made_is_told(tmp_path: Path, obstacle: str) -> None:
    runs = tmp_path / "runs"
    if obstacle == "file":
        runs.write_text("")
    else:
        (runs / "latest" / "here").mkdir(parents=True)
    for make, refusal in (
        (check_runs, InputError),
        (lambda runs: new_run_directory(runs, "study"), MeasurementError),
    ):
        with pytest.raises(refusal, match=f"no run directory can be made in {runs}: "):
            make(runs)
    # A link that could not be put in its place is not left behind.
    assert not runs.is_dir() or not [path for path in runs.iterdir() if path.name.startswith(".")]


def gone(folder: Path) -> None:
    """Let the study of a run name a workload and a price book that are nowhere."""
    study = (folder / FILES.study).read_text()
    study = study.replace('"tpcb"', '"/nowhere/mine"').replace('"cloudybench-2024"', '"/nowhere/mine.toml"')
    (folder / FILES.study).write_text(study)


def test_a_stored_run_is_read_without_its_workload_and_its_price_book(tmp_path: Path) -> None:
    writer = write_run(tmp_path)
    writer.finish("measured", None)
    before = write_results(tmp_path)
    assert (before["cost"]["price_book"], len(before["points"])) == ("cloudybench-2024", 1)
    shutil.copytree(tmp_path, tmp_path / "other")
    gone(tmp_path)
    assert write_results(tmp_path) == before
    found = side_by_side.read_runs([tmp_path, tmp_path / "other"])
    assert [run.scores for run in found.runs] == [before, before]
    compared = compare_runs(StoredRun(tmp_path), StoredRun(tmp_path / "other"))
    assert len(compared.figures) == 5


def test_a_run_that_keeps_nothing_of_its_workload_runs_none(tmp_path: Path) -> None:
    """As older ones do: what comes with nephoscope is read, and no other file, whatever the study names."""
    writer = write_run(tmp_path)
    writer.finish("measured", None)
    before = write_results(tmp_path)
    manifest = json.loads((tmp_path / FILES.manifest).read_text())
    del manifest["inputs"]
    (tmp_path / FILES.manifest).write_text(json.dumps({**manifest, "format": 1}))
    assert write_results(tmp_path) == before
    own = tmp_path / "own"
    own.mkdir()
    (own / "workload.lua").write_text("error('it was run')")
    study = (tmp_path / FILES.study).read_text()
    (tmp_path / FILES.study).write_text(study.replace('"tpcb"', f'"{own}"'))
    (warning,) = write_results(tmp_path)["warnings"]
    assert f"and '{own}' does not come with nephoscope" in warning
    assert "it was run" not in warning
    # What was scored before stays, as it cannot be made again.
    assert json.loads((tmp_path / FILES.scores).read_text()) == before
    (tmp_path / FILES.study).write_text(study.replace('"cloudybench-2024"', '"/dev/zero"'))
    (warning,) = write_results(tmp_path)["warnings"]
    assert "price book '/dev/zero': not built in" in warning
