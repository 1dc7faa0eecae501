"""What is added up of a run for monitoring systems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nephoscope import _engine
from nephoscope.publishing.figures import BOUNDS_S, Distribution, LiveFigures

if TYPE_CHECKING:
    from collections.abc import Mapping

LATENCIES_MS = (0.5, 3.0, 3.0, 40.0)


def series(**changes: Any) -> dict[str, Any]:
    latency = _engine.Histogram()
    for milliseconds in LATENCIES_MS:
        latency.record(round(milliseconds * 1e6))
    counts = {"committed": len(LATENCIES_MS), "aborted": 1, "failed": 2, "unstarted": 3}
    of = {"tenant": "a", "role": "rw", "transaction": "pay"}
    return {**of, **counts, "latency": latency.encode(), **changes}


def interval(*of: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    tenant = {"tenant": "a", "sessions": 8, "connected": 7, "backlog": 5, "arrivals": 10}
    tenant |= {"dropped": 1, "lost": 2, "refused": 3}
    lag = {"p50_us": 5.0, "p99_us": 80.0}
    return {"series": list(of), "tenants": [tenant], "cpu_s": 0.25, "cpu_busy": 0.5, "lag": lag, **changes}


def begun() -> LiveFigures:
    figures = LiveFigures("study", "1.2.3")
    figures.begin(Path("runs/one"), 10.0)
    return figures


def values(figures: LiveFigures) -> dict[str, dict[str, Any]]:
    """Give each metric's values by the values of its labels."""
    return {
        family.name.removeprefix("nephoscope."): {
            " ".join(text for _, text in labels): value for labels, value in family.values.items()
        }
        for family in figures.families()
    }


def test_before_a_run_there_is_nothing() -> None:
    assert LiveFigures("study", "1.2.3").families() == []


def test_counters_add_up_and_gauges_are_the_newest() -> None:
    figures = begun()
    figures.interval(interval(series()))
    figures.interval(interval(series(), cpu_busy=0.75, lag=None))
    found = values(figures)
    assert found["run.info"] == {"one study 1.2.3": 1.0}
    assert found["transactions"] == {
        "committed rw a pay": 8.0,
        "aborted rw a pay": 2.0,
        "failed rw a pay": 4.0,
        "unstarted rw a pay": 6.0,
    }
    assert {name: found[name]["a"] for name in ("arrivals", "dropped")} == {"arrivals": 20.0, "dropped": 2.0}
    assert found["connections.lost"] == {"a": 4.0}
    assert found["connections.refused"] == {"a": 6.0}
    gauges = {name: found[name]["a"] for name in ("sessions", "sessions.connected", "backlog")}
    assert gauges == {"sessions": 8.0, "sessions.connected": 7.0, "backlog": 5.0}
    assert found["client.cpu.time"] == {"": 0.5}
    assert found["client.cpu.busy"] == {"": 0.75}
    assert found["schedule.lag"] == {"0.5": pytest.approx(5e-6), "0.99": pytest.approx(8e-5)}


def test_latencies_are_counted_up_to_each_bound() -> None:
    figures = begun()
    figures.interval(interval(series(), series(transaction="read", latency=None)))
    ((_, found),) = values(figures)["transaction.latency"].items()
    assert isinstance(found, Distribution)
    assert found.count == len(LATENCIES_MS)
    assert found.up_to == tuple(
        sum(milliseconds / 1000 <= bound for milliseconds in LATENCIES_MS) for bound in BOUNDS_S
    )
    assert found.sum == pytest.approx(sum(LATENCIES_MS) / 1000, rel=0.01)
    assert found.min == pytest.approx(0.0005, rel=0.01)
    assert found.max == pytest.approx(0.04, rel=0.01)


def test_one_phase_is_shown_and_errors_by_their_code() -> None:
    figures = begun()
    for number, name in enumerate(("first", "second")):
        figures.phase({"phase": number, "name": name, "kind": "measure"})
    error = {"tenant": "a", "role": "rw", "transaction": "pay", "class": "deadlock", "code": "40P01"}
    for count in (2, 3):
        figures.error({**error, "count": count, "message": "deadlock detected"})
    figures.error({**error, "code": None, "count": 1})
    found = values(figures)
    assert found["phase.info"] == {"measure second 1": 1.0}
    assert found["errors"] == {"deadlock 40P01 rw a pay": 5.0, "deadlock  rw a pay": 1.0}


def test_gaps_of_the_client_are_counted() -> None:
    figures = begun()
    figures.gap({"time_s": 1.0, "stopped_s": 0.5, "suspended_s": 2.0, "message": "…"})
    found = values(figures)
    assert found["gaps"] == {"": 1.0}
    assert found["gaps.time"] == {"": 2.5}


def test_a_further_run_counts_from_0() -> None:
    figures = begun()
    figures.interval(interval(series()))
    figures.begin(Path("runs/two"), 10.0)
    assert values(figures) == {"run.info": {"two study 1.2.3": 1.0}}
