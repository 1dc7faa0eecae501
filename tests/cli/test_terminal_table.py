"""A table is whole at any width: a column is drawn together or wrapped, a row is stacked, and no figure is cut."""

from __future__ import annotations

import io
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from nephoscope.cli.live import VisibleConsole
from nephoscope.tables.model import of_texts, terminal
from nephoscope.tables.terminal import TerminalTable

FIGURES = st.one_of(
    st.builds(lambda value: f"{value:,.4g}", st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(lambda value, half: f"{value:,} ± {half:,}", st.integers(0, 10**12), st.integers(0, 10**9)),
    st.builds(lambda value: f"{value:.3g} ms", st.floats(0, 1e6)),
    st.just("–"),  # noqa: RUF001 - what is absent
)
WORDS = st.text("abcé漢[]/\\ ", max_size=30)
WIDTHS = st.integers(40, 200)


@st.composite
def contents(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    columns = draw(st.integers(1, 9))
    headings = [draw(WORDS) for _ in range(columns)]
    rows = [
        [draw(WORDS), *(draw(FIGURES) for _ in range(columns - 1))] for _ in range(draw(st.integers(0, 4)))
    ]
    return headings, rows


def shown(table: TerminalTable, width: int, *, is_terminal: bool = True) -> str:
    out = io.StringIO()
    VisibleConsole(file=out, width=width, force_terminal=is_terminal, color_system=None).print(table)
    return out.getvalue()


@given(content=contents(), title=WORDS, width=WIDTHS, has_header=st.booleans())
def test_every_figure_of_every_cell_is_printed_whole(
    *, content: tuple[list[str], list[list[str]]], title: str, width: int, has_header: bool
) -> None:
    headings, rows = content
    table = TerminalTable(headings, title=title, has_header=has_header)
    for row in rows:
        table.add_row(*row)
    text = shown(table, width)
    wanted = Counter(word for row in rows for cell in row for word in cell.split())
    assert not wanted - Counter(text.split())
    assert all(cell in text for row in rows for cell in row[1:])
    words = [word for row in ([title], headings, *rows) for cell in row for word in cell.split()]
    longest = max(map(cell_len, words), default=0)
    assert all(cell_len(line) <= max(width, longest + 5) for line in text.splitlines())


@given(contents(), st.integers(1, 39))
def test_narrower_still_no_figure_is_cut(content: tuple[list[str], list[list[str]]], width: int) -> None:
    headings, rows = content
    table = TerminalTable(headings)
    for row in rows:
        table.add_row(*row)
    text = shown(table, width)
    words = [word for row in rows for cell in row for word in cell.split()]
    figures = Counter(word for word in words if any(map(str.isdigit, word)))
    assert not figures - Counter(text.split())


@given(contents(), WIDTHS)
def test_what_is_piped_has_a_line_a_row(content: tuple[list[str], list[list[str]]], width: int) -> None:
    headings, rows = content
    table = TerminalTable(headings)
    for row in rows:
        table.add_row(*row)
    lines = shown(table, width, is_terminal=False).splitlines()
    assert [line.split() for line in lines] == [" ".join(row).split() for row in [headings, *rows]]


LAGS = of_texts(
    "lags",
    "Lags",
    ["load and kind", "markers", "p50", "p99", "longest lag seen"],
    [["SELECT c=2 insert", "1,234", "0.41 ms ± 0.02 ms", "1.22 ms ± 0.11 ms", "3,484,448 ± 1,158,000 µs"]],
)


def test_it_is_drawn_together_then_wrapped_then_stacked() -> None:
    table = terminal(LAGS)
    assert shown(table, 100).splitlines()[1:] == [
        "load and kind       markers                 p50                 p99           longest lag seen",
        "SELECT c=2 insert     1,234   0.41 ms ± 0.02 ms   1.22 ms ± 0.11 ms   3,484,448 ± 1,158,000 µs",
    ]
    assert shown(table, 91).splitlines()[-1] == (
        "SELECT c=2 insert    1,234  0.41 ms ± 0.02 ms  1.22 ms ± 0.11 ms  3,484,448 ± 1,158,000 µs"
    )
    assert [line.rstrip() for line in shown(table, 89).splitlines()[-2:]] == [
        "SELECT c=2          1,234  0.41 ms ± 0.02 ms  1.22 ms ± 0.11 ms  3,484,448 ± 1,158,000 µs",
        "insert",
    ]
    assert shown(table, 41).splitlines() == [
        "Lags",
        "load and kind: SELECT c=2 insert",
        "  markers: 1,234",
        "  p50: 0.41 ms ± 0.02 ms",
        "  p99: 1.22 ms ± 0.11 ms",
        "  longest lag seen:",
        "    3,484,448 ± 1,158,000 µs",
    ]


def test_a_row_without_a_name_is_that_of_the_row_above() -> None:
    table = TerminalTable(["case", "figure", ""])
    table.add_row("load: capacity", "a figure with a long name that is not cut", "✓ holds")
    table.add_row("", "F", "")
    assert shown(table, 40).splitlines() == [
        "case: load: capacity",
        "  figure:",
        "    a figure with a long name that is",
        "    not cut",
        "  ✓ holds",
        "case: load: capacity",
        "  figure: F",
    ]
