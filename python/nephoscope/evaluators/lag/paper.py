"""How CloudyBench measures C: section III-F."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.evaluators.lag.settings import LagSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.settings.resources import Resources
    from nephoscope.study.reading import Study

OF, SCORES = LagSettings, ("C",)


def apart(entry: LagSettings, study: Study, resources: Resources | None) -> Iterator[str]:
    """Tell what sets an entry of a study apart from the paper's procedure."""
    del study, resources
    if entry.loads is not None:
        yield "the loads are not the paper's four of inserts, updates and deletes"
