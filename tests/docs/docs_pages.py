"""The pages that users read, taken apart: headings, links, blocks of code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
PAGES += sorted((ROOT / "docs").glob("*.md")) + sorted((ROOT / "docs" / "storage").glob("*.md"))

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"<!-- file: (\S+) -->\n$")
_LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    file: str | None
    """What a comment before the block calls it."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Link:
    page: Path
    target: str
    is_image: bool

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.target}"


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = []
    for fence in _FENCE.finditer(text):
        before = text[: fence.start()]
        file = _FILE.search(before)
        line = before.count("\n") + 1
        found.append(Block(page, line, fence[1], fence[2], file[1] if file else None))
    return found


@cache
def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return _FENCE.sub("", page.read_text())


def links(page: Path) -> list[Link]:
    return [Link(page, found[2], is_image=found[1] == "!") for found in _LINK.finditer(prose(page))]


def anchors(page: Path) -> set[str]:
    """What headings can be linked by, as GitHub makes it."""
    slugs: set[str] = set()
    for heading in _HEADING.finditer(prose(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[2]).lower()
        slug = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
        number = 1
        unique = slug
        while unique in slugs:
            unique = f"{slug}-{number}"
            number += 1
        slugs.add(unique)
    return slugs


def section(page: Path, heading: str) -> str:
    """What stands under a heading, up to the next of its level or above."""
    text = prose(page)
    found = next(found for found in _HEADING.finditer(text) if found[2] == heading)
    level = len(found[1])
    rest = text[found.end() :]
    end = next((after.start() for after in _HEADING.finditer(rest) if len(after[1]) <= level), len(rest))
    return rest[:end]


def first_cells(text: str) -> list[str]:
    """The code in the first cells of tables' rows."""
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
