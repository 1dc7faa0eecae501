"""What elasticity reads of a real autoscaler, against what somebody else has seen of its quota meanwhile.

The truth comes from the files of the control group, looked at from outside every few milliseconds: neither the
provider's log nor the evaluator has anything to do with it.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from groups_lab import needs_groups, place

from commands import finish, start
from nephoscope import _engine
from nephoscope.evaluators.allocations import Timeline
from nephoscope.price_book import load_price_book
from nephoscope.store import StoredRun
from nephoscope.systems.base import Resources
from nephoscope.systems.control_group import LEAST_VCORES, groups_of
from nephoscope.systems.embedded_serverless import EmbeddedServerless, EmbeddedServerlessSettings
from nephoscope.systems.group_guard import members
from sample_studies import write_study

if TYPE_CHECKING:
    from pathlib import Path

    from postgres_lab import Lab

pytestmark = needs_groups

PERIOD_S = 0.25
SLOT_S = 4.0
TAU = 8
LOOK_S = 0.004
STORAGE_GB = 10.0
PER_VCORE_GB = 2.0


@dataclass(frozen=True)
class Seen:
    """What was seen: from a time on the monotonic clock, so many vCores; 0 where it was the least there is."""

    at_ns: int
    vcores: float


def watch(folder: Path, process: Any) -> list[Seen]:
    """Look at the quota of the server in a folder as long as another process runs; of what stays the same, once."""
    seen: list[Seen] = []
    group: Path | None = None
    while process.poll() is None:
        found = groups_of(place(), folder) if group is None else []
        group = found[0][0] if found else group
        at, vcores = _engine.monotonic_ns(), quota_of(group) if group is not None else None
        if vcores is not None and (not seen or seen[-1].vcores != vcores):
            seen.append(Seen(at, vcores))
        time.sleep(LOOK_S)
    return seen


def quota_of(group: Path) -> float | None:
    """Read the quota of a group; nothing where it has none, or has gone."""
    names = ("cpu.max",) if place().is_unified else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    try:
        quota, period = (word for name in names for word in (group / name).read_text().split())
    except OSError:
        return None
    if quota in {"max", "-1"}:
        return None
    vcores = int(quota) / int(period)
    if vcores > LEAST_VCORES:
        return vcores
    assert not members(group), "in a pause there is no process"
    return 0.0


def study_of(lab: Lab, policy: str, **measure: Any) -> Path:
    tables = {
        "study": {"name": "serverless"},
        "system": {
            "provider": "embedded-serverless",
            "data": str(lab.folder),
            "policy": policy,
            "min_vcores": 0.1,
            "max_vcores": 0.4,
            "step": 0.1,
            "period": PERIOD_S,
            "step_time": 0.5,
            "pause_after": 1.0,
            "memory_gb_per_vcore": PER_VCORE_GB,
            "storage_gb": STORAGE_GB,
            "iops": 100,
        },
        "workload": {"name": "tpcb", "scale": 1},
        "load": {"interval": "100ms"},
        "measure": [
            {
                "evaluator": "elasticity",
                "patterns": ["zero-valley"],
                "mixes": ["SELECT"],
                "tau": TAU,
                "slot": SLOT_S,
                "rest": 3.0,
                "window": 5 * SLOT_S,
                **measure,
            }
        ],
    }
    return write_study(lab.base, tables)


def played(lab: Lab, policy: str, **measure: Any) -> tuple[StoredRun, list[Seen]]:
    """Play a pattern, and watch the quota."""
    with start("run", study_of(lab, policy, **measure), cwd=lab.base) as process:
        seen = watch(lab.folder.resolve(), process)
        ended = finish(process)
    assert (ended.code, ended.err) == (0, "")
    return StoredRun(lab.base / "runs" / "latest"), seen


def truth_of(run: StoredRun, seen: list[Seen]) -> Timeline:
    """Put what was seen on the clock of the run."""
    apart_s = time.time() - _engine.monotonic_ns() / 1e9
    origin = datetime.fromisoformat(run.manifest["clock"]["origin"]).timestamp() - apart_s
    return Timeline([(one.at_ns / 1e9 - origin, resources(one.vcores)) for one in seen])


def resources(vcores: float) -> Resources:
    return Resources(vcores=vcores, memory_gb=PER_VCORE_GB * vcores, storage_gb=STORAGE_GB, iops=100)


@pytest.mark.parametrize("policy", ["immediate", "gradual-down", "stepwise", "pause-and-resume"])
def test_scaling_times_and_costs_are_those_of_the_quota_that_was_seen(ready_lab: Lab, policy: str) -> None:
    run, seen = played(ready_lab, policy)
    truth = truth_of(run, seen)
    scores = json.loads((run.folder / "scores.json").read_text())["scores"]
    detail = scores["E1"]["detail"]
    assert detail["allocation"] == "as the provider told it"
    assert detail["full_vcores"] == 0.4
    [entry] = detail["patterns"]
    slots = [phase for phase in run.phases if "slot" in phase.labels]
    start_s, end_s = slots[0].start_s, slots[0].start_s + 5 * SLOT_S
    expected = truth.cost(start_s, end_s, load_price_book())
    assert entry["cost"] == pytest.approx(expected, rel=0.005)
    edges = [slots[0].start_s, slots[1].start_s, slots[2].start_s, slots[2].end_s, end_s]
    for transition, (begins, ends) in zip(entry["transitions"], pairwise(edges), strict=True):
        changes = truth.changes(begins, ends)
        if transition["scaling_s"] is None:
            assert not changes
        else:
            assert transition["scaling_s"] == pytest.approx(changes[-1] - begins, abs=PERIOD_S)
    up, down = entry["transitions"][0], entry["transitions"][1]
    assert up["to_vcores"] > up["from_vcores"]
    assert down["to_vcores"] < down["from_vcores"]
    paused = truth.vcores(slots[1].end_s - 0.05) == 0
    assert paused == (policy == "pause-and-resume")
    assert (down["to_vcores"] == 0) == paused
    wakes = entry["transitions"][2]
    assert wakes["wake_up_s"] > (0.05 if paused else 0)
    assert wakes["wake_up_s"] < 3
    before, idle, after = (slot["tps"] for slot in entry["slots"])
    # Who was in flight ends in the idle slot.
    assert idle <= TAU / 2 / SLOT_S < min(before, after)


def test_what_the_log_says_is_what_the_run_has(ready_lab: Lab) -> None:
    """The provider's times and resources, read on one clock."""
    settings = EmbeddedServerlessSettings(
        data=ready_lab.folder,
        policy="stepwise",
        min_vcores=0.1,
        max_vcores=0.3,
        step=0.1,
        period=0.1,
        step_time=0.3,
    )
    with EmbeddedServerless(settings) as provider:
        before = _engine.monotonic_ns()
        provider.start()
        time.sleep(1.5)
        line = provider.allocation()
        after = _engine.monotonic_ns()
    times = [step.time_ns for step in line]
    assert [step.resources.vcores for step in line] == [0.3, 0.2, 0.1]
    assert before < times[0]
    assert times == sorted(times)
    assert times[-1] < after
    assert times[1] - times[0] >= 0.3e9, "a step time was kept"
