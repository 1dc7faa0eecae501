"""Running the command line: within this process, or in one of its own that can be killed."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from nephoscope.cli import app as cli

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str


def call(*arguments: str | Path) -> Ended:
    """Call the command line within this process: faster than a process of its own."""
    out, err = io.StringIO(), io.StringIO()
    with (
        _own_signals(),
        mock.patch.object(sys, "argv", ["nephoscope", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        cli.main()
    assert isinstance(ended.value.code, int)
    return Ended(ended.value.code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Give back the handlers of the test runner's signals afterwards."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def start(
    *arguments: str | Path,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    within: Sequence[str | Path] = (),
) -> Iterator[subprocess.Popen[str]]:
    """Start the command line in a process of its own, away from our terminal and signals.

    It is killed at the end of the context. ``within`` is a command that runs what its last arguments say.
    """
    process = subprocess.Popen(
        [*within, _program(), *arguments],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with process:
            process.kill()


def _program() -> Path:
    """Find the command as users have it: beside the interpreter."""
    return Path(sys.executable).with_name("nephoscope")


def finish(process: subprocess.Popen[str], patience_s: float = PATIENCE_S) -> Ended:
    """Wait for the end of a process."""
    out, err = process.communicate(timeout=patience_s)
    return Ended(process.returncode, out, err)


def wait_for(
    condition: Callable[[], object], what: str, process: subprocess.Popen[str] | None = None
) -> None:
    """Wait until a condition holds; the ``process`` that is to bring it about may not end before."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        late = time.monotonic() >= deadline
        if process is not None and (late or process.poll() is not None):
            process.kill()
            pytest.fail(f"{'not in time' if late else 'ended before'}: {what}\n{finish(process)}")
        assert not late, f"not within {PATIENCE_S:.0f} s: {what}"
        time.sleep(0.02)
