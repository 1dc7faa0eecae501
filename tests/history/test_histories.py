"""Histories of stored runs: what is planted in them is found, with its date, and told in every form."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from commands import call
from planted_runs import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen runs, a day apart; the last six are slower by 20 %, and measured with another number of threads."""
    folder = tmp_path_factory.mktemp("history") / "runs"
    for day in range(1, 17):
        slow = day > 10
        load = {"threads": 2 if slow else 1, "statement_mode": "prepared", "pipeline": False}
        manifest = {"clock": {"origin": f"2026-01-{day:02d}T03:00:00+01:00"}, "load": load}
        run(
            folder / f"run-{(day * 7) % 17:02d}",  # the order is that of their clocks, and not of their names
            tps=800 if slow else 1000,
            latency_ms=2.5 if slow else 2.0,
            noise=0.01,
            repetitions=1,
            levels=(4,),
            manifest=manifest,
        )
    return folder


def test_a_planted_change_is_told_with_its_date_and_what_else_differs(runs: Path) -> None:
    ended = call("history", runs, "--json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    changes = {row["figure"]: row for row in told["changes"]}
    assert set(changes) == {"SELECT c=4 TPS", "SELECT c=4 p95"}
    tps = changes["SELECT c=4 TPS"]
    assert tps["date"] == "2026-01-11T02:00:00+00:00"
    assert (tps["run"], tps["after"]) == (f"run-{11 * 7 % 17:02d}", f"run-{10 * 7 % 17:02d}")
    assert tps["verdict"] == "slower"
    assert tps["relative_ci95_low"] < -0.2 < tps["relative_ci95_high"]
    assert tps["p_value"] <= 0.025
    assert changes["SELECT c=4 p95"]["relative_ci95_low"] > 0
    assert told["notes"] == [f"{tps['run']} differs from the run before it in load.threads: 1 and 2"]
    segments = [row["segment"] for row in told["values"] if row["figure"] == "SELECT c=4 TPS"]
    assert segments == [0] * 10 + [1] * 6


def test_it_is_printed_as_tables_as_markdown_and_as_csv(runs: Path, tmp_path: Path) -> None:
    ended = call("history", runs, "--tables", tmp_path / "tables")
    assert ended.code == 0
    assert "History of planted, 16 runs" in ended.out
    assert "2026-01-11T02:00:00+00:00" in ended.out
    csv = (tmp_path / "tables" / "values.csv").read_text().splitlines()
    assert csv[0] == '"run","date","figure","unit","value","segment"'
    assert len(csv) == 1 + 2 * 16
    ended = call("history", *runs.iterdir(), "--format", "markdown", "--figure", "tps", "--figure", "P")
    assert "| figure | date | first run after it |" in ended.out
    assert "| P | 2026-01-11T02:00:00+00:00 |" in ended.out


def test_a_damaged_run_is_left_out_and_named(runs: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(runs, tmp_path / "runs")
    (folder / "run-07" / "study.toml").write_text("no study")
    ended = call("history", folder, "--json")
    assert ended.code == 0
    told = json.loads(ended.out)
    assert told["notes"][0].startswith("run-07 is left out: ")
    assert {row["runs"] for row in told["figures"]} == {15}


def test_runs_of_several_studies_and_wrong_words_are_refused(runs: Path, tmp_path: Path) -> None:
    other = run(tmp_path / "other", repetitions=1, manifest={"study": "another"}).folder
    ended = call("history", runs, other)
    assert (ended.code, "runs of several studies, planted, another: --study names one" in ended.err) == (
        2,
        True,
    )
    ended = call("history", runs, other, "--study", "another")
    assert ended.code == 0
    assert "no change was found" in ended.out
    for words, complaint in (
        (("--study", "third"), "--study third: there is no run of it; studies are planted"),
        (("--figure", "speed"), "--figure speed: there is no such figure; figures are TPS"),
        (("--figure", "O"), "no run of planted has any of the figures O"),
    ):
        ended = call("history", runs, *words)
        assert (ended.code, complaint in ended.err) == (2, True), ended.err
    ended = call("history", tmp_path / "none")
    assert (ended.code, "is no run directory" in ended.err) == (2, True)
