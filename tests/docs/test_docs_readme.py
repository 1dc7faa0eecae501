"""README says in its first screen what this is; what it says elsewhere too, it says alike."""

from __future__ import annotations

import io
import re
import tomllib

from docs_pages import ROOT, blocks, prose, section
from rich.console import Console

from nephoscope.cli.printing import next_steps

README = ROOT / "README.md"
DOCS = ROOT / "docs"


def tables(text: str) -> list[list[str]]:
    """The tables of a page, each as its lines."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [table for table in found if table]


def columns(table: list[str]) -> list[str]:
    return [cell.strip() for cell in table[0].strip("|").split("|")]


def test_the_first_screen_has_two_commands_what_comes_out_and_a_picture() -> None:
    lines = README.read_text().splitlines()
    screen = "\n".join(lines[:36])
    assert screen.count("\n$ ") == 2
    assert "PERFECT: the scores and O" in screen
    assert "](docs/images/report-light.png)" in screen
    assert "## Your own database" in screen
    assert len(lines) <= 140
    assert max(map(len, tables(README.read_text()))) <= 20, "long tables are for docs/"


def test_the_quickstart_ends_with_the_same_study() -> None:
    """What it says to type next is README's study, but for whose database it is."""
    console = Console(width=200, file=io.StringIO())
    with console.capture() as captured:
        console.print(next_steps("nephoscope", None))
    said = captured.get().partition("<<'END'\n")[2].partition("  END\n")[0]
    own = next(block.text for block in blocks(README) if block.file == "mine.toml")
    given, ours = tomllib.loads(said), tomllib.loads(own)
    assert given.pop("system")["provider"] == ours.pop("system")["provider"]
    assert given == ours


def test_its_scores_are_those_of_the_page_on_the_quickstart() -> None:
    shown, whole = (
        next(block.text for block in blocks(page) if "PERFECT" in block.text).splitlines()
        for page in (README, DOCS / "quickstart.md")
    )
    assert len(shown) == 10
    assert [line for line in whole if line in shown] == shown


def test_it_stands_beside_the_tools_of_the_page_on_other_tools() -> None:
    page = DOCS / "other-tools.md"
    (short,) = tables(section(README, "Beside other tools"))
    whole, looked_up = tables(prose(page))
    assert [name.replace(" + ", " with ") for name in columns(short)] == columns(whole)
    assert all(row.count("|") == short[0].count("|") for row in short)
    assert all(row.count("|") == whole[0].count("|") for row in whole)
    sources = "\n".join(looked_up)
    for tool in columns(whole)[2:]:
        assert tool.partition(" ")[0] in sources, f"where was {tool} looked up?"


def test_it_names_the_rust_that_is_needed() -> None:
    pinned = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    least = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    assert f"- Rust {least}. " in README.read_text()
    assert pinned.startswith(least)
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert f"Python {python.removeprefix('>=')} or later" in README.read_text()


def test_it_counts_the_figures_of_a_calibration() -> None:
    said = re.search(r"\[(\d+) figures with their errors\]", README.read_text())
    rows = re.findall(r"\| ✓ \|$", section(DOCS / "calibration.md", "A whole calibration"), re.MULTILINE)
    assert said is not None
    assert int(said[1]) == len(rows)
