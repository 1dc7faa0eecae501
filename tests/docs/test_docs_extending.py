"""The page on providers and evaluators of one's own, done as it says, with a pip and an environment of its own."""

from __future__ import annotations

import json
import sys
import sysconfig
import venv
from typing import TYPE_CHECKING

import pytest
from docs_pages import ROOT
from page_shell import TOOLS, do, steps_on, write_files

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long

PAGE = ROOT / "docs" / "extending.md"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment of its own, that sees what is installed in that of the tests, pip too; its tools' folder."""
    folder = tmp_path / "environment"
    venv.EnvBuilder(symlinks=True).create(folder)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    beside = folder / "lib" / name / "site-packages" / "beside.pth"
    # As a site folder, so that what is installed there by a .pth of its own is seen too.
    beside.write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    for tool in ("nephoscope", "pip"):
        script = (TOOLS / tool).read_text().splitlines()
        copy = folder / "bin" / tool
        copy.write_text("\n".join([f"#!{folder}/bin/python", *script[1:]]) + "\n")
        copy.chmod(0o755)
    return folder / "bin"


def test_a_provider_and_an_evaluator_of_ones_own_work(tmp_path: Path, environment: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    write_files(PAGE, folder)
    steps = steps_on(PAGE)
    assert [step.command.split()[0] for step in steps] == ["pip", "nephoscope", "nephoscope"]
    _, listed, measured = ("\n".join(do(step, folder, tools=environment)) for step in steps)
    assert "a system that a command starts and another one ends" in listed
    assert "latency in bursts of arrivals, and between them" in listed
    scores = json.loads((folder / "runs" / "latest" / "scores.json").read_text())
    p99_ms = scores["details"]["burst"]["p99_ms"]
    assert p99_ms["burst"] > 10 * p99_ms["calm"] > 0
    assert {point["mix"] for point in scores["points"]} == {"SELECT, calm", "SELECT, burst"}
    assert scores["scores"]["F"]["value"] == 0
    assert "Latency in bursts, and between them" in measured
    page = (folder / "runs" / "latest" / "report.html").read_text()
    assert '<a href="#bursts">Bursts</a>' in page
    assert "<h2>Bursts</h2>" in page
    assert "no interruption" in measured
    assert (folder / "log").read_text().split() == ["started", "ended", "started", "ended"]
    events = (folder / "runs" / "latest" / "events.jsonl").read_text().splitlines()
    assert [event["action"] for event in map(json.loads, events) if event["event"] == "fault"] == ["restart"]
