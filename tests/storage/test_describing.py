"""What is described is what was planted."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from planted import Planted, write_corpus

from commands import call
from nephoscope.errors import InputError
from nephoscope.storage.described_tables import notes_of, skew_of, tables_of
from nephoscope.storage.describing import burst_of, chosen_run, describe_run, hot_and_cold
from nephoscope.tables.model import find

if TYPE_CHECKING:
    from pathlib import Path

    from nephoscope.storage.corpus import Corpus

POISSON = Planted(seconds=600)
BURSTY = Planted(rate=1400.0, modulation=0.36, memory=0.6, seconds=600, background=0.0)
EQUAL = Planted(rate=50.0, seconds=60, segments=10, skew=0.0, background=0.0, read_share=0.0)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return write_corpus(tmp_path_factory.mktemp("corpora") / "corpus", POISSON, BURSTY, EQUAL)


@pytest.fixture(scope="module")
def rows(corpus: Corpus) -> dict[str, list[dict[str, Any]]]:
    tables = tables_of([describe_run(corpus, run) for run in corpus.runs])
    return {table.name: list(table.rows) for table in tables}


def of(rows: list[dict[str, Any]], run: int, stream: str) -> dict[str, Any]:
    (row,) = [row for row in rows if (row["run"], row["stream"]) == (run, stream)]
    return row


def test_poisson_arrivals_have_a_dispersion_of_one(rows: dict[str, list[dict[str, Any]]]) -> None:
    row = of(rows["storage_intensity"], 0, "both")
    # Five standard errors of 600 seconds.
    assert row["requests_per_s"] == pytest.approx(500, abs=5 * np.sqrt(500 / 600))
    assert row["dispersion"] == pytest.approx(1, abs=5 * np.sqrt(2 / 600))
    assert row["autocorrelation"] == pytest.approx(0, abs=5 / np.sqrt(600))
    assert row["burstiness"] == "low"
    assert row["tps"] == pytest.approx(100, abs=5 * np.sqrt(100 / 600))


def test_what_moves_the_rate_is_told_from_chance(rows: dict[str, list[dict[str, Any]]]) -> None:
    row = of(rows["storage_intensity"], 1, "foreground")
    assert row["excess_variation"] == pytest.approx(0.36, rel=0.2)
    assert row["dispersion"] == pytest.approx(1 + 1400 * 0.36**2, rel=0.4)
    assert row["autocorrelation"] == pytest.approx(0.6, abs=0.2)
    assert row["burstiness"] == "high"


def test_the_words_are_those_of_the_papers_workloads() -> None:
    random = np.random.default_rng(3)
    oss, sync = (random.normal(mean, deviation, 600) for mean, deviation in ((1382, 505), (820, 56)))
    assert (burst_of(oss).word, burst_of(sync).word) == ("high", "low")


def test_reads_writes_and_their_streams_are_told_apart(rows: dict[str, list[dict[str, Any]]]) -> None:
    both = of(rows["storage_skew"], 0, "both")
    assert both["read_share"] == pytest.approx(0.9, abs=0.01)
    # Four sizes, each half as likely as the one before.
    assert both["write_bytes_mean"] == pytest.approx(1024 * (8 + 4 * 4 + 8 * 2 + 12) / 15, rel=0.02)
    assert both["write_bytes_largest"] == 12288
    background = of(rows["storage_skew"], 0, "background")
    assert background["reads"] == 0
    assert background["writes"] / both["writes"] == pytest.approx(0.2, abs=0.02)
    assert [row["stream"] for row in rows["storage_skew"] if row["run"] == 1] == ["foreground"]


def test_hot_segments_are_the_fewest_that_take_their_share() -> None:
    assert hot_and_cold(np.array([5, 0, 80, 5, 10])) == (1, 3)
    assert hot_and_cold(np.array([79, 1, 10, 10])) == (2, 2)
    assert hot_and_cold(np.array([10] * 10)) == (8, 2)
    assert hot_and_cold(np.zeros(3)) == (0, 0)


def test_of_equal_segments_all_but_a_fifth_are_hot(rows: dict[str, list[dict[str, Any]]]) -> None:
    row = of(rows["storage_skew"], 2, "foreground")
    assert row["hot_segments"] in (8, 7)
    assert row["hot_segments"] + row["cold_segments"] == 10


def test_processes_have_their_requests_and_latencies(rows: dict[str, list[dict[str, Any]]]) -> None:
    found = {(row["run"], row["process"], row["operation"]): row for row in rows["storage_processes"]}
    reads = found[0, "backend", "read"]
    assert reads["latency_p50_us"] == pytest.approx(np.exp(5), rel=0.05)
    assert reads["latency_known"] == reads["requests"]
    assert {process for run, process, _ in found if run == 0} == {"backend", "checkpointer"}


def test_the_parts_add_up_to_the_whole(rows: dict[str, list[dict[str, Any]]]) -> None:
    whole = of(rows["storage_skew"], 0, "both")
    all_requests = whole["reads"] + whole["writes"]
    for name in ("storage_sizes", "storage_cells"):
        of_run = [row for row in rows[name] if (row["run"], row["stream"]) == (0, "both")]
        assert sum(row["requests"] for row in of_run) == all_requests
    seconds = [row for row in rows["storage_seconds"] if (row["run"], row["stream"]) == (0, "both")]
    assert len(seconds) == 600
    assert sum(row["read"] + row["write"] for row in seconds) == all_requests
    segments = [row for row in rows["storage_segments"] if (row["run"], row["stream"]) == (0, "foreground")]
    assert sum(row["reads"] for row in segments) == whole["reads"]
    assert segments[5]["name"] == "orders_1 1"


def test_a_run_that_is_not_there_is_named(corpus: Corpus) -> None:
    with pytest.raises(InputError, match="no run 9; its runs are 0, 1, 2"):
        chosen_run(corpus, 9)


def test_latencies_that_are_not_known_are_absent(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", EQUAL)
    run = describe_run(corpus, corpus.runs[0])
    unknown = [taken._replace(latency_us=taken.latency_us[:0]) for taken in run.taken]
    described = type(run)(**{**vars(run), "taken": unknown})
    processes = find(tables_of([described]), "storage_processes")
    assert processes is not None
    assert "p50" not in processes.headings
    assert skew_of(described, "foreground")["syncs_per_s"] == 0


def test_redo_goes_through_no_cache(tmp_path: Path) -> None:
    mixed = Planted(rate=50.0, seconds=20, read_share=0.5)
    described = [
        describe_run(corpus, corpus.runs[0])
        for corpus in (write_corpus(tmp_path / view, mixed, view=view) for view in ("page", "log"))
    ]
    page, log = (run.whole_curve for run in described)
    assert page is not None
    assert log is not None
    reads = skew_of(described[1], "both")["reads"]
    assert (log.accesses, set(described[1].curves)) == (reads, {"foreground"})
    assert page.accesses > log.accesses
    assert "go through no cache" in " ".join(notes_of(described[1:]))
    assert "of reads." in " ".join(notes_of(described[1:]))


def test_the_command_writes_tables_and_json(corpus: Corpus, tmp_path: Path) -> None:
    folder = str(corpus.folder)
    shown = call("storage", "describe", folder, "--out", str(tmp_path / "tables"))
    assert shown.code == 0, shown.err
    assert "Intensity" in shown.out
    assert "low below 0.1" in shown.out
    with (tmp_path / "tables" / "storage_intensity.csv").open() as file:
        assert [row["run"] for row in csv.DictReader(file)] == ["0", "0", "0", "1", "2"]
    told = call("storage", "describe", folder, "--run", "1", "--json")
    assert {row["run"] for row in json.loads(told.out)["storage_skew"]} == {1}


def test_two_runs_are_compared(corpus: Corpus, tmp_path: Path) -> None:
    words = ["storage", "describe", str(corpus.folder), "--run", "0", "--run", "1", "--json"]
    rows = {row["figure"]: row for row in json.loads(call(*words).out)["storage_differences"]}
    assert rows["requests/s, mean"]["difference"] == pytest.approx(1400 / 500 - 1, rel=0.1)
    assert rows["index of dispersion"]["difference"] == pytest.approx(np.log(1 + 1400 * 0.36**2), abs=0.5)
    assert rows["read share"]["difference"] == pytest.approx(0, abs=0.01)
    assert 0 < rows["miss-ratio curve (its end)"]["difference"] < 0.05
    # One law for both: what is left is chance.
    assert 0 < rows["cells of segment and size"]["difference"] < 0.02
    page = tmp_path / "page.html"
    told = call("storage", "describe", str(corpus.folder), str(corpus.folder), "--html", str(page))
    assert f"page: {page}" in told.out.replace("\n", "")
    assert "second / first" in page.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--run", "7"], "no run 7"),
        (["--sample", "2"], "--sample 2 is no share"),
        (["--run", "0", "--run", "1", "--run", "2"], "at most 2 runs"),
    ],
)
def test_what_cannot_be_described_is_refused(corpus: Corpus, words: list[str], message: str) -> None:
    refused = call("storage", "describe", str(corpus.folder), *words)
    assert refused.code == 2
    assert message in refused.err
