"""What differs between two runs besides the system: it may explain a difference of their figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.settings.loads import READS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.store import StoredRun

_SAME = (
    ("workload", "name"),
    ("workload", "scale"),
    ("workload", "files"),
    ("load", "threads"),
    ("load", "cpus"),
    ("load", "statement_mode"),
    ("load", "pipeline"),
    ("host", "name"),
    ("host", "cpu"),
)


def differences(baseline: StoredRun, candidate: StoredRun) -> list[str]:
    """List differences besides the system, which may explain a difference of figures."""
    notes = []
    for table, key in _SAME:
        # An older run lacks keys that are empty in a newer one.
        ours, theirs = (run.manifest.get(table, {}).get(key) or None for run in (baseline, candidate))
        if ours != theirs:
            shown = "" if key == "files" else f": {ours} and {theirs}"
            notes.append(f"the runs differ in {table}.{key}{shown}")
    notes += _other_reads(baseline, candidate)
    for name, run in (("baseline", baseline), ("candidate", candidate)):
        if run.manifest["status"] != "measured":
            notes.append(f"the {name} is not whole: its status is {run.manifest['status']}")
    return notes


def _other_reads(baseline: StoredRun, candidate: StoredRun) -> Iterator[str]:
    """Say of which scores the reads ran in other roles. An older run does not tell: they ran on read-only nodes."""
    of_ours, of_theirs = ((run.scores or {}).get("scores", {}) for run in (baseline, candidate))
    for name in (name for name in of_ours if name in of_theirs):
        details = [of[name].get("detail", {}) for of in (of_ours, of_theirs)]
        ours, theirs = (str(detail.get("reads", "ro")) for detail in details)
        if ours != theirs:
            where = f"in the baseline {READS.get(ours, ours)}, in the candidate {READS.get(theirs, theirs)}"
            yield f"the runs differ in what {name} is: {where}"
