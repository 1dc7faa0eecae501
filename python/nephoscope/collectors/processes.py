"""What a server's processes use, where they run on the machine of the load and their provider knows them."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from nephoscope.collectors.server import Samples

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_US = 1e6
_READ, _READ_BYTES = b"read_bytes", "disk_read_bytes"
# Not the field write_bytes: a kernel with large folios adds a whole one for each byte that is written in it; a commit
# of 500 bytes of log was read as 1 MiB.
_SWITCHES = (b"voluntary_ctxt_switches", b"nonvoluntary_ctxt_switches")

_SWITCHES_OF_ALL = "context_switches"
_SEARCH_EACH = 5
"""In so many samples the machine is searched for new processes once: a search takes longer than reading those known."""


class Processes:
    """The processes of the servers, by Linux's /proc: processor time, bytes read from disks, context switches."""

    def __init__(self, members: Callable[[], Collection[int]]) -> None:
        """Read nothing yet; ``members`` tells the processes that there are now, descendants included."""
        self._find = members
        self._members: Collection[int] = ()
        self._samples = 0
        self._last: tuple[float, dict[int, dict[str, float]]] | None = None

    def sample(self, now: float) -> Samples:
        """Return the rates since the last sample; without processes, and of what the kernel does not count, none.

        A process counts from when it was found, up to 5 s after its start.
        """
        if self._samples % _SEARCH_EACH == 0:
            self._members = self._find()
        self._samples += 1
        used: dict[int, dict[str, float]] = {}
        for pid in self._members:
            with contextlib.suppress(OSError, ValueError, IndexError):  # the process has ended
                used[pid] = _used(pid)
        values = {}
        if self._last is not None:
            before, last = self._last
            rates = _grown(last, used, max(now - before, 1e-3))
            if last.keys() - used.keys():
                # Context switches of processes that have ended are in nobody's count.
                rates.pop(_SWITCHES_OF_ALL, None)
            values = {f"{metric}_per_s": rate for metric, rate in rates.items()}
        self._last = (now, used)
        return {None: values}


def _grown(
    last: dict[int, dict[str, float]], used: dict[int, dict[str, float]], seconds: float
) -> dict[str, float]:
    """Return by how much the totals have grown a second; those that are not known are left out."""
    known = [pid for pid in used if pid in last]
    rates = {}
    for metric in {metric for pid in known for metric in used[pid]}:
        # What ended children had used is in their parent's count, so all of the last sample is subtracted.
        total = sum(used[pid].get(metric, 0.0) for pid in known)
        before = sum(one.get(metric, 0.0) for one in last.values())
        # A total that falls is that of a server that was restarted: what it used between is not known.
        # One that has stood at 0 since the server's start is not counted by this kernel.
        if total > 0 and total >= before:
            rates[metric] = (total - before) / seconds
    return rates


def _used(pid: int) -> dict[str, float]:
    """Read what a process has used since its start, descendants that have ended included."""
    # The name stands in brackets and may hold anything.
    words = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    used = {"cpu_us": sum(map(int, words[11:15])) * _TICK_S * _US}
    with contextlib.suppress(OSError):  # another user's, without the right to see them
        used[_READ_BYTES] = _field(_read(f"/proc/{pid}/io"), _READ)
    switches = 0.0
    for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - many a second: a path each would cost more
        status = _read(f"/proc/{pid}/task/{thread}/status")
        switches += sum(_field(status, name) for name in _SWITCHES)
    return used | {_SWITCHES_OF_ALL: switches}


def _read(file: str) -> bytes:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return os.read(descriptor, 8192)
    finally:
        os.close(descriptor)


def _field(text: bytes, name: bytes) -> float:
    """Return the number of a line such as ``read_bytes: 4096``. Raises ``ValueError`` without the line."""
    at = text.index(b"\n" + name + b":") + len(name) + 2
    return float(text[at : text.find(b"\n", at)])
