"""What a stored run says of waits and costs: planted samples come back as shares and costs per transaction."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from nephoscope.measuring.measurement import write_results
from nephoscope.store import StoredRun
from stored_runs import Step, begin_run

if TYPE_CHECKING:
    from pathlib import Path

STUDY: dict[str, Any] = {
    "study": {"name": "planted"},
    "system": {"provider": "url", "rw": ["sim://"]},
    "workload": {"name": "tpcb"},
    "measure": [{"evaluator": "throughput", "mixes": ["TPCB"], "concurrency": [4, 8]}],
}
PER_INTERVAL = 50
"""So many commits in 0.1 s: 500 TPS."""


def stored(folder: Path, samples: dict[tuple[str, str], dict[float, float]]) -> Path:
    steps = [
        Step({"mix": "TPCB", "concurrency": level, "repetition": 1}, [PER_INTERVAL] * 40, [2.0] * 40)
        for level in (4.0, 8.0)
    ]
    writer = begin_run(folder, STUDY, steps, probed=False)
    for (source, metric), values in samples.items():
        for time_s, value in values.items():
            writer.metrics(time_s, source, [(metric, value)])
    writer.event(8.0, "end", status="measured", reason=None)
    writer.finish("measured", None, None)
    write_results(folder)
    return folder


def scores_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "scores.json").read_text())
    return found


def each_second(first: int, last: int, value: float) -> dict[float, float]:
    return {float(second) + 0.01: value for second in range(first, last + 1)}


def test_shares_are_of_the_samples_within_a_phase_alone(tmp_path: Path) -> None:
    # The sample at 1.01 s tells of the first second, and the one at 5.01 s of the first of the second phase.
    planted = {
        ("server:rw", "wait:Lock/transactionid"): each_second(1, 4, 3.0) | each_second(5, 8, 0.0),
        ("server:rw", "wait:CPU"): each_second(1, 4, 1.0) | each_second(5, 8, 2.0),
    }
    found = [
        (row["concurrency"], row["wait"], row["sessions"], row["share"])
        for row in scores_of(stored(tmp_path / "run", planted))["waits"]
    ]
    assert found == [
        (4.0, "Lock/transactionid", pytest.approx(3.0), pytest.approx(0.75)),
        (4.0, "CPU", pytest.approx(1.0), pytest.approx(0.25)),
        (8.0, "CPU", pytest.approx(2.0), pytest.approx(1.0)),
    ]


def test_an_event_that_comes_late_was_zero_before(tmp_path: Path) -> None:
    planted = {
        ("server:rw", "wait:CPU"): each_second(1, 4, 1.0),
        ("server:rw", "wait:IO/WalSync"): each_second(3, 4, 2.0),
    }
    rows = scores_of(stored(tmp_path / "run", planted))["waits"]
    assert {row["wait"]: row["sessions"] for row in rows} == {"CPU": 1.0, "IO/WalSync": 1.0}


def test_costs_are_per_committed_transaction_and_absent_where_nothing_was_read(tmp_path: Path) -> None:
    planted = {
        ("processes", "cpu_us_per_s"): each_second(1, 8, 100_000.0),
        ("server:rw", "wal_mb_per_s"): each_second(1, 4, 1.0),
        ("server:ro", "wal_mb_per_s"): each_second(1, 4, 0.0),
    }
    folder = stored(tmp_path / "run", planted)
    first, second = scores_of(folder)["transaction_costs"]
    assert first["server_cpu_us"] == pytest.approx(200.0, rel=0.01)
    assert first["wal_bytes"] == pytest.approx((1 << 20) / 500, rel=0.01)
    assert second["server_cpu_us"] == pytest.approx(200.0, rel=0.01)
    for name in ("wal_bytes", "read_bytes", "written_bytes", "context_switches", "disk_read_bytes"):
        assert second[name] is None, name
    page = (folder / "report.html").read_text()
    assert "Cost per committed transaction" in page
    assert "What the sessions waited for is not known" in page


def test_a_run_of_which_nothing_was_observed_has_no_section(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", {})
    scores = scores_of(folder)
    assert (scores["waits"], scores["transaction_costs"]) == ([], [])
    assert 'id="waits"' not in (folder / "report.html").read_text()
    assert StoredRun(folder).system_metrics.num_rows


def test_tables_and_page_have_the_waits(tmp_path: Path) -> None:
    from nephoscope.results.tables import tables_of  # noqa: PLC0415 - the only test of tables
    from nephoscope.tables.columns import RunFigures  # noqa: PLC0415

    folder = stored(tmp_path / "run", {("server:rw", "wait:Lock/tuple"): each_second(1, 8, 3.0)})
    tables = {
        table.name: table for table in tables_of([RunFigures("run", StoredRun(folder), scores_of(folder))])
    }
    assert tables["waits"].cells[0] == ["TPCB c=4, repetition 1", "Lock/tuple", "3", "100 %"]
    page = (folder / "report.html").read_text()
    assert "What the server waited for" in page
    assert "100 % of their time in Lock/tuple" in page
