"""What ``nephoscope calibrate`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from nephoscope.cli.listing import MARKS
from nephoscope.tables.terminal import TerminalTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from nephoscope.calibration import Reading, Result


def calibration_table(results: Sequence[Result]) -> RenderableType:
    """Show planted and read figures, the error allowed, and the verdict."""
    shown = TerminalTable(["case", "figure", "planted", "read", "error", "allowed", "stated ±", ""])
    notes = []
    for result in results:
        name = str(result.case)
        for place, reading in enumerate(result.readings):
            shown.add_row("" if place else name, *_cells(reading), _mark(holds=reading.holds))
        if result.not_run is not None:
            shown.add_row(name, *[""] * 6, Text("· not run", style=MARKS["warning"][1]))
            notes.append(Text(f"{name}: not run: {result.not_run}"))
        if result.attempts > 1:
            notes.append(Text(f"{name}: tried again, as the machine had disturbed it"))
    return Group(shown, *notes)


def _mark(*, holds: bool) -> Text:
    mark, style = MARKS["ok" if holds else "problem"]
    return Text(f"{mark} {'holds' if holds else 'does not hold'}", style=style)


def _cells(reading: Reading) -> tuple[str, ...]:
    figure = f"{reading.figure} ({reading.unit})" if reading.unit else reading.figure
    stated = "" if reading.stated is None else f"{reading.stated:,.2g}"
    return figure, _value(reading.planted), _value(reading.read), _error(reading), _allowed(reading), stated


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.4g}"


def _is_share(reading: Reading) -> bool:
    """Tell whether the error is told as a share of what was planted."""
    return bool(reading.relative) and reading.allowed == reading.relative * abs(float(reading.planted))


def _error(reading: Reading) -> str:
    if reading.error is None:
        return ""
    if _is_share(reading):
        return f"{reading.error / float(reading.planted):+.2%}"
    # What is a rounding of the arithmetic is no error.
    return f"{round(reading.error, 9):+.2g}"


def _allowed(reading: Reading) -> str:
    if reading.allowed is None:
        return "the same"
    if _is_share(reading):
        return f"±{reading.relative:.1%}"
    return f"±{reading.allowed:.2g}" if reading.allowed else "none"
