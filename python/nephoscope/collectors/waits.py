"""What the sessions of a server wait for: looks at them, several a second, become one figure a second and event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.store.protocol import WAIT

if TYPE_CHECKING:
    from collections.abc import Mapping

CPU = "CPU"
"""The event of a session that waits for nothing: it runs on a processor, or is ready to."""


class Waits:
    """The looks since the last figures were taken."""

    def __init__(self) -> None:
        """Begin without a look."""
        self._looks = 0
        self._sessions: dict[str, float] = {}

    def add(self, sessions: Mapping[str, float]) -> None:
        """Add a look: the number of sessions at work, by the event that each was in."""
        self._looks += 1
        for event, count in sessions.items():
            self._sessions[event] = self._sessions.get(event, 0.0) + count

    def take(self) -> dict[str, float]:
        """Return the mean number of sessions in each event over the looks since the last call, by metric.

        An event that was seen before and not since then is 0. Empty without a look: then nothing is known.
        """
        looks, self._looks = self._looks, 0
        if not looks:
            return {}
        means = {f"{WAIT}{event}": total / looks for event, total in self._sessions.items()}
        self._sessions = dict.fromkeys(self._sessions, 0.0)
        return means or {f"{WAIT}{CPU}": 0.0}
