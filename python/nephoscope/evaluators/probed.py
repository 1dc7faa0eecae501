"""Availability probes and errors of a stored run, for evaluators that make nodes fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.evaluators.outages import RoleProbes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.store import StoredRun


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
