"""The commands of docs/report.md and docs/score.md, which read what is there: given to a shell, as they stand."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from docs_pages import ROOT
from page_shell import do, steps_on, write_files

from commands import call
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long
REPORT = ROOT / "docs" / "report.md"
SCORE = ROOT / "docs" / "score.md"


def test_the_commands_of_the_page_on_reports_work(tmp_path: Path) -> None:
    study = write_study(tmp_path, sim_study(phases({"duration": "500ms", "concurrency": 2})))
    runs = tmp_path / "runs"
    assert call("run", study, "--out", runs).code == 0
    for name in ("A", "B", "C"):
        shutil.copytree(runs / "latest", runs / name)
    for step in steps_on(REPORT):
        assert do(step, tmp_path), step
    assert (tmp_path / "systems.html").is_file()
    assert list((tmp_path / "figures").glob("*.parquet"))


def test_the_commands_of_the_page_on_scores_work(tmp_path: Path) -> None:
    write_files(SCORE, tmp_path)
    for step in steps_on(SCORE):
        assert "the offer" in "\n".join(do(step, tmp_path)), step
