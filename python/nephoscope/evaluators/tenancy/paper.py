"""How CloudyBench measures T: section III-D, Table VII."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.evaluators.tenancy.patterns import PATTERNS
from nephoscope.evaluators.tenancy.settings import TenancySettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.settings.resources import Resources
    from nephoscope.study.reading import Study

OF, SCORES = TenancySettings, ("T",)
TENANTS = 3
SLOT_S = 60


def apart(entry: TenancySettings, study: Study, resources: Resources | None) -> Iterator[str]:
    """Tell what sets an entry of a study apart from the paper's procedure."""
    if (
        study.tenants.number != TENANTS
        or entry.saturation is not None
        or entry.custom
        or len(entry.patterns) != len(PATTERNS)
    ):
        yield "the patterns are not the paper's four of three tenants"
    if entry.mix != "RW" or entry.slot != SLOT_S:
        yield "the mix is not RW, or slots are not a minute long"
    if study.tenants.share != "server" and (resources is None or resources.nodes != 1):
        yield "the cost is that of all nodes, and the paper's of the tenants' alone"
