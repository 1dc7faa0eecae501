"""nephoscope: the instrument that measures cloud databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from nephoscope.results.opened import OpenedRun

__version__ = "0.1.0"


def open(run: str | PathLike[str]) -> OpenedRun:  # noqa: A001 - nephoscope.open, as of other libraries
    """Open a run directory for a notebook or a script: its tables, histograms, scores and verdicts.

    Raises ``nephoscope.errors.InputError`` for what is no run directory.
    """
    # What reads a run takes a moment to import: not for the command's --version.
    from nephoscope.results.opened import OpenedRun  # noqa: PLC0415

    return OpenedRun(run)
