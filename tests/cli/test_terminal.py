"""On a terminal a run is drawn live, and Ctrl-C ends it and gives the terminal back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.store import StoredRun
from sample_studies import phases, sim_study, write_study
from terminals import CTRL_C, HIDE_CURSOR, SHOW_CURSOR, start_on_terminal

if TYPE_CHECKING:
    from pathlib import Path


def test_a_run_is_drawn_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    study = write_study(
        tmp_path, sim_study(phases({"name": "é [b]phase[/b]", "concurrency": 4, "duration": "600s"}))
    )
    with start_on_terminal("run", study, cwd=tmp_path) as command:
        command.read_until("TPS", "measuring", "left")
        command.type(CTRL_C)
        command.finish()
    assert command.code == 1
    assert "interrupted by SIGINT" in command.shown
    assert command.shown.rindex(SHOW_CURSOR) > command.shown.rindex(HIDE_CURSOR)
    assert "Traceback" not in command.words
    assert "é [b]phase[/b]" in command.words
    assert "✓ every transaction is accounted for" in command.words
    assert StoredRun(tmp_path / "runs" / "latest").manifest["status"] == "interrupted"
