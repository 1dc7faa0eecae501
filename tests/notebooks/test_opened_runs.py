"""``nephoscope.open``: what it gives is what the run's own files and commands say; the notebook runs as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from notebook_page import beside_a_run, outputs, read, rewritten, stored

import nephoscope
from nephoscope.errors import InputError
from nephoscope.results.scores import scores_of
from nephoscope.store import StoredRun
from planted_runs import run

if TYPE_CHECKING:
    from pathlib import Path

    from nephoscope.results.opened import OpenedRun


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenedRun:
    return nephoscope.open(run(tmp_path_factory.mktemp("opened") / "planted", repetitions=2).folder)


def test_the_notebook_runs_as_it_stands_and_shows_what_it_computes(tmp_path: Path) -> None:
    notebook = read()
    with beside_a_run(tmp_path):
        made = outputs(notebook)
    assert made == stored(notebook)
    assert len(made) > 10
    assert all(made)


def test_a_notebook_that_shows_something_else_is_seen() -> None:
    notebook = read()
    code = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    code["source"] = ["1 + 1"]
    assert stored(notebook)[0] != "2"
    notebook["cells"] = [code]
    assert '"2"' in rewritten(notebook)


def test_scores_verdicts_and_tables_are_those_of_the_run(opened: OpenedRun) -> None:
    stored_run = StoredRun(opened.folder)
    scores = scores_of(stored_run)
    assert opened.results == scores
    assert opened.scores["P"]["value"] == scores["scores"]["P"]["value"]
    assert opened.verdicts == scores["verdicts"]
    assert opened.absent["T"] == "no evaluator of this study measures it"
    assert opened.study["study"]["name"] == "planted"
    assert opened.manifest["status"] == "measured"
    assert opened.table("intervals").num_rows == 160
    assert opened.table("points").num_rows == 4
    assert {"intervals", "system", "probes", "scores", "points"} <= set(opened.tables)
    assert all(opened.table(name).num_columns for name in opened.tables)
    assert repr(opened) == "<run planted: measured>"


def test_histograms_are_added_up_by_labels_series_and_time(opened: OpenedRun) -> None:
    points = opened.table("points").to_pylist()
    for point in points:
        labels = {name: point[name] for name in ("mix", "concurrency", "repetition")}
        found = opened.histogram(**labels)
        assert found.count == point["committed"]
        assert found.percentile(99) == pytest.approx(point["latency_p99_ms"])
    whole = opened.histogram()
    assert whole.count == sum(point["committed"] for point in points)
    assert opened.histogram(transaction="select_only", role="rw", tenant="default").count == whole.count
    assert opened.histogram(transaction="none").count == 0
    # Four phases of 4 s each, one after the other.
    by_time = [opened.histogram(window=(start, start + 4.0)) for start in (0.0, 4.0, 8.0, 12.0)]
    assert [part.count for part in by_time] == [point["committed"] for point in points]
    total = by_time[0] + by_time[1] + by_time[2] + by_time[3]
    assert total.table().equals(whole.table())
    assert sum(row["count"] for row in whole.table().to_pylist()) == whole.count
    assert whole.max == whole.percentile(100)
    assert whole.share_within(whole.max or 0.0) == 1.0
    assert "transactions, p50 2" in repr(whole)


def test_an_empty_histogram_has_no_percentiles(opened: OpenedRun) -> None:
    empty = opened.histogram(kind="failed")
    assert (empty.count, empty.mean, empty.percentile(50), empty.share_within(1.0)) == (0, None, None, None)
    assert repr(empty) == "LatencyHistogram(empty)"


def test_wrong_names_are_refused_with_what_there_is(opened: OpenedRun, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="has no table 'speed'; tables are intervals, system, probes, scores"
    ):
        opened.table("speed")
    with pytest.raises(InputError, match=r"no measured phase with mix='RW'; labels are .*mix: 'SELECT'"):
        opened.histogram(mix="RW")
    with pytest.raises(InputError, match="a percentile of 101; allowed: 0 to 100"):
        opened.histogram().percentile(101)
    with pytest.raises(InputError, match="is no run directory"):
        nephoscope.open(tmp_path)


def test_pandas_makes_its_table_where_it_is_installed(opened: OpenedRun) -> None:
    pytest.importorskip("pandas")
    assert len(opened.table("points").to_pandas()) == 4
