"""docs/duet.md done as it says: a simulated system that is a quarter slower, on a machine that drifts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs_pages import ROOT
from page_shell import do, steps_on, write_files

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "duet.md"


def test_the_page_works_word_for_word(tmp_path: Path) -> None:
    write_files(PAGE, tmp_path)
    (duet,) = steps_on(PAGE)
    printed = do(duet, tmp_path, code=4)
    # What the page shows begins the lines that are printed: figures differ, their names do not.
    for line in duet.shown:
        assert any(one.startswith(line.split("  ")[0]) for one in printed), f"{duet}: {line}"
    assert {path.name for path in (tmp_path / "faster-or-slower").iterdir()} == {"a", "b", "duet.json"}
