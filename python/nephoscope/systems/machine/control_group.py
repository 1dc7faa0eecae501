"""A control group of a server: what its processes may use of the processors, and what they have used."""

from __future__ import annotations

import hashlib
import os
import secrets
import subprocess
import sys
from typing import TYPE_CHECKING

from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.machine import group_guard
from nephoscope.systems.machine.control_groups import give_on

if TYPE_CHECKING:
    from pathlib import Path

    from nephoscope.systems.machine.control_groups import Place

LEAST_VCORES = 0.01
"""The kernel's least quota is 1 ms in each period."""
_LEAST_QUOTA_US = 1000

PERIOD_US = 100_000
"""The kernel's default: a group that has used up its quota stands still until the next period begins."""
_EMPTY_S = 5.0


class ControlGroup:
    """One group, in one or two hierarchies: made when it is first needed, and gone when this process has ended."""

    def __init__(
        self, place: Place, owner: Path, *, vcores: float | None = None, period_us: int = PERIOD_US
    ) -> None:
        """Describe a group for whatever is in the folder ``owner``, which nobody else may be using meanwhile.

        ``vcores`` is its quota from the beginning, by default all there are; it is counted anew every ``period_us``.
        """
        self._place = place
        self._owner = owner
        self._vcores = vcores
        self._period_us = period_us
        self.folders = place.folders(f"{_name_of(owner)}{secrets.token_hex(4)}")
        """Of a name that is this one's alone: who still removes another group of the same owner does it no harm."""
        self._entrances: tuple[int, ...] = ()
        self._guard: subprocess.Popen[bytes] | None = None

    def entrances(self) -> tuple[int, ...]:
        """Give open files; a process that writes ``0`` to each is in the group, and whatever it starts.

        Makes the group if need be, and removes what earlier runs have left of their owner's.

        Raises:
            InputError: the system does not allow it.
            MeasurementError: what was left cannot be removed.

        """
        if not self._entrances:
            for left in groups_of(self._place, self._owner):
                if not group_guard.clear(left, 0.0):
                    raise MeasurementError(f"control group {left[0]} is left over and cannot be removed")
            self._begin_guard()
            try:
                if self._place.is_unified:
                    give_on(self._place.quota)
                for folder in self.folders:
                    folder.mkdir()
                self._entrances = tuple(
                    os.open(folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC) for folder in self.folders
                )
            except OSError as error:
                raise InputError(
                    f"cannot make a control group: {error.strerror} ({error.filename})"
                ) from error
            if self._vcores is not None:
                self.set_quota(self._vcores)
        return self._entrances

    def set_quota(self, vcores: float) -> None:
        """Let the group have so many processors' time, from its next period on; 0 is the least there is.

        Raises:
            MeasurementError: the system does not take it.

        """
        quota = max(round(vcores * self._period_us), _LEAST_QUOTA_US)
        folder = self.folders[0]
        try:
            if self._place.is_unified:
                (folder / "cpu.max").write_text(f"{quota} {self._period_us}")
            else:
                (folder / "cpu.cfs_period_us").write_text(str(self._period_us))
                (folder / "cpu.cfs_quota_us").write_text(str(quota))
        except OSError as error:
            raise MeasurementError(f"control group {folder} takes no quota: {error.strerror}") from error

    def lift(self) -> None:
        """Let it have all it wants, lest it ends slowly; harmless where there is none."""
        group_guard.lift(self.folders)

    def used_ns(self) -> int:
        """Tell how much processor time its processes have used since it was made. Raises ``MeasurementError``."""
        folder = self.folders[-1]
        try:
            if not self._place.is_unified:
                return int((folder / "cpuacct.usage").read_text())
            lines = (folder / "cpu.stat").read_text().splitlines()
            return 1000 * int(dict(line.split() for line in lines)["usage_usec"])
        except (OSError, ValueError, KeyError) as error:
            raise MeasurementError(f"control group {folder} does not tell its use: {error}") from error

    def remove(self) -> None:
        """Remove it, with whatever runs in it; harmless where it was never made.

        Raises:
            MeasurementError: it cannot be removed.

        """
        entrances, self._entrances = self._entrances, ()
        for descriptor in entrances:
            os.close(descriptor)
        if self._guard is None:
            return
        gone = group_guard.clear(self.folders, _EMPTY_S)
        guard, self._guard = self._guard, None
        with guard:  # closes the pipe, whose end it waits for, and waits for it
            pass
        if not gone and any(folder.exists() for folder in self.folders):
            raise MeasurementError(f"control group {self.folders[0]} cannot be removed")

    def _begin_guard(self) -> None:
        """Start who removes the group after us, before there is one."""
        script = group_guard.__file__
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", script, str(os.getpid()), *map(str, self.folders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,  # a terminal's Ctrl-C is for us
        )
        assert self._guard.stdout is not None  # noqa: S101 - it was asked for
        if self._guard.stdout.readline() != b"ready\n":
            raise MeasurementError(f"{script} did not start")


def groups_of(place: Place, owner: Path) -> list[tuple[Path, ...]]:
    """Find the groups that there are for the folder ``owner``, by their names: those of runs that were killed, too."""
    pattern = f"{_name_of(owner)}*"
    names = {folder.name for group in (place.quota, place.use) for folder in group.glob(pattern)}
    return [place.folders(name) for name in sorted(names)]


def _name_of(owner: Path) -> str:
    """Begin the names of an owner's groups."""
    return f"nephoscope-{hashlib.sha256(os.fsencode(owner)).hexdigest()[:12]}-"
