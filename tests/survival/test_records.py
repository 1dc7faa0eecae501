"""The tables of what is survived say what tests have just proved, and nothing else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
import survivals
from survivals import Survival, record

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "before\n<!-- survivals -->\nold\n<!-- end of survivals -->\nafter\n"
RESTART = Survival(
    part="server",
    fault="a restart",
    promise="all is well",
    on="PostgreSQL",
    test="t::restart",
    errors=("shutting_down", "connection_lost"),
)
SLOW = Survival(part="network", fault="a | in a pipe", promise="waits", on="proxy", test="t::slow")


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(survivals, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(survivals, "PAGE", tmp_path / "page.md")
    (tmp_path / "records" / "rust").mkdir(parents=True)
    (tmp_path / "page.md").write_text(PAGE)
    return tmp_path / "page.md"


def tables(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["survivals", *arguments])
    survivals.main()


def test_the_page_has_the_tables_of_what_was_proved(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("restart[1]", "restart[2]"):
        record(RESTART, name)
    record(SLOW, "slow")
    tables(monkeypatch)
    text = page.read_text()
    assert text.startswith("before\n<!-- survivals -->\n\n### The network\n")
    assert text.endswith("\n<!-- end of survivals -->\nafter\n")
    assert text.count("a restart") == 1
    row = "| a restart | all is well | `shutting_down` (perhaps `connection_lost`) | PostgreSQL | `t::restart` |"
    assert row in text
    assert "| a \\| in a pipe | waits | proxy | `t::slow` |" in text
    tables(monkeypatch, "--check")


def test_a_test_that_is_gone_or_new_is_noticed(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="nothing is on record"):
        tables(monkeypatch, "--check")
    record(RESTART, "restart")
    with pytest.raises(SystemExit, match=r"page\.md does not say what the tests have proved"):
        tables(monkeypatch, "--check")
    tables(monkeypatch)
    record(SLOW, "slow")
    with pytest.raises(SystemExit, match="run make survivals"):
        tables(monkeypatch, "--check")
    tables(monkeypatch)
    page.write_text("no tables")
    with pytest.raises(SystemExit, match="no place for the tables"):
        tables(monkeypatch, "--check")


def test_what_was_skipped_stays_on_the_page_and_is_told(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record(RESTART, "restart")
    tables(monkeypatch)
    text = page.read_text()
    record(Survival(**{**vars(RESTART), "proved": False}), "restart")
    tables(monkeypatch, "--check")
    assert page.read_text() == text
    assert capsys.readouterr().err == "not proved on this machine: a restart (t::restart was skipped)\n"


def test_a_part_that_the_page_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="part 'moon' is none of network, server"):
        Survival(part="moon", fault="", promise="", on="", test="t")
