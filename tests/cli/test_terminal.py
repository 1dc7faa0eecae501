"""On a terminal a run is drawn live, and Ctrl-C ends it and gives the terminal back."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import sys
import time
from pathlib import Path

from commands import PATIENCE_S
from nephoscope.store import StoredRun
from sample_studies import phases, sim_study, write_study

SHOW_CURSOR = "\x1b[?25h"
HIDE_CURSOR = "\x1b[?25l"
CTRL_C = b"\x03"


def test_a_run_is_drawn_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    study = write_study(
        tmp_path, sim_study(phases({"name": "é [b]phase[/b]", "concurrency": 4, "duration": "600s"}))
    )
    program = Path(sys.executable).with_name("nephoscope")
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve(program, [str(program), "run", str(study)], environment)  # noqa: S606 - pty.fork is what needs it
    try:
        shown = read_until(terminal, "TPS", "measuring", "left")
        os.write(terminal, CTRL_C)
        shown += read_to_end(terminal)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 1
    assert "interrupted by SIGINT" in shown
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)
    words = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert "Traceback" not in words
    assert "é" in words
    assert "✓ every transaction is accounted for" in words
    assert StoredRun(tmp_path / "runs" / "latest").manifest["status"] == "interrupted"


def read_until(terminal: int, *words: str) -> str:
    text = ""
    deadline = time.monotonic() + PATIENCE_S
    while not all(word in text for word in words):
        assert time.monotonic() < deadline, text
        if select.select([terminal], [], [], 0.1)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
    return text


def read_to_end(terminal: int) -> str:
    text = ""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # how Linux says that the other side is closed
                return text
            text += part.decode(errors="replace")
    raise AssertionError(f"no end: {text}")
