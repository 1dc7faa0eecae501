"""How CloudyBench measures E1: section II-C, Figure 6."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.evaluators.elasticity.patterns import PATTERNS, resolve
from nephoscope.evaluators.elasticity.settings import ElasticitySettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.settings.resources import Resources
    from nephoscope.study.reading import Study

OF, SCORES = ElasticitySettings, ("E1",)
SCALES = (1,)
"""The scale factors that the paper names; it names none for other scores."""
MIXES = {"RO", "RW", "WO"}
TAU = 110
SLOT_S = 60
WINDOW_S = 600


def apart(entry: ElasticitySettings, study: Study, resources: Resources | None) -> Iterator[str]:
    """Tell what sets an entry of a study apart from the paper's procedure."""
    del study, resources
    if {resolve(pattern)[0] for pattern in entry.patterns} != set(PATTERNS):
        yield "the patterns are not the paper's four"
    if set(entry.mixes) != MIXES:
        yield "the mixes are not RO, RW and WO"
    if entry.tau != TAU:
        yield f"τ is not {TAU}, the paper's for all systems"
    if (entry.slot, entry.window) != (SLOT_S, WINDOW_S):
        yield "slots are not a minute long, or paid for over ten minutes"
