"""Nothing is dropped silently: every transaction that was started has one outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.report.view import Accounting
from nephoscope.tables.numbers import finite

if TYPE_CHECKING:
    from nephoscope.report.kit.run import Run


def build(run: Run) -> Accounting:
    """Return the identity, from the manifest's totals; without them, from the intervals."""
    totals = run.table("totals")
    if finite(totals.get("started")) is None:
        return Accounting(
            committed=run.intervals.total("committed"),
            aborted=run.intervals.total("aborted"),
            failed=run.intervals.total("failed"),
            unstarted=run.intervals.total("unstarted"),
            dropped=_whole(totals.get("dropped")),
            note="The run has no totals because it was not ended; outcomes are the sums of its intervals.",
        )
    started, in_flight = _whole(totals.get("started")), _whole(totals.get("in_flight"))
    committed, aborted, failed = (_whole(totals.get(key)) for key in ("committed", "aborted", "failed"))
    holds = started == committed + aborted + failed + in_flight
    return Accounting(
        started=started,
        committed=committed,
        aborted=aborted,
        failed=failed,
        in_flight=in_flight,
        dropped=_whole(totals.get("dropped")),
        unstarted=run.intervals.total("unstarted"),
        uncertain=_whole(totals.get("uncertain")),
        holds=holds,
        note=""
        if holds
        else "The identity does not hold: transactions are missing, so no figure here can be trusted.",
    )


def _whole(value: object) -> int:
    return round(finite(value) or 0)
