"""Runs one command for another process, and leaves nothing of it behind: a script, not a module to import.

A server must not outlive the run that started it, whatever ends that run: SIGTERM and SIGKILL end a process
without any clean-up of its own. So the server is a child of this small process, which holds the read end of a
pipe (its standard input) whose write end only the asking process has. The end of that process, of whatever
cause, is the end of the file, and then the command is ended, politely first. A look at the parent's number
once a second covers the case that a forked child of the asking process keeps the pipe open.

The other way round, should this process itself be killed, the kernel ends the command (``PR_SET_PDEATHSIG``;
set here and not by the asking process because it acts at the end of the *thread* that started the command,
and this process has just one). Descendants whose parent died come to this process
(``PR_SET_CHILD_SUBREAPER``) and are ended as well.

Only the standard library is used, and ``python -I -S`` runs it: it must start fast, and start anywhere. All
imports stand at the top: without root's privileges, root's Python may be out of reach for more of them.

Protocol: the first line of standard input is a JSON object with ``command``, ``environment``, ``user`` (uid
and gid, or null), ``parent`` (process number), ``stages`` (signal numbers and seconds to wait after each; the
last resort is SIGKILL), ``orphaned`` (the signal that the kernel sends) and ``entrances`` (descriptors of the files
by which control groups are entered: they were opened with the privileges that it takes). Standard output answers
with the lines ``started PID``, then ``ended CODE``; or ``failed ERRNO STEP`` where STEP is ``user``, ``group`` or
``command``. The command's own output goes to standard error.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

try:  # not every Python is built with it
    import ctypes
except ImportError:
    _libc = None
else:
    _libc = ctypes.CDLL(None)

_CONTROL = 0
_STATUS = 1
_OUTPUT = 2

_LOOK_AT_PARENT_S = 1.0
_ORPHANS_S = 10.0
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_ASKED_TO_END = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def main() -> None:
    """Read what to run, run it, and stay until all of it has gone."""
    wake = _catch_signals()
    text = _read_line()
    if not text:
        return
    order: dict[str, Any] = json.loads(text)
    if order["user"] is not None:
        _become(*order["user"])
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if _at_end_of_file() or os.getppid() != order["parent"]:
        return
    process = _launch(order)
    _tell(f"started {process.pid}")
    _watch(process, wake, order["parent"])
    _end(process, order["stages"])
    _end_orphans()
    _tell(f"ended {process.returncode}")


def _catch_signals() -> int:
    """Turn signals into bytes of a pipe and return its read end: the end of a child must wake the wait."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    for number in (*_ASKED_TO_END, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    # A mask is inherited: the asking thread's must neither deafen this process nor the command.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    return read_end


def _read_line() -> bytes:
    """Read the first line; empty if the asking process ended before it had written all of it."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(_CONTROL, 65536)
        if not part:
            return b""
        line += part
    return line


def _become(uid: int, gid: int) -> None:
    try:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    except OSError as error:
        _fail(error, "user")


def _launch(order: dict[str, Any]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            order["command"],
            stdin=subprocess.DEVNULL,
            stdout=_OUTPUT,
            env=order["environment"],
            # Safe: this process has one thread.
            preexec_fn=partial(_begin, os.getpid(), order["orphaned"], order["entrances"]),  # noqa: PLW1509
        )
    except OSError as error:
        _fail(error, "command")
    except subprocess.SubprocessError:  # what went wrong before the command is all that it tells
        _fail(PermissionError(errno.EPERM, "it may not go there"), "group")


def _begin(supervisor: int, number: int, entrances: list[int]) -> None:
    """Go into the control groups, and have the kernel end this process, the command, when the supervisor ends."""
    for descriptor in entrances:
        os.write(descriptor, b"0")
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != supervisor:  # it ended before the kernel was told
        os._exit(1)


def _watch(process: subprocess.Popen[bytes], wake: int, parent: int) -> None:
    """Return when the command has ended or should end."""
    while process.poll() is None:
        ready, _, _ = select.select([_CONTROL, wake], [], [], _LOOK_AT_PARENT_S)
        if _CONTROL in ready or os.getppid() != parent:
            return
        if wake in ready and _ASKED_TO_END.intersection(os.read(wake, 512)):
            return


def _end(process: subprocess.Popen[bytes], stages: list[tuple[int, float]]) -> None:
    for number, seconds in stages:
        if process.poll() is not None:
            return
        process.send_signal(number)
        _wake(process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    if process.poll() is None:
        process.kill()
        process.wait()


def _wake(pid: int) -> None:
    """Let a process and its descendants go on if somebody has paused them: else they hear no signal but SIGKILL."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    for child in _children(pid):
        _wake(child)


def _end_orphans() -> None:
    """Kill what is left: descendants whose parents died became children of this process.

    After an orderly end there are none. After the death of a postmaster they have nothing left to save.
    """
    deadline = time.monotonic() + _ORPHANS_S
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in _children(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _children(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The name stands in brackets and may hold anything; state and parent follow it.
                after_name = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                if int(after_name[1]) == parent:
                    found.append(int(entry.name))
    return found


def _prctl(option: int, value: int) -> None:
    """Call prctl as well as we can: what it gives is the second line of defence."""
    if _libc is not None:
        _libc.prctl(option, value, 0, 0, 0)


def _at_end_of_file() -> bool:
    return bool(select.select([_CONTROL], [], [], 0)[0])


def _tell(line: str) -> None:
    with contextlib.suppress(OSError):  # nobody may be left to read it
        os.write(_STATUS, f"{line}\n".encode())


def _fail(error: OSError, step: str) -> NoReturn:
    _tell(f"failed {error.errno} {step}")
    sys.exit(1)


if __name__ == "__main__":
    main()
