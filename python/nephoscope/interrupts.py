"""Interruptions: signals become an exception, but never in the middle of what must be done whole."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_IMPORTS = "<frozen importlib"
"""The file of every frame of Python's import system."""
_AGAIN_S = 0.01


class Interrupted(BaseException):
    """The user, or the system, wants the run to end: Ctrl-C, SIGTERM, SIGHUP."""


class _Gate:
    """Holds interruptions back while it is shut."""

    def __init__(self) -> None:
        self.shut = 0
        self.waiting: int | None = None
        self.newest: int = signal.SIGINT

    def interrupt(self, number: int) -> None:
        self.newest = number
        if self.shut:
            self.waiting = number
        else:
            self.waiting = None
            raise Interrupted(f"interrupted by {signal.Signals(number).name}")


_gate = _Gate()


def catch_signals() -> None:
    """Let SIGINT, SIGTERM and SIGHUP raise ``Interrupted`` in the main thread; none of them ends in a traceback.

    A SIGHUP that is ignored stays so: ``nohup`` asks for that.
    """
    sys.unraisablehook, sys.excepthook = _unraisable, _uncaught
    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    # An extension module whose import is interrupted raises an ImportError in place of the interruption.
    if _is_import(frame):
        _signal_again(number)
    else:
        _gate.interrupt(number)


def _is_import(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTS):
            return True
        frame = frame.f_back
    return False


def _signal_again(number: int) -> None:
    """Send a signal to the main thread in a moment."""

    def send() -> None:
        time.sleep(_AGAIN_S)
        if signal.getsignal(number) is _interrupt:
            signal.pthread_kill(main, number)

    main = threading.main_thread().ident or 0
    # Not by ``threading``, whose lock the main thread may hold at this moment.
    _thread.start_new_thread(send, ())


def _unraisable(event: sys.UnraisableHookArgs) -> None:
    """Repeat an interruption that came within a destructor or a callback, where Python drops exceptions."""
    if isinstance(event.exc_value, Interrupted):
        _signal_again(_gate.newest)
    else:
        sys.__unraisablehook__(event)


def _uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Tell an interruption that came while another one was being told, in one line."""
    if issubclass(kind, Interrupted):
        sys.stderr.write(f"nephoscope: {error}\n")
    else:
        sys.__excepthook__(kind, error, traceback)


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


def ignore_signals() -> None:
    """Let no interruption come any more: what is left to do takes a moment."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def leave(code: int) -> NoReturn:
    """End this process. Its exit code is settled: an interruption that comes now no longer changes it."""
    ignore_signals()
    if _abandoned:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
