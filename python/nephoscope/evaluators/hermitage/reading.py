"""The cases of a stored run, gathered by level and anomaly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.evaluators.stored import Stored


def read_cases(stored: Stored) -> list[dict[str, Any]]:
    """Read for each isolation level which anomalies it allows: all, none, or only of transactions that write."""
    cases = [
        one for one in stored.run.events if one["event"] == "case" and one.get("measure") == stored.index
    ]
    levels = []
    for isolation in dict.fromkeys(str(case["isolation"]) for case in cases):
        of_level = [case for case in cases if case["isolation"] == isolation]
        names = dict.fromkeys(str(case["anomaly"]) for case in of_level)
        anomalies = {
            name: _summed_up([case for case in of_level if case["anomaly"] == name]) for name in names
        }
        levels.append({"isolation": isolation, "anomalies": anomalies})
    return levels


def _summed_up(cases: Sequence[Any]) -> dict[str, Any]:
    occurred = [case for case in cases if case["occurred"]]
    if occurred and all(case["writes"] for case in occurred):
        outcome = "prevented for readers"
    else:
        outcome = "allowed" if occurred else "prevented"
    ways = dict.fromkeys(str(case["prevented_by"]) for case in cases if not case["occurred"])
    return {
        "outcome": outcome,
        "prevented_by": [way for way in ("versions", "waiting", "error") if way in ways],
        "errors": list(dict.fromkeys(text for case in cases for text in case["errors"]))[:3],
        "about": [str(case["about"]) for case in cases],
    }
