"""What a provider does beside the load: records are taken meanwhile, and nothing is waited for without a limit."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from nephoscope.errors import MeasurementError, NephoscopeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nephoscope.engine.loadrun import LoadRun
    from nephoscope.evaluators.base import Means
    from nephoscope.systems.base import Provider

T = TypeVar("T")

_TURN_S = 0.05
_HURRY_S = 3.0
"""How long what was given up has to bring the system back, before it is cancelled: a paused node is to be resumed."""
GRACE_S = 5.0
"""How long what was cancelled may take to end."""


class Acting(Generic[T]):
    """Something that is done on a thread of its own, whose end nobody has to wait for, and what it comes to."""

    def __init__(self, work: Callable[[threading.Event], T], what: str) -> None:
        """Begin with it: ``work`` is called with an event that is set when it is given up; ``what`` is for messages."""
        self._work = work
        self._what = what
        self._given_up = threading.Event()
        self._results: list[T] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._do, name="action", daemon=True)
        self._thread.start()

    def _do(self) -> None:
        try:
            self._results.append(self._work(self._given_up))
        except Exception as error:  # noqa: BLE001 - whatever a provider of somebody else's raises
            self._error = error

    @property
    def goes_on(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def wait(self, load: LoadRun, limit_s: float) -> T:
        """Take the load's records until it is done; gives what it returns.

        Raises ``MeasurementError`` where it fails, or has not ended within the limit.
        """
        limit = time.monotonic() + limit_s
        while self.goes_on:
            if time.monotonic() >= limit:
                raise MeasurementError(f"{self._what} did not end within {limit_s:g} s, and was given up")
            load.pump_for(_TURN_S)
        return self.result()

    def give_up(self, provider: Provider, grace_s: float = GRACE_S) -> None:
        """Let what still goes on come to its end, as far as it can be made to.

        It is told to wait for nothing more, and cancelled where it goes on nevertheless. What does not end even then is
        left to itself, and ends with this process. Raises ``MeasurementError`` where that is so.
        """
        self._given_up.set()
        self._thread.join(_HURRY_S)
        limit = time.monotonic() + grace_s
        # Again and again: it may just have been about to begin what is to be cancelled.
        while self.goes_on and time.monotonic() < limit:
            provider.cancel()
            self._thread.join(_TURN_S)
        if self.goes_on:
            raise MeasurementError(f"{self._what} still goes on")

    def result(self) -> T:
        """Give what it has come to. Raises ``MeasurementError`` where that is an error, or nothing yet."""
        if isinstance(self._error, NephoscopeError):
            raise MeasurementError(str(self._error)) from self._error
        if self._error is not None:
            raise MeasurementError(f"{self._what} failed: {self._error!r}") from self._error
        if not self._results:
            raise MeasurementError(f"{self._what} has not ended")
        return self._results[0]


def act_beside(means: Means, work: Callable[[threading.Event], T], what: str, limit_s: float) -> T:
    """Let ``work`` act on the provider while the load goes on; gives what it returns.

    After ``limit_s`` seconds, or where the run is interrupted meanwhile, it is given up. Raises ``MeasurementError``
    where it fails, or is given up; ``what`` says in the message what that was.
    """
    acting = Acting(work, what)
    try:
        return acting.wait(means.load, limit_s)
    finally:
        if acting.goes_on:
            # That it goes on even then is not told: why it was given up is what matters.
            with contextlib.suppress(MeasurementError):
                acting.give_up(means.provider)
