"""Tables: one model, shown on a terminal or as Markdown, and kept as CSV and Parquet.

A table has rows of figures. A column says what its figures are called in a file (with the unit in the name), and, where
it is shown, under which heading and in which form.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from rich.text import Text

from nephoscope.errors import InputError
from nephoscope.files import make_folders, replacing
from nephoscope.tables.terminal import TerminalTable
from nephoscope.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

ABSENT = "–"  # noqa: RUF001 - a dash for what is absent

Row = dict[str, Any]

_TYPES = {"text": pa.string(), "number": pa.float64(), "whole": pa.int64(), "flag": pa.bool_()}


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    """What it is called in a file; where it has a unit, the name ends with it."""
    kind: Literal["text", "number", "whole", "flag"] = "number"
    meaning: str = ""
    """A sentence for the documentation and for the file's schema."""
    heading: str = ""
    """What stands above it where it is shown; a column without a heading is in files only."""
    shown: Callable[[Row], str] | None = None
    """How a row's cell is written; the figure itself if left out."""

    def cell(self, row: Row) -> str:
        """Write the cell of a row."""
        if self.shown is not None:
            return self.shown(row)
        value = row.get(self.name)
        if value is None:
            return ABSENT
        if isinstance(value, bool):
            return "yes" if value else "no"
        return value if isinstance(value, str) else figure(value)


@dataclass(frozen=True)
class Table:
    """A table of figures."""

    name: str
    """What its files are called."""
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    foot: Sequence[str] = ()
    """A last line where it is shown, such as a mean; not in files."""
    in_summary: bool = True
    """Whether the terminal shows it after a run, too."""
    of_points: bool = False
    """Whether its rows are means of points: where it is shown, each point by itself is too much beside it."""
    paper: int | None = None
    """The number of the table in CloudyBench that it is like; such tables show runs side by side."""

    @property
    def shown(self) -> list[Column]:
        """The columns that are shown."""
        return [column for column in self.columns if column.heading]

    @property
    def headings(self) -> list[str]:
        """What stands above them."""
        return [column.heading for column in self.shown]

    @property
    def cells(self) -> list[list[str]]:
        """The shown rows as texts, without the foot."""
        return [[column.cell(row) for column in self.shown] for row in self.rows]


def of_texts(name: str, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Make a table that is only shown."""
    columns = [
        Column(heading, "number" if place else "text", heading=heading)
        for place, heading in enumerate(headings)
    ]
    return Table(name, title, columns, [dict(zip(headings, row, strict=True)) for row in rows])


def figure(value: float) -> str:
    """Write a figure of any size: four digits, or all of a whole number's."""
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004


def interval(value: float | None, ci95: Sequence[float] | None, *, by_ends: bool = False) -> str:
    """Write a 95 % confidence interval as it stands beside its figure: ``± 410``, or both ends, ``(0.2 … 1.9)``.

    Both ends are written where they do not lie evenly about the figure, or where a half-width would suggest values
    below 0 that are not in the interval; always with ``by_ends``. Two digits of the width are all that it is worth.
    Empty where there is none.
    """
    if value is None or ci95 is None:
        return ""
    low, high = ci95
    half = (high - low) / 2
    if not math.isfinite(half):
        return ""
    # Of two digits the second is good to a half, and a tenth of the half-width is the first that would be seen.
    even = abs((high - value) - (value - low)) <= _UNEVEN * half
    if even and not by_ends and not value - half < 0 <= low:
        return f"± {_rounded(half, half)}"
    return f"({_rounded(low, high - low)} … {_rounded(high, high - low)})"


_UNEVEN = 0.2


def _rounded(value: float, width: float) -> str:
    """Write a number to the second digit of an interval's width."""
    places = 1 - math.floor(math.log10(width)) if width > 0 else 0
    return f"{round(value, places) + 0.0:,.{max(places, 0)}f}"


def with_interval(
    shown: str, value: float | None, ci95: Sequence[float] | None, *, by_ends: bool = False
) -> str:
    """Write a figure, which is ``shown`` already, with its interval."""
    return f"{shown} {interval(value, ci95, by_ends=by_ends)}".rstrip()


def spread(name: str, digits: str = "", *, by_ends: bool = False) -> Callable[[Row], str]:
    """Show a figure with its interval, which stands in ``{name}_ci95_low`` and ``…_high``.

    ``digits`` is the figure's form; as that of any ``figure`` if left out.
    """

    def show(row: Row) -> str:
        if row.get(name) is None:
            return ABSENT
        low, high = row.get(f"{name}_ci95_low"), row.get(f"{name}_ci95_high")
        value = f"{row[name]:{digits}}" if digits else figure(row[name])
        ci95 = None if low is None or high is None else (low, high)
        return with_interval(value, row[name], ci95, by_ends=by_ends)

    return show


def ends(name: str, ci95: Sequence[float] | None) -> Row:
    """Return the two entries of a row that hold an interval."""
    low, high = ci95 if ci95 is not None else (None, None)
    return {f"{name}_ci95_low": low, f"{name}_ci95_high": high}


def interval_of(name: str, what: str) -> list[Column]:
    """Return the two columns of an interval."""
    return [
        Column(f"{name}_ci95_{end}", meaning=f"The {end} end of the 95 % confidence interval of {what}.")
        for end in ("low", "high")
    ]


# --- showing ----------------------------------------------------------------------------------------------------


def terminal(table: Table) -> TerminalTable:
    """Lay a table out for a terminal."""
    texts = [place for place, column in enumerate(table.shown) if column.kind == "text"]
    made = TerminalTable(table.headings, title=table.title, texts=texts, left=texts)
    for row in table.cells:
        made.add_row(*row)
    if table.foot:
        made.add_row(
            *(Text(cell, style="bold green" if place else "") for place, cell in enumerate(table.foot))
        )
    return made


def markdown(tables: Sequence[Table], notes: Sequence[str] = ()) -> str:
    """Write tables as Markdown, and notes as a list below them."""
    lines: list[str] = []
    for table in tables:
        foot = [[*table.foot, *[""] * (len(table.headings) - len(table.foot))]] if table.foot else []
        lines += [f"**{_plain(table.title)}**", "", _markdown_row(table.headings)]
        lines.append("|" + "".join("---|" if column.kind == "text" else "---:|" for column in table.shown))
        lines += [*map(_markdown_row, [*table.cells, *foot]), ""]
    lines += [f"- {_plain_line(note)}" for note in notes]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


_SPECIAL = re.compile(
    r"""[\\`*\[\]<|~]             # code, emphasis, links and images, HTML, borders of cells
    | (?<![^\W_])_ | _(?![^\W_])  # an underscore between letters means nothing
    | &(?=[#\w]) | :(?=//)        # entities, and URLs that become links by themselves
    | (?<=\bwww)\.""",
    re.VERBOSE,
)
_BLOCK = re.compile(r"^(?:[-+#>]|\d+[.)])")
"""What begins a heading or a list where it begins a line."""


def _plain(text: str) -> str:
    """Keep a text from meaning anything within a line of Markdown, and from leaving it."""
    return _SPECIAL.sub(r"\\\g<0>", visible(text)).replace("\n", " ").replace("\t", " ")


def _plain_line(text: str) -> str:
    """Keep a text that begins a line of Markdown from meaning anything."""
    return _BLOCK.sub(lambda mark: f"{mark[0][:-1]}\\{mark[0][-1]}", _plain(text).lstrip())


# --- keeping ----------------------------------------------------------------------------------------------------


def arrow(table: Table) -> pa.Table:
    """Return a table with the types of its columns; what they mean is in the metadata of their fields."""
    fields = [
        pa.field(column.name, _TYPES[column.kind], metadata={"meaning": column.meaning})
        for column in table.columns
    ]
    columns = [pa.array([row.get(field.name) for row in table.rows], field.type) for field in fields]
    return pa.table(columns, schema=pa.schema(fields, metadata={"title": table.title}))


def check_folder(folder: Path) -> None:
    """Raise ``InputError`` where tables cannot be written to it because it is something else."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"tables cannot be written to {folder}: it is no folder")


def write_tables(tables: Sequence[Table], folder: Path) -> list[Path]:
    """Write each table as CSV and as Parquet; gives the files. Raises ``InputError`` where that cannot be done.

    In CSV, control characters are visible, and a text that a spreadsheet would take for a formula begins with ``'``.
    """
    files = []
    try:
        make_folders(folder)
        for table in tables:
            made = arrow(table)
            for suffix, write in ((".csv", _write_csv), (".parquet", pq.write_table)):
                files.append(folder / f"{table.name}{suffix}")
                with replacing(files[-1]) as file:
                    write(made, file)
    except OSError as error:
        raise InputError(f"tables cannot be written to {folder}: {error.strerror or error}") from None
    return files


_FORMULA = tuple("=+-@\t\n＝＋－＠")  # noqa: RUF001 - wide ones begin a formula too, in some languages


def _write_csv(table: pa.Table, file: IO[bytes]) -> None:
    pyarrow.csv.write_csv(_harmless(table), file)


def _harmless(table: pa.Table) -> pa.Table:
    """Keep a spreadsheet from reading texts as formulas: there an apostrophe begins a text."""

    def harmless(text: str | None) -> str | None:
        if text is None:
            return None
        shown = visible(text)
        return f"'{shown}" if shown.startswith(_FORMULA) else shown

    columns = [
        pa.array([harmless(text) for text in column.to_pylist()], pa.string())
        if pa.types.is_string(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, schema=table.schema)


def find(tables: Sequence[Table], name: str) -> Table | None:
    """Return the table of a name; None where there is none."""
    return next((table for table in tables if table.name == name), None)
