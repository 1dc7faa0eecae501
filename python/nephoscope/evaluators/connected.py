"""Measured phases in which the load lacked connections: they do not count.

METRICS, section 1: connected < wanted in a measured phase is a problem, and what rests on it is absent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.engine.sessions import is_short
from nephoscope.scoring.formulas import Absent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nephoscope.evaluators.client_metrics import ClientMetrics
    from nephoscope.store import Phase, StoredRun


@dataclass(frozen=True)
class Shortfall:
    """A measured phase that does not count because sessions had no connection."""

    phase: int
    name: str
    mix: str | None
    wanted: int
    """Sessions that the load wanted, at the most."""
    connected: float
    """Of these, how many were connected: the mean over the ends of the intervals."""
    words: str | None
    """The most frequent error of connections; None if there was none."""
    is_step: bool
    """Whether it was a step of a search, which ends there: no score rests on it."""

    def __str__(self) -> str:
        """Say which phase it is, how many sessions were connected, and why."""
        said = f" ({self.words})" if self.words else ""
        return f"{self.name}: {self.connected:.3g} of {self.wanted} sessions were connected{said}"


class Connections:
    """A run's records of its sessions' connections."""

    def __init__(self, run: StoredRun, metrics: ClientMetrics) -> None:
        """Take the client's metrics and read the events; older runs have no number of disconnected sessions."""
        self._metrics = metrics
        self._events = [event for event in run.events if event["event"] in ("connection", "error", "woken")]

    def shortfall(self, phase: Phase) -> Shortfall | None:
        """Return the shortfall of a phase; None if it has none.

        For a paused system the phase counts from the moment at which it has woken up.
        """
        woken = [float(event["waited_s"]) for event in self._of(phase.number) if "waited_s" in event]
        start_s = phase.start_s + max(woken, default=0.0)
        wanted, without = (
            self._metrics.during(name, start_s, phase.end_s)[1] for name in ("sessions", "disconnected")
        )
        if len(wanted) != len(without):
            return None
        events = [event for event in self._events if start_s + 1e-6 < event["time_s"] <= phase.end_s + 1e-6]
        if not is_short(wanted, without, _failures(events)):
            return None
        return Shortfall(
            phase=phase.number,
            name=phase.name,
            mix=phase.labels.get("mix"),
            wanted=round(float(wanted.max())),
            connected=float((wanted - without).mean()),
            words=_words(events),
            is_step=bool(phase.labels.get("search")),
        )

    def _of(self, phase: int) -> Iterable[Mapping[str, Any]]:
        return (event for event in self._events if event["event"] == "woken" and event.get("phase") == phase)


def _failures(events: Iterable[Mapping[str, Any]]) -> int:
    """Count the connections that broke or could not be made."""
    return sum(
        int(event.get("count", 0))
        for event in events
        if event["event"] == "connection" and event.get("state") in ("lost", "refused")
    )


def _words(events: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the most frequent error; a failing connection is retried often."""
    said = Counter[str]()
    for event in events:
        if event["event"] == "error":
            code = f" [{event['code']}]" if event.get("code") else ""
            said[f"{event['message']}{code}"] += int(event.get("count", 0))
    return said.most_common(1)[0][0] if said else None


def absent_for(shortfalls: Iterable[Shortfall]) -> Absent | None:
    """Return the reason why a score that rests on these phases is absent; None if none counts."""
    counted = [one for one in shortfalls if not one.is_step]
    if not counted:
        return None
    more = f", and {len(counted) - 1} more" if len(counted) > 1 else ""
    return Absent(reason=f"{counted[0]}{more}")
