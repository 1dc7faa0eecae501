"""docs/cards.md, docs/history.md and docs/bisect.md done as they say: cards, signatures, boards, changes, a search."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from docs_pages import ROOT
from page_shell import do, steps_on, write_files

from planted_runs import run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long


@pytest.mark.parametrize("page", ["cards.md", "history.md", "bisect.md"])
@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_the_page_works_word_for_word(page: str, tmp_path: Path) -> None:
    write_files(ROOT / "docs" / page, tmp_path)
    if page == "history.md":
        for day in range(1, 13):
            manifest = {"study": "nightly", "clock": {"origin": f"2026-01-{day:02d}T03:00:00+00:00"}}
            run(
                tmp_path / "runs" / f"{day:02d}",
                repetitions=1,
                tps=1000 if day < 7 else 800,
                manifest=manifest,
            )
    steps = steps_on(ROOT / "docs" / page)
    assert steps
    for step in steps:
        printed = do(step, tmp_path)
        # What the page shows begins the lines that are printed: a key's fingerprint and figures differ.
        for line in step.shown:
            assert any(one.startswith(line) for one in printed), f"{step}: {line} in {printed}"
