"""A pattern with an idle slot on a real server: nobody is connected to it, and the load comes back."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from commands import finish, start
from databases import Server, query, running_server, study_of
from nephoscope import _engine
from nephoscope.store import StoredRun
from sample_studies import RESOURCES, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.alone

SLOT_S = 4.0
SESSIONS = 6
_OTHERS = """SELECT count(*) FROM pg_stat_activity
WHERE datname = '{}' AND backend_type = 'client backend'"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as one:
        yield one


def test_nobody_is_connected_in_an_idle_slot(server: Server, tmp_path: Path) -> None:
    url = server.new_database()
    measure = {
        "evaluator": "elasticity",
        "patterns": ["zero-valley"],
        "mixes": ["RW"],
        "tau": 2 * SESSIONS,
        "slot": SLOT_S,
        "rest": 0.5,
        "watch": 0,
        "window": 60,
        "slo": "1s",
    }
    tables = study_of(url, measure)
    tables["system"]["resources"] = RESOURCES
    counted: list[tuple[float, int]] = []
    watch = _OTHERS.format(url.rpartition("/")[2].partition("?")[0])
    admin = _engine.Admin(server.url)
    with start("run", write_study(tmp_path, tables), cwd=tmp_path) as process:
        while process.poll() is None:
            counted.append((time.time(), int(admin.query(watch)[1][0][0] or 0)))
            time.sleep(0.05)
        ended = finish(process)
    admin.close()
    assert (ended.code, ended.err) == (0, "")
    run = StoredRun(tmp_path / "runs" / "latest")
    origin = datetime.fromisoformat(run.manifest["clock"]["origin"]).timestamp()
    before, idle, after = list[int](), list[int](), list[int]()
    for phase, counts in zip(
        (p for p in run.phases if "slot" in p.labels), (before, idle, after), strict=True
    ):
        # Server metrics are sampled once a second, and the sampler hears of a phase with its first interval.
        begins, ends = origin + phase.start_s + SLOT_S / 2, origin + phase.end_s - 0.1
        counts += [count for at, count in counted if begins < at < ends]
    assert min(before) >= SESSIONS
    assert idle
    assert max(idle) == 0, "the load's sessions and the sampling of metrics have let go"
    assert min(after) >= SESSIONS
    entry = json.loads((run.folder / "scores.json").read_text())["scores"]["E1"]["detail"]["patterns"][0]
    tps = [slot["tps"] for slot in entry["slots"]]
    assert tps[0] > 10
    # Who was in flight ends in the idle slot.
    assert tps[1] <= SESSIONS / SLOT_S
    assert tps[2] > 10
    wakes = entry["transitions"][2]
    assert (wakes["from_sessions"], wakes["to_sessions"]) == (0, SESSIONS)
    assert 0.0005 < wakes["wake_up_s"] < 2
    assert not [event for event in run.events if event["event"] == "connection"]
    assert query(url, "SELECT count(*) FROM orderline")
