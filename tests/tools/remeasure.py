"""A test that measures, on a machine that stood still meanwhile, measures again: a pytest plugin.

The processors are shared. A test with the marker ``alone`` or ``light`` asserts what was planted within the stated
uncertainty. Where that fails, and the machine is known to have stood still since the test's module began, everything
that was measured for the test is made anew, twice at most. A failure on a machine that ran is a failure. What was
measured again is listed at the end, with the reason.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from _pytest.runner import runtestprotocol

from nephoscope.calibration.base import Stillness, starved
from nephoscope.calibration.cases import STILL_S
from nephoscope.errors import InputError
from nephoscope.store import FILES, StoredRun

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pytest

ATTEMPTS = 3
MOST_TOLD = 2000
"""So many characters of a failure stand beside the reason for which it was measured again."""


class Remeasure:
    """Runs the tests that measure; knows what the machine did meanwhile."""

    def __init__(self, folder: Path) -> None:
        """Take the folder that tests make theirs in, runs among them."""
        self._folder = folder
        self._module = ""
        self._began = 0.0
        self._stillness: Stillness | None = None
        self._again: list[str] = []

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not any(mark.name in ("alone", "light") for mark in item.iter_markers()):
            return None
        where = item.location
        if where[0] != self._module:
            self._watch(where[0])
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=where)
        for left in reversed(range(ATTEMPTS)):
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
            why = self._why() if left and any(report.failed for report in reports) else None
            if why is None:
                break
            self._again.append(f"{item.nodeid}: {why}\n{missed_by(reports)}")
            # The fixtures of its module hold what was measured: they are made anew as well.
            item.session._setupstate.teardown_exact(None)
            item._initrequest()  # type: ignore[attr-defined] # as every function's item has it
            self._watch(where[0])
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=where)
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._again:
            terminalreporter.section("measured again: the machine stood still")
            terminalreporter.write_line("\n".join(self._again))

    def pytest_unconfigure(self) -> None:
        if self._stillness is not None:
            self._stillness.__exit__(None, None, None)
            self._stillness = None

    def _watch(self, module: str) -> None:
        """Begin to watch the machine: another module begins, or the same one anew."""
        self.pytest_unconfigure()
        self._module, self._began = module, time.time()
        self._stillness = Stillness()
        self._stillness.__enter__()

    def _why(self) -> str | None:
        """Say how the machine stood still; None where it ran."""
        longest = self._stillness.longest_s if self._stillness else 0.0
        if longest > STILL_S:
            return f"no process ran for {longest:.2f} s"
        manifests = self._folder.glob(f"**/{FILES.manifest}")
        runs = [path.parent for path in manifests if path.stat().st_mtime >= self._began]
        return next(filter(None, map(told_by, runs)), None)


def missed_by(reports: Iterable[pytest.TestReport]) -> str:
    """Say what failed meanwhile: the lines of a failed test's own that pytest marks."""
    told = "\n".join(report.longreprtext for report in reports if report.failed)
    return "\n".join(line for line in told.splitlines() if line.startswith("E "))[:MOST_TOLD]


def told_by(folder: Path) -> str | None:
    """Say what a run itself says of the machine that it was on; None where that ran, or the run cannot be read."""
    with contextlib.suppress(InputError):
        return starved(StoredRun(folder))
    return None
