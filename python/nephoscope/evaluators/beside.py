"""What evaluators do to a system while the load goes on: in a thread of its own, and not for ever."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nephoscope.loadrun import LoadRun
    from nephoscope.systems.base import Provider

_LOOK_S = 0.05
_PATIENCE_S = 30.0
"""How long an action is waited for that was interrupted, before what it has done is undone."""

T = TypeVar("T")


class Beside(Generic[T]):
    """Does something beside a load, in a thread that does not hold up the end of the process."""

    def __init__(self, work: Callable[[], T], name: str) -> None:
        """Begin with it. ``name`` is for messages."""
        self._work = work
        self._name = name
        self._result: list[T] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._do, name=name, daemon=True)
        self._thread.start()

    def _do(self) -> None:
        try:
            self._result.append(self._work())
        except Exception as error:  # noqa: BLE001 - it is raised in the thread that waits
            self._error = error

    @property
    def goes_on(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def wait(self, load: LoadRun, limit_s: float | None) -> T:
        """Take the load's records until it is done.

        Raises ``MeasurementError`` where it fails, or has not ended within the limit; it is then left to itself.
        """
        begun = time.monotonic()
        while self.goes_on:
            if limit_s is not None and time.monotonic() - begun > limit_s:
                raise MeasurementError(f"{self._name} did not end within {limit_s:g} s")
            load.pump_for(_LOOK_S)
        return self.result()

    def give_up(self, provider: Provider) -> None:
        """Have what it does given up, and wait for its end. Raises ``MeasurementError`` where that does not come."""
        if self.goes_on:
            provider.cancel()
        self._thread.join(_PATIENCE_S)
        if self.goes_on:
            raise MeasurementError(f"{self._name} still goes on")

    def result(self) -> T:
        """Give what it has come to. Raises ``MeasurementError`` where that is nothing."""
        if self._error is not None:
            error = self._error
            raise error if isinstance(error, MeasurementError) else MeasurementError(str(error)) from error
        if not self._result:
            raise MeasurementError(f"{self._name} has not ended")
        return self._result[0]
