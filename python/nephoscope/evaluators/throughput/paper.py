"""How CloudyBench measures P: section II-F, Table V."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.evaluators.throughput.settings import ThroughputSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.settings.resources import Resources
    from nephoscope.study.reading import Study

OF, SCORES = ThroughputSettings, ("P",)
CONCURRENCY = (50, 200)
MIXES = {"RO", "RW", "WO"}


def apart(entry: ThroughputSettings, study: Study, resources: Resources | None) -> Iterator[str]:
    """Tell what sets an entry of a study apart from the paper's procedure."""
    del study
    if entry.score != "mean":
        yield "it is the TPS of the best concurrency, and the paper's the mean over all"
    levels = entry.concurrency if isinstance(entry.concurrency, list) else [0]
    if (min(levels), max(levels)) != CONCURRENCY:
        yield f"the concurrencies are not from {CONCURRENCY[0]} to {CONCURRENCY[1]}"
    if set(entry.mixes) != MIXES:
        yield "the mixes are not RO, RW and WO"
    if resources is None or resources.nodes != 2:  # noqa: PLR2004 - one of each role
        yield "the cost is not of two nodes"
