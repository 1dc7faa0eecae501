"""What an earlier run may have left in a data folder: processes of a server."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.systems.cluster.product import Traits

_KILLED_S = 10.0
_LOOK_AGAIN_S = 0.02


def end_leftovers(traits: Traits, data: Path) -> list[int]:
    """End every process of a product's server that works on the folder ``data``.

    There should be none: a server's supervisor sees to it, and the kernel where the supervisor is killed.
    But two servers on one folder destroy it, so we look.

    Returns:
        The processes that are still there: none, unless one cannot be killed.

    """
    for number, seconds in (*traits.stages, (signal.SIGKILL, _KILLED_S)):
        servers, orphans = _processes(traits.program, data)
        for pid in servers:
            _signal(pid, number)
        # Children whose server died: they have nobody to tell them, and nothing that they could save.
        for pid in orphans if number == signal.SIGKILL or not servers else []:
            _signal(pid, signal.SIGKILL)
        if _gone(traits.program, data, seconds):
            return []
    servers, orphans = _processes(traits.program, data)
    return [*servers, *orphans]


def _processes(program: str, data: Path) -> tuple[Sequence[int], Sequence[int]]:
    """Find the servers, and the other processes of their program, that work on ``data``.

    A server shows its folder among its arguments. Its children do not; all have the folder as the current
    one, which only their own user may see (and root, unless a container took that right away).
    """
    servers, others = [], []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it has ended, or is not ours to look at
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if not Path(os.fsdecode(words[0])).name.startswith(program):
                continue
            if os.fsencode(data) in words:
                servers.append(int(entry.name))
            elif (entry / "cwd").readlink() == data:
                others.append(int(entry.name))
    return servers, others


def _gone(program: str, data: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(_processes(program, data)):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_AGAIN_S)
    return True


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)  # one that was paused hears nothing else
