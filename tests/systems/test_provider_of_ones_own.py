"""A provider of a known product is one file and one entry point: nothing of nephoscope is changed for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nephoscope

PROVIDER = '''
"""SQLite in a folder of its own, as somebody else gives it."""

from typing import Literal

from nephoscope.systems.embedded_sqlite import EmbeddedSqlite, EmbeddedSqliteSettings


class ToySettings(EmbeddedSqliteSettings):
    """The ``[system]`` table."""

    provider: Literal["toy"] = "toy"
    durable: bool = True
    """Whether a commit waits for the disk."""


class Toy(EmbeddedSqlite):
    """Gives a database file, durable or not."""

    name = "toy"
    summary = "a toy of a known product"
    settings_type = ToySettings

    def __init__(self, settings: ToySettings) -> None:
        """Turn the setting into the product's own."""
        options = {"synchronous": "full" if settings.durable else "off"}
        super().__init__(settings.model_copy(update={"settings": options}))
'''
STUDY = """
[study]
name = "toy"
[system]
provider = "toy"
durable = false
data = "DATA"
[workload]
name = "tpcb"
scale = 1
[load]
interval = "50ms"
[[measure]]
evaluator = "throughput"
mixes = ["SELECT"]
concurrency = 1
warmup = "0s"
duration = "200ms"
repetitions = 1
"""


def nephoscope_with(folder: Path, *arguments: str) -> str:
    """Run the command where the package in this folder is installed."""
    path = os.pathsep.join([str(folder), str(Path(nephoscope.__file__).parents[1])])
    ended = subprocess.run(
        [sys.executable, "-c", "from nephoscope.cli.app import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return ended.stdout


def test_a_provider_of_a_known_product_is_a_file_and_an_entry_point(tmp_path: Path) -> None:
    (tmp_path / "toy_provider.py").write_text(PROVIDER)
    installed = tmp_path / "toy-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[nephoscope.systems]\ntoy = toy_provider:Toy\n")
    (tmp_path / "toy.toml").write_text(STUDY.replace("DATA", str(tmp_path / "data")))
    assert "a toy of a known product" in nephoscope_with(tmp_path, "systems")
    nephoscope_with(tmp_path, "run", "toy.toml")
    run = tmp_path / "runs" / "latest"
    system = json.loads((run / "manifest.json").read_text())["system"]
    assert system["provider"] == "toy"
    assert "synchronous=off" in system["endpoints"]["rw"][0]
    assert json.loads((run / "scores.json").read_text())["points"][0]["committed"] > 0
