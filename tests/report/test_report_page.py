"""The page: its structure, and that it needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re

import pytest
from report_documents import STUDY
from report_pages import html, page, view
from report_runs import ATTACK, RUNS

from nephoscope.report.kit import assets
from nephoscope.report.kit.toml import highlight
from nephoscope.visible import visible

LOADING = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "object": "data",
    "use": "href",
    "image": "href",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "form": "action",
}
ORDER = [
    "top",
    "headline",
    "scores",
    "verdicts",
    "sweep",
    "timeline",
    "latency",
    "cost",
    "errors",
    "accounting",
    "client",
    "system",
    "record",
    "definitions",
]


def test_the_sections_come_in_their_order() -> None:
    assert [section.attributes["id"] for section in page("sweep").all("section")] == ORDER


@pytest.mark.parametrize("name", RUNS)
def test_every_link_within_the_page_leads_somewhere(name: str) -> None:
    ids = [element.attributes["id"] for element in page(name).all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    links = [link.attributes["href"] for link in page(name).all("a")]
    assert {link for link in links if link.startswith("#")} <= {f"#{identity}" for identity in ids}


@pytest.mark.parametrize("name", RUNS)
def test_there_is_one_h1_and_no_level_is_skipped(name: str) -> None:
    levels = [int(element.tag[1]) for element in page(name).all() if re.fullmatch(r"h[1-6]", element.tag)]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize("name", RUNS)
def test_every_table_has_a_caption_and_scoped_headers(name: str) -> None:
    for table in page(name).all("table"):
        assert table.children[0].tag == "caption"
        assert all(header.attributes.get("scope") for header in table.all("th"))


@pytest.mark.parametrize("name", RUNS)
def test_the_rows_of_a_table_are_equally_wide(name: str) -> None:
    for table in page(name).all("table"):
        body = [row for row in table.all("tr") if not row.within("thead")]
        widths = {sum(int(cell.attributes.get("colspan", "1")) for cell in row.children) for row in body}
        assert len(widths) == 1, (table.children[0].text, widths)


@pytest.mark.parametrize("name", RUNS)
def test_every_chart_says_its_message_and_holds_its_data(name: str) -> None:
    for chart in page(name).all("div", "chart"):
        assert chart.attributes["role"] == "img"
        assert len(chart.attributes["aria-label"]) > 20
        assert chart.parent is not None
        (data,) = [child for child in chart.parent.children if child.tag == "script"]
        found = json.loads(data.text)
        assert found["message"] in chart.attributes["aria-label"]
        assert found["lines"]


@pytest.mark.parametrize("name", RUNS)
def test_the_page_loads_nothing(name: str) -> None:
    for element in page(name).all():
        loaded = element.attributes.get(LOADING.get(element.tag, ""), "")
        assert not loaded or loaded.startswith(("#", "data:")), (element.tag, loaded)
        assert "url(" not in element.attributes.get("style", "")
    for style in page(name).all("style"):
        assert "@import" not in style.text
        assert all(target.startswith("#") for target in re.findall(r"url\(\s*['\"]?([^)'\"]*)", style.text))


def test_the_page_may_not_even_load_something() -> None:
    (policy,) = [
        meta.attributes["content"]
        for meta in page("sweep").all("meta")
        if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy
    scripts = [script for script in page("sweep").all("script") if "type" not in script.attributes]
    assert len(scripts) == 3
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_an_hour_of_four_transactions_stays_below_two_megabytes() -> None:
    assert len(html("hour").encode()) < 2_000_000


@pytest.mark.parametrize("name", RUNS)
def test_no_figure_reads_nan_or_none(name: str) -> None:
    seen = re.findall(r"\b(?:nan|none|inf|undefined|null)\b", page(name).visible, re.IGNORECASE)
    # "Failed: none" is a word and no figure; the study may say what it likes.
    assert set(seen) <= {"none"}, seen


@pytest.mark.parametrize("name", RUNS)
def test_the_status_is_loud_unless_the_run_was_measured(name: str) -> None:
    banners = page(name).all("div", "banner")
    assert len(banners) == (0 if view(name).title.status == "measured" else 1)


def test_a_verdict_is_told_by_word_and_icon_too() -> None:
    tags = page("sweep").one("verdicts").all("span", "tag")
    assert [tag.text.strip() for tag in tags] == ["Warning", "Warning", "Note", "OK"]
    assert all(tag.all("svg") for tag in tags)


def test_without_scripts_the_page_says_so_and_keeps_its_tables() -> None:
    (notice,) = page("sweep").all("noscript")
    assert "charts need JavaScript" in notice.text
    assert len(page("sweep").all("table")) > 8


def test_hostile_text_is_text() -> None:
    found = page("hostile")
    assert len(found.all("script")) == len([e for e in found.all("script") if "src" not in e.attributes])
    assert [e for e in found.all("script") if e.text == "alert(1)"] == []
    assert found.all("img") == []
    assert not [element for element in found.all() if any(key.startswith("on") for key in element.attributes)]
    assert found.all("h1")[0].text == visible(ATTACK)
    assert visible(html("hostile")) == html("hostile")
    assert found.visible.count("<img src=x onerror=alert(2)>") > 10


def test_data_cannot_end_its_script_element() -> None:
    for script in page("hostile").all("script", "chart-data"):
        assert "<" not in script.text
        shown = json.dumps(json.loads(script.text), ensure_ascii=False)
        assert shown.isprintable()
        assert r"\u001b" not in shown
    assert any(
        "</script>" in json.dumps(json.loads(s.text)) for s in page("hostile").all("script", "chart-data")
    )


def test_no_asset_can_end_its_element() -> None:
    with pytest.raises(assets.UnsafeAssetError):
        assets._checked("a </SCRIPT> b", "</script")


def test_the_study_is_coloured_and_unchanged() -> None:
    study = page("sweep").one("record").all("pre", "study")[0]
    assert study.text == STUDY
    assert {element.classes[0] for element in study.all("span")} == {
        "t-comment",
        "t-key",
        "t-string",
        "t-table",
        "t-value",
    }


@pytest.mark.parametrize(
    "text", ["", 'a = "# no comment"', "a = '''x\n[y]\n'''", f'q = "{ATTACK}" # {ATTACK}']
)
def test_colouring_changes_no_letter(text: str) -> None:
    assert highlight(text).striptags().split() == text.split() or "<" in text
    assert "<script" not in highlight(text)


def test_the_commands_that_reproduce_the_run_are_given() -> None:
    commands = [code.text for code in page("sweep").one("record").all("code")]
    assert "nephoscope run runs/20261120T191500Z-first/study.toml" in commands
