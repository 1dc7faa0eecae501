"""Sees that control groups go when their processes have: a script that outlives who asked for it, and a function.

A control group stays when the process that made it is killed. So a small process waits beside it: it holds the read
end of a pipe (its standard input) whose write end only the asking process has, and the end of that process, of
whatever cause, is the end of the file. It waits then until the group is empty, which the supervisor of a server
(``supervisor.py``) sees to, ends what is left, and removes the group. The asking process does the same with the group
that it needs no more: there is one way to remove a group. A look at the parent's number once a second covers the case
that a forked child of the asking process keeps the pipe open.

Unlike the supervisor it keeps the privileges of who asked for it: a group is removed by who made it. Only the standard
library is used, and ``python -I -S`` runs it. Arguments: the number of the asking process, and the folders of the
group, one in each hierarchy. It says ``ready`` when it waits.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

EMPTY_S = 60.0
"""So long a group is given to become empty: longer than a supervisor takes for all its stages."""
KILLED_S = 10.0

_CONTROL = 0
_STATUS = 1
_LOOK_AT_PARENT_S = 1.0
_LOOK_AGAIN_S = 0.02
_NO_QUOTA = {"cpu.max": "max", "cpu.cfs_quota_us": "-1"}
"""By the file of each version of control groups."""


def main() -> None:
    """Wait for the end of who asked, and clear his group."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # who asked ends when he likes; this process follows
    parent, folders = int(sys.argv[1]), [Path(argument) for argument in sys.argv[2:]]
    os.write(_STATUS, b"ready\n")
    while os.getppid() == parent and not select.select([_CONTROL], [], [], _LOOK_AT_PARENT_S)[0]:
        pass
    clear(folders, EMPTY_S)


def clear(folders: Sequence[Path], empty_s: float) -> bool:
    """Lift a group's quota, wait until it is empty, end what is left after ``empty_s`` seconds, and remove it.

    Returns:
        Whether it has gone.

    """
    lift(folders)
    began = time.monotonic()
    while not _remove(folders):
        waited = time.monotonic() - began
        if waited >= empty_s + KILLED_S:
            return False
        if waited >= empty_s:
            _kill(folders)
        time.sleep(_LOOK_AGAIN_S)
    return True


def lift(folders: Sequence[Path]) -> None:
    """Let the processes of a group have all they want: so that they end soon."""
    for folder in folders:
        for name, text in _NO_QUOTA.items():
            if (folder / name).exists():
                with contextlib.suppress(OSError):  # it is going
                    (folder / name).write_text(text)


def members(folder: Path) -> list[int]:
    """List the processes of a group; none where it has gone."""
    try:
        return [int(word) for word in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _remove(folders: Sequence[Path]) -> bool:
    for folder in folders:
        with contextlib.suppress(OSError):  # it has gone, or somebody is in it
            folder.rmdir()
    return not any(folder.exists() for folder in folders)


def _kill(folders: Sequence[Path]) -> None:
    for pid in {pid for folder in folders for pid in members(folder)}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
