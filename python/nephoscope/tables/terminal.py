"""Tables on a terminal of any width: columns are drawn together, texts wrapped, rows stacked; no figure is ever cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from nephoscope.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

_GAPS = (3, 2)
"""Spaces between columns: as they should be, and where room is scarce."""
_READABLE = 16
"""A column of texts is not wrapped to fewer cells than this."""
_INDENT = 2


class TerminalTable:
    """A table whose first column names a row; the columns of ``texts`` are wrapped where room is scarce.

    What is piped has no width: there every row is one line.
    """

    def __init__(
        self,
        headings: Sequence[str],
        *,
        title: str = "",
        texts: Iterable[int] = (0,),
        left: Iterable[int] = (0,),
        has_header: bool = True,
    ) -> None:
        """Begin a table; columns are right-justified but for those that are ``left``."""
        self.headings = [_cell(heading) for heading in headings]
        self.title = visible(title)
        self.rows: list[list[Text]] = []
        self._texts, self._left = frozenset(texts), frozenset(left)
        self._has_header = has_header

    def add_row(self, *cells: str | Text) -> None:
        """Add a row; cells that are missing at its end are empty."""
        row = [_cell(cell) for cell in cells]
        self.rows.append(row + [Text()] * (len(self.headings) - len(row)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lay the table out to the width of a terminal."""
        natural = self._widths(wrapped=False)
        least = self._widths(wrapped=True)
        if self.title:
            yield from _lines(console, options, 0, Text(self.title, style="table.title"))
        if not console.is_terminal:
            yield from self._table(console, options, natural, _GAPS[0])
            return
        for gap in _GAPS:
            room = options.max_width - gap * (len(self.headings) - 1)
            if sum(natural) <= room:
                yield from self._table(console, options, natural, gap)
                return
        if sum(least) <= room:
            yield from self._table(console, options, _shared(room, least, natural), gap)
        else:
            yield from self._stacked(console, options)

    def _widths(self, *, wrapped: bool) -> list[int]:
        """Return how wide each column is as it stands, or ``wrapped``: texts and headings by the word."""
        return [self._width(place, wrapped=wrapped) for place in range(len(self.headings))]

    def _width(self, place: int, *, wrapped: bool) -> int:
        heading, cells = self.headings[place], [row[place] for row in self.rows]
        natural = max([heading.cell_len * self._has_header, *map(_widest_line, cells)])
        if not wrapped:
            return natural
        if place not in self._texts:
            return max([_longest_word(heading) * self._has_header, *map(_widest_line, cells)])
        return max([min(natural, _READABLE), _longest_word(heading), *map(_longest_word, cells)])

    def _table(
        self, console: Console, options: ConsoleOptions, widths: Sequence[int], gap: int
    ) -> RenderResult:
        table = Table(
            box=None,
            pad_edge=False,
            padding=(0, gap, 0, 0),
            show_header=self._has_header,
        )
        for place, (heading, width) in enumerate(zip(self.headings, widths, strict=True)):
            table.add_column(heading, width=width, justify="left" if place in self._left else "right")
        for row in self.rows:
            table.add_row(*row)
        whole = sum(widths) + gap * (len(widths) - 1)
        # What surrounds the table may forbid wrapping, which would cut texts here.
        yield from console.render(
            table, options.update(width=max(whole, options.max_width), no_wrap=False, overflow="fold")
        )

    def _stacked(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Write a block for each row: its name, and a line for each of its other cells."""
        name = Text()
        for row in self.rows:
            name = row[0] if row[0].plain else name  # an empty one is that of the row above
            head = self.headings[0]
            named = Text.assemble(head, ": ", name) if head.plain and self._has_header else name
            yield from _lines(console, options, 0, Text(style="bold").append_text(named))
            for heading, cell in zip(self.headings[1:], row[1:], strict=True):
                if not cell.plain:
                    continue
                labelled = Text.assemble(heading, ": ") if heading.plain and self._has_header else Text()
                line = Text.assemble(labelled, cell)
                if line.cell_len <= options.max_width - _INDENT or not labelled.plain:
                    yield from _lines(console, options, _INDENT, line)
                else:  # a figure and its unit stay together where they can
                    yield from _lines(console, options, _INDENT, labelled)
                    yield from _lines(console, options, 2 * _INDENT, cell)


def _cell(given: str | Text) -> Text:
    """Make a cell of a text: visible, and without tabs, whose width nobody knows."""
    text = Text(given) if isinstance(given, str) else given
    shown = visible(text.plain).replace("\t", " ")
    return text if text.plain == shown else Text(shown, style=text.style)


def _widest_line(text: Text) -> int:
    return max((Text(line).cell_len for line in text.plain.split("\n")), default=0)


def _longest_word(text: Text) -> int:
    return max((Text(word).cell_len for word in text.plain.split()), default=0)


def _shared(room: int, least: Sequence[int], natural: Sequence[int]) -> list[int]:
    """Share what room there is among columns beyond their least widths, those that lack least first."""
    widths = list(least)
    left = room - sum(least)
    lacking = sorted((place for place in range(len(least))), key=lambda place: natural[place] - least[place])
    for done, place in enumerate(lacking):
        more = min(natural[place] - least[place], left // (len(lacking) - done))
        widths[place] += more
        left -= more
    return widths


def _lines(console: Console, options: ConsoleOptions, indent: int, text: Text) -> RenderResult:
    """Wrap a text between words; a word that is wider than the terminal stays whole."""
    width = max(options.max_width - indent, _longest_word(text)) if console.is_terminal else text.cell_len
    for line in text.wrap(console, width, no_wrap=False):
        line.rstrip()
        yield Text.assemble(" " * indent, line, no_wrap=True, overflow="ignore")
