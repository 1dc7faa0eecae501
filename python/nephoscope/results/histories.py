"""Verdicts on a run's histories: whether what transactions saw contradicts their isolation level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.results.verdicts import listed, verdict
from nephoscope.scoring.isolation import ORDERS, PROMISES, Order, counted, judge
from nephoscope.settings.units import describe_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nephoscope.store import StoredRun


def verdicts(run: StoredRun, of_load: str | None) -> Iterator[dict[str, str]]:
    """Give a verdict for each answer; ``of_load`` is the level of phases that say none of their own."""
    answers: dict[str, list[str]] = {}
    for history in (event for event in run.events if event["event"] == "history"):
        phase = next((one for one in run.phases if one.start_s <= history["from_s"] < one.end_s), None)
        labels = phase.labels if phase is not None else {}
        isolation = str(labels.get("isolation") or of_load or "")
        order: Order = next((one for one in ORDERS if one == labels.get("order")), "real-time")
        where = f"{phase.name}: " if phase is not None and labels.get("isolation") else ""
        if isolation in PROMISES:
            found = judge(history, isolation, order)
            answers.setdefault(found.answer, []).append(f"{where or f'{isolation}: '}{found.why}")
        else:
            answers.setdefault("told", []).append(f"{where}{_told(history)}")
        if history["unwritten"]:
            answers.setdefault("unwritten", []).append(f"{history['file']}: {history['unwritten']}")
    for answer, level, said in _ANSWERS:
        if answer in answers:
            yield verdict(level, said, listed(answers[answer], "; "))


_ANSWERS = (
    ("contradicted", "problem", "the isolation level was contradicted"),
    ("not known", "warning", "whether the isolation level was kept is not known"),
    ("not contradicted", "ok", "no anomaly of the isolation level was seen"),
    ("told", "note", "what transactions saw was checked"),
    ("unwritten", "warning", "a history was not written to its end"),
)


def _told(history: Mapping[str, Any]) -> str:
    """Say what a history is like, of a load whose isolation level nobody has said."""
    fits = history["strongest"] or "not even read uncommitted"
    seen = counted(history["anomalies"]) or "no anomaly"
    number = describe_count(history["committed"], "committed transaction")
    broken = f"; {history['broken']}" if history["broken"] else ""
    return f"{seen} in {number}: that fits {fits}{broken}"
