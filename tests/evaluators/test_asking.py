"""A provider that is asked for its allocation beside a load: what it does may delay, and ends nothing."""

from __future__ import annotations

import json
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.evaluators.asking import AllocationClock
from nephoscope.evaluators.elasticity.evaluator import Elasticity
from nephoscope.evaluators.elasticity.settings import ElasticitySettings
from nephoscope.interrupts import Interrupted
from nephoscope.study.packaged import find_workload
from nephoscope.study.workload import Workload
from nephoscope.systems.url import Url, UrlSettings

if TYPE_CHECKING:
    from pathlib import Path

TOLD = json.dumps({"vcores": 2, "memory_gb": 8, "storage_gb": 10})


class Notes:
    """A load that only takes notes, and what it was told from which thread."""

    def __init__(self) -> None:
        self.begun_ns = _engine.monotonic_ns()
        self.warnings: list[str] = []
        self.answers: list[tuple[float, float]] = []
        self.threads: set[str] = set()

    def pump_for(self, seconds: float) -> None:
        time.sleep(seconds)

    def time_of(self, time_ns: int) -> float:
        return (time_ns - self.begun_ns) / 1e9

    def note(self, event: str, time_ns: int, **facts: Any) -> None:
        assert (event, time_ns > 0) == ("warning", True)
        self.warnings.append(facts["message"])

    def note_beside(self, event: str, time_ns: int, **facts: Any) -> None:
        assert event == "allocation"
        self.threads.add(threading.current_thread().name)
        if time_ns >= self.begun_ns:
            self.answers.append((self.time_of(time_ns), facts["answered_s"]))


def means_of(load: Notes, **hooks: Any) -> Any:
    provider = Url(UrlSettings(rw=["noop://"], hooks=hooks))  # type: ignore[arg-type]
    return SimpleNamespace(load=load, provider=provider)


def evaluator(limit_s: float = 60.0) -> Elasticity:
    workload = Workload(find_workload("tpcb"), 1.0, 7, {}, "sim://")
    return Elasticity(ElasticitySettings(mixes=["SELECT"], action_limit=limit_s), workload, 0)


def played(seconds: float, limit_s: float = 60.0, **hooks: Any) -> Notes:
    """Let patterns be played for so long, beside a hook."""
    load = Notes()
    means = means_of(load, **hooks)
    with evaluator(limit_s)._asking(means):
        time.sleep(seconds)
    return load


def test_a_provider_is_asked_on_a_clock_of_its_own() -> None:
    load = played(1.0, allocation=f"echo '{TOLD}'", allocation_period=0.2)
    # At 0, 0.2 … 1: late where the machine is, and never twice for one time of the clock.
    assert 3 <= len(load.answers) <= 7
    for asked_s, answered_s in load.answers:
        assert asked_s < answered_s
    assert load.threads == {"action"}
    assert load.warnings == []


def test_a_provider_with_a_time_line_of_its_own_is_not_asked_meanwhile() -> None:
    assert played(0.3, restart="true").answers == []


def test_a_slow_hook_leaves_times_of_the_clock_out_and_holds_nothing_up(tmp_path: Path) -> None:
    count = tmp_path / "count"
    began = time.monotonic()
    load = played(0.9, allocation=f"echo x >> '{count}'; sleep 0.4; echo '{TOLD}'", allocation_period=0.1)
    assert time.monotonic() - began < 5, "only the last answer is waited for"
    assert 1 <= len(load.answers) <= 4
    for asked_s, answered_s in load.answers:
        assert answered_s - asked_s >= 0.4
    assert load.warnings == []


def test_a_failing_hook_is_told_once_with_how_often_it_failed(tmp_path: Path) -> None:
    fails = tmp_path / "fails"
    fails.touch()
    threading.Timer(0.5, fails.unlink).start()
    hook = f"[ -e '{fails}' ] && {{ echo no access; exit 4; }}; echo '{TOLD}'"
    load = played(1.5, allocation=hook, allocation_period=0.1)
    assert load.answers, "it goes on being asked"
    assert min(asked_s for asked_s, _ in load.answers) >= 0.4
    (warning,) = load.warnings
    assert "the provider did not tell the allocation" in warning
    assert "system.hooks.allocation ended with exit code 4. It said:\nno access" in warning


def test_a_hook_that_hangs_is_ended_and_asked_again(tmp_path: Path) -> None:
    count = tmp_path / "count"
    hook = f"echo x >> '{count}'; [ $(wc -l < '{count}') -gt 1 ] || sleep 60; echo '{TOLD}'"
    load = played(1.2, limit_s=0.3, allocation=hook, allocation_period=0.1)
    assert load.answers
    (warning,) = load.warnings
    assert "1 of " in warning
    assert "telling the allocation did not end within 0.3 s, and was given up" in warning


def test_an_interruption_is_for_the_main_thread_and_ends_the_asking() -> None:
    def interrupt(means: Any) -> None:
        with evaluator()._asking(means):
            time.sleep(0.2)
            raise Interrupted("interrupted by SIGINT")

    began = time.monotonic()
    with pytest.raises(Interrupted):
        interrupt(means_of(Notes(), allocation="sleep 60", allocation_period=0.1))
    assert time.monotonic() - began < 30
    assert not [thread for thread in threading.enumerate() if thread.name == "action"]


@pytest.mark.parametrize(
    "error", [ValueError("odd"), MeasurementError("gone")], ids=["a defect", "a failure"]
)
def test_what_goes_wrong_in_the_thread_is_told(error: Exception) -> None:
    def ask() -> None:
        raise error

    load: Any = Notes()
    with AllocationClock(means_of(load), 0.05, 60.0, ask):
        time.sleep(0.2)
    assert any(str(error) in warning for warning in load.warnings)
