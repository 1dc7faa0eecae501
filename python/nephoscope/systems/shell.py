"""A user's own shell commands: each within a time limit, and nothing left after it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from typing import TYPE_CHECKING

from nephoscope.errors import MeasurementError
from nephoscope.masking import masked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

_SHOWN = 2000
"""So many characters of a command's output are in an error message: the last."""

_KILLED_S = 5.0
"""How long a killed command is waited for: one that the kernel holds, at a disk that is gone say, does not end."""


class Shell:
    """Runs commands with ``/bin/sh -c``; from any thread."""

    def __init__(self, limit_s: float) -> None:
        """Take the time limit of each command."""
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def run(self, name: str, command: str, environment: Mapping[str, str]) -> str:
        """Run a command to its end; return what it printed. ``name`` is what messages call it.

        Raises:
            MeasurementError: it failed, or took too long.

        """
        # Files and not pipes: a server that the command starts may hold them open for as long as it likes.
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            code = self._wait(command, environment, output, errors)
            said = _text(output)
            if code != 0:
                what = (
                    f"did not end within {self._limit_s:g} s"
                    if code is None
                    else f"ended with exit code {code}"
                )
                raise MeasurementError(f"the command {name} {what}{shown(said + _text(errors))}")
        return said

    def cancel(self) -> None:
        """Kill the commands that run, with all that they have started; who has called them is told that they failed.

        May be called from any thread, and where none runs.
        """
        with self._lock:
            for process in self._running:
                _kill(process)

    def end(self) -> None:
        """Kill what is running, and run nothing more."""
        with self._lock:
            self._ended = True
        self.cancel()

    def _wait(
        self, command: str, environment: Mapping[str, str], output: IO[bytes], errors: IO[bytes]
    ) -> int | None:
        """Run a command; return its exit code, or None where it took too long and was killed."""
        with self._lock:
            if self._ended:
                raise MeasurementError("the system has been given back: no command is run any more")
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env={**os.environ, **environment},
                start_new_session=True,  # a group of its own, that can be killed as a whole
            )
            self._running.add(process)
        try:
            return process.wait(self._limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with self._lock:
                self._running.discard(process)
                _kill(process)  # also where somebody has interrupted us
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_KILLED_S)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command that has not ended, with all that it has started; whoever waits for it sees its end."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def shown(text: str) -> str:
    """Make the end of an error message of what a command said, without secrets: they are masked before it is cut."""
    said = masked(text.strip())
    return f". It said:\n{said[-_SHOWN:]}" if said else ""


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
