"""What is left of elasticity where a run breaks off, or a provider does not answer."""

from __future__ import annotations

import json
import signal
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from commands import finish, start, wait_for
from nephoscope.errors import MeasurementError
from nephoscope.evaluators.elasticity.evaluator import Elasticity
from nephoscope.evaluators.elasticity.settings import ElasticitySettings
from nephoscope.settings.resources import Resources
from nephoscope.store import StoredRun
from nephoscope.study.packaged import find_workload
from nephoscope.study.workload import Workload
from nephoscope.systems.base import Allocation
from sample_studies import sim_study, write_study

if TYPE_CHECKING:
    from pathlib import Path

RESOURCES = {"vcores": 1.0, "memory_gb": 4.0, "storage_gb": 10.0}


def test_a_run_that_is_interrupted_keeps_the_allocation_and_has_no_e1(tmp_path: Path) -> None:
    measure = {
        "evaluator": "elasticity",
        "patterns": ["single-peak"],
        "mixes": ["SELECT"],
        "tau": 4,
        "slot": "30s",
        "rest": "0s",
        "window": "2m",
    }
    tables = sim_study(measure)
    steps = [{"at": "100ms", "vcores": 2.0}, {"at": "1h", "vcores": 9.0}]
    tables["system"] = {"provider": "sim", "resources": RESOURCES, "allocation": steps}
    with start("run", write_study(tmp_path, tables), cwd=tmp_path) as process:
        journal = tmp_path / "runs" / "latest" / "events.jsonl"
        wait_for(lambda: journal.is_file() and "slot 1" in journal.read_text(), "the first slot begins")
        process.send_signal(signal.SIGINT)
        ended = finish(process)
    assert ended.code == 1
    run = StoredRun(tmp_path / "runs" / "latest")
    assert run.manifest["status"] == "interrupted"
    told = [event["resources"]["vcores"] for event in run.events if event["event"] == "allocation"]
    assert told == [1, 2]
    absent = json.loads((run.folder / "scores.json").read_text())["absent"]
    assert absent["E1"] == "no pattern was played to its end"


def test_the_allocation_is_watched_to_the_end_of_the_window_where_there_is_one() -> None:
    told = (Allocation(time_ns=1, resources=Resources(vcores=1, memory_gb=1, storage_gb=1)),)
    for line, seconds in ((told, 600 - 3 * 60), ((), 0)):
        means: Any = SimpleNamespace(
            load=Notes(), provider=SimpleNamespace(allocation=lambda line=line: line)
        )
        assert evaluator()._watched(means, 3) == seconds
    # Four patterns, each after a rest.
    assert evaluator().seconds() == 4 * (60 + 600)


def evaluator() -> Elasticity:
    workload = Workload(find_workload("tpcb"), 1.0, 7, {}, "sim://")
    return Elasticity(ElasticitySettings(mixes=["SELECT"]), workload, 0)


class Notes:
    """A load that only takes notes."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, int, dict[str, Any]]] = []

    def pump_for(self, seconds: float) -> None:
        time.sleep(seconds)

    def note(self, event: str, time_ns: int, **facts: Any) -> None:
        self.notes.append((event, time_ns, facts))


def test_a_step_of_the_allocation_is_told_once() -> None:
    line = [
        Allocation(time_ns=number, resources=Resources(vcores=number, memory_gb=1, storage_gb=1))
        for number in (1, 2, 3)
    ]
    given: list[Allocation] = line[:2]
    means: Any = SimpleNamespace(load=Notes(), provider=SimpleNamespace(allocation=lambda: tuple(given)))
    one = evaluator()
    one._note_allocation(means)
    given.append(line[2])
    one._note_allocation(means)
    assert [(event, at) for event, at, _ in means.load.notes] == [("allocation", at) for at in (1, 2, 3)]
    assert means.load.notes[2][2]["resources"]["vcores"] == 3


@pytest.mark.parametrize("watch", [None, 7.0])
def test_a_provider_that_does_not_answer_ends_nothing(watch: float | None) -> None:
    def refuse() -> tuple[Allocation, ...]:
        raise MeasurementError("no answer within 10 s")

    means: Any = SimpleNamespace(load=Notes(), provider=SimpleNamespace(allocation=refuse))
    one = evaluator()
    one._settings = one._settings.model_copy(update={"watch": watch})
    assert one._watched(means, 3) == (watch or 0.0)
    one._note_allocation(means)
    ((event, _, facts),) = means.load.notes
    assert event == "warning"
    assert facts["message"] == "the provider does not tell the allocation: no answer within 10 s"
