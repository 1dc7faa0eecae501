"""A real browser draws the page: skipped only where Chromium is not installed."""

from __future__ import annotations

import json
import re
import tempfile
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from report_pages import html
from report_runs import RUNS

from browser import CHROMIUM, browse_page, sheets_of

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


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


@pytest.mark.parametrize(("name", "most"), [("sweep", 10), ("lag", 9), ("failover", 8), ("open_loop", 7)])
def test_the_page_prints_on_few_sheets(name: str, most: int, tmp_path: Path) -> None:
    """Fewer by those on which charts stood one below the other, each over half of the paper's width."""
    sheets, console = sheets_of(html(name), tmp_path)
    assert console == []
    assert 4 <= sheets <= most


AROUND = """<!doctype html><iframe src="{page}" style="width: {width}px; height: 9000px; border: 0"></iframe>
<script>
const frame = document.querySelector("iframe");
frame.onload = () => setTimeout(() => {{
  const [page, all] = [frame.contentDocument.documentElement, (of) => [...frame.contentDocument.querySelectorAll(of)]];
  document.title = JSON.stringify({told});
}}, 1500);
</script>"""


def asked(name: str, folder: Path, told: str, width: int = 1280) -> Any:
    """Open a page of a width within another, which asks it something: the page itself lets no foreign script run."""
    report = folder / "report.html"
    report.write_text(html(name), encoding="utf-8")
    around = AROUND.format(page=report.as_uri(), width=width, told=told)
    dom, _ = browse_page(around, "around", folder, "--dump-dom", "--allow-file-access-from-files")
    (title,) = re.findall(r"<title>(.*?)</title>", dom)
    return json.loads(unescape(title))


def test_a_legend_on_paper_has_no_pages_to_turn_and_charts_fill_the_width(tmp_path: Path) -> None:
    texts, widths = asked(
        "failover",
        tmp_path,
        """(frame.contentWindow.dispatchEvent(new Event("beforeprint")), [
          all("#failures svg text").map((text) => text.textContent),
          all("#failures .panels .chart svg").map((svg) => svg.getAttribute("width")),
        ])""",
    )
    assert [text for text in texts if re.fullmatch(r"\d+/\d+", text)] == []
    assert texts.count("probe failed") == 2
    assert widths == ["327"] * 3, "two beside each other on 672"
    # Paper is narrower than many a screen is: what is for narrow screens is for screens only.
    assert re.findall(r"@media \(max-width", html("failover")) == []


@pytest.mark.parametrize("name", ["sweep", "hostile", "open_loop", "scaleout", "parameters"])
def test_a_phone_needs_no_sideways_scrolling(name: str, tmp_path: Path) -> None:
    assert asked(name, tmp_path, "page.scrollWidth - page.clientWidth", width=400) == 0


def labels(page: str, text: str) -> list[tuple[float, float]]:
    """The middles of the labels of a text, in pixels."""
    found = re.findall(rf'<text[^>]* transform="translate\(([\d.]+) ([\d.]+)\)"[^>]*>{text}</text>', page)
    return [(float(x), float(y)) for x, y in found]


def test_labels_of_moments_that_are_near_each_other_stand_in_rows() -> None:
    (first, second) = labels(drawn("elasticity")[0], "add node")
    assert abs(first[0] - second[0]) < 30, "they would cover each other in one row"
    assert abs(first[1] - second[1]) >= 12


def test_patterns_are_drawn_over_their_own_stretch_of_time() -> None:
    page, _ = drawn("elasticity")
    figure = page[page.index('id="elasticity-load"') : page.index('id="elasticity-tps"')]
    times = re.findall(r"<text[^>]*>(\d+:\d\d)</text>", figure)
    assert times
    assert {time[:2] for time in times} == {"1:"}
    assert "2:00" in page[page.index('id="time-tps"') : page.index('id="time-latency"')]
