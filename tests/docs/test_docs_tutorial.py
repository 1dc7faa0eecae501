"""The tutorial, done as it says: its files written, its commands run, their output compared."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from docs_pages import ROOT
from page_shell import do, steps_on, write_files

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.long
PAGE = ROOT / "docs" / "tutorial-workload.md"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that a server's user can reach, unlike pytest's own, in memory where there is such a place."""
    fast = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="nephoscope-docs-", dir=fast if fast.is_dir() else None))
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def test_the_tutorial_works(folder: Path) -> None:
    write_files(PAGE, folder)
    environment = {"NEPHOSCOPE_CACHE": str(folder / "cache")}
    steps = steps_on(PAGE)
    for step in steps:
        printed = [line for line in do(step, folder, environment) if not line.startswith("loading:")]
        if step.shown:
            # All but how long it took.
            assert [line.partition(" s")[0].rpartition(" ")[0] for line in printed] == [
                line.partition(" s")[0].rpartition(" ")[0] for line in step.shown
            ]
    assert len(steps) == 5
    assert (folder / "runs" / "latest" / "report.html").exists()
