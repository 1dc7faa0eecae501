"""The page of a board: one HTML file, offline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope import __version__
from nephoscope.cards.board import name_of, tables_of
from nephoscope.report.kit.charts import Line, XYChart, axis_around, axis_of_names
from nephoscope.report.kit.parts import Grid, Part, grid
from nephoscope.tables.numbers import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.cards.board import Board, BoardGroup, Standing

TEMPLATE = "nephoscope.cards/board.html.j2"
"""The page's template, as ``report.page.render_with`` takes it."""

NOTES = (
    (
        "A rank is one more than the number of cards whose 95 % interval lies apart on the better side: cards whose "
        "intervals overlap share a rank. Where a figure has no interval there is no rank, and the values order."
    ),
    (
        "Only cards of one workload, scale factor and price book stand in one table. A tuned system is ranked only "
        "where an untuned card of the same system is."
    ),
    "Figures are those that the cards tell: nephoscope verify CARD RUN computes them anew from the run.",
)


class BoardSection(Part):
    """A group of cards."""

    title: str
    said: str
    chart: XYChart | None
    tables: tuple[Grid, ...]


class BoardView(Part):
    """The page."""

    by: str
    said: str
    sections: tuple[BoardSection, ...]
    apart: Grid | None
    notes: tuple[str, ...]
    generator: str


def build(board: Board) -> BoardView:
    """Compute the page of a board."""
    tables = {table.name: grid(table) for table in tables_of(board)}
    sections = []
    for place, group in enumerate(board.groups, start=1):
        own = [tables[name] for name in (f"board-{place}", f"scores-{place}") if name in tables]
        chart = _chart(board.by, group, place) if len(group.standings) > 1 else None
        sections.append(
            BoardSection(title=group.title, said=_said(board.by, group), chart=chart, tables=tuple(own))
        )
    ranked = sum(len(group.standings) for group in board.groups)
    return BoardView(
        by=board.by,
        said=f"{ranked} of {ranked + len(board.apart)} cards are ranked by {board.by}.",
        sections=tuple(sections),
        apart=tables.get("apart"),
        notes=NOTES,
        generator=f"nephoscope {__version__}",
    )


def _said(by: str, group: BoardGroup) -> str:
    first = group.standings[0]
    said = f"The best {by} is that of {name_of(first.of)}: {number(first.figure.value)} {first.figure.unit}."
    beside = [one for one in group.standings[1:] if one.rank == first.rank is not None]
    if beside:
        said += f" {len(beside)} other{'s' if len(beside) > 1 else ''} cannot be told from it."
    return said


def _chart(by: str, group: BoardGroup, place: int) -> XYChart:
    found = group.standings
    values = [of for one in found for of in (one.figure.value, one.figure.worst, *(one.figure.ci95 or ()))]
    lines = [
        _line(
            "untuned", "c0", [(at, one) for at, one in enumerate(found, 1) if not one.of.card.tuning.tuned]
        ),
        _line("tuned", "c1", [(at, one) for at, one in enumerate(found, 1) if one.of.card.tuning.tuned]),
        Line(
            name="worst repetition",
            color="problem",
            style="crosses",
            data=tuple(
                (at, one.figure.worst) for at, one in enumerate(found, 1) if one.figure.worst is not None
            ),
        ),
    ]
    return XYChart(
        id=f"board-{place}",
        title=by,
        unit=found[0].figure.unit,
        message=f"{len(found)} cards, the best first.",
        note="Values with their 95 % intervals, and the worst repetition.",
        x=axis_of_names("card", [str(at) for at in range(1, len(found) + 1)]),
        y=axis_around(by, found[0].figure.unit, [value for value in values if value is not None]),
        lines=tuple(line for line in lines if line.data),
    )


def _line(name: str, color: str, found: Sequence[tuple[int, Standing]]) -> Line:
    return Line(
        name=name,
        color=color,
        style="points",
        data=tuple((at, one.figure.value) for at, one in found),
        whiskers=tuple(
            (at, one.figure.ci95[0], one.figure.ci95[1]) for at, one in found if one.figure.ci95 is not None
        ),
    )
