"""sysbench's own scripts, unmodified: prepare, run, cleanup on two products; its command line; its summary."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from commands import call
from databases import SERVERS, query
from nephoscope.foreign.sysbench import PACKAGED
from nephoscope.store import StoredRun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commands import Ended

SCRIPTS = sorted(path.stem for path in PACKAGED.glob("*.lua") if path.stem != "oltp_common")
READS = {"oltp_point_select", "oltp_read_only", "select_random_points", "select_random_ranges"}
TABLES = ["sbtest1", "sbtest2"]

needs_scripts = pytest.mark.skipif(not SCRIPTS, reason="the scripts of sysbench's package are not installed")


@pytest.fixture(scope="module", params=[name for name in SERVERS if name != "sqlite"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with SERVERS[request.param]() as server:
        yield server.new_database()


def sysbench(url: str, tmp_path: Path, script: str, *words: str) -> Ended:
    return call("run", "--url", url, "--out", tmp_path / "runs", "--sysbench", script, *words)


def tables_of(url: str) -> list[str]:
    found = query(
        url, "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'sbtest%' ORDER BY 1"
    )
    return [str(name) for (name,) in found]


@needs_scripts
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_of_the_package_prepares_runs_and_cleans_up(url: str, script: str, tmp_path: Path) -> None:
    single = script.startswith(("select", "bulk"))
    options = ["--threads=2"] if script == "bulk_insert" else ["--table-size=500", "--threads=2"]
    options += [] if single else ["--tables=2"]
    prepared = sysbench(url, tmp_path, script, *options, "prepare")
    assert prepared.code == 0, prepared.err + prepared.out
    made = TABLES if not single or script == "bulk_insert" else TABLES[:1]
    assert tables_of(url) == made
    if script != "bulk_insert":
        for table in made:
            kept = query(
                url, f"SELECT count(*), min(id), max(id), min(length(c)), max(length(pad)) FROM {table}"
            )
            assert kept == [["500", "1", "500", "119", "59"]]
    ran = sysbench(url, tmp_path, script, *options, "--time=1", "--rand-seed=3", "--summary", "sysbench")
    assert ran.code == 0, ran.err + ran.out
    run = StoredRun(tmp_path / "runs" / "latest")
    rows = run.intervals.to_pylist()
    committed = sum(row["committed"] for row in rows)
    assert committed > 0
    assert not any(row["other"] for row in rows)
    counted = {
        word: int(number)
        for word, number in re.findall(r"^ +(read|write|other): +(\d+)$", ran.out, re.MULTILINE)
    }
    check_queries(script, counted, committed)
    if script == "bulk_insert":
        inserted = query(url, "SELECT (SELECT count(*) FROM sbtest1) + (SELECT count(*) FROM sbtest2)")
        assert inserted == [[str(committed)]], "what was left of a packet is sent at the end"
    cleaned = sysbench(url, tmp_path, script, *options, "cleanup")
    assert cleaned.code == 0, cleaned.err + cleaned.out
    assert tables_of(url) == []


def check_queries(script: str, counted: dict[str, int], events: int) -> None:
    """Compare the queries that were counted with those of an event; the last events of a session may not be told."""
    each = {
        "oltp_read_only": (14, 0, 2),
        "oltp_read_write": (14, 4, 2),
        "oltp_write_only": (0, 4, 2),
        "bulk_insert": None,
    }.get(script, (1, 0, 0) if script in READS else (0, 1, 0))
    if each is None:
        assert counted["write"] >= 2
        return
    for word, number in zip(("read", "write", "other"), each, strict=True):
        assert number * events <= counted[word] <= number * (events + 2 * 2) * 1.2, (word, counted, events)


@needs_scripts
def test_a_script_of_ones_own_requires_the_packages(url: str, tmp_path: Path) -> None:
    script = tmp_path / "mine.lua"
    script.write_text(
        """require("oltp_common")
function prepare_statements() prepare_point_selects() end
function event()
  local row = con:query_row("SELECT count(*) FROM sbtest1")
  assert(row == "7", row)
  execute_point_selects()
end
"""
    )
    assert sysbench(url, tmp_path, str(script), "--table-size=7", "prepare").code == 0
    ran = sysbench(url, tmp_path, str(script), "--table-size=7", "--time=1", "--rate=50", "--threads=3")
    assert ran.code == 0, ran.err + ran.out
    (phase,) = [phase for phase in StoredRun(tmp_path / "runs" / "latest").phases if phase.kind == "measure"]
    assert phase.labels["rate"] == 50
    assert sysbench(url, tmp_path, str(script), "cleanup").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nope=3"], "has no option 'nope'"),
        (["--mysql-host=db"], "sysbench --mysql-host: the system is named by --url"),
        (["--events=5"], "sysbench --events: a run ends by time: --time"),
        (["--threads=none"], "sysbench --threads: 'none' must be a whole number from 1 on"),
        (["--time=0"], "sysbench --time: 0 has no end"),
        (["--mysql-ignore-errors=7"], "'7'; those with a class here are 1213, 1205, 1020, 1062, all"),
        (["--db-ps-mode=no"], "'no'; allowed are auto, disable"),
        (["warm"], "script.lua has no command warm; it has run"),
        (["prepare", "run"], "sysbench run: expected --NAME=VALUE, or one command behind the options"),
    ],
)
def test_what_a_command_line_has_wrong_is_refused_by_name(
    tmp_path: Path, words: list[str], message: str
) -> None:
    script = tmp_path / "script.lua"
    script.write_text("function event() sysbench.sql.driver():connect():query('SELECT 1') end\n")
    ended = sysbench("noop://", tmp_path, str(script), *words)
    assert ended.code == 2, ended.out
    assert message in " ".join(ended.err.replace('"', "'").split())


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("function event()\n  local a = nothing.there\nend\n", 2, "attempt to index global 'nothing'"),
        (
            "function thread_init()\n  con = 1\n  con:query('x')\nend\nfunction event() end\n",
            3,
            "attempt to index",
        ),
    ],
)
def test_a_mistake_in_a_script_is_one_message_with_its_line(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    script = tmp_path / "broken.lua"
    script.write_text(text)
    ended = sysbench("noop://", tmp_path, str(script), "--time=1")
    assert ended.code == 1
    assert ended.err.count(message) == 1
    assert f"broken.lua:{line}: {message}" in " ".join(ended.err.split())


def test_the_words_of_a_command_line_are_keys_of_a_study(tmp_path: Path) -> None:
    script = tmp_path / "script.lua"
    script.write_text("function event() sysbench.sql.driver():connect():query('SELECT 1') end\n")
    words = ["--threads=3", "--time=1", "--report-interval=1", "--rand-type=pareto", "--rand-seed=9"]
    words += ["--db-ps-mode=disable", "--mysql-ignore-errors=1213,1062", "--histogram"]
    ended = sysbench("noop://", tmp_path, str(script), *words)
    assert ended.code == 0, ended.err
    assert "sysbench --histogram: the report has every percentile" in ended.err
    study = StoredRun(tmp_path / "runs" / "latest").study
    for line in (
        "concurrency = 3",
        'rand_type = "pareto"',
        "seed = 9",
        'statement_mode = "simple"',
        "external = true",
    ):
        assert line in study, line
    assert re.search(r'classes = \[\s*"deadlock",\s*"constraint",?\s*\]', study)
