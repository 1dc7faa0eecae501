"""`nephoscope report` of several runs, as Markdown, and with its tables as files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from test_outputs import check_golden, printed

from commands import call
from sample_studies import sim_study, throughput
from stored_runs import Step, write_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def stored(folder: Path, tps: int, manifest: Mapping[str, Any] | None = None) -> Path:
    """Plant a run of two concurrencies, each twice, whose TPS is known."""
    steps = [
        Step(
            {"mix": "SELECT", "concurrency": level, "repetition": repetition},
            [tps * level // 10 + repetition + place % 3 for place in range(20)],
            [2.0] * 20,
        )
        for repetition in (1, 2)
        for level in (2, 8)
    ]
    return write_run(
        folder, sim_study(throughput(concurrency=[2, 8], duration="2s", repetitions=2)), steps, manifest
    )


def pair(tmp_path: Path, manifest: Mapping[str, Any] | None = None) -> tuple[Path, Path]:
    return stored(tmp_path / "a", 1000), stored(tmp_path / "b", 1500, manifest)


def test_golden_report_of_two_runs(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = printed(call("report", *pair(tmp_path), "--out", page))
    check_golden("report-several", text, page=page)
    assert "2 runs side by side" in page.read_text()


def test_golden_markdown_of_one_run_and_of_two(tmp_path: Path) -> None:
    runs = pair(tmp_path)
    check_golden("report-markdown", printed(call("report", runs[0], "--format", "markdown")))
    both = printed(call("report", *runs, "--format", "markdown", "--out", tmp_path / "page.html"))
    check_golden("report-several-markdown", both)


def test_the_runs_are_left_as_they_are(tmp_path: Path) -> None:
    runs = pair(tmp_path)
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for run in runs for file in run.iterdir()}
    assert call("report", *runs, "--out", tmp_path / "page.html").code == 0
    assert before == {
        file: (file.read_bytes(), file.stat().st_mtime_ns) for run in runs for file in run.iterdir()
    }


def test_the_page_lies_here_if_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = pair(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert printed(call("report", *runs)).rstrip().endswith("report: side-by-side.html")
    assert (tmp_path / "side-by-side.html").exists()


def test_tables_are_kept(tmp_path: Path) -> None:
    runs = pair(tmp_path)
    one = printed(call("report", runs[0], "--tables", tmp_path / "one"))
    assert one.rstrip().endswith("(10 files)")
    assert {file.stem for file in (tmp_path / "one").iterdir()} == {
        "scores",
        "throughput",
        "saturation",
        "costs",
        "points",
    }
    ended = call(
        "report", *runs, "--tables", tmp_path / "two", "--format", "markdown", "--out", tmp_path / "page.html"
    )
    assert ended.code == 0
    assert "tables:" in ended.err
    assert "tables:" not in ended.out
    found = pq.read_table(tmp_path / "two" / "differences.parquet").to_pylist()
    tps = {row["figure"]: row for row in found}["SELECT c=8 TPS"]
    assert tps["relative"] == pytest.approx(0.5, abs=0.01)
    assert tps["verdict"] == "faster"
    points = pq.read_table(tmp_path / "two" / "points.parquet").to_pylist()
    assert {row["run"] for row in points} == {"a", "b"}
    assert len(points) == 8


def test_another_workload_or_scale_is_said_loudly(tmp_path: Path) -> None:
    runs = pair(
        tmp_path, {"workload": {"name": "tpcb", "scale": 10.0, "files": {"workload.lua": "sha256:0"}}}
    )
    page = tmp_path / "page.html"
    text = " ".join(printed(call("report", *runs, "--out", page)).split())
    assert text.startswith(
        "! a and b: the runs differ in workload.scale: 1.0 and 10.0: their figures do not measure"
    )
    assert "Hard to compare" in page.read_text()


def test_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    runs = [stored(tmp_path / "x" / "run", 1000), stored(tmp_path / "y" / "run", 1000)]
    text = printed(call("report", *runs, "--out", tmp_path / "page.html"))
    assert "x/run" in text
    assert "y/run" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["A", "none"], "none is no run directory: manifest.json: No such file or directory"),
        (["A", "B", "A"], "is named twice; allowed: each run once"),
        (["A", "latest"], "is named twice; allowed: each run once"),
        (["A", "--out", "none/page.html"], "none/page.html cannot be written: No such file or directory"),
        (
            ["A", "B", "--out", "none/page.html"],
            "none/page.html cannot be written: No such file or directory",
        ),
        (["A", "--tables", "file"], "tables cannot be written to file: it is no folder"),
        (["A", "B", "--tables", "file"], "tables cannot be written to file: it is no folder"),
        (["A", "--format", "html"], "Invalid value for '--format': 'html' is not one of 'table', 'markdown'"),
    ],
)
def test_bad_input_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    runs = dict(zip("AB", map(str, pair(tmp_path)), strict=True))
    (tmp_path / "latest").symlink_to("a")
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    ended = call("report", *(runs.get(argument, argument) for argument in arguments))
    assert ended.code == 2
    assert message in " ".join(ended.err.split())
    assert "Traceback" not in ended.err
    assert not list(tmp_path.glob("*.html"))
