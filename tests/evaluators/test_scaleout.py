"""Nodes that come to simulated systems whose capacity is planted, and to a user's own by hooks: E2 is known."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from commands import call, finish, start, wait_for
from nephoscope.errors import InputError
from nephoscope.measuring.measurement import run_study
from nephoscope.measuring.preparing import prepare
from nephoscope.measuring.silence import Silence
from nephoscope.results.scores import scores_of
from nephoscope.results.tables import tables_of
from nephoscope.settings.loads import READS
from nephoscope.store import StoredRun
from nephoscope.study.reading import make_study
from nephoscope.systems.machine.folders import is_alive
from nephoscope.tables.columns import RunFigures
from sample_studies import RESOURCES, write_study
from stored_runs import INTERVAL_S, Step, begin_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nephoscope.measuring.measurement import Outcome

pytestmark = pytest.mark.long

RW_TPS, NODE_TPS = 200.0, 400.0
"""What the endpoint that takes writes serves, and a node: 2 and 4 at a time, 10 ms each."""
ALL_TPS = (RW_TPS, RW_TPS + NODE_TPS, RW_TPS + 2 * NODE_TPS)
"""What all serve together with no node, one and two, where reads are spread over all of them."""
DELTA = 100.0
SLACK = 0.08
"""Machines are late at times: what they lose, no figure can have."""


def scaleout(**settings: Any) -> dict[str, Any]:
    brief = {"mixes": ["SELECT"], "concurrency": 16, "warmup": "400ms", "duration": "2s", "delta": DELTA}
    return {"evaluator": "scaleout", **brief, **settings}


def planted(measure: Mapping[str, Any], *others: Mapping[str, Any], **system: Any) -> dict[str, Any]:
    law = "latency=constant(10ms)"
    return {
        "study": {"name": "scaled"},
        "system": {
            "provider": "sim",
            "plan": f"{law}&capacity=2",
            "node": f"{law}&capacity=4",
            "node_time": "300ms",
            "resources": RESOURCES,
            **system,
        },
        "workload": {"name": "tpcb"},
        "load": {"interval": "100ms"},
        "measure": [measure, *others],
    }


def measured(folder: Path, tables: dict[str, Any]) -> tuple[StoredRun, dict[str, Any]]:
    outcome = run_study(make_study(tables, "planted"), folder / "runs", Silence())
    assert outcome.status == "measured", outcome.reason
    return StoredRun(outcome.folder), dict(outcome.scores)


NOT_COMING = {
    "exit 3": "the command system.hooks.add_node ended with exit code 3",
    "echo done": "system.hooks.add_node has to print where the node is",
    "sleep 60": "add_node did not end within 4 s",
    """echo '{"ro": "sim://gone?outage=0s%2B1000s"}'""": "no transaction was committed at the new node within 4 s",
}
"""Hooks that add no node, and what is said then."""


def studies(folder: Path) -> dict[str, dict[str, Any]]:
    """What is measured, by name; hooks leave their traces in a folder."""
    weighted = planted(scaleout(reads="all"))
    # Of 16 sessions one reads on the writer: a single one has 100 a second.
    weighted["load"]["writer_weight"] = 0.14
    after = {"evaluator": "load", "phases": [{"duration": "2s", "concurrency": 8, "mix": "SELECT"}]}
    law = "latency=constant(10ms)&capacity=4"
    number = f"$(ls '{folder}' | grep -c made)"
    url = f"sim://hooked-{folder.name}-{number}?{law}"
    add = (
        f"""sleep 0.2; touch "{folder}/made{number}"; echo '{{"ro": "'"{url}"'", "node": "n'"{number}"'"}}'"""
    )
    return {
        "repeated": planted(scaleout(repetitions=2)),
        "ro": planted(scaleout(reads="ro")),
        "weighted": weighted,
        "rounds": planted(scaleout(rounds=3, duration="1s")),
        "then a load": planted(scaleout(nodes=1, duration="1s"), after, read_only=[law, law]),
        "hooked": hooked(add, f"echo $NEPHOSCOPE_NODE >> '{folder}/removed'"),
        **{add: hooked(add) for add in NOT_COMING},
    }


@dataclass(frozen=True)
class Ended:
    folder: Path
    outcomes: Mapping[str, Outcome]

    def measured(self, name: str) -> tuple[StoredRun, dict[str, Any]]:
        outcome = self.outcomes[name]
        assert outcome.status == "measured", outcome.reason
        return StoredRun(outcome.folder), dict(outcome.scores)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Measure all studies at once: simulated databases leave the processors idle."""
    folder = tmp_path_factory.mktemp("scaleout")
    tables = studies(folder)
    with ThreadPoolExecutor(len(tables)) as threads:
        runs = {
            name: threads.submit(run_study, make_study(of, "planted"), folder / f"runs{at}", Silence())
            for at, (name, of) in enumerate(tables.items())
        }
    return Ended(folder, {name: run.result() for name, run in runs.items()})


@pytest.mark.light
def test_e2_of_nodes_with_a_planted_capacity(ended: Ended) -> None:
    run, found = ended.measured("repeated")
    score = found["scores"]["E2"]
    assert score["value"] == pytest.approx(NODE_TPS / DELTA, rel=SLACK), (
        "the first node brings as much as the next"
    )
    assert (score["repetitions"], score["detail"]["from_nodes"]) == (2, 0)
    assert score["detail"]["reads"] == "all"
    mix = score["detail"]["mixes"]["SELECT"]
    for step, tps in zip(mix["steps"], ALL_TPS, strict=True):
        assert step["tps"] == pytest.approx(tps, rel=SLACK)
        assert (step["repetitions"], step["failed"]) == (2, 0)
    assert mix["steps"][0]["latency_ms"]["p50"] == pytest.approx(16 / RW_TPS * 1000, rel=0.2), (
        "16 wait in line"
    )
    assert mix["r_squared"] == pytest.approx(1.0, abs=0.01)
    assert mix["scale_up"] == pytest.approx(5.0, rel=2 * SLACK)
    added = score["detail"]["added"]
    assert [(one["repetition"], one["nodes"]) for one in added] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    for one in added:
        assert 0.3 <= one["took_s"] <= one["serve_s"] < 2.0
    assert [e["event"] for e in run.events if e["event"] in ("error", "connection", "warning")] == []
    roles = {row["role"] for row in run.intervals.to_pylist() if row["committed"]}
    assert roles == {"rw", "ro"}


@pytest.mark.light
@pytest.mark.parametrize(
    ("name", "reads", "of_steps"),
    [
        ("ro", "ro", (RW_TPS, NODE_TPS, 2 * NODE_TPS)),
        ("weighted", "all", (RW_TPS, 100 + NODE_TPS, 100 + 2 * NODE_TPS)),
    ],
)
def test_the_study_says_where_reads_are(
    ended: Ended, name: str, reads: str, of_steps: Sequence[float]
) -> None:
    run, found = ended.measured(name)
    detail = found["scores"]["E2"]["detail"]
    assert detail["reads"] == reads
    for step, tps in zip(detail["mixes"]["SELECT"]["steps"], of_steps, strict=True):
        assert step["tps"] == pytest.approx(tps, rel=SLACK)
    [table] = [table for table in tables_of([RunFigures("run", run, found)]) if table.name == "scaleout"]
    assert table.title.endswith(READS[reads])


@pytest.mark.light
def test_rounds_are_repetitions_on_nodes_that_come_once(ended: Ended) -> None:
    run, found = ended.measured("rounds")
    score = found["scores"]["E2"]
    assert score["value"] == pytest.approx(NODE_TPS / DELTA, rel=SLACK)
    assert score["repetitions"] == 3
    assert score["ci95"][0] > 0.8 * score["value"], "each round has the planted E2"
    for step, tps in zip(score["detail"]["mixes"]["SELECT"]["steps"], ALL_TPS, strict=True):
        assert step["tps"] == pytest.approx(tps, rel=SLACK)
        assert (step["repetitions"], step["failed"]) == (3, 0)
    assert [one["nodes"] for one in score["detail"]["added"]] == [1, 2]
    course = [(p.labels["nodes"], p.labels["repetition"]) for p in run.phases if p.kind == "measure"]
    assert course == [(nodes, round_) for round_ in (1, 2, 3) for nodes in (0, 1, 2)]


@pytest.mark.light
def test_the_system_is_then_as_it_was(ended: Ended) -> None:
    run, found = ended.measured("then a load")
    assert found["scores"]["E2"]["detail"]["from_nodes"] == 0, "those that were there go first"
    steps = found["details"]["scaleout"]["0"]["mixes"]["SELECT"]["steps"]
    assert [step["nodes"] for step in steps] == [0, 1]
    last = next(phase for phase in run.phases if phase.labels.get("measure") == 1)
    committed = dict.fromkeys(("rw", "ro"), 0)
    for row in run.intervals.to_pylist():
        if row["phase"] == last.number:
            committed[row["role"]] += row["committed"]
    # They come back for who is next: eight sessions, four each. Who was still under way on rw has ended there.
    assert committed["rw"] <= 16
    assert committed["ro"] / (last.end_s - last.start_s) == pytest.approx(2 * NODE_TPS, rel=2 * SLACK)


@pytest.mark.parametrize(
    ("system", "load", "why"),
    [
        ({"provider": "url", "rw": "sim://"}, {}, "the provider url cannot add_node"),
        (
            {"provider": "url", "rw": "sim://", "ro": ["sim://"] * 15, "hooks": {"add_node": "true"}},
            {},
            "a concurrency of 16 leaves some of 18 nodes without a session",
        ),
        ({}, {"reads": "rw"}, 'load.reads is "rw": nothing runs on read-only nodes'),
        ({}, {"balance": "first"}, 'load.balance is "first": every session takes the same node'),
    ],
)
def test_what_cannot_be_measured_is_told(
    tmp_path: Path, system: dict[str, Any], load: dict[str, Any], why: str
) -> None:
    also = {"evaluator": "load", "phases": [{"duration": "200ms", "concurrency": 1, "mix": "SELECT"}]}
    tables = planted(scaleout(), also)
    tables["system"] = system or tables["system"]
    tables["load"] |= load
    _, found = measured(tmp_path, tables)
    assert found["absent"]["E2"] == why


def test_what_is_wrong_is_found_before_anything_is_touched() -> None:
    with pytest.raises(InputError, match=r"measure\.0\.mixes\.0: TPCB has no transaction that only reads"):
        prepare(make_study(planted(scaleout(mixes=["TPCB"])), "wrong"), "sim://")
    with pytest.raises(InputError, match="leaves some of 20 nodes without a session"):
        make_study(planted(scaleout(nodes=20)), "wrong")


# --- a user's own system, by hooks ---------------------------------------------------------------------------------


def hooked(add: str, remove: str | None = "true", **hooks: Any) -> dict[str, Any]:
    tables = planted(scaleout(nodes=2, duration="1s", warmup="200ms", limit="4s"))
    hooks |= {"add_node": add} | ({"remove_node": remove} if remove else {})
    rw = "sim://?latency=constant(10ms)&capacity=2"
    tables["system"] = {"provider": "url", "rw": rw, "resources": RESOURCES, "hooks": hooks}
    return tables


@pytest.mark.light
def test_a_hook_says_where_its_node_is(ended: Ended) -> None:
    _, found = ended.measured("hooked")
    assert found["scores"]["E2"]["value"] == pytest.approx(NODE_TPS / DELTA, rel=SLACK)
    assert [one["node"] for one in found["scores"]["E2"]["detail"]["added"]] == ["n1", "n2"]
    assert (ended.folder / "removed").read_text().split() == ["n2", "n1"]


def test_nodes_that_cannot_be_removed_stay_and_that_is_told(tmp_path: Path) -> None:
    number = f"$(ls '{tmp_path}' | grep -c made)"
    url = f"sim://stay-{tmp_path.name}-{number}?latency=constant(10ms)&capacity=4"
    add = f"""touch "{tmp_path}/made{number}"; echo '{{"ro": "'"{url}"'"}}'"""
    tables = hooked(add, None)
    tables["measure"][0]["repetitions"] = 2
    _, found = measured(tmp_path, tables)
    assert found["scores"]["E2"]["repetitions"] == 1
    assert any(
        "2 read-only nodes of this run cannot be taken away" in warning for warning in found["warnings"]
    )


@pytest.mark.light
@pytest.mark.parametrize(("add", "why"), NOT_COMING.items())
def test_a_node_that_does_not_come_ends_it_and_what_was_measured_stays(
    ended: Ended, add: str, why: str
) -> None:
    outcome = ended.outcomes[add]
    assert outcome.status == "failed"
    assert why in str(outcome.reason)
    found = outcome.scores
    assert why in found["absent"]["E2"]
    [step] = found["details"]["scaleout"]["0"]["mixes"]["SELECT"]["steps"]
    assert (step["nodes"], step["tps"]) == (0, pytest.approx(RW_TPS, rel=SLACK))


def test_an_interruption_takes_the_nodes_away_again(tmp_path: Path) -> None:
    removed, hanging = tmp_path / "removed", tmp_path / "hanging"
    url = f"sim://{tmp_path.name}?latency=constant(10ms)"
    add = (
        f"test -e '{hanging}' && echo $$ > '{hanging}' && sleep 60;"
        f""" touch '{hanging}'; echo '{{"ro": "{url}", "node": "first"}}'"""
    )
    study = write_study(tmp_path, hooked(add, f"echo $NEPHOSCOPE_NODE >> '{removed}'"))
    with start("run", study, "--set", "measure.0.limit=50s", cwd=tmp_path) as process:
        wait_for(lambda: hanging.exists() and hanging.read_text(), "the second node is on its way")
        os.kill(process.pid, signal.SIGINT)
        interrupted = finish(process)
    assert interrupted.code == 1, interrupted.err
    pid = int(hanging.read_text())
    wait_for(lambda: not is_alive(pid), "its command has ended")
    assert removed.read_text().split() == ["first"]
    assert call("report", tmp_path / "runs" / "latest").code == 0


# --- stored runs ---------------------------------------------------------------------------------------------------


def stored(folder: Path, tps: Sequence[Sequence[float]], nodes: int) -> dict[str, Any]:
    """Read a run whose TPS with 0, 1, … nodes are these, by repetition."""
    steps = [
        Step(
            {
                "mix": f"SELECT nodes={at}",
                "of_mix": "SELECT",
                "nodes": at,
                "concurrency": 8,
                "repetition": number,
            },
            [round(level * INTERVAL_S)] * 20,
            [1.0] * 20,
        )
        for number, course in enumerate(tps, start=1)
        for at, level in enumerate(course)
    ]
    tables = planted(scaleout(nodes=nodes, delta=1000.0))
    writer = begin_run(folder, tables, steps, probed=False)
    totals = dict.fromkeys(("started", "committed", "aborted", "failed", "in_flight", "dropped"), 0)
    writer.finish("measured", None, totals)
    return scores_of(StoredRun(folder))


def test_e2_of_stored_figures(tmp_path: Path) -> None:
    found = stored(tmp_path, [(10_000, 20_000, 30_000), (10_000, 20_000, 34_000)], nodes=2)
    score = found["scores"]["E2"]
    assert score["value"] == pytest.approx((10.0 + 12.0) / 2)
    assert score["ci95"][0] < 10.0
    assert score["ci95"][1] > 12.0
    mix = found["details"]["scaleout"]["0"]["mixes"]["SELECT"]
    assert [step["gain_tps"] for step in mix["steps"]] == [None, pytest.approx(10_000), pytest.approx(12_000)]
    assert mix["scale_up"] == pytest.approx(3.2)


def test_the_paper_s_own_figures(tmp_path: Path) -> None:
    # Section III-G: the TPS of AWS RDS rises from 17,003 to 36,198 by a node; its E2 in Table IX is 20.
    score = stored(tmp_path, [(17_003, 36_198)], nodes=1)["scores"]["E2"]
    assert score["value"] == pytest.approx(19.2, abs=0.05)
    assert score["detail"]["mixes"]["SELECT"]["r_squared"] is None, "a line goes through any two points"


def test_a_repetition_that_broke_off_does_not_count(tmp_path: Path) -> None:
    found = stored(tmp_path / "half", [(10_000, 20_000)], nodes=2)
    assert found["absent"]["E2"] == "no repetition was measured to its end"
    assert json.dumps(found["details"]["scaleout"]["0"])
    whole = stored(tmp_path / "whole", [(10_000, 20_000, 30_000), (10_000, 90_000)], nodes=2)
    assert (whole["scores"]["E2"]["value"], whole["scores"]["E2"]["repetitions"]) == (pytest.approx(10.0), 1)


def test_two_entries_are_told_apart(tmp_path: Path) -> None:
    brief = {"nodes": 1, "duration": "300ms", "warmup": 0}
    _, found = measured(tmp_path, planted(scaleout(**brief), scaleout(**brief, concurrency=8)))
    told = {
        place: [step["concurrency"] for step in entry["mixes"]["SELECT"]["steps"]]
        for place, entry in found["details"]["scaleout"].items()
    }
    assert told == {"0": [16, 16], "1": [8, 8]}
