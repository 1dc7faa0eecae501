"""The time of day, for labels: nothing is measured by it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class WallClock:
    """The time of day at the start, continued by a clock that is never set.

    So the times of a run are consistent, even if the machine's clock is set meanwhile.
    """

    def __init__(self) -> None:
        """Read the machine's clock, once."""
        self._begun = datetime.now(UTC)
        self._since = _since_boot()

    def now(self) -> datetime:
        """Say what time of day it is."""
        return self._begun + timedelta(seconds=_since_boot() - self._since)

    def step(self) -> float:
        """Say by how many seconds the machine's clock was set forward meanwhile; negative if backward."""
        return (datetime.now(UTC) - self.now()).total_seconds()


def _since_boot() -> float:
    """Read the clock that goes on while the machine is suspended, as the time of day does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
