"""Polls a provider for its system's allocation at fixed times, beside a changing load."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from typing import TYPE_CHECKING, Self

from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.evaluators.acting import GRACE_S, Acting
from nephoscope.settings.units import describe_count

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from nephoscope.evaluators.base import Means

    Keep = Callable[[], None]


class AllocationClock:
    """Polls at fixed times, on a thread, within a context; a late answer delays only the next poll.

    A hook that hangs or fails disturbs neither the load nor the run: the hook is killed after its timeout, and a
    warning of the run counts its failures. The thread touches no signal and raises nothing.
    """

    def __init__(self, means: Means, period_s: float, limit_s: float, ask: Keep) -> None:
        """Take ``ask``: it polls once, keeps the answer, raises ``MeasurementError``. ``with`` starts the polling."""
        self._means = means
        self._period_s = period_s
        self._limit_s = limit_s
        self._ask = ask
        self._over = threading.Event()
        self._asked = 0
        self._failed = 0
        self._last: MeasurementError | None = None
        self._asking: Acting[None] | None = None

    def __enter__(self) -> Self:
        """Poll for the first time at once."""
        self._asking = Acting(self._run, "asking for the allocation")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the last answer, at most for its timeout, and warn of failed polls."""
        self._over.set()
        if self._asking is None:
            return
        try:
            if kind is None:
                self._asking.wait(self._means.load, self._limit_s + GRACE_S)
        except MeasurementError as failure:
            self._warn(f"the allocation was not asked for to the end: {failure}")
        finally:
            with contextlib.suppress(MeasurementError):
                self._asking.give_up(self._means.provider)
        if self._failed:
            times = f"{self._failed} of {describe_count(self._asked, 'time')}"
            self._warn(
                f"the provider did not tell the allocation {times} that it was asked; lastly: {self._last}"
            )

    def _warn(self, message: str) -> None:
        self._means.load.note("warning", _engine.monotonic_ns(), message=message)

    def _run(self, _given_up: threading.Event) -> None:
        began = time.monotonic()
        while not self._over.is_set():
            self._asked += 1
            try:
                self._ask_within()
            except MeasurementError as error:
                self._failed += 1
                self._last = error
            passed = time.monotonic() - began
            # Missed polls are skipped: the next is at the next fixed time.
            due = (math.floor(passed / self._period_s) + 1) * self._period_s
            self._over.wait(due - passed)

    def _ask_within(self) -> None:
        """Poll once, with a timeout. Raises ``MeasurementError``."""
        late = threading.Event()

        def strike() -> None:
            late.set()
            self._means.provider.cancel()

        timer = threading.Timer(self._limit_s, strike)
        timer.daemon = True
        timer.start()
        try:
            self._ask()
        except MeasurementError:
            if late.is_set():
                limit = f"{self._limit_s:g} s"
                raise MeasurementError(
                    f"telling the allocation did not end within {limit}, and was given up"
                ) from None
            raise
        finally:
            timer.cancel()
