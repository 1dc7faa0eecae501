"""A process that cannot outlive this one: the asking side of ``supervisor.py``, where the reasons stand."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence

    from nephoscope.systems.machine.account import Account

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_PYTHON_OPTIONS = ("-I", "-S", "-X", "utf8")
"""Without an environment Python would take file names for ASCII."""

_STARTED_S = 30.0
_GRACE_S = 15.0
"""What the supervisor may need beyond the stages: to kill, to wait for orphans, to be scheduled at all."""


@dataclass(frozen=True)
class Order:
    """What to run, as whom, and how to end it."""

    command: Sequence[str | Path]
    account: Account
    stages: Sequence[tuple[signal.Signals, float]]
    """Signals that ask for the end, each with the seconds to wait before the next; SIGKILL comes last."""
    orphaned: signal.Signals
    """The signal that the command gets from the kernel should its supervisor be killed."""
    environment: Mapping[str, str] = field(default_factory=dict)
    keep_open: Sequence[int] = ()
    """Descriptors that the supervisor, not the command, holds open until the end: a lock, say."""
    entrances: Sequence[int] = ()
    """Open files of control groups, which the command, not the supervisor, is put into before it runs."""


class SupervisedProcess:
    """One run of a command under its supervisor."""

    def __init__(self, order: Order) -> None:
        """Take the order; :meth:`end` may be called at any time from now on."""
        self._order = order
        self._control: int | None = None
        self._status: int | None = None
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._lost = False
        self._gone = False
        self._reading = threading.Lock()
        self.pid = 0
        """Process number of the command; 0 before it has started."""
        self.exit_code: int | None = None
        """Exit code of the command, negative for a signal; None while it runs, or where nobody knows."""

    def start(self, output: int) -> None:
        """Start the command, its output going to the descriptor ``output``; return when it runs.

        An interruption at any point leaves nothing that :meth:`end`, or the end of this process, does not
        end: the write end of the pipe is in our hands before the supervisor exists.

        Raises:
            MeasurementError: the account cannot be taken on, or the command cannot be executed.

        """
        control_read, self._control = os.pipe()
        try:
            self._status, status_write = os.pipe()
            try:
                self._supervisor = subprocess.Popen(
                    # The last argument is for those who read the process list.
                    [sys.executable, *_PYTHON_OPTIONS, str(_SUPERVISOR), str(self._order.command[0])],
                    stdin=control_read,
                    stdout=status_write,
                    stderr=output,
                    env={},
                    cwd="/",
                    pass_fds=(*self._order.keep_open, *self._order.entrances),
                    start_new_session=True,  # a terminal's Ctrl-C is for us, and we say what follows
                )
            except OSError as error:
                raise MeasurementError(f"cannot execute {sys.executable}: {error.strerror}") from error
            finally:
                os.close(status_write)
        finally:
            os.close(control_read)
        self._send_order()
        deadline = time.monotonic() + _STARTED_S
        while not self.pid and not self._over and time.monotonic() < deadline:
            self._listen(deadline)
        if not self.pid:
            raise MeasurementError(f"{self._order.command[0]} did not start: its supervisor gave no answer")

    def ended(self, wait_s: float) -> bool:
        """Wait up to ``wait_s`` seconds for the command to end; whether it has."""
        deadline = time.monotonic() + wait_s
        while not self._over:
            self._listen(deadline)
            if time.monotonic() >= deadline:
                break
        return self._over

    def end(self) -> bool:
        """Have the command ended if it runs, and wait for it, within the time limits of the order's stages.

        Returns:
            Whether the command and all its descendants are known to be gone. They may not be where the
            supervisor was killed, or hangs and is killed here: then the kernel has asked the command to end.

        """
        if self._control is not None:
            control, self._control = self._control, None
            os.close(control)
        if self._status is not None:
            self.ended(sum(seconds for _, seconds in self._order.stages) + _GRACE_S)
            with self._reading:
                status, self._status = self._status, None
                os.close(status)
        if self._supervisor is not None:
            supervisor, self._supervisor = self._supervisor, None
            _bury(supervisor)
        return self._gone

    @property
    def _over(self) -> bool:
        return self._gone or self._lost

    def _send_order(self) -> None:
        """Write the order into the pipe: there no other user can read it, as he could in the process list."""
        order = self._order
        text = json.dumps(
            {
                "command": [str(word) for word in order.command],
                "environment": dict(order.environment),
                "user": [order.account.uid, order.account.gid] if order.account.other else None,
                "parent": os.getpid(),
                "stages": order.stages,
                "orphaned": order.orphaned,
                "entrances": order.entrances,
            }
        )
        left = f"{text}\n".encode()
        with contextlib.suppress(BrokenPipeError):  # it has ended already, which shows in its missing answer
            while left and self._control is not None:
                left = left[os.write(self._control, left) :]

    def _listen(self, deadline: float) -> None:
        """Take in what the supervisor says next, if it says anything before the deadline."""
        if (status := self._status) is None:
            self._lost = True
            return
        poll = select.poll()  # unlike select, it takes the large descriptors of a process with many sessions
        poll.register(status, select.POLLIN)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return
        # Another thread may have read it, or have ended the process, while this one waited.
        with self._reading:
            if self._status is None:
                self._lost = True
                return
            if not poll.poll(0):
                return
            text = os.read(status, 4096)
        if not text:
            self._lost = True
        *lines, self._unread = (self._unread + text).split(b"\n")
        for line in lines:
            self._understand(line.decode().split())

    def _understand(self, words: list[str]) -> None:
        match words:
            case ["started", pid]:
                self.pid = int(pid)
            case ["ended", code]:
                self.exit_code = int(code)
                self._gone = True
            case ["failed", number, step]:
                self._gone = True
                command, account = self._order.command[0], self._order.account
                steps = {
                    "command": f"execute {command} as",
                    "group": f"put {command} into its control group as",
                }
                tried = steps.get(step, "become")
                raise MeasurementError(f"cannot {tried} user {account.name}: {os.strerror(int(number))}")


def _bury(supervisor: subprocess.Popen[bytes]) -> None:
    """Wait for a supervisor that said its last word or is beyond its time; in the end, kill it."""
    try:
        supervisor.wait(1.0)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait(_GRACE_S)
