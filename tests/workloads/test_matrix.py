"""Every built-in workload runs on every dialect: it loads, each transaction commits, mixes and invariants hold."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from matrix import CANNOT, KEYED, PRODUCTS, SMALL, VERBS, WORKLOADS
from scipy.stats import chisquare

from commands import call
from databases import SERVERS, Server, dialect_of
from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.store import StoredRun
from nephoscope.study.packaged import PACKAGED
from sample_studies import workload_study, write_study
from simulated import UNLIKELY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sample_studies import Tables

pytestmark = pytest.mark.long

SESSIONS = 2
DURATIONS = ("600ms", "3s", "15s")
"""Of a phase; the longer ones where a busy machine, or a deadlock of a second, has let nothing end in a shorter one."""
EACH = "each"
"""The phase in which all transactions are as likely."""
FORMS: list[tuple[str, dict[str, Any]]] = [
    *((workload, {}) for workload in WORKLOADS),
    *((workload, {"batched": False}) for workload in ("smallbank", "tatp", "tpcc")),
]
"""Each workload, and those again that can send each statement by itself, with the options that say so."""


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with SERVERS[request.param]() as server:
        yield server


def database_of(server: Server) -> str:
    url = server.new_database()
    # No wait for the disk, and no transaction that has read and then finds that another one writes.
    return f"{url}?begin=immediate&synchronous=off" if url.startswith("sqlite:") else url


def described(workload: str) -> Mapping[str, Mapping[str, float]]:
    """Give the weights of each mix, and of all transactions alike."""
    (told,) = json.loads(call("workloads", workload, "--json").out)
    each = {transaction["name"]: 1.0 for transaction in told["transactions"]}
    return {EACH: each, **{mix["name"]: dict(mix["weights"]) for mix in told["mixes"]}}


def study_of(
    url: str,
    workload: str,
    options: Mapping[str, Any],
    mixes: Mapping[str, Mapping[str, float]],
    duration: str,
) -> Tables:
    phases = [{"duration": duration, "concurrency": SESSIONS, "mix": dict(mix)} for mix in mixes.values()]
    measure = {"evaluator": "load", "phases": phases}
    small = {**SMALL[workload], "options": {**SMALL[workload].get("options", {}), **options}}
    return {**workload_study(url, workload, measure, **small), "load": {"interval": "100ms"}}


def ended_by_phase(run: StoredRun, outcomes: tuple[str, ...]) -> list[Counter[str]]:
    """Count transactions that ended, by phase: what ends behind the last one is none's."""
    phases = [event for event in run.events if event["event"] == "phase" and event["kind"] == "measure"]
    counts: dict[int, Counter[str]] = {event["phase"]: Counter() for event in phases}
    for row in run.intervals.to_pylist():
        if row["phase"] in counts:
            counts[row["phase"]][row["transaction"]] += sum(row[name] for name in outcomes)
    return list(counts.values())


def unlikely(weights: Mapping[str, float], counts: Mapping[str, int]) -> bool:
    """Whether transactions that ended so often were hardly drawn by these weights: a χ² test."""
    drawn = {name: weight for name, weight in weights.items() if weight > 0}
    found = [counts.get(name, 0) for name in drawn]
    ended, whole = sum(found), sum(drawn.values())
    # Each session may end in a phase what it has drawn in the one before.
    if not ended or sum(counts.values()) - ended > SESSIONS:
        return True
    return bool(chisquare(found, [ended * weight / whole for weight in drawn.values()]).pvalue < UNLIKELY)


@pytest.mark.parametrize(
    ("workload", "options"), FORMS, ids=[f"{name}{options or ''}" for name, options in FORMS]
)
def test_a_workload_loads_runs_its_mixes_and_keeps_its_invariants(
    server: Server, workload: str, options: Mapping[str, Any], tmp_path: Path
) -> None:
    url = database_of(server)
    if reason := CANNOT.get((workload, dialect_of(url))):
        pytest.skip(reason)
    mixes = described(workload)
    for duration in DURATIONS:
        study = write_study(tmp_path, study_of(url, workload, options, mixes, duration))
        ended = call("run", study, "--out", tmp_path / "runs")
        assert ended.code == 0, ended.err + ended.out
        run = StoredRun(tmp_path / "runs" / "latest")
        committed = ended_by_phase(run, ("committed",))
        drawn = ended_by_phase(run, ("committed", "aborted", "failed"))
        never = {name for name in mixes[EACH] if not committed[0][name]}
        if not never and all(map(Counter.total, drawn)):
            break
    assert never == set(), "never committed"
    assert not any(row["other"] for row in run.intervals.to_pylist()), ended.err
    wrong = {
        name: found for (name, mix), found in zip(mixes.items(), drawn, strict=True) if unlikely(mix, found)
    }
    assert not wrong, "mixes other than they were asked for"
    checked = call("check", study)
    assert checked.code == 0, checked.err + checked.out


def test_a_mix_that_was_not_kept_is_found() -> None:
    assert not unlikely({"read": 80, "write": 20}, {"read": 790, "write": 210})
    assert unlikely({"read": 80, "write": 20}, {"read": 500, "write": 500})
    assert unlikely({"read": 80, "write": 20, "never": 0}, {"read": 790, "write": 210, "never": 3})
    assert not unlikely({"read": 1}, {"read": 9, "write": 2})
    assert unlikely({"read": 1}, {})


@pytest.mark.parametrize("dialect", KEYED)
def test_a_workload_needs_sql_unless_it_says_nothing_in_it(dialect: str) -> None:
    def refused(workload: str) -> str:
        spec = {"folder": str(PACKAGED / workload), "options": SMALL[workload].get("options", {}), "scale": 1}
        try:
            _engine.workload(
                json.dumps({**spec, "data_seed": 1, "handed_out": {}}), f"noop://?dialect={dialect}"
            )
        except InputError as error:
            return str(error)
        return ""

    told = {workload: refused(workload) for workload in WORKLOADS}
    assert {workload for workload, message in told.items() if not message} == VERBS, told


def test_what_is_said_of_the_matrix_is_about_workloads_that_exist() -> None:
    assert set(SMALL) == set(WORKLOADS), "each workload has a line in SMALL"
    assert set(PRODUCTS) == set(SERVERS)
    assert {workload for workload, _ in CANNOT} <= set(WORKLOADS)
