from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from planted import Planted, write_corpus

from commands import call, finish, start, wait_for
from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.storage.corpus import OPERATIONS, Corpus
from nephoscope.storage.executed import ALL, executed
from nephoscope.storage.executed_tables import notes_of, tables_of
from nephoscope.storage.sources import poisson_of, read_sources
from nephoscope.store.reader import StoredRun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("executed") / "corpus"
    return write_corpus(folder, Planted(rate=200, seconds=3, modulation=0.3), Planted(rate=100, seconds=2))


@pytest.fixture(scope="module")
def ended(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[StoredRun, str]:
    folder = tmp_path_factory.mktemp("run")
    url = f"file://{folder}/target.bin"
    words = (f"{corpus.folder}:0", "poisson", "--target", url, "--repetitions", "2", "--out", folder / "runs")
    done = call("storage", "run", *words)
    assert done.code == 0, done.err
    return StoredRun(folder / "runs" / "latest"), done.out


def test_every_request_is_counted_in_its_place(ended: tuple[StoredRun, str], corpus: Corpus) -> None:
    run, _ = ended
    columns = corpus.requests(0)
    counted = executed(run)
    for operation in ("read", "write"):
        planted = int((columns["operation"] == OPERATIONS.index(operation)).sum())
        tail = next(t for t in counted.tails if (t.source, t.operation) == ("corpus:0", operation))
        assert (tail.done, tail.failed, tail.latency.total, tail.lateness.total) == (
            2 * planted,
            0,
            2 * planted,
            2 * planted,
        )
    first = counted.courses[0]
    assert (first.repetitions, first.requests, first.in_flight) == (2, 2 * len(columns["time_us"]), 0)
    # What was not planted: no request ends before it is due, so none makes the rate higher.
    assert first.achieved_rate <= first.intended_rate * 1.001
    assert run.manifest["status"] == "measured"
    assert run.manifest["totals"]["started"] == sum(course.requests for course in counted.courses)


def test_sources_take_turns(ended: tuple[StoredRun, str]) -> None:
    run, _ = ended
    order = [(phase.labels["source"], phase.labels["repetition"]) for phase in run.phases]
    assert order == [("corpus:0", 1), ("poisson", 1), ("poisson", 2), ("corpus:0", 2)]


def test_the_tables_compare_with_the_first_source(ended: tuple[StoredRun, str]) -> None:
    run, out = ended
    found = executed(run)
    tables = {table.name: table for table in tables_of(found)}
    assert {row["source"] for row in tables["beside_first"].rows} == {"poisson"}
    assert all(row["p99_ratio_ci95_low"] is not None for row in tables["beside_first"].rows)
    rows = tables["tails"].rows
    assert all(row["latency_p50_ms"] <= row["latency_p99_ms"] <= row["latency_max_ms"] for row in rows)
    assert "Latency in multiples of that of corpus:0" in out
    assert "fewer than 10 requests lie beyond it" in " ".join(notes_of(found))
    page = (run.folder / "report.html").read_text()
    assert "storage-tail-read" in page
    assert "https://" not in page.split("<footer")[0].split("<main")[-1]


def test_one_execution_has_intervals_of_its_own(corpus: Corpus, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/target.bin"
    words = (
        f"{corpus.folder}:0",
        "--target",
        url,
        "--repetitions",
        "1",
        "--speed",
        "0.25",
        "--out",
        tmp_path / "r",
    )
    done = call("storage", "run", *words, "--json")
    assert done.code == 0, done.err
    row = next(row for row in json.loads(done.out)["tails"] if row["operation"] == ALL)
    assert row["latency_p50_ms_ci95_low"] <= row["latency_p50_ms"] <= row["latency_p50_ms_ci95_high"]
    assert row["latency_max_ms_ci95_low"] is None
    run = StoredRun(tmp_path / "r" / "latest")
    assert run.phases[0].labels["planned_s"] == 12
    assert run.phases[0].end_s - run.phases[0].start_s >= 11


def test_an_interrupted_run_keeps_what_was_measured(corpus: Corpus, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/target.bin"
    words = (f"{corpus.folder}:0", "--target", url, "--speed", "0.02", "--out", tmp_path / "runs")
    with start("storage", "run", *words, cwd=tmp_path) as process:
        wait_for(lambda: _lines(tmp_path) >= 2, "two rows", process)
        process.send_signal(signal.SIGINT)
        ended = finish(process)
    assert (ended.code, "interrupted by SIGINT" in ended.err) == (1, True), ended
    run = StoredRun(tmp_path / "runs" / "latest")
    assert run.manifest["status"] == "interrupted"
    course = executed(run).courses[0]
    assert 0 < course.requests < len(corpus.requests(0)["time_us"])
    assert (
        int(run.intervals["committed"].to_numpy().sum())
        + int(run.intervals["unstarted"].to_numpy().sum())
        + course.in_flight
        == course.requests
    )


def _lines(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in (folder / "runs").glob("*/intervals.jsonl"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("{corpus}", "--target", "file:///x"), "has 2 runs: say which"),
        (("{corpus}:7", "--target", "file:///x"), "there is no run 7; there are 0, 1"),
        (("{corpus}:x", "--target", "file:///x"), "a source is a corpus, FOLDER or FOLDER:RUN, or poisson"),
        (("poisson", "--target", "file:///x"), "name that before"),
        (("{corpus}:0", "{corpus}:0", "--target", "file:///x"), "is given twice"),
        (("{corpus}:0", "--target", "nowhere"), "nowhere is no target"),
        (("{corpus}:0", "--target", "file:///x", "--sync", "often"), "--sync often"),
        (("{corpus}:0", "--target", "file:///x", "--speed", "0"), "--speed 0"),
        (("{corpus}:0", "--target", "file:///x", "--seconds", "0"), "--seconds 0: above 0"),
        (("{corpus}:0", "--target", "file:///x", "--give-up", "soon"), "--give-up soon"),
        (("{corpus}:0", "--target", "file:///dev/null"), "neither a file nor a block device"),
    ],
)
def test_bad_input_is_one_message(words: tuple[str, ...], said: str, corpus: Corpus, tmp_path: Path) -> None:
    filled = [word.replace("{corpus}", str(corpus.folder)) for word in words]
    done = call("storage", "run", *filled, "--out", tmp_path / "runs")
    assert (done.code, said in " ".join(done.err.split())) == (2, True), done.err
    assert not (tmp_path / "runs").exists()


def test_a_file_that_is_not_ours_is_left_alone(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("all of it")
    url = f"file://{tmp_path}/thesis"
    done = call("storage", "run", f"{corpus.folder}:0", "--target", url, "--out", tmp_path / "runs")
    assert (done.code, "--overwrite" in done.err) == (2, True), done.err
    assert (tmp_path / "thesis").read_text() == "all of it"


@pytest.fixture
def block_device(tmp_path: Path) -> Iterator[str]:
    """Give a block device of 64 MiB: a file by the kernel's loop driver."""
    if os.geteuid() != 0 or not shutil.which("losetup"):
        pytest.skip("a loop device takes root and losetup")
    (tmp_path / "disk.img").touch()
    os.truncate(tmp_path / "disk.img", 64 * 2**20)
    words = ["losetup", "--find", "--show", str(tmp_path / "disk.img")]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"this machine gives no loop device: {made.stderr.strip()}")
    device = made.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def test_a_corpus_is_executed_on_a_block_device(block_device: str, corpus: Corpus, tmp_path: Path) -> None:
    words = ("storage", "run", f"{corpus.folder}:1", "--repetitions", "1", "--out", tmp_path / "runs")
    refused = call(*words, "--target", f"file://{block_device}")
    assert (refused.code, "--overwrite takes it" in " ".join(refused.err.split())) == (2, True)
    done = call(*words, "--target", f"file://{block_device}?direct=on", "--overwrite")
    assert done.code == 0, done.err
    [tail] = [one for one in executed(StoredRun(tmp_path / "runs" / "latest")).tails if one.operation == ALL]
    assert (tail.done, tail.failed) == (len(corpus.requests(1)["time_us"]), 0)
    # What was written by O_DIRECT is on the disk below: the last write has left its time in its page.
    times = corpus.requests(1)["time_us"][corpus.requests(1)["operation"] == OPERATIONS.index("write")]
    assert int(times[-1]) in np.fromfile(tmp_path / "disk.img", np.uint64).reshape(-1, 512)[:, 1]
    again = call(*words, "--target", f"file://{block_device}")
    assert again.code == 0, "the mark of an earlier run is not known again"


def test_poisson_has_the_rate_and_the_requests_of_its_source(corpus: Corpus) -> None:
    (source,) = read_sources([f"{corpus.folder}:0"], None, 1)
    known = len(source.columns["time_us"])
    made = [poisson_of(source, seed) for seed in range(40)]
    counts = np.array([len(one.columns["time_us"]) for one in made])
    # The mean of 40 draws has a standard deviation of sqrt(known / 40).
    assert abs(counts.mean() - known) < 4 * np.sqrt(known / 40)
    one = made[0].columns
    assert (np.diff(one["time_us"]) >= 0).all()
    assert one["time_us"].max() < 3_000_000
    kinds = ("segment", "offset", "bytes", "operation")
    ours, theirs = (
        {*zip(*(columns[name].tolist() for name in kinds), strict=True)} for columns in (one, source.columns)
    )
    assert ours <= theirs


def test_every_request_reaches_its_place_in_the_file(corpus: Corpus, tmp_path: Path) -> None:
    """The last write of each page has left its place and its time there."""
    (source,) = read_sources([f"{corpus.folder}:1"], None, 1)
    url = f"file://{tmp_path}/target.bin?direct=off"
    words = (
        f"{corpus.folder}:1",
        "--target",
        url,
        "--depth",
        "1",
        "--repetitions",
        "1",
        "--out",
        tmp_path / "runs",
    )
    assert call("storage", "run", *words).code == 0
    columns = source.columns
    ends: dict[int, int] = {}
    for segment, offset, size in zip(columns["segment"], columns["offset"], columns["bytes"], strict=True):
        ends[int(segment)] = max(ends.get(int(segment), 0), int(offset) + int(size))
    starts: dict[int, int] = {}
    start = 4096
    for segment in sorted(ends):
        starts[segment] = start
        start = -(-(start + ends[segment]) // 4096) * 4096
    expected: dict[int, int] = {}
    for at in np.flatnonzero(columns["operation"] == OPERATIONS.index("write")):
        begin = starts[int(columns["segment"][at])] + int(columns["offset"][at])
        for page in range(-(-begin // 4096) * 4096, begin + int(columns["bytes"][at]) - 15, 4096):
            expected[page] = int(columns["time_us"][at])
    content = np.fromfile(tmp_path / "target.bin", np.uint64)
    assert expected
    for page, time_us in expected.items():
        assert (int(content[page // 8]), int(content[page // 8 + 1])) == (page, time_us)


def test_a_column_that_ends_within_a_number_is_refused(tmp_path: Path) -> None:
    target = _engine.StorageTarget(f"file://{tmp_path}/target.bin", overwrite=False)
    with pytest.raises(InputError, match="no column"):
        target.prepare([{}])
    names = ("time_us", "segment", "offset", "bytes", "operation", "process", "latency_us")
    with pytest.raises(InputError, match="ends within a number"):
        target.prepare([dict.fromkeys(names, b"x" * 7)])
    columns: dict[str, Any] = {**dict.fromkeys(names, b""), "time_us": b"\0" * 8}
    with pytest.raises(InputError, match="different lengths"):
        target.execute(columns, "{}")


def test_the_histograms_of_a_run_hold_the_lateness(ended: tuple[StoredRun, str]) -> None:
    run, _ = ended
    kinds = {line.split("|")[0] for line in (run.folder / "histograms").read_text().splitlines()[3:]}
    assert kinds == {"Tag=latency", "Tag=service", "Tag=lateness"}
    names = pq.read_table(run.folder / "intervals.parquet").column_names
    assert "lateness" not in names
    assert os.access(run.folder / "study.toml", os.R_OK)


def test_a_report_of_the_run_is_the_same_page(ended: tuple[StoredRun, str], tmp_path: Path) -> None:
    run, _ = ended
    done = call("report", run.folder, "--out", tmp_path / "page.html", "--format", "markdown")
    assert (done.code, "corpus:0" in done.out) == (0, True), done.err
    assert (tmp_path / "page.html").read_text() == (run.folder / "report.html").read_text()


def test_requests_of_a_last_second_that_is_not_whole_count_for_the_rate(tmp_path: Path) -> None:
    lines = [f"{at} data read 0 4096" for at in range(0, 1_900_000, 10_000)]
    iolog = tmp_path / "requests.iolog"
    iolog.write_text("\n".join(["fio version 3 iolog", "0 data add", "0 data open", *lines]) + "\n")
    assert call("storage", "import", iolog, tmp_path / "corpus").code == 0
    (source,) = read_sources([str(tmp_path / "corpus")], None, 1)
    assert len(source.columns["time_us"]) == 190
    assert source.seconds == pytest.approx(1.890001)
