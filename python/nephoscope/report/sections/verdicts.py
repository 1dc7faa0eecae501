"""The verdicts on the measurement itself: verdicts, warnings, and facts of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.report.kit.parts import Verdict
from nephoscope.tables.numbers import count, finite

if TYPE_CHECKING:
    from nephoscope.report.kit.parts import Level
    from nephoscope.report.kit.run import Run

_LEVELS: dict[str, Level] = {
    "ok": "ok",
    "good": "ok",
    "note": "note",
    "info": "note",
    "warn": "warning",
    "warning": "warning",
    "bad": "problem",
    "error": "problem",
    "fail": "problem",
    "problem": "problem",
}
_GRAVITY: tuple[Level, ...] = ("problem", "warning", "note", "ok")


def build(run: Run) -> tuple[Verdict, ...]:
    """All verdicts and warnings, the gravest first, nothing said twice."""
    distinct: dict[tuple[str, str], Verdict] = {}
    for verdict in (*_given(run), *_warnings(run), *_seen(run)):
        distinct.setdefault((verdict.text, verdict.detail), verdict)
    return tuple(sorted(distinct.values(), key=lambda verdict: _GRAVITY.index(verdict.level)))


def _given(run: Run) -> list[Verdict]:
    return [
        Verdict(
            level=_LEVELS.get(str(entry.get("level", "")).lower(), "note"),
            text=_sentence(str(entry.get("verdict", ""))),
            detail=_sentence(str(entry.get("detail") or "")),
        )
        for entry in run.scores.get("verdicts") or ()
        if isinstance(entry, dict)
    ]


def _warnings(run: Run) -> list[Verdict]:
    """Warnings of the scores and of the run; one that stands in both is the run's, which knows when."""
    events = {
        str(event.get("message", "")): finite(event.get("time_s"))
        for event in run.events_of("warning", "gap")
    }
    texts = dict.fromkeys([*map(str, run.scores.get("warnings") or ()), *events])
    return [Verdict(level="warning", text=_sentence(text), time_s=events.get(text)) for text in texts if text]


def _seen(run: Run) -> list[Verdict]:
    """List warnings that a run needs even if its evaluator ended before it could write them."""
    totals = run.table("totals")
    committed = run.intervals.total("committed")
    found = []
    if run.intervals.rows and committed == 0:
        failed = count(run.intervals.total("failed"))
        found.append(
            Verdict(
                level="problem",
                text="No transaction was committed.",
                detail=f"{failed} failed: there is no throughput and no latency to report. See the errors.",
            )
        )
    if not run.intervals.rows:
        found.append(Verdict(level="problem", text="The run holds no interval: nothing was recorded."))
    dropped = finite(totals.get("dropped")) or 0
    if dropped > 0:
        started = (finite(totals.get("started")) or 0) + dropped
        found.append(
            Verdict(
                level="warning",
                text=f"{count(dropped)} of {count(started)} arrivals were dropped.",
                detail="They found the backlog full. The offered load was more than the system could take.",
            )
        )
    return found


def _sentence(text: str) -> str:
    """Make a sentence of an evaluator's fragment."""
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?…" else ".")
