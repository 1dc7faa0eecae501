"""Reading stored runs: scores of planted figures, the same at each reading."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from commands import call
from nephoscope.results.client import client
from nephoscope.results.scores import scores_of
from nephoscope.scoring.prices import DEFAULT_PRICE_BOOK, cost, load_price_book
from nephoscope.settings.resources import Resources
from nephoscope.store import StoredRun
from sample_studies import RESOURCES, sim_study, throughput
from stored_runs import Step, begin_run, write_run

if TYPE_CHECKING:
    from pathlib import Path

PER_MINUTE = cost(Resources.model_validate(RESOURCES), load_price_book(DEFAULT_PRICE_BOOK)).per_minute
TPS = {"SELECT": {2: 1000.0, 4: 1800.0, 8: 1850.0}, "TPCB": {2: 300.0, 4: 500.0, 8: 400.0}}
P99 = {2: 2.0, 4: 2.0, 8: 4.0}


def sweep(folder: Path, repetitions: int = 3, **settings: object) -> StoredRun:
    tables = sim_study(
        throughput(mixes=list(TPS), concurrency=[2, 4, 8], duration="4s", repetitions=3, **settings)
    )
    steps = [
        Step(
            {"mix": mix, "concurrency": level, "repetition": number},
            [round(tps / 10)] * 40,
            [P99[level]] * 40,
        )
        for number in range(1, repetitions + 1)
        for mix, levels in TPS.items()
        for level, tps in levels.items()
    ]
    return StoredRun(write_run(folder, tables, steps))


def test_p_is_the_mean_over_mixes_at_their_best_level(tmp_path: Path) -> None:
    score = scores_of(sweep(tmp_path))["scores"]["P"]
    assert score["value"] == pytest.approx((1850 + 500) / 2 / PER_MINUTE)
    assert score["ci95"] == pytest.approx([score["value"]] * 2)
    assert {mix: entry["concurrency"] for mix, entry in score["detail"]["mixes"].items()} == {
        "SELECT": 8,
        "TPCB": 4,
    }


@pytest.mark.parametrize(
    ("kept", "inside"),
    [
        ({"dialect": "sqlite"}, True),
        ({"dialect": "sqlite", "blocking": True}, True),
        ({"dialect": "postgres"}, False),
        ({"dialect": "postgres", "blocking": False}, False),
    ],
    ids=str,
)
def test_a_database_within_the_client_is_told_by_runs_of_each_format(
    kept: dict[str, object], tmp_path: Path, *, inside: bool
) -> None:
    folder = sweep(tmp_path, repetitions=1).folder
    manifest = json.loads((folder / "manifest.json").read_text())
    described = manifest["inputs"]["workload"]
    del described["blocking"]
    described.update(kept)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    verdicts = {entry["verdict"] for entry in scores_of(StoredRun(folder))["verdicts"]}
    assert ("the database ran on the threads of the load" in verdicts) is inside


def test_p_of_the_paper_is_the_mean_over_the_sweep(tmp_path: Path) -> None:
    score = scores_of(sweep(tmp_path, score="mean"))["scores"]["P"]
    means = [sum(levels.values()) / 3 for levels in TPS.values()]
    assert score["value"] == pytest.approx(sum(means) / 2 / PER_MINUTE)
    assert {entry["concurrency"] for entry in score["detail"]["mixes"].values()} == {None}


def test_saturation_is_the_smallest_level_that_reaches_the_best(tmp_path: Path) -> None:
    found = scores_of(sweep(tmp_path))["saturation"]
    # 1,850 is less than 5 % more than 1,800.
    assert found["SELECT"]["concurrency"] == 4
    assert found["SELECT"]["why"] == "TPS changed by +2.8% from 4 to 8 while p99 was 2 times as long"
    assert found["TPCB"]["why"] == "TPS changed by -20.0% from 4 to 8 while p99 was 2 times as long"


def test_without_resources_there_is_no_p_and_the_reason_is_told(tmp_path: Path) -> None:
    run = sweep(tmp_path)
    run._manifest["system"] = {**run.manifest["system"], "resources": None}
    found = scores_of(run)
    assert found["scores"] == {}
    assert found["absent"]["P"] == "the system's resources are not declared ([system.resources] of the study)"
    assert found["cost"] is None
    assert len(found["points"]) == 18


def test_reading_again_gives_the_same(tmp_path: Path) -> None:
    run = sweep(tmp_path)
    assert scores_of(run) == scores_of(StoredRun(tmp_path)) == run.scores


def test_few_repetitions_are_warned_about(tmp_path: Path) -> None:
    found = scores_of(sweep(tmp_path, repetitions=2))
    assert found["warnings"] == [
        "2 repetitions only: what changes from one repetition to the next is hardly known"
    ]


def test_an_interval_that_is_wider_than_its_figure_is_a_warning(tmp_path: Path) -> None:
    tables = sim_study(throughput(concurrency=[2], duration="1s", repetitions=3))
    labels = {"mix": "SELECT", "concurrency": 2}
    counts = (100, 150, 400)
    steps = [Step({**labels, "repetition": n}, [count] * 10, [2.0] * 10) for n, count in enumerate(counts, 1)]
    found = scores_of(StoredRun(write_run(tmp_path, tables, steps)))
    low, high = found["scores"]["P"]["ci95"]
    assert low == 0, "no throughput is below 0"
    assert high > 2 * found["scores"]["P"]["value"]
    (warning,) = found["warnings"]
    assert warning.startswith(
        "the interval is wider than the figure itself: P 74,277 (0 … 210,000) TPS per $/min;"
    )
    assert f"! {warning}" in call("report", tmp_path).out.replace("\n", " ")


@pytest.mark.parametrize(("uncertain", "said"), [(0, False), (33, True)])
def test_commits_that_were_never_answered_are_told(tmp_path: Path, uncertain: int, said: bool) -> None:  # noqa: FBT001
    run = sweep(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["totals"]["uncertain"] = uncertain
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    told = [verdict for verdict in scores_of(StoredRun(run.folder))["verdicts"] if verdict["level"] == "note"]
    assert bool(told) == said
    shown = call("report", tmp_path).out
    markdown = call("report", tmp_path, "--format", "markdown").out
    for text in (shown, markdown, (tmp_path / "report.html").read_text()):
        assert ("33 attempts ended after the commit was sent" in " ".join(text.split())) == said
    assert ("commits sent and never answered" in (tmp_path / "report.html").read_text()) == said


def test_a_phase_that_was_cut_short_does_not_count(tmp_path: Path) -> None:
    tables = sim_study(throughput(concurrency=[2, 4], duration="2s"))
    whole = Step({"mix": "SELECT", "concurrency": 2}, [100] * 20, [2.0] * 20)
    cut = Step({"mix": "SELECT", "concurrency": 4, "planned_s": 2.0}, [100] * 7, [2.0] * 7)
    begin_run(tmp_path, tables, [whole, cut]).close()
    found = scores_of(StoredRun(tmp_path))
    assert [point["concurrency"] for point in found["points"]] == [2]
    assert "SELECT c=4 was cut short after 0.7 of 2.0 s and does not count" in found["warnings"]


def test_an_interval_without_a_transaction_counts_as_time(tmp_path: Path) -> None:
    """Such an interval has no row at all: what stood still must not look fast."""
    tables = sim_study(throughput(concurrency=[2], duration="4s"))
    writer = begin_run(tmp_path, tables, [Step({"mix": "SELECT", "concurrency": 2}, [100] * 40, [2.0] * 40)])
    writer.close()
    journal = tmp_path / "intervals.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:10] + lines[20:]))
    (point,) = scores_of(StoredRun(tmp_path))["points"]
    assert point["seconds"] == pytest.approx(4)
    assert point["tps"] == pytest.approx(30 * 100 / 4)


def test_a_busy_client_is_told_to_be_the_limit(tmp_path: Path) -> None:
    run = sweep(tmp_path)
    table = run.system_metrics
    metrics, values = table.column("metric").to_pylist(), table.column("value").to_pylist()
    busy = [0.95 if metric == "cpu_busy" else value for metric, value in zip(metrics, values, strict=True)]
    run.__dict__["system_metrics"] = table.set_column(3, "value", [busy])
    first = scores_of(run)["verdicts"][0]
    assert (first["level"], first["verdict"]) == ("problem", "the client was the limit")
    told = "its busiest thread was running 95% of the time (SELECT c=2, SELECT c=4, SELECT c=8 and 3 more)"
    assert first["detail"].startswith(told)


def test_where_no_point_is_measured_the_phases_tell_of_the_client(tmp_path: Path) -> None:
    run = sweep(tmp_path)
    (told, *_) = client([], run)
    assert (told["level"], told["verdict"]) == ("ok", "the client was not the limit")
    table = run.system_metrics
    metrics, values = table.column("metric").to_pylist(), table.column("value").to_pylist()
    busy = [0.95 if metric == "cpu_busy" else value for metric, value in zip(metrics, values, strict=True)]
    run.__dict__["system_metrics"] = table.set_column(3, "value", [busy])
    (told, *_) = client([], run)
    assert (told["level"], told["verdict"]) == ("problem", "the client was the limit")
    run.__dict__["system_metrics"] = table.slice(0, 0)
    (told, *_) = client([], run)
    assert told["detail"] == "no metrics of the client"


@pytest.mark.parametrize("url", ["postgresql://db.example.com/bench", "postgresql://localhost/bench"])
def test_a_client_that_waited_for_a_processor_is_told_to_be_the_limit(tmp_path: Path, url: str) -> None:
    run = sweep(tmp_path)
    table = run.system_metrics
    # Busy for a quarter of the time; it waits for the rest. The place of a figure without a meaning here is taken.
    names = [
        "cpu_wait" if metric == "cpu_us_per_transaction" else metric
        for metric in table.column("metric").to_pylist()
    ]
    values = [
        0.7 if name == "cpu_wait" else value
        for name, value in zip(names, table.column("value").to_pylist(), strict=True)
    ]
    table = table.set_column(2, "metric", [names]).set_column(3, "value", [values])
    run.__dict__["system_metrics"] = table
    run.manifest["system"]["endpoints"]["rw"] = [url]
    first = scores_of(run)["verdicts"][0]
    if "localhost" in url:
        assert first["verdict"] == "the client was not the limit", "the server had the processors"
        return
    assert first["verdict"] == "the client was the limit"
    told = "a thread of it was running 25% of the time and waited for a processor for another 70% (SELECT c=2"
    assert first["detail"].startswith(told)
