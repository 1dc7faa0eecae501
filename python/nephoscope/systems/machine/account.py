"""The system user that a server runs as: ourselves, or, where we are root, a user without privileges."""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_PREFERRED = ("postgres", "nobody")
_COMMAND_S = 30.0


@dataclass(frozen=True)
class Account:
    """A system user."""

    name: str
    uid: int
    gid: int

    @property
    def other(self) -> bool:
        """Whether this is not the user that we are: to run a program as it, we drop our privileges."""
        return self.uid != os.geteuid()

    def run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run a short command as this user, with an empty environment, and capture all that it says.

        Raises:
            OSError: the user cannot be taken on, or it cannot execute the command.
            MeasurementError: the command took more than 30 s and was killed.

        """
        try:
            return subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={"LC_ALL": "C"},
                cwd="/",
                timeout=_COMMAND_S,
                check=False,
                start_new_session=True,
                user=self.uid if self.other else None,
                group=self.gid if self.other else None,
                extra_groups=[] if self.other else None,
            )
        except subprocess.TimeoutExpired as error:
            raise MeasurementError(f"{command[0]} did not end within {_COMMAND_S:.0f} s") from error

    def can_enter(self, folder: Path) -> bool:
        """Whether this user can reach and enter ``folder``, whatever modes, lists or mounts decide it."""
        return self.run(["/bin/sh", "-c", 'cd -- "$1"', "sh", folder]).returncode == 0


def server_accounts(product: str = "a database server") -> list[Account]:
    """Name the users that a server may run as, the preferred one first.

    Database servers refuse to run as root. So as root these are the users without privileges that every system
    has; none is ever added. Anyone else runs it as himself. ``product`` stands in the message.

    Raises:
        MeasurementError: we are root, and the system has none of those users.

    """
    if os.geteuid() != 0:
        return [_ourselves()]
    found = [account for name in _PREFERRED if (account := _known(name)) is not None]
    if not found:
        raise MeasurementError(
            f"{product} refuses to run as root, and this system has neither a user 'postgres' nor a user "
            "'nobody': run nephoscope as an ordinary user"
        )
    return found


def _ourselves() -> Account:
    uid = os.geteuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # a container may run as a number that no list knows
        name = str(uid)
    return Account(name=name, uid=uid, gid=os.getegid())


def _known(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid) if entry.pw_uid != 0 else None
