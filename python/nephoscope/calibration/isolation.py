"""The evaluator ``isolation``: scenes with an anomaly each amid strictly serializable transactions, and these alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.calibration.base import Case, Reading
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nephoscope.calibration.base import Bench

_WORKLOAD = Path(__file__).parent / "histories"
_SCENES = ("G0", "G1a", "G1b", "G1c", "lost update", "G-single", "long fork", "G2-item")
_TIMES = 50


def _history(bench: Bench, mix: str, scenes: int) -> Mapping[str, Any]:
    """Record and check a history of a load on sim. Raises ``MeasurementError`` where it tells too little."""
    measured = bench.measure(
        {"provider": "url", "rw": "sim://?latency=uniform(50us,500us)"},
        {
            "evaluator": "isolation",
            "isolation": "serializable",
            "mix": mix,
            "concurrency": 16,
            "duration": bench.seconds(20, 5),
            "renew": None,
        },
        workload={"name": str(_WORKLOAD), "options": {"scenes": scenes}},
        load={"interval": "100ms", "threads": 1},
    )
    (history,) = (event for event in measured.run.events if event["event"] == "history")
    if history.get("broken") or history["unknown"] or history["late"] or history["forced"]:
        raise MeasurementError(f"the history is not whole: {history}")
    return history


def _others(history: Mapping[str, Any], known: tuple[str, ...]) -> int:
    """Count the anomalies that were not planted, those in an order of time included."""
    of = ((one["anomaly"], one["order"], one["times"]) for one in history["anomalies"])
    return sum(times for anomaly, order, times in of if anomaly not in known or order != "none")


def _planted(bench: Bench) -> Iterator[Reading]:
    """Expect each scene's anomaly as often as it was played, and no other."""
    history = _history(bench, "PLANTED", _TIMES)
    times = {one["anomaly"]: one["times"] for one in history["anomalies"] if one["order"] == "none"}
    for anomaly in _SCENES:
        yield Reading(figure=anomaly, planted=_TIMES, read=times.get(anomaly, 0))
    yield Reading(figure="other anomalies", planted=0, read=_others(history, _SCENES))


def _clean(bench: Bench) -> Iterator[Reading]:
    """Expect nothing of a strictly serializable store."""
    history = _history(bench, "CLEAN", 0)
    yield Reading(figure="anomalies", planted=0, read=_others(history, ()))
    yield Reading(figure="strongest level", planted="strict serializable", read=str(history["strongest"]))


CASES = (
    Case("isolation", "planted anomalies on sim", _planted),
    Case("isolation", "a strictly serializable store on sim", _clean),
)
