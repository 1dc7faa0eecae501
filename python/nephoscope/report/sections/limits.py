"""What the workload demands of response times, of the mix and of its own rate, beside what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.report.kit import scored
from nephoscope.report.kit.run import load_text
from nephoscope.report.view import LimitRow
from nephoscope.tables.columns import measured, wanted

if TYPE_CHECKING:
    from nephoscope.report.kit.run import Run


def build(run: Run) -> tuple[LimitRow, ...]:
    """Return the rows; none where the workload demands nothing."""
    entries = map(scored.table, run.scores.get("limits") or ())
    return tuple(
        LimitRow(
            mix=str(entry.get("mix") or ""),
            load=load_text({key: entry.get(key) for key in ("concurrency", "rate")}),
            what=str(entry.get("what") or ""),
            wanted=wanted(entry),
            measured=measured(entry),
            outcome=str(entry.get("outcome") or ""),
            why=str(entry.get("why") or ""),
        )
        for entry in entries
    )
