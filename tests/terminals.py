"""Running the command line on a pseudo-terminal, as a user sees it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from commands import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SHOW_CURSOR = "\x1b[?25h"
HIDE_CURSOR = "\x1b[?25l"
CTRL_C = b"\x03"
_OWN_WIDTH = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE")


@dataclass
class OnTerminal:
    """A command that runs on a terminal of its own."""

    pid: int
    terminal: int
    shown: str = ""
    """All that the terminal was sent so far."""
    code: int | None = None

    @property
    def words(self) -> str:
        """What was shown, without the sequences that move the cursor and colour."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.shown).replace("\r", "")

    def type(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def read_until(self, *words: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not all(word in self.shown for word in words):
            assert time.monotonic() < deadline, self.shown
            assert self._read(), self.shown

    def finish(self, patience_s: float = PATIENCE_S) -> None:
        """Read to the end, and take the exit code."""
        deadline = time.monotonic() + patience_s
        while self._read():
            assert time.monotonic() < deadline, f"no end: {self.shown}"
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        if select.select([self.terminal], [], [], 0.1)[0]:
            try:
                self.shown += os.read(self.terminal, 65536).decode(errors="replace")
            except OSError:  # how Linux says that the other side is closed
                return False
        return True


@contextlib.contextmanager
def start_on_terminal(
    *arguments: str | Path, cwd: Path, columns: int = 100, environment: Mapping[str, str] | None = None
) -> Iterator[OnTerminal]:
    """Start the command line on a terminal of so many columns; it is killed at the end of the context."""
    program = Path(sys.executable).with_name("nephoscope")
    inherited = {name: value for name, value in os.environ.items() if name not in _OWN_WIDTH}
    given = {**inherited, "TERM": "xterm-256color", **(environment or {})}
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        os.chdir(cwd)
        os.execve(program, [str(program), *map(str, arguments)], given)  # noqa: S606 - pty.fork is what needs it
    command = OnTerminal(pid, terminal)
    try:
        yield command
    finally:
        if command.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
            os.waitpid(pid, 0)
        os.close(terminal)
