"""How CloudyBench measures E2: Table IX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.evaluators.scaleout.settings import ScaleoutSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.settings.resources import Resources
    from nephoscope.study.reading import Study

OF, SCORES = ScaleoutSettings, ("E2",)


def apart(entry: ScaleoutSettings, study: Study, resources: Resources | None) -> Iterator[str]:
    """Tell what sets an entry of a study apart from the paper's procedure."""
    del study, resources
    if entry.reads != "all":
        yield "reads are not spread over the writer and the read-only nodes"
    if entry.nodes != 1:
        yield "more than one read-only node is added"
    yield "the paper says neither the mix nor the concurrency"
