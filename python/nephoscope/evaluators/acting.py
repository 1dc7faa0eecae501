"""What a provider does beside the load: records are taken meanwhile, and nothing is waited for without a limit."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from nephoscope.errors import MeasurementError, NephoscopeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nephoscope.evaluators.base import Means

T = TypeVar("T")

_TURN_S = 0.05
_HURRY_S = 3.0
"""How long what was given up has to bring the system back, before it is cancelled: a paused node is to be resumed."""
_GRACE_S = 5.0
"""How long what was cancelled may take to end."""


def act_beside(means: Means, work: Callable[[threading.Event], T], what: str, limit_s: float) -> T:
    """Let ``work`` act on the provider, on a thread of its own, while the load goes on; gives what it returns.

    After ``limit_s`` seconds it is given up: the event that it was called with is set, so that it waits for nothing
    more, and what it has not brought to its end soon after is cancelled. So it is where the run is interrupted
    meanwhile. What does not end even then is left to itself, and ends with this process.

    Raises ``MeasurementError`` where it fails, or is given up; ``what`` says in the message what that was.
    """
    deed = _Deed(work)
    deed.start()
    limit = time.monotonic() + limit_s
    try:
        while deed.is_alive() and time.monotonic() < limit:
            means.load.pump_for(_TURN_S)
        in_time = not deed.is_alive()
    finally:
        _end(means, deed)
    if not in_time:
        raise MeasurementError(f"{what} did not end within {limit_s:g} s, and was given up")
    return deed.outcome(what)


def _end(means: Means, deed: _Deed[T]) -> None:
    """Let what still goes on come to its end, as far as it can be made to."""
    deed.given_up.set()
    deed.join(_HURRY_S)
    limit = time.monotonic() + _GRACE_S
    # Again and again: it may just have been about to begin what is to be cancelled.
    while deed.is_alive() and time.monotonic() < limit:
        means.provider.cancel()
        deed.join(_TURN_S)


class _Deed(threading.Thread, Generic[T]):
    """A thread whose end nobody has to wait for, and what it came to."""

    def __init__(self, work: Callable[[threading.Event], T]) -> None:
        super().__init__(name="action", daemon=True)
        self.given_up = threading.Event()
        self._work = work
        self._results: list[T] = []
        self._error: Exception | None = None

    def run(self) -> None:
        """Do it, and keep what became of it."""
        try:
            self._results.append(self._work(self.given_up))
        except Exception as error:  # noqa: BLE001 - whatever a provider of somebody else's raises
            self._error = error

    def outcome(self, what: str) -> T:
        """Give what it returned. Raises ``MeasurementError`` where it raised something."""
        if isinstance(self._error, NephoscopeError):
            raise MeasurementError(str(self._error)) from self._error
        if self._error is not None:
            raise MeasurementError(f"{what} failed: {self._error!r}") from self._error
        return self._results[0]
