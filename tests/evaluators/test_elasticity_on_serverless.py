"""What elasticity reads of a real autoscaler, against what somebody else has seen of its quota meanwhile.

The truth comes from the files of the control group, looked at from outside every few milliseconds: neither the
provider's log nor the evaluator has anything to do with it.
"""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from groups_lab import needs_groups, place

from commands import finish, start
from nephoscope import _engine
from nephoscope.calibration.serverless import QuotaWatch
from nephoscope.scoring.prices import load_price_book
from nephoscope.settings.resources import Resources
from nephoscope.store import StoredRun
from nephoscope.systems.postgres.serverless import EmbeddedServerless, EmbeddedServerlessSettings
from sample_studies import write_study

if TYPE_CHECKING:
    from pathlib import Path

    from postgres_lab import Lab

    from nephoscope.evaluators.elasticity.allocations import AllocationTimeline

pytestmark = [needs_groups, pytest.mark.alone]

PERIOD_S = 0.25
SLOT_S = 2.5
TAU = 8
LOOK_S = 0.004
STORAGE_GB = 10.0
PER_VCORE_GB = 2.0


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


def played(lab: Lab, policy: str, **measure: Any) -> tuple[StoredRun, AllocationTimeline]:
    """Play a pattern, and watch the quota."""
    study = study_of(lab, policy, **measure)
    with (
        QuotaWatch(place(), lab.folder.resolve()) as watch,
        start("run", study, cwd=lab.base) as process,
    ):
        ended = finish(process)
    assert (ended.code, ended.err) == (0, "")
    run = StoredRun(lab.base / "runs" / "latest")
    return run, watch.timeline(run, resources)


def resources(vcores: float) -> Resources:
    return Resources(vcores=vcores, memory_gb=PER_VCORE_GB * vcores, storage_gb=STORAGE_GB, iops=100)


@pytest.mark.parametrize("policy", ["immediate", "gradual-down", "stepwise", "pause-and-resume"])
def test_scaling_times_and_costs_are_those_of_the_quota_that_was_seen(ready_lab: Lab, policy: str) -> None:
    run, truth = played(ready_lab, policy)
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
