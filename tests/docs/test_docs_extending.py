"""The page on providers and evaluators of one's own, done as it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from docs_pages import ROOT, blocks

PAGE = ROOT / "docs" / "extending.md"
TOOL = Path(sys.executable).parent / "nephoscope"


def write_files(folder: Path) -> None:
    for block in blocks(PAGE):
        if block.file:
            path = folder / block.file
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text + "\n", encoding="utf-8")


def install(package: Path) -> None:
    """Put beside the modules what ``pip install -e`` leaves in the environment, without touching the tests' own."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    info = package / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def test_a_provider_and_an_evaluator_of_ones_own_work(tmp_path: Path) -> None:
    write_files(tmp_path)
    install(tmp_path / "mytools")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "mytools")}
    printed = []
    for block in blocks(PAGE):
        for step in block.text.split("$ ")[1:] if block.language == "console" else ():
            tool, *arguments = step.split()
            assert tool == "nephoscope"
            ended = subprocess.run(
                [TOOL, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert ended.returncode == 0, ended.stdout + ended.stderr
            printed.append(ended.stdout)
    listed, measured = printed
    assert "a system that a command starts and another one ends" in listed
    assert "latency in bursts of arrivals, and between them" in listed
    scores = json.loads((tmp_path / "runs" / "latest" / "scores.json").read_text())
    p99_ms = scores["details"]["burst"]["p99_ms"]
    assert p99_ms["burst"] > 10 * p99_ms["calm"] > 0
    assert {point["mix"] for point in scores["points"]} == {"SELECT, calm", "SELECT, burst"}
    assert scores["scores"]["F"]["value"] == 0
    assert "no interruption" in measured
    assert (tmp_path / "log").read_text().split() == ["started", "ended", "started", "ended"]
    events = (tmp_path / "runs" / "latest" / "events.jsonl").read_text().splitlines()
    assert [event["action"] for event in map(json.loads, events) if event["event"] == "fault"] == ["restart"]
