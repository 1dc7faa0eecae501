"""Where a server's programs are on this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from nephoscope.errors import MeasurementError

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
