"""What had not started when its phase ended, and what has failed, in the figures of stored runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from commands import call
from nephoscope.evaluators.points import Point
from nephoscope.results.scores import scores_of
from nephoscope.results.verdicts import kept_up
from nephoscope.statistics import is_at_least
from nephoscope.store import StoredRun
from nephoscope.store.protocol import Selection
from sample_studies import phases, sim_study, throughput
from stored_runs import Step, write_run

if TYPE_CHECKING:
    from pathlib import Path

COURSE = sim_study(phases({"name": "all", "rate": 200, "duration": "4s"}))
LABELS = {"mix": "SELECT", "concurrency": None, "rate": 200.0}
STEP = Step(LABELS, [20] * 40, [2.0] * 40)
"""800 transactions in 4 s, each of 2 ms."""


def measured(folder: Path, step: Step) -> dict[str, Any]:
    return scores_of(StoredRun(write_run(folder, COURSE, [step])))


def point(found: dict[str, Any]) -> dict[str, Any]:
    (only,) = found["points"]
    return dict(only)


def test_whoever_has_not_started_is_counted_and_in_the_latency_as_at_least_so_late(tmp_path: Path) -> None:
    found = measured(tmp_path, replace(STEP, unstarted_ms=[float(wait) for wait in range(1, 801)]))
    latency = point(found)["latency_ms"]
    assert (point(found)["arrivals"], point(found)["unstarted"]) == (1600, 800)
    # Of 1,600 the 1,584th has waited for 784 ms at least; the median is one of those served if no wait were longer.
    assert latency["p99"] == pytest.approx(784, rel=0.001)
    assert latency["max"] == pytest.approx(800, rel=0.001)
    assert latency["mean"] == pytest.approx((800 * 2 + 800 * 400.5) / 1600, rel=0.001)
    # Even a wait of 1 ms may have become any: what is not moved by it is no bound.
    assert latency["at_least"] == ["mean", "p95", "p99", "max"]
    (verdict,) = [verdict for verdict in found["verdicts"] if verdict["level"] == "problem"]
    assert verdict["verdict"] == "the system did not keep up"
    assert verdict["detail"].startswith(
        "the backlog grew by 200/s in SELECT at 200/s: 800 of 1,600 arrivals had not started"
    )


def test_bounds_stand_behind_their_sign_wherever_latencies_are_shown(tmp_path: Path) -> None:
    measured(tmp_path, replace(STEP, unstarted_ms=[500.0] * 100 + [1234.0] * 5))
    for text in (call("report", tmp_path).out, call("report", tmp_path, "--format", "markdown").out):
        assert "≥ 500 ms" in text
        assert "≥ 1,234 ms" in text
        assert "the system did not keep up" in text
    page = (tmp_path / "report.html").read_text()
    assert "≥ </span>500" in page
    assert "arrivals not started when their phase ended" in page


def test_a_phase_that_left_nothing_has_no_bounds(tmp_path: Path) -> None:
    found = measured(tmp_path, STEP)
    assert point(found)["latency_ms"]["at_least"] == []
    assert not [verdict for verdict in found["verdicts"] if verdict["level"] == "problem"]
    assert "≥" not in call("report", tmp_path).out


def test_failed_transactions_have_latencies_apart(tmp_path: Path) -> None:
    found = point(measured(tmp_path, replace(STEP, failed_ms=[900.0] * 80)))
    assert (found["failed"], found["latency_ms"]["max"]) == (80, pytest.approx(2.0, rel=0.001))
    assert found["failed_latency_ms"]["p50"] == pytest.approx(900, rel=0.001)
    assert found["failed_latency_ms"]["at_least"] == []
    assert "Failed transactions are not among them" in (tmp_path / "report.html").read_text()
    run = StoredRun(tmp_path)
    assert (run.merged().count, run.merged(Selection(kind="failed")).count) == (800, 80)


def test_the_p99_of_repetitions_is_that_of_all_their_transactions(tmp_path: Path) -> None:
    tables = sim_study(throughput(concurrency=[1, 2], duration="1s", repetitions=2))
    steps = [
        Step({"mix": "SELECT", "concurrency": level, "repetition": number}, [100] * 10, [latency] * 10)
        for number, at in ((1, 1.0), (2, 3.0))
        for level, latency in ((1, 1.0), (2, at))
    ]
    found = scores_of(StoredRun(write_run(tmp_path, tables, steps)))["saturation"]["SELECT"]
    # A mean of 1 and 3 ms would be twice as long.
    assert found["why"] == "TPS changed by +0.0% from 1 to 2 while p99 was 3 times as long"


@pytest.mark.parametrize(
    ("seconds", "arrivals", "unstarted", "kept"),
    [
        (4.0, 8000, 3978, False),
        (60.0, 60_000, 500, True),  # what half a second brings, at the end
        (60.0, 60_000, 601, False),
        (3600.0, 3_600_000, 1001, False),  # a second's, although that is no share of an hour's
        (10.0, 1000, 20, True),  # a queue as chance makes it
        (10.0, 40, 20, False),
        (10.0, 0, 0, True),
    ],
)
def test_a_backlog_that_grew_is_told_from_one_that_is_there(
    seconds: float,
    arrivals: int,
    unstarted: int,
    kept: bool,  # noqa: FBT001
) -> None:
    absent = ("ci95", "latency_ms", "steady", "drift_per_minute", "cpu_busy", "cpu_us", "lag_p99_us")
    facts = dict.fromkeys(("tps", "committed", "aborted", "failed", "retried", "dropped"), 0)
    counts = {"measure": 0, "phase": 0, "arrivals": arrivals, "unstarted": unstarted}
    of = Point.model_validate({**dict.fromkeys(absent), **facts, **counts, "seconds": seconds})
    assert kept_up(of) == kept


def test_a_quantile_is_a_bound_where_censored_samples_may_move_it() -> None:
    ended = [1.0, 2.0, 3.0, 4.0]

    def bound(share: float, *censored: float) -> bool:
        lowest = sorted([*ended, *censored])[
            max(1, -(-round(share * (4 + len(censored)) * 1e6) // 10**6)) - 1
        ]
        return is_at_least(share, 4, len(censored), lowest, lambda rank: ended[rank - 1])

    assert not bound(1.0)
    assert bound(1.0, 0.5)
    assert not bound(0.5, 9.0, 9.0)
    assert not bound(0.8, 9.0)
    assert bound(0.9, 9.0)
    assert bound(0.4, 0.5), "the second of five was the first of those that ended"


def test_a_run_of_an_earlier_format_is_read(tmp_path: Path) -> None:
    write_run(tmp_path, COURSE, [STEP])
    path = tmp_path / "intervals.parquet"
    pq.write_table(
        pq.read_table(path).drop_columns(["unstarted", "uncertain", "constraint", "throttled"]), path
    )
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "format": 2}))
    found = point(scores_of(StoredRun(tmp_path)))
    assert (found["committed"], found["unstarted"]) == (800, 0)
