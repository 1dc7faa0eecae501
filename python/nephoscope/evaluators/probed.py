"""Availability probes and errors of a stored run, for evaluators that make nodes fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.evaluators.outages import RoleProbes
from nephoscope.settings.actions import FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.store import Phase, StoredRun

_OF_A_FAILURE = ("failure", "fault", "target", "node", "action", "due_s")
_WHERE = ("measure", "repetition", "load", "level")


class AvailabilityProbes:
    """The availability probes of a run, by role and endpoint."""

    def __init__(self, run: StoredRun) -> None:
        """Read them from the run's table of probes."""
        self._rows: dict[tuple[str, str], list[tuple[float, float, bool, bool]]] = {}
        for row in run.probes.to_pylist():
            if row["probe"] == "availability":
                due = row["time_s"]
                end = row["end_s"] if row["end_s"] is not None else due
                of_node = self._rows.setdefault((row["role"], row["node"]), [])
                of_node.append((due, end, row["outcome"] == "ok", row["outcome"] != "missing"))

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that were probed, in the order of their first probes."""
        return tuple(dict.fromkeys(role for role, _ in self._rows))

    def of(self, role: str) -> Iterator[tuple[str, RoleProbes]]:
        """Give the probes of each endpoint of a role, with its name."""
        for (of, node), rows in self._rows.items():
            if of == role:
                yield node, RoleProbes.of(*zip(*rows, strict=True))


def errors_between(run: StoredRun, since_s: float, until_s: float) -> dict[str, int]:
    """Count the errors of the load by class, from one time to another, in s since the start of the load."""
    counts: dict[str, int] = {}
    for event in run.events:
        if event.get("event") == "error" and since_s <= event.get("time_s", -1.0) <= until_s:
            counts[str(event["class"])] = counts.get(str(event["class"]), 0) + int(event["count"])
    return dict(sorted(counts.items()))


def done_in(run: StoredRun, phase: Phase) -> list[dict[str, Any]]:
    """List the failures and repairs of a measured phase, those after its end included; times since the load's start."""
    return [
        {
            "what": "failure" if event["event"] == "fault" else "repair",
            **{name: event.get(name) for name in _OF_A_FAILURE},
            "at_s": event["time_s"],
            "took_s": event.get("took_s"),
        }
        for event in run.events
        if event.get("event") in ("fault", "action")
        and all(event.get(name) == phase.labels.get(name) for name in _WHERE)
    ]


def times_of_failures(run: StoredRun, phase: Phase) -> list[tuple[float, float]]:
    """List the times of the failures of a measured phase, from each one's beginning until its last action has ended.

    A lost node is away until the phase ends. Times in s since the start of the load, cut off at the phase's end.
    """
    done = done_in(run, phase)
    found = []
    for failure in (one for one in done if one["what"] == "failure"):
        own = [one for one in done if one["failure"] == failure["failure"]]
        end_s = max(one["at_s"] + (one["took_s"] or 0.0) for one in own)
        is_over = len(own) == len(FAULTS[failure["fault"]]) and failure["fault"] != "node-loss"
        found.append((failure["at_s"], min(end_s, phase.end_s) if is_over else phase.end_s))
    return sorted(found)
