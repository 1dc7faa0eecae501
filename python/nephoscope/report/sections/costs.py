"""The cost of the system, resource by resource, with the source of the prices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.report.kit import scored
from nephoscope.report.kit.charts import category
from nephoscope.report.view import CostRow, CostSection
from nephoscope.tables.numbers import finite

if TYPE_CHECKING:
    from nephoscope.report.kit.run import Run


def build(run: Run) -> CostSection | None:
    """Return the section; None where the study declared no resources."""
    cost = scored.table(run.scores.get("cost"))
    lines = [scored.table(line) for line in cost.get("lines") or ()]
    total = finite(cost.get("per_minute"))
    if total is None and not lines:
        return None
    nodes = finite(cost.get("nodes"))
    # A share is of the lines' own sum, so that the bar is always full.
    whole = sum(_per_minute(line) or 0.0 for line in lines)
    return CostSection(
        price_book=str(cost.get("price_book") or "not named"),
        nodes=None if nodes is None else round(nodes),
        lines=tuple(_line(index, line, whole) for index, line in enumerate(lines)),
        per_minute=whole if total is None else total,
    )


def _per_minute(line: Any) -> float | None:  # noqa: ANN401 - a line as it was stored
    return finite(line.get("per_minute"))


def _line(index: int, line: Any, whole: float) -> CostRow:  # noqa: ANN401 - a line as it was stored
    per_minute = _per_minute(line)
    return CostRow(
        resource=str(line.get("resource") or "resource").replace("_", " "),
        quantity=line.get("quantity"),
        unit=str(line.get("unit") or ""),
        per_hour=line.get("per_hour"),
        per_minute=per_minute,
        share=None if per_minute is None or whole <= 0 else per_minute / whole,
        color=category(index)[0],
    )
