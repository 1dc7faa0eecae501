"""How long the load threads were ready to run and had no processor."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

_THREADS = Path("/proc/self/task")
_LOAD = "load-"
"""The prefix of the load threads' names."""


class Starvation:
    """Measures how long the worst load thread waited for a processor since the last call."""

    def __init__(self) -> None:
        """Begin to count now."""
        self._waited = _waited_ns()
        self._at_ns = time.monotonic_ns()

    def share(self) -> float | None:
        """Return the share of time that it waited, 0 to 1; None if the kernel has no such statistics."""
        waited, at_ns = _waited_ns(), time.monotonic_ns()
        known = [waited[thread] - self._waited.get(thread, 0) for thread in waited]
        length, self._waited, self._at_ns = at_ns - self._at_ns, waited, at_ns
        return min(max(known) / length, 1.0) if known and length > 0 else None


def _waited_ns() -> dict[str, int]:
    """Read from ``/proc/self/task/*/schedstat`` how long each load thread has waited since its start."""
    found = {}
    for thread in _THREADS.glob("*") if _THREADS.is_dir() else ():
        # A thread may end meanwhile, and a kernel may keep no such statistics.
        with contextlib.suppress(OSError, ValueError, IndexError):
            if (thread / "comm").read_text().startswith(_LOAD):
                found[thread.name] = int((thread / "schedstat").read_text().split()[1])
    return found
