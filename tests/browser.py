"""A real browser without a network, for tests of pages."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

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


def sheets_of(page: str, folder: Path) -> tuple[int, list[str]]:
    """Print a page; the number of sheets of paper, and what its console says."""
    paper = folder / "report.pdf"
    _, console = browse_page(page, "report", folder, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    content = paper.read_bytes()
    assert content.startswith(b"%PDF")
    return len(re.findall(rb"/Type\s*/Page\b", content)), console
