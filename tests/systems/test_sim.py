"""The provider of simulated databases: what it plants, tells and does."""

from __future__ import annotations

import time
import tomllib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.measuring.measurement import run_study
from nephoscope.measuring.silence import Silence
from nephoscope.settings.actions import Action
from nephoscope.settings.resources import Resources
from nephoscope.store import StoredRun
from nephoscope.study.reading import make_study
from nephoscope.systems.sim import Sim, SimSettings
from sample_studies import phases, sim_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BASE = {"vcores": 2, "memory_gb": 8, "storage_gb": 10}


@contextmanager
def started(**settings: Any) -> Iterator[Sim]:
    with Sim(SimSettings.model_validate(settings)) as provider:
        provider.start()
        yield provider


def facts(url: str) -> str:
    admin = _engine.Admin(url)
    try:
        return dict(admin.server_facts())["planted"]
    finally:
        admin.close()


def test_a_plan_is_a_text_or_a_table() -> None:
    plan = {"latency": "uniform(1ms,2ms)", "capacity": 4, "stall": ["5s+1s", "9s+1s"], "seed": 3}
    text = "latency=uniform(1ms,2ms)&capacity=4&stall=5s%2B1s&stall=9s%2B1s&seed=3"
    with started(plan=plan, read_only=["seed=2", {"seed": 3}]) as one, started(plan=text) as other:
        (ours,), (theirs,) = one.endpoints("rw"), other.endpoints("rw")
        assert facts(ours) == facts(theirs)
        assert ours != theirs, "each system is one of its own"
        assert dict(one.nodes()) == {"rw": "rw", "ro1": "ro", "ro2": "ro"}
        assert len(one.endpoints("ro")) == 2
        assert other.allocation() == ()


def test_a_study_of_it_is_run_and_read_again(tmp_path: Path) -> None:
    tables = sim_study(phases({"concurrency": 2, "duration": "300ms"}))
    plan = {"latency": "constant(2ms)", "stall": ["5s+1s"]}
    tables["system"] = {"provider": "sim", "plan": plan, "read_only": [{"seed": 2}, "latency=constant(9ms)"]}
    outcome = run_study(make_study(tables, "study"), tmp_path, Silence())
    assert outcome.status == "measured"
    run = StoredRun(outcome.folder)
    assert make_study(tomllib.loads(run.study), "again").system == make_study(tables, "study").system
    # The workload only reads, and there are read-only endpoints.
    assert set(run.intervals.column("role").to_pylist()) == {"ro"}


def test_the_capacity_follows_the_planted_allocation() -> None:
    steps = [{"at": "1500ms", "vcores": 8.0}, {"at": "3s", "memory_gb": 1.0}, {"at": "4s", "vcores": 0.0}]
    with started(resources=BASE, capacity_per_vcore=3, allocation=steps, read_only=[""]) as provider:
        for url in (*provider.endpoints("rw"), *provider.endpoints("ro")):
            assert "[(0, 6), (1500000000, 24), (3000000000, 24), (4000000000, 0)]" in facts(url)


def test_the_allocation_is_told_as_far_as_it_has_come() -> None:
    steps = [{"at": "300ms", "vcores": 4.0}, {"at": "1h", "vcores": 9.0}]
    with started(resources=BASE, allocation=steps) as provider:
        begun = provider.allocation()[0]
        assert begun.resources == Resources.model_validate(BASE)
        time.sleep(0.4)
        first, second = provider.allocation()
        assert first == begun
        assert second.resources.vcores == 4
        # Without a run the time line begins with the system.
        assert second.time_ns - begun.time_ns == pytest.approx(300e6, abs=50e6)


def test_a_resize_changes_capacity_and_allocation_now() -> None:
    bigger = Resources.model_validate({**BASE, "vcores": 5})
    with started(resources=BASE, capacity_per_vcore=2) as provider:
        done = provider.act(Action.RESIZE, resources=bigger)
        assert provider.allocation()[-1].resources == bigger
        assert provider.allocation()[-1].time_ns == done.began_ns
        with pytest.raises(MeasurementError, match="needs the resources"):
            provider.act(Action.RESIZE)


def test_a_restart_cuts_the_node_off_for_as_long_as_planted() -> None:
    with started(outage="300ms", read_only=[""]) as provider:
        assert provider.actions() == {Action.RESTART, Action.KILL, Action.PAUSE}
        done = provider.act(Action.RESTART, node="ro1")
        assert (done.node, done.action) == ("ro1", Action.RESTART)
        assert done.ended_ns - done.began_ns >= 300e6
        assert provider.act(Action.KILL).node == "rw"
        assert provider.act(Action.PAUSE).ended_ns > done.ended_ns


def test_nodes_come_and_go_with_what_is_planted_in_them() -> None:
    with started(resources=BASE, node="capacity=7", node_time="100ms", read_only=["capacity=3"]) as provider:
        done = provider.act(Action.ADD_NODE)
        assert (done.node, dict(provider.nodes())) == ("ro2", {"rw": "rw", "ro1": "ro", "ro2": "ro"})
        assert done.ended_ns - done.began_ns >= 100e6
        assert "capacity: [(0, 7)]" in facts(provider.endpoints("ro")[1])
        assert provider.allocation()[-1].resources.nodes == 2
        assert provider.act(Action.REMOVE_NODE, node="ro1").node == "ro1"
        assert len(provider.endpoints("ro")) == 1
        assert provider.act(Action.ADD_NODE).node == "ro1"
        for wrong in ("rw", "ro9"):
            with pytest.raises(MeasurementError, match="there is no read-only node"):
                provider.act(Action.REMOVE_NODE, node=wrong)
        with pytest.raises(MeasurementError, match="the next node is ro3"):
            provider.act(Action.ADD_NODE, node="ro7")
        provider.act(Action.REMOVE_NODE)
        provider.act(Action.REMOVE_NODE)
        assert Action.REMOVE_NODE not in provider.actions()


def test_a_planted_capacity_can_be_set_and_told() -> None:
    with started(plan="latency=constant(1ms)&capacity=3") as provider:
        assert provider.parameter("capacity") == 3
        provider.act(Action.SET, settings={"capacity": 9})
        assert provider.parameter("capacity") == 9
        wrongs: list[dict[str, int | str]] = [{"capacity": 0}, {"capacity": "many"}, {"latency": 1}, {}]
        for wrong in wrongs:
            with pytest.raises(MeasurementError, match="to 1 or more"):
                provider.act(Action.SET, settings=wrong)
    with started() as provider, pytest.raises(MeasurementError, match="has no parameter capacity"):
        provider.parameter("capacity")


def test_what_cannot_be_done_is_refused() -> None:
    with started() as provider:
        for action in (Action.PROMOTE, Action.RESIZE, Action.SET):
            with pytest.raises(MeasurementError, match=f"the provider sim cannot {action}"):
                provider.act(action)
        with pytest.raises(MeasurementError, match="there is no node 'ro1'; nodes are rw"):
            provider.act(Action.KILL, node="ro1")
        with pytest.raises(InputError, match="cannot be planted while it runs"):
            _engine.sim_plant(provider.endpoints("rw")[0], "seed=4")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"plan": "speed=9"}, "one of the keys latency"),
        ({"read_only": [{"capacity": 0}]}, "a whole number above 0"),
        ({"capacity_per_vcore": 4}, "need resources to begin with"),
        ({"resources": BASE, "capacity_per_vcore": 4, "plan": "capacity=3"}, "not both"),
        ({"resources": BASE, "allocation": [{"at": 5}, {"at": 5}]}, "in the order of their times"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SimSettings.model_validate(settings)
