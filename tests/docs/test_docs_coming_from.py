"""docs/coming-from.md, done as it says: its files written, its commands given to a shell on an empty database."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from docs_pages import ROOT
from page_shell import do, steps_on, write_files

from commands import call
from databases import running_server
from nephoscope.foreign.drawing import draw
from nephoscope.foreign.pgbench.script import _KNOWN, _REFUSED
from nephoscope.foreign.pgbench.tool import _REFUSED as REFUSED_OPTIONS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long
PAGE = ROOT / "docs" / "coming-from.md"


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    write_files(PAGE, tmp_path)
    with running_server() as server:
        url = server.new_database()
        steps = steps_on(PAGE)
        for step in steps:
            assert "every transaction is accounted for" in "\n".join(
                do(step, tmp_path, {"DATABASE_URL": url})
            )
        assert len(steps) == 3
        for tool, file in (("--sql", "shop.sql"), ("--ycsb", "workloada.properties")):
            assert call("check", tool, tmp_path / file, "--url", url).code == 0


def test_values_of_the_page_are_understood() -> None:
    table = PAGE.read_text().partition("| value | gives |")[2].partition("\n\n")[0]
    values = [
        value for row in table.splitlines()[2:] for value in re.findall(r"`([^`]+)`", row.split("|")[1])
    ]
    assert len(values) > 12
    for value in values:
        assert draw("page", 1, value, {"products": ("1", "9")}, {"amount"}), value


def test_what_is_refused_of_pgbench_stands_on_the_page() -> None:
    text = PAGE.read_text()
    assert [command for command in _REFUSED if f"`\\{command}`" not in text] == []
    assert {"gset", "aset", "if", "startpipeline", "sleep"} < set(_KNOWN)
    short = {option for option in REFUSED_OPTIONS if re.fullmatch("-[a-zA-Z]", option)}
    assert [option for option in sorted(short) if not re.search(rf"`(pgbench )?{option}\b", text)] == []
