"""Tests that measure do so again where the machine stood still, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = pytest.mark.long
CONFTEST = """
import sys

sys.path[:0] = {tools!r}
import remeasure

remeasure.STILL_S = {still_s}

def pytest_sessionstart(session):
    session.config.addinivalue_line("markers", "alone: measures")
    session.config.pluginmanager.register(remeasure.Remeasure(session.config._tmp_path_factory.getbasetemp()))
"""
TESTS = """
import time
import pytest

made = []

@pytest.fixture(scope="module")
def measured():
    made.append(len(made))
    time.sleep(0.05)
    return made[-1]

{marker}
def test_once(measured):
    assert measured >= {wanted}

def test_after(measured):
    assert len(made) == {made}
"""
ALWAYS_STILL, NEVER_STILL = -1.0, 3600.0


@pytest.mark.parametrize(
    ("still_s", "marker", "wanted", "made"),
    [
        pytest.param(ALWAYS_STILL, "@pytest.mark.alone", 0, 1, id="holds"),
        pytest.param(ALWAYS_STILL, "@pytest.mark.alone", 2, 3, id="holds at last"),
        pytest.param(ALWAYS_STILL, "@pytest.mark.alone", 3, 3, id="never holds"),
        pytest.param(ALWAYS_STILL, "", 1, 1, id="measures nothing"),
        pytest.param(NEVER_STILL, "@pytest.mark.alone", 1, 1, id="the machine ran"),
    ],
)
def test_what_is_measured_again(tmp_path: Path, still_s: float, marker: str, wanted: int, made: int) -> None:
    tools = [str(Path(__file__).parent / "tools")]
    (tmp_path / "conftest.py").write_text(CONFTEST.format(tools=tools, still_s=still_s))
    (tmp_path / "test_made_up.py").write_text(
        dedent(TESTS.format(marker=marker, wanted=wanted, made=made)), encoding="utf-8"
    )
    command = [sys.executable, "-m", "pytest", "-q", "--basetemp", str(tmp_path / "base"), "--rootdir", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ("2 passed" if wanted < made else "1 failed, 1 passed") in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("test_once: no process ran for") == made - 1
    # What failed stands beside the reason, and what failed at last where pytest tells failures.
    assert done.stdout.count("E       assert ") == max(made - 1, 0) + (1 if wanted >= made else 0)
