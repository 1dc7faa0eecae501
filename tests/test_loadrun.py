"""A load is changed while it runs, by hand."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from nephoscope import _engine
from nephoscope.collectors.client import client_metrics
from nephoscope.engine.loadrun import LoadRun
from nephoscope.errors import MeasurementError
from nephoscope.measuring.manifest import manifest_of
from nephoscope.measuring.preparing import engine_description, started
from nephoscope.measuring.silence import Silence
from nephoscope.settings.loads import Endpoints, Load
from nephoscope.store import RunWriter, StoredRun
from nephoscope.study.reading import make_study
from sample_studies import sim_study, throughput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def load(tmp_path: Path) -> Iterator[LoadRun]:
    tables = sim_study(throughput(), system={"rw": f"sim://{tmp_path.name}?latency=constant(1ms)"})
    study = make_study({**tables, "load": {"interval": "100ms"}}, "planted")
    with started(study) as (system, workload):
        writer = RunWriter(tmp_path, manifest_of(study, workload, system), study.to_toml())
        yield LoadRun(engine_description(study, system, workload, {}), writer, Silence(), lambda _: None)
        writer.close()


@pytest.mark.alone
def test_a_rate_and_a_mix_are_set_while_the_load_runs(load: LoadRun, tmp_path: Path) -> None:
    load.phase("all", "measure", 3.0, Load(rate=200.0, mix={"select_only": 1.0}))
    connections = []

    def change() -> None:
        connections.append(connected(tmp_path))
        load.set(rate=600.0, mix={"simple_update": 1.0})

    timer = threading.Timer(1.0, change)
    timer.start()
    load.wait()
    connections.append(connected(tmp_path))
    load.stop()
    timer.join()
    rows = StoredRun(tmp_path).intervals.to_pylist()
    for transaction, rate, begins, ends in (("select_only", 200, 0.0, 0.9), ("simple_update", 600, 1.9, 2.9)):
        inside = [row for row in rows if row["start_s"] > begins - 0.01 and row["end_s"] < ends + 0.01]
        assert {row["transaction"] for row in inside if row["committed"]} == {transaction}
        committed = sum(row["committed"] for row in inside)
        assert committed == pytest.approx(rate * (ends - begins), rel=0.15)
    assert connections[0] == connections[1], "a change of the load makes no new connections"


def connected(folder: Path) -> str | None:
    """Ask the simulated database how many connections were made."""
    admin = _engine.Admin(f"sim://{folder.name}?latency=constant(1ms)")
    _, rows = admin.query("")
    return rows[0][1]


def test_sessions_are_waited_for_that_are_still_at_an_endpoint_which_has_gone(
    load: LoadRun, tmp_path: Path
) -> None:
    slow = f"sim://{tmp_path.name}-slow?latency=constant(700ms)"
    load.phase(
        "all",
        "measure",
        30.0,
        Load(concurrency=4.0, mix={"select_only": 1.0}, endpoints=Endpoints(ro=[slow], reads="ro")),
    )
    load.pump_until(0.3)
    since = load.set(endpoints=Endpoints(ro=[]))
    assert not load.follow(since, 0.2), "their transactions end after 0.7 s"
    assert load.follow(since, 30.0)
    left_s = load.elapsed
    load.pump_until(left_s + 0.3)
    load.stop()
    rows = StoredRun(tmp_path).intervals.to_pylist()
    ends = [row["end_s"] for row in rows if row["role"] == "ro" and row["committed"]]
    assert 0.7 <= max(ends) <= left_s, "nobody commits where all have gone"
    assert load.follow(load.elapsed + 1.0, 0.0), "who has ended is nowhere"


def test_a_load_that_has_not_begun_cannot_be_changed(load: LoadRun) -> None:
    with pytest.raises(MeasurementError, match="the load has not begun"):
        load.set(rate=1.0)


@pytest.mark.parametrize(
    ("stopped_s", "suspended_s", "words"),
    [
        (5.0, 0.0, "nephoscope itself did not run for 5.0 s, from 7.5 s on: rates and latencies"),
        (0.0, 3600.0, "the machine was suspended for 3600.0 s at 7.5 s of the run"),
    ],
)
def test_a_gap_is_an_event_that_says_what_stood_still(
    load: LoadRun, tmp_path: Path, stopped_s: float, suspended_s: float, words: str
) -> None:
    load._handle({"record": "gap", "time_s": 7.5, "stopped_s": stopped_s, "suspended_s": suspended_s})
    [event] = StoredRun(tmp_path).events
    assert (event["event"], event["time_s"]) == ("gap", 7.5)
    assert (event["stopped_s"], event["suspended_s"]) == (stopped_s, suspended_s)
    assert event["message"].startswith(words)


def test_the_p99_that_is_watched_is_that_of_all_series_together(
    load: LoadRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []
    monkeypatch.setattr(Silence, "interval", lambda _, record: seen.append(record["p99_ms"]))
    counts = dict.fromkeys(("aborted", "failed", "unstarted"), 0)

    def series(transaction: str, time_ms: int, count: int) -> dict[str, Any]:
        latency = _engine.Histogram()
        latency.record(time_ms * 1_000_000, count)
        encoded = {"latency": latency.encode(), "latency_max_ms": time_ms}
        name = {"tenant": "default", "role": "rw", "transaction": transaction}
        return {**name, **counts, "committed": count, **encoded}

    interval = {
        "phase": 0,
        "start_s": 0.0,
        "end_s": 0.1,
        "cpu_busy": 0.1,
        "cpu_wait": None,
        "cpu_s": 0.01,
        "lag": None,
    }
    both = [series("often", 1, 990), series("seldom", 100, 5)]
    load._handle({"record": "interval", **interval, "series": both, "tenants": []})
    # One in two hundred takes 100 ms, so 99 of a hundred do not.
    assert seen == [pytest.approx(1.0, rel=0.001)]


def test_the_client_metrics_of_an_interval_are_those_that_the_engine_tells() -> None:
    count = {"committed": 50}
    tenant = dict.fromkeys(("arrivals", "backlog", "dropped", "sessions", "connected", "disconnected"), 2)
    record = {"cpu_busy": 0.5, "cpu_wait": 0.25, "cpu_s": 0.01, "lag": None, "series": [count, count]}
    told = client_metrics({**record, "tenants": [tenant, tenant]})
    assert (told["cpu_busy"], told["cpu_wait"], told["sessions"]) == (0.5, 0.25, 4)
    assert told["cpu_us_per_transaction"] == pytest.approx(100)
    told = client_metrics({**record, "cpu_wait": None, "series": [], "tenants": []})
    assert not {"cpu_wait", "cpu_us_per_transaction", "lag_p99_us"} & set(told)
