"""The first study of README.md and of docs/first-study.md, done as they say on a real server: one study, two pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from docs_pages import ROOT, blocks
from page_shell import Step, do, steps_on, write_files

from databases import Server, query, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

README = ROOT / "README.md"
PAGE = ROOT / "docs" / "first-study.md"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


def statements(number: int) -> list[str]:
    """The statements of one of the page's blocks of SQL."""
    block = [block for block in blocks(PAGE) if block.language == "sql"][number]
    return [statement for statement in block.text.split(";") if statement.strip()]


def check_shown(step: Step, printed: list[str]) -> None:
    """Whether what the page shows was printed: checks and loads word for word, of figures what they are of."""
    word = step.command.split()[1]
    if word in ("load", "check"):
        rest = [line.partition(", in ")[0] for line in printed if not line.startswith("loading:")]
        assert rest == [line.partition(", in ")[0] for line in step.shown if not line.startswith("loading:")]
        return
    labels = {re.split(r"  |: ", line.strip())[0] for line in printed}
    for line in step.shown:
        if line.strip() and line.strip()[0] not in "0123456789✓·!":
            assert re.split(r"  |: ", line.strip())[0] in labels, f"{step}: {line}"


def test_both_pages_have_the_same_study() -> None:
    of_readme, of_page = (
        [block.text for block in blocks(page) if block.file == "mine.toml"] for page in (README, PAGE)
    )
    assert of_readme == of_page
    assert len(of_page) == 1


def test_the_first_study_works_word_for_word(tmp_path: Path, server: Server) -> None:
    for statement in statements(0):
        query(server.url, statement)
    place = server.url.rpartition("@")[2].partition("/")[0]
    environment = {"BENCH_URL": f"postgresql://bench@{place}/bench", "PGPASSWORD": "choose one"}
    write_files(PAGE, tmp_path)
    printed: dict[str, list[str]] = {}
    first = steps_on(PAGE)
    for step in first:
        printed[step.bare] = do(step, tmp_path, environment)
        if step.shown:
            check_shown(step, printed[step.bare])
    # What README does besides.
    others = [step for step in steps_on(README) if step.bare not in printed]
    assert [step.bare.split()[1] for step in others] == ["report"]
    for step in others:
        printed[step.bare] = do(step, tmp_path, environment)
    assert (tmp_path / "systems.html").is_file()
    compared = next(lines for command, lines in printed.items() if "compare" in command)
    for point in ("RW c=4", "RW c=16"):
        assert any(line.startswith(f"{point} TPS") for line in compared), "two runs share their points"
    measured = "\n".join(printed["nephoscope run mine.toml"])
    assert "(about 20 s)" in measured
    assert "measures for 20 seconds" in README.read_text()
    assert "every transaction is accounted for" in measured
    owner = server.url.rpartition("/")[0] + "/bench"
    for statement in statements(1):
        query(owner, statement)
    left = query(owner, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
    assert left == [["0"]]
