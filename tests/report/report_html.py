"""A page taken apart, as far as the tests need it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

# The classes of the elements that say something outside headings and tables.
SAYING = frozenset({"message", "banner", "lead", "term"})
VOID = frozenset({"meta", "link", "br", "img", "input", "circle", "path", "line", "rect", "hr"})


@dataclass
class Element:
    """An element, with the text of all that is in it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    def all(self, tag: str | None = None, name: str | None = None) -> list[Element]:
        """Every element below this one, narrowed to a tag and a class."""
        found = []
        for child in self.children:
            if (tag is None or child.tag == tag) and (name is None or name in child.classes):
                found.append(child)
            found += child.all(tag, name)
        return found

    def within(self, tag: str) -> bool:
        return self.parent is not None and (self.parent.tag == tag or self.parent.within(tag))


class Page(HTMLParser):
    """A parsed page: ``root`` holds its elements. Raises if they are not nested properly."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(html)
        self.close()
        unclosed = [element.tag for element in self._open[1:]]
        assert not unclosed, unclosed

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in {tag}: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs}, parent=self._open[-1])
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str | None = None, name: str | None = None) -> list[Element]:
        return self.root.all(tag, name)

    def one(self, identity: str) -> Element:
        """The element with this id; there is exactly one."""
        found = [element for element in self.all() if element.attributes.get("id") == identity]
        assert len(found) == 1, f"{len(found)} elements with the id {identity!r}"
        return found[0]

    @property
    def visible(self) -> str:
        """What a reader sees (closed parts included), without scripts and styles."""
        hidden = "".join(element.text for element in self.all() if element.tag in ("script", "style"))
        assert hidden
        parts = [_text(child) for child in self.root.children]
        return " ".join(" ".join(parts).split())

    def outline(self) -> str:
        """Headings and tables as plain lines: what a golden file keeps."""
        lines: list[str] = []
        for element in self.all():
            if element.tag in ("h1", "h2", "h3"):
                lines += ["", f"{'#' * int(element.tag[1])} {words(element.text)}"]
            elif element.tag == "li" or SAYING & set(element.classes):
                lines.append(words(element.text))
            elif element.tag == "caption":
                lines.append(f"[{words(element.text)}]")
            elif element.tag == "tr":
                lines.append(" | ".join(words(cell.text) for cell in element.children))
            elif element.tag == "dt":
                siblings = element.parent.children if element.parent else []
                lines.append(": ".join(words(sibling.text) for sibling in siblings))
        return "\n".join(lines).strip() + "\n"


def _text(element: Element) -> str:
    if element.tag in ("script", "style"):
        return ""
    text = element.text
    for child in element.children:
        if child.tag in ("script", "style"):
            text = text.replace(child.text, " ")
        elif child.all("script") or child.all("style"):
            text = text.replace(child.text, _text(child))
    return text


def words(text: str) -> str:
    """The text with its white space made one, padding of figures included."""
    return " ".join(text.split())
