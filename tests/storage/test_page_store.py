from __future__ import annotations

import html
import json
import re
import signal
from typing import TYPE_CHECKING

import pytest
from planted import Planted, write_corpus

from commands import call, start
from nephoscope.errors import InputError
from nephoscope.storage.executed import executed
from nephoscope.storage.serving import replicas_of
from nephoscope.store.reader import StoredRun

if TYPE_CHECKING:
    from pathlib import Path


def test_a_corpus_is_executed_on_a_page_store_that_is_served(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", Planted(rate=100, seconds=2))
    words = ("storage", "serve", "--append", "20ms", "--read", "10ms", "--parallel", "64", "--json")
    with start(*words, cwd=tmp_path) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        assert re.fullmatch(r"page-store://(127\.0\.0\.1:\d+,?){3}\?quorum=2", url), url
        done = call(
            "storage", "run", corpus.folder, "--target", url, "--repetitions", "1", "--out", tmp_path / "runs"
        )
        assert done.code == 0, done.err
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=60)
    assert server.returncode == 0, err
    replicas = json.loads(out)["page_store"]
    stored = executed(StoredRun(tmp_path / "runs" / "latest"))
    counted = {tail.operation: tail for tail in stored.tails if tail.operation in {"read", "write"}}
    reads, writes = counted["read"], counted["write"]
    assert (reads.failed, writes.failed, writes.done > 0, reads.done > 0) == (0, 0, True, True)
    assert [replica["appends"] for replica in replicas] == [writes.done] * 3
    assert sum(replica["reads"] for replica in replicas) == reads.done
    assert sum(replica["refused"] for replica in replicas) == 0
    # As long as planted at least: nothing is faster than that, however busy the machine is.
    assert writes.latency.of_rank(1) >= 20
    assert reads.latency.of_rank(1) >= 10


def test_a_run_of_which_most_requests_fail_ends_with_an_error(tmp_path: Path) -> None:
    """A store that is full refuses every write: its words are the verdict, and nothing is taken for measured."""
    writing = write_corpus(tmp_path / "writing", Planted(rate=100, seconds=2, read_share=0.2))
    reading = write_corpus(tmp_path / "reading", Planted(rate=100, seconds=2, read_share=0.9))
    with start("storage", "serve", "--memory", "4KiB", cwd=tmp_path) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        words = ("--target", url, "--repetitions", "1", "--out", tmp_path / "runs", "--json")
        mostly = call("storage", "run", writing.folder, *words)
        run = StoredRun(tmp_path / "runs" / "latest")
        partly = call("storage", "run", reading.folder, *words)
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
    tails = {tail.operation: tail for tail in executed(run).tails}
    failed, ended = tails["write"].failed, tails["all"].done + tails["all"].failed
    assert tails["write"].done < tails["write"].failed
    assert f"writing: {failed:,} of {ended:,} requests failed" in " ".join(mostly.err.split())
    assert (mostly.code, run.manifest["status"]) == (1, "failed")
    [verdict] = json.loads(mostly.out)["verdicts"]
    assert verdict["level"] == "problem"
    assert "The target said: " in verdict["detail"], verdict
    assert verdict["detail"] in html.unescape((run.folder / "report.html").read_text())
    told = call("report", run.folder, "--format", "markdown")
    assert (told.code, f"problem: writing: {failed:,} of" in told.out) == (0, True), told.err
    # Where most requests are done, the verdict alone tells of the others.
    assert (partly.code, json.loads(partly.out)["verdicts"][0]["level"]) == (0, "problem"), partly.err


def test_a_service_has_an_end_and_a_table(tmp_path: Path) -> None:
    done = call("storage", "serve", "--replicas", "1", "--seconds", "0.1", "--folder", tmp_path / "logs")
    assert (done.code, done.out.startswith("page-store://127.0.0.1:")) == (0, True), done.err
    assert "Replicas of the page store" in done.out
    assert [file.name for file in (tmp_path / "logs").iterdir()] == ["replica-1.log"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--stall", "4:1s+1s"), "there are replicas 1 to 3"),
        (("--stall", "1s"), "it is written as 10s+0.5s"),
        (("--stall", "x:1s+1s"), "it is written as 10s+0.5s"),
        (("--stall", "1s+soon"), "a length of time"),
        (("--append", "fast"), "--append fast"),
        (("--page-size", "1000"), "powers of two"),
        (("--memory", "much"), "--memory much"),
        (("--parallel", "0"), "--parallel 0"),
        (("--sync",), "without --folder"),
        (("--host", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_served_is_refused(words: tuple[str, ...], said: str) -> None:
    done = call("storage", "serve", "--seconds", "0", *words)
    assert (done.code, done.out) == (2, "")
    assert said in " ".join(done.err.split())


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with start("storage", "serve", "--replicas", "1", cwd=tmp_path) as server:
        assert server.stdout is not None
        port = server.stdout.readline().partition("?")[0].rpartition(":")[2]
        done = call("storage", "serve", "--replicas", "1", "--port", port, "--seconds", "0")
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
    assert done.code == 1
    assert f"127.0.0.1:{port}" in done.err


def test_stalls_are_those_of_their_replicas() -> None:
    replicas = replicas_of(2, "::1", 7000, ["10s+0.5s", "2:1m+1s", "2:0s+1ms"], None)
    assert [replica["address"] for replica in replicas] == ["[::1]:7000", "[::1]:7001"]
    assert [replica["stalls"] for replica in replicas] == [[(10, 0.5)], [(60, 1), (0, 0.001)]]
    with pytest.raises(InputError, match="0:1s"):
        replicas_of(2, "::1", 0, ["0:1s+1s"], None)
