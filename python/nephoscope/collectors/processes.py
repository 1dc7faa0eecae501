"""What a server's processes use, where they run on the machine of the load and their provider knows them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from nephoscope.collectors.server import Samples

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_US = 1e6
_READ, _READ_BYTES = "read_bytes", "disk_read_bytes"
# Not the field write_bytes: a kernel with large folios adds a whole one for each byte that is written in it; a commit
# of 500 bytes of log was read as 1 MiB.
_SWITCHES = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")

_SWITCHES_OF_ALL = "context_switches"


class Processes:
    """The processes of the servers, by Linux's /proc: processor time, bytes read from disks, context switches."""

    def __init__(self, members: Callable[[], Collection[int]]) -> None:
        """Read nothing yet; ``members`` tells the processes that there are now, descendants included."""
        self._members = members
        self._last: tuple[float, dict[str, float]] | None = None
        self._present: frozenset[int] = frozenset()

    def sample(self, now: float) -> Samples:
        """Return the rates since the last sample; without processes, and of what the kernel does not count, none."""
        totals: dict[str, float] = {}
        present = frozenset(self._members())
        for pid in present:
            with contextlib.suppress(OSError, ValueError, IndexError):  # the process has ended meanwhile
                for metric, value in _used(pid).items():
                    totals[metric] = totals.get(metric, 0.0) + value
        values = {}
        if self._last is not None:
            before, last = self._last
            seconds = max(now - before, 1e-3)
            for metric, value in totals.items():
                # A total that falls is that of a server that was restarted: what it used between is not known.
                # One that has stood at 0 since the server's start is not counted by this kernel.
                if value > 0 and value >= last.get(metric, value + 1):
                    values[f"{metric}_per_s"] = (value - last[metric]) / seconds
        if self._present - present:
            # Context switches of processes that have ended are in nobody's count.
            values.pop(f"{_SWITCHES_OF_ALL}_per_s", None)
        self._last, self._present = (now, totals), present
        return {None: values}


def _used(pid: int) -> dict[str, float]:
    """Read what a process has used since its start, descendants that have ended included."""
    folder = Path(f"/proc/{pid}")
    # The name stands in brackets and may hold anything.
    words = (folder / "stat").read_text().rpartition(")")[2].split()
    used = {"cpu_us": sum(map(int, words[11:15])) * _TICK_S * _US}
    with contextlib.suppress(OSError):  # another user's, without the right to see them
        fields = _fields(folder / "io")
        used |= {_READ_BYTES: fields[_READ]} if _READ in fields else {}
    switches = 0.0
    for thread in (folder / "task").iterdir():
        fields = _fields(thread / "status")
        switches += sum(fields.get(name, 0.0) for name in _SWITCHES)
    return used | {_SWITCHES_OF_ALL: switches}


def _fields(file: Path) -> dict[str, float]:
    pairs = (line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
    return {name: float(value) for name, value in pairs if value.strip().isdigit()}
