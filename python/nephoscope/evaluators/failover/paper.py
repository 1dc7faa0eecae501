"""How CloudyBench measures F and R: Table VIII."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.evaluators.failover.settings import FailoverSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.settings.resources import Resources
    from nephoscope.study.reading import Study

OF, SCORES = FailoverSettings, ("R", "F")
SESSIONS = 150


def apart(entry: FailoverSettings, study: Study, resources: Resources | None) -> Iterator[str]:
    """Tell what sets an entry of a study apart from the paper's procedure."""
    del study, resources
    if entry.fault != "restart":
        yield f"the fault is a {entry.fault}, and the paper's a restart"
    if set(entry.roles) != {"rw", "ro"}:
        yield "not both of RW and RO fail"
    if entry.is_open or entry.concurrency != SESSIONS:
        yield f"the load is not of {SESSIONS} closed sessions"
    if entry.mix != "RW":
        yield "the mix is not RW"
