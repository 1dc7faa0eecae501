"""docs/gate.md done as it says: a simulated system that is twice as slow, and the answers of its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs_pages import ROOT
from page_shell import do, steps_on, write_files

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "gate.md"


def test_the_page_works_word_for_word(tmp_path: Path) -> None:
    write_files(PAGE, tmp_path)
    baseline, gate, compare = steps_on(PAGE)
    do(baseline, tmp_path)
    # What the page shows begins the lines that are printed: figures differ, their names do not.
    for step, code in ((gate, 4), (compare, 0)):
        printed = do(step, tmp_path, code=code)
        for line in step.shown:
            assert any(one.startswith(line.split("  ")[0]) for one in printed), f"{step}: {line}"
    assert (tmp_path / "gate.xml").read_text(encoding="utf-8").count("<testcase") == 4
