"""Interruptions: signals become an exception, but never in the middle of what must be done whole."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """The user, or the system, wants the run to end: Ctrl-C, SIGTERM, SIGHUP."""


class _Gate:
    """Holds interruptions back while it is shut."""

    def __init__(self) -> None:
        self.shut = 0
        self.waiting: str | None = None

    def interrupt(self, reason: str) -> None:
        if self.shut:
            self.waiting = reason
        else:
            self.waiting = None
            raise Interrupted(reason)


_gate = _Gate()


def catch_signals() -> None:
    """Let SIGINT, SIGTERM and SIGHUP raise ``Interrupted`` in the main thread."""
    for number in SIGNALS:
        signal.signal(number, _interrupt)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _gate.interrupt(f"interrupted by {signal.Signals(number).name}")


@contextmanager
def shielded() -> Iterator[None]:
    """Do something whole: an interruption that comes meanwhile is raised at its end.

    For what is short. A record that is taken from the engine and not yet written would be lost otherwise, and with it
    an interval of the run: signals are handled just when the call that waits for a record returns with one.
    """
    _gate.shut += 1
    try:
        yield
    finally:
        _gate.shut -= 1
        # It comes before an error: what was given up for its sake has failed by that.
        if _gate.waiting is not None and not _gate.shut:
            _gate.interrupt(_gate.waiting)


def is_held_back() -> bool:
    """Tell whether an interruption waits for the end of what must be done whole.

    The engine asks where it waits for a server for longer than a moment: that wait fails, so that the end comes.
    """
    return _gate.waiting is not None


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer than so many seconds: it ends as by Ctrl-C, and a ``MeasurementError`` says why.

    Signals reach the main thread alone, and in another one there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    over = threading.Event()
    main = threading.get_ident()

    def strike() -> None:
        over.set()
        signal.pthread_kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, _interrupt)
    timer = threading.Timer(seconds, strike)
    timer.daemon = True
    timer.start()
    late = MeasurementError(f"it did not end within {seconds:g} s")
    try:
        yield
    except (Interrupted, MeasurementError):
        if over.is_set():
            raise late from None
        raise
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGUSR1, before)


_abandoned: list[object] = []


def abandon(load: object) -> None:
    """Do not wait for the end of a load's transactions, which its deletion would do: it ends with this process."""
    _abandoned.append(load)


def leave(code: int) -> NoReturn:
    """End this process. Its exit code is settled: an interruption that comes now no longer changes it."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if _abandoned:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
