from __future__ import annotations

import pytest
from docs_pages import PAGES, ROOT, Link, anchors, links, name

LINKS = [link for page in PAGES for link in links(page)]


def fault(link: Link) -> str | None:
    path, _, anchor = link.target.partition("#")
    target = (link.page.parent / path).resolve() if path else link.page
    if not target.exists():
        return f"{link}: there is no such file"
    if anchor and anchor not in anchors(target):
        return f"{link}: {name(target)} has the headings {', '.join(sorted(anchors(target)))}"
    return None


def test_links_lead_somewhere() -> None:
    inside = [link for link in LINKS if not link.is_image and "://" not in link.target]
    assert len(inside) > 40
    faults = [found for link in inside if (found := fault(link))]
    assert not faults, "\n".join(faults)


def test_images_are_there() -> None:
    if not (ROOT / "docs" / "images").is_dir():
        pytest.skip("the images are not in this checkout")
    faults = [found for link in LINKS if link.is_image and (found := fault(link))]
    assert not faults, "\n".join(faults)


def test_every_page_can_be_reached() -> None:
    index = {link.target.partition("#")[0] for link in links(ROOT / "docs" / "README.md")}
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= index, "docs/README.md lacks them"


def test_a_wrong_link_is_seen() -> None:
    page = ROOT / "docs" / "systems.md"
    assert fault(Link(page, "nowhere.md", is_image=False))
    assert fault(Link(page, "studies.md#nowhere", is_image=False))
    assert fault(Link(page, "studies.md#load", is_image=False)) is None
