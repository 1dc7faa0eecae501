"""The histories of a stored run, level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.scoring.isolation import judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.evaluators.points import Point
    from nephoscope.evaluators.stored import Stored

_KEPT = (
    "committed", "aborted", "unknown", "operations", "anomalies", "witnesses", "strongest", "file", "from_s", "to_s",
)  # fmt: skip


def read_levels(stored: Stored, points: Sequence[Point]) -> list[dict[str, Any]]:
    """Read the history of each phase of an entry of ``[[measure]]``, and what it says of the phase's level."""
    histories = [event for event in stored.run.events if event["event"] == "history"]
    tps = {point.phase: point.tps for point in points}
    found = []
    for phase in stored.run.phases:
        if phase.kind != "measure" or phase.labels.get("measure") != stored.index:
            continue
        isolation, order = str(phase.labels["isolation"]), phase.labels["order"]
        for history in (one for one in histories if phase.start_s <= one["from_s"] < phase.end_s):
            judged = judge(history, isolation, order)
            found.append(
                {
                    "isolation": isolation,
                    "repetition": int(phase.labels.get("repetition", 1)),
                    "phase": phase.number,
                    "tps": tps.get(phase.number),
                    **{key: history[key] for key in _KEPT},
                    "answer": judged.answer,
                    "why": judged.why,
                    "contradicting": [(one["anomaly"], one["order"]) for one in judged.anomalies],
                }
            )
    return found
