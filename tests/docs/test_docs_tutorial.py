"""The tutorial, done as it says: its files written, its commands run, their output compared."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from docs_pages import ROOT, Block, blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = ROOT / "docs" / "tutorial-workload.md"
TOOL = Path(sys.executable).parent / "nephoscope"


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


def write_files(folder: Path) -> None:
    for block in blocks(PAGE):
        if block.file:
            path = folder / block.file
            path.parent.mkdir(exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(block.text + "\n")


def steps(block: Block) -> Iterator[tuple[list[str], list[str]]]:
    """Commands, and what the page says they print."""
    for step in block.text.split("$ ")[1:]:
        command, *shown = step.splitlines()
        yield command.split(), shown


def test_the_tutorial_works(folder: Path) -> None:
    write_files(folder)
    environment = {**os.environ, "NEPHOSCOPE_CACHE": str(folder / "cache")}
    done = 0
    for block in blocks(PAGE):
        if block.language != "console":
            continue
        for (tool, *arguments), shown in steps(block):
            assert tool == "nephoscope"
            ended = subprocess.run(
                [TOOL, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            assert ended.returncode == 0, f"{arguments}: {ended.stdout}\n{ended.stderr}"
            printed = [line for line in ended.stdout.splitlines() if not line.startswith("loading:")]
            if shown:
                # All but how long it took.
                assert [line.partition(" s")[0].rpartition(" ")[0] for line in printed] == [
                    line.partition(" s")[0].rpartition(" ")[0] for line in shown
                ]
            done += 1
    assert done == 5
    assert (folder / "runs" / "latest" / "report.html").exists()
