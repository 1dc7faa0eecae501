"""A process and all that descends from it: to let them stand still, go on, or end at once."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def family(pid: int) -> list[int]:
    """Find a process and its descendants, itself first; empty where it has ended."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                # The name stands in brackets and may hold anything; state and parent follow it.
                after_name = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                children.setdefault(int(after_name[1]), []).append(int(entry.name))
    found = [pid] if Path(f"/proc/{pid}").exists() else []
    for member in found:  # grows while it is walked through
        found += children.get(member, [])
    return found


def pause(pid: int) -> None:
    """Let a process and its descendants stand still; returns when all have been told."""
    told: set[int] = set()
    # Once more after all that are known stand still: one of them may have had a child meanwhile.
    while new := [member for member in family(pid) if member not in told]:
        _signal(new, signal.SIGSTOP)
        told.update(new)


def resume(pid: int) -> None:
    """Let a process and its descendants go on."""
    _signal(family(pid), signal.SIGCONT)


def kill(pid: int) -> None:
    """End a process and its descendants at once. Whoever is their parent still has to wait for them."""
    _signal([pid], signal.SIGSTOP)  # else it might start others, or clean up, while the list is made
    _signal(family(pid), signal.SIGKILL)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
