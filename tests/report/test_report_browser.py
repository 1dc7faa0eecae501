"""A real browser draws the page: skipped only where Chromium is not installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report_pages import html
from report_runs import RUNS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--window-size=1366,900",
    "--virtual-time-budget=4000",
    "--enable-logging=stderr",
    "--v=0",
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


class Tags(HTMLParser):
    """The tags of a page as the browser serialised it, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]


def browse(name: str, folder: Path, *options: str, query: str = "") -> tuple[str, list[str]]:
    """Open the page of a run; what the browser prints, and what the page's console says."""
    return browse_page(html(name), name, folder, *options, query=query)


def browse_page(page: str, name: str, folder: Path, *options: str, query: str = "") -> tuple[str, list[str]]:
    """Open a page without a network; what the browser prints, and what the page's console says."""
    file = folder / f"{name}.html"
    file.write_text(page, encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [str(CHROMIUM), *OPTIONS, profile, *options, f"{file.as_uri()}{query}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@cache
def drawn(name: str) -> tuple[str, list[str]]:
    """The page after its scripts have run, and what its console says."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return browse(name, Path(folder), "--dump-dom")


@pytest.mark.parametrize("name", [name for name in RUNS if name != "hour"])
def test_every_chart_is_drawn_and_the_console_is_silent(name: str) -> None:
    page, console = drawn(name)
    assert console == []
    charts = re.findall(r'<div class="chart[^"]*" role="img".*?</figure>', page, re.DOTALL)
    assert len(charts) == html(name).count('<div class="chart" role="img"')
    for chart in charts:
        assert "<svg" in chart
        assert chart.count("<path") > 3
        assert "NaN" not in chart


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_can_be_chosen_in_the_address(theme: str, tmp_path: Path) -> None:
    page, _ = browse("killed", tmp_path, "--dump-dom", query=f"?theme={theme}")
    assert f'data-theme="{theme}"' in page
    assert f"Theme: {theme}" in page


def test_no_script_of_a_hostile_run_is_executed() -> None:
    names = Tags(drawn("hostile")[0]).names
    assert "img" not in names
    assert names.count("script") == html("hostile").count("<script")


def test_the_phases_stand_above_the_charts_over_time() -> None:
    page, _ = drawn("sweep")
    assert len(re.findall(r'class="phase phase-group"', page)) == 5
    assert len(re.findall(r'class="phase phase-one', page)) == 3 * 7 * 3 * 2 + 2


def test_the_page_prints_on_paper(tmp_path: Path) -> None:
    paper = tmp_path / "report.pdf"
    _, console = browse("sweep", tmp_path, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    assert console == []
    content = paper.read_bytes()
    assert content.startswith(b"%PDF")
    assert 6 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 14
