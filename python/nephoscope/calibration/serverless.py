"""The evaluator ``elasticity`` on a real autoscaler, against what somebody else has seen of its quota meanwhile.

The truth comes from the files of the control group, looked at from outside every few milliseconds: neither the
provider's log nor the evaluator has anything to do with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.calibration.base import Case, Reading, Watch, origin_s
from nephoscope.calibration.elasticity import compare
from nephoscope.evaluators.elasticity.allocations import AllocationTimeline
from nephoscope.scoring.prices import load_price_book
from nephoscope.settings.resources import Resources
from nephoscope.systems.machine.control_group import LEAST_VCORES, groups_of
from nephoscope.systems.machine.control_groups import Place, find_place
from nephoscope.systems.machine.group_guard import members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nephoscope.calibration.base import Bench
    from nephoscope.store import StoredRun

LOOK_S = 0.004
_SLOT_S, _PERIOD_S, _TAU = 4.0, 0.25, 8
_STORAGE_GB, _PER_VCORE_GB = 10.0, 2.0


@dataclass(frozen=True)
class Seen:
    """What was seen: from a time on the monotonic clock, so many vCores; 0 in a pause."""

    at_ns: int
    vcores: float


class QuotaWatch(Watch):
    """Looks at the quota of the server in a folder, on a thread, for as long as the context lasts."""

    def __init__(self, place: Place, folder: Path) -> None:
        """Begin with `with`."""
        super().__init__("quota")
        self._place = place
        self._folder = folder
        self.seen: list[Seen] = []
        """Of what stays the same, once."""

    def _watch(self) -> None:
        group: Path | None = None
        while not self._over.wait(LOOK_S):
            found = groups_of(self._place, self._folder) if group is None else []
            group = found[0][0] if found else group
            at, vcores = _engine.monotonic_ns(), self._quota_of(group) if group is not None else None
            if vcores is not None and (not self.seen or self.seen[-1].vcores != vcores):
                self.seen.append(Seen(at, vcores))

    def _quota_of(self, group: Path) -> float | None:
        """Read the quota of a group; None where it has none, or has gone."""
        names = ("cpu.max",) if self._place.is_unified else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        try:
            quota, period = (word for name in names for word in (group / name).read_text().split())
        except OSError:
            return None
        if quota in {"max", "-1"}:
            return None
        vcores = int(quota) / int(period)
        return 0.0 if vcores <= LEAST_VCORES and not members(group) else vcores

    def timeline(self, run: StoredRun, resources: Callable[[float], Resources]) -> AllocationTimeline:
        """Put what was seen on the clock of a run; ``resources`` are those of so many vCores."""
        origin = origin_s(run.manifest) or 0.0
        return AllocationTimeline([(one.at_ns / 1e9 - origin, resources(one.vcores)) for one in self.seen])


def _resources(vcores: float) -> Resources:
    return Resources(vcores=vcores, memory_gb=_PER_VCORE_GB * vcores, storage_gb=_STORAGE_GB, iops=100)


def _autoscaled(bench: Bench) -> Iterator[Reading]:
    """Expect scaling times and the window's cost as the quota says that was seen."""
    folder = bench.folder / "serverless"
    system = {
        "provider": "embedded-serverless",
        "data": str(folder),
        "policy": "pause-and-resume",
        "min_vcores": 0.1,
        "max_vcores": 0.4,
        "step": 0.1,
        "period": _PERIOD_S,
        "pause_after": 1.0,
        "memory_gb_per_vcore": _PER_VCORE_GB,
        "storage_gb": _STORAGE_GB,
        "iops": 100,
    }
    pattern = {"patterns": ["zero-valley"], "mixes": ["SELECT"], "tau": _TAU, "slot": _SLOT_S}
    course = {"evaluator": "elasticity", **pattern, "rest": 3.0, "window": 5 * _SLOT_S}
    with QuotaWatch(find_place(), folder.resolve()) as watch:
        measured = bench.measure(system, course)
    truth, book = watch.timeline(measured.run, _resources), load_price_book()
    slots = [phase for phase in measured.run.phases if "slot" in phase.labels]
    end_s = slots[0].start_s + 5 * _SLOT_S
    edges = [*(slot.start_s for slot in slots), slots[-1].end_s, end_s]
    scaling_s = {
        place: changes[-1] - begins
        for place, (begins, ends) in enumerate(pairwise(edges))
        if (changes := truth.changes(begins, ends))
    }

    def cost(start_s: float, end_s: float) -> float:
        return truth.cost(start_s, end_s, book)

    # What is looked at every 4 ms is late by up to that, at each step.
    yield from compare(measured, cost, scaling_s, _PERIOD_S, scaling_costs=False)


CASES = (
    # The short form has its tests, of all policies.
    Case("elasticity", "a server that is scaled by its quota", _autoscaled, in_short=False),
)
