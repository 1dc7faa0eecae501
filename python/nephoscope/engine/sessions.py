"""The figures of a phase so far, and whether its sessions had their connections."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from nephoscope import _engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_SHARE = 0.01
"""The largest share of the sessions' time without a connection at which a phase still has its nominal concurrency."""
_FEWEST = 2
"""In intervals: at the end of a single one a session may just be reconnecting."""


def is_short(
    sessions: Sequence[float] | Floats, disconnected: Sequence[float] | Floats, failures: int
) -> bool:
    """Tell whether a phase lacked sessions, by how many were wanted, and lacked a connection, at each interval's end.

    ``failures`` counts connections that broke or could not be made. A phase is short if a session lacked its connection
    for more than half of it, or, with such failures, if more than 1 % of the sessions' time was without a connection.
    A moment to connect at the phase's start does not count.
    """
    if not sum(sessions):
        return False
    if np.median(disconnected) >= 1:
        return True
    share = sum(disconnected) / sum(sessions)
    return bool(failures and share > _SHARE and np.count_nonzero(disconnected) >= _FEWEST)


def of_threads(phases: Iterable[Sequence[int]], threads: int) -> dict[str, int]:
    """Give the most sessions that were wanted at once, by the intervals of each phase, and those of a thread.

    Sessions are spread evenly; the second number is rounded up. Where a driver runs statements on the load's own
    threads, that many sessions wait for each other.
    """
    most = max((sessions for phase in phases for sessions in phase), default=0)
    return {"sessions": most, "sessions_per_thread": math.ceil(most / threads)}


@dataclass(kw_only=True)
class PhaseRecord:
    """A phase's figures so far."""

    number: int
    start_s: float = 0.0
    end_s: float = 0.0
    committed: int = 0
    failed: int = 0
    sessions: list[int] = field(default_factory=list)
    """How many sessions were wanted as each interval ended."""
    disconnected: list[int] = field(default_factory=list)
    """Of these, how many lacked a connection."""
    connected: int | None = None
    """Connections at the end of the last interval: of a load that lets them go, those of unfinished transactions."""
    connections_failed: int = 0
    """Connections that broke or could not be made."""
    latency: _engine.Histogram = field(default_factory=_engine.Histogram)

    @property
    def tps(self) -> float:
        """Committed transactions per second."""
        seconds = self.end_s - self.start_s
        return self.committed / seconds if seconds > 0 else 0.0

    @property
    def is_short(self) -> bool:
        """Whether sessions had no connection, so that the phase does not count."""
        return is_short(self.sessions, self.disconnected, self.connections_failed)

    @property
    def p99_ms(self) -> float:
        """The 99th percentile of latency."""
        return self.latency.quantile(0.99) / 1e6
