"""Where a server's programs are on this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from nephoscope.systems.machine.account import Account

_PLACES = ("/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/sbin", "/usr/local/bin", "/usr/local/libexec")
"""Beside the search path, where the programs of a server seldom are."""


def find_program(name: str, product: str, where: str) -> Path:
    """Find a program of a product; ``where`` tells who does not have it where it is to be had.

    Raises:
        MeasurementError: this machine has none.

    """
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *_PLACES]))
    if found is None:
        raise MeasurementError(f"{product} is missing: there is no program {name}. {where}")
    return Path(found).absolute()


def said_version(
    program: Path, words: Sequence[str], pattern: re.Pattern[str], account: Account
) -> re.Match[str]:
    """Ask a program for its version, as the user that is to run it; find it by a pattern in what it says.

    Raises:
        MeasurementError: that user cannot execute it, or it does not work here.

    """
    try:
        answer = account.run([program, *words])
    except OSError as error:
        raise MeasurementError(
            f"cannot execute {program} as user {account.name}: {error.strerror}"
        ) from error
    if answer.returncode != 0 or (found := pattern.search(answer.stdout)) is None:
        raise MeasurementError(f"{program} does not work on this machine: {answer.stdout.strip()}")
    return found
