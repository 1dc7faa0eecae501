"""What an earlier run may have left in a data folder: processes, a lock file, a half-made database."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

STAGES = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0))
"""How PostgreSQL is ended: fast (sessions are cut, all is written), then immediate (recovery comes next)."""

_KILLED_S = 10.0
_LOOK_AGAIN_S = 0.02


def end_leftovers(data: Path) -> list[int]:
    """End every process of a PostgreSQL that works on the folder ``data``.

    There should be none: a server's supervisor sees to it, and the kernel where the supervisor is killed.
    But two servers on one folder destroy it, so we look.

    Returns:
        The processes that are still there: none, unless one cannot be killed.

    """
    for number, seconds in (*STAGES, (signal.SIGKILL, _KILLED_S)):
        postmasters, orphans = _processes(data)
        for pid in postmasters:
            _signal(pid, number)
        # Sessions whose postmaster died: they have nobody to tell them, and nothing that they could save.
        for pid in orphans if number == signal.SIGKILL or not postmasters else []:
            _signal(pid, signal.SIGKILL)
        if _gone(data, seconds):
            return []
    postmasters, orphans = _processes(data)
    return [*postmasters, *orphans]


def stale_lock_owner(data: Path) -> int | None:
    """Read which process the lock file of a crashed server names; a file that names none is removed.

    PostgreSQL itself finds out that a file is stale if its process is dead or another user's. It refuses to
    start where the number now belongs to another program of its own user, and where the file is empty, as a
    crash of the machine leaves it. To be called when no server runs on ``data``.
    """
    file = data / "postmaster.pid"
    try:
        pid = int(file.read_bytes().split()[0])
    except FileNotFoundError:
        return None
    except (ValueError, IndexError):
        pid = 0
    if pid <= 0:
        file.unlink(missing_ok=True)
        return None
    return pid


def _processes(data: Path) -> tuple[Sequence[int], Sequence[int]]:
    """Find the postmasters, and the other processes of PostgreSQL, that work on ``data``.

    A postmaster shows its folder among its arguments. Its children do not; all have the folder as the current
    one, which only their own user may see (and root, unless a container took that right away).
    """
    postmasters, others = [], []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it has ended, or is not ours to look at
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if not Path(os.fsdecode(words[0])).name.startswith("postgres"):
                continue
            if os.fsencode(data) in words:
                postmasters.append(int(entry.name))
            elif (entry / "cwd").readlink() == data:
                others.append(int(entry.name))
    return postmasters, others


def _gone(data: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(_processes(data)):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_AGAIN_S)
    return True


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)  # one that was paused hears nothing else
