"""Each command of the page about describe does what the page says, word for word."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from synthetic_corpora import Planted, write_corpus

from commands import call

PAGE = (Path(__file__).parents[2] / "docs" / "storage" / "describe.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ nephoscope (.*?)\s+#", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    short = Planted(seconds=5)
    write_corpus(tmp_path / "captured", short, short)
    write_corpus(tmp_path / "generated", short, seed=8)
    words = shlex.split(command)
    ended = call(*words)
    assert (ended.code, ended.err if "--json" not in words else "") == (0, "")
    for option in ("--html", "--out"):
        if option in words:
            assert (tmp_path / words[words.index(option) + 1]).exists()


def test_the_page_names_every_table(tmp_path: Path) -> None:
    write_corpus(tmp_path / "a", Planted(seconds=3), Planted(seconds=3))
    assert (
        call(
            "storage", "describe", str(tmp_path / "a"), str(tmp_path / "a"), "--out", str(tmp_path / "t")
        ).code
        == 0
    )
    named = set(re.findall(r"`(storage_\w+)`", PAGE))
    assert named == {file.stem for file in (tmp_path / "t").iterdir()}
