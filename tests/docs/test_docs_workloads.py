"""docs/workloads.md against the sources: every word of the API is on the page, and no other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from docs_pages import PAGES, ROOT, blocks, first_cells, prose, section

from nephoscope.errors import InputError
from nephoscope.study.workload import Workload

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "workloads.md"
SOURCES = ROOT / "crates" / "script" / "src"
FIELDS = ("now", "session", "sessions", "attempt")


def source(name: str) -> str:
    """The sources of a module, a file or a folder, without its tests."""
    folder = SOURCES / name
    files = sorted(folder.glob("*.rs")) if folder.is_dir() else [folder.with_suffix(".rs")]
    return "".join(file.read_text().partition("#[cfg(test)]")[0] for file in files)


def part(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


def quoted(text: str) -> set[str]:
    return set(re.findall(r'"([^"]+)"', text))


def generators() -> set[str]:
    files = (source(f"define/{name}") for name in ("columns", "laws"))
    words = "".join(part(file, "const WORDS", "\n];") for file in files)
    return {*re.findall(r'^    \("(\w+)", ', words, re.MULTILINE), "derive", "parent"}


def tx_words() -> set[str]:
    functions = part(source("vm/api/tx"), "pub(crate) unsafe fn push_tx", "\n}")
    return {*re.findall(r'c"(\w+)"', functions), *re.findall(r'Some\(b"(\w+)"\) =>', source("vm/api/tx"))}


def pick_words() -> set[str]:
    return quoted(part(source("vm/api"), "PICK_HELPERS: [&str; ", ";").partition("=")[2])


def methods() -> set[str]:
    return set(re.findall(r'\("(\w+)", \d, \|lua', source("define")))


def allowed_keys() -> set[str]:
    return {key for keys in re.findall(r"allowed: &\[([^\]]+)\]", source("define")) for key in quoted(keys)}


def words(heading: str, pattern: str) -> list[str]:
    return [found[1] for cell in first_cells(section(PAGE, heading)) if (found := re.match(pattern, cell))]


def test_the_sources_are_still_read_rightly() -> None:
    assert {"serial", "parent", "optional", "derive"} <= generators()
    assert len(generators()) > 30
    assert {"begin", "one", "tally", *FIELDS} <= tx_words()
    assert pick_words() == {
        *("once", "integer", "number", "chance", "choice", "letters"),
        *("row", "new", "key", "zipf", "pattern"),
    }
    assert {"describe", "table", "mix"} <= methods()
    assert {
        "rows",
        "key",
        "columns",
        "stored",
        "read_only",
        "aborts_on",
        "isolation",
        "pipeline",
        "keying",
        "think",
        "law",
        "seconds",
        "help",
        "when",
        "data",
        "parts",
        "limit",
        *("at_least", "rate", "access"),
        *("name", "transaction", "per", "pauses"),
    } == allowed_keys()


@pytest.mark.parametrize(
    ("heading", "pattern", "known"),
    [
        ("Column generators", r"(\w+)\(", generators()),
        ("Declarations", r"w:(\w+)\(", methods()),
        ("tx", r"tx[.:](\w+)", tx_words()),
        ("pick", r"pick\.(\w+)\(", pick_words()),
    ],
)
def test_the_page_has_every_word_once_and_no_other(heading: str, pattern: str, known: set[str]) -> None:
    found = words(heading, pattern)
    assert sorted(found) == sorted(known)


@pytest.mark.parametrize("key", sorted(allowed_keys()))
def test_the_page_has_every_key(key: str) -> None:
    assert re.search(rf"\b{key} = ", section(PAGE, "Declarations") + section(PAGE, "Invariants")), key


def test_the_page_has_the_kinds_and_the_sections() -> None:
    options = set(re.findall(r'"(\w+)" => Ok\(OptionKind::', source("define")))
    assert options == {"text", "number", "integer", "boolean"}
    assert all(f'`"{kind}"`' in section(PAGE, "Declarations") for kind in options)
    kinds = set(re.findall(r'"(\w+)" => Kind::', source("define/columns")))
    assert len(kinds) == 6
    assert all(f"`{kind}`" in section(PAGE, "Column generators") for kind in kinds)
    sections = set(re.findall(r'"(\w+)" => Some\(&mut self\.', source("workload")))
    assert sections == {"create", "keys", "drop", "prewarm"}
    assert all(f"`-- name: {name}`" in section(PAGE, "Statements") for name in sections)


def test_the_page_has_what_the_sandbox_keeps() -> None:
    kept = quoted(part(source("vm/sandbox"), "const KEPT", "];").partition("=")[2])
    said = part(section(PAGE, "Sandbox"), "Of Lua's own it has", ";")
    assert set(re.findall(r"`([\w.]+)`", said)) == kept


def test_other_pages_use_no_word_that_does_not_exist() -> None:
    strange = []
    for page in PAGES:
        text = prose(page) + "".join(block.text for block in blocks(page) if block.language == "lua")
        tables = set(re.findall(r'w:table\("(\w+)"', text)) | {"orders", "customer", "event"}
        strange += [f"tx {word}" for word in re.findall(r"\btx[.:](\w+)", text) if word not in tx_words()]
        strange += [
            f"pick.{word}" for word in re.findall(r"\bpick\.(\w+)", text) if word not in pick_words() | tables
        ]
    assert not strange


def errors() -> list[tuple[str, str]]:
    rows = re.findall(r"^\| `(.+)` \| `(.+)` \|$", section(PAGE, "Error messages"), re.MULTILINE)
    assert len(rows) > 5
    return rows


@pytest.mark.parametrize(("written", "message"), errors())
def test_errors_are_what_the_page_says(written: str, message: str, tmp_path: Path) -> None:
    tmp_path.joinpath("workload.lua").write_text(
        f'local w = workload "w"\nw:transaction("read", function(tx, pick) end)\n{written}\n'
    )
    tmp_path.joinpath("statements.sql").write_text("-- name: one\nSELECT 1\n")
    workload = Workload(tmp_path, 1.0, 7, {}, "postgresql://reader@localhost/none")
    with pytest.raises(InputError) as error:
        _ = workload.description
    assert message in str(error.value)
    assert "workload.lua" in str(error.value)
