"""Scripts of pgbench do here what they do in pgbench, on the same server."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pgbench_peer import HAS_PGBENCH, pgbench

from commands import call
from databases import Server, query, running_server
from nephoscope.store.reader import StoredRun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

needs_pgbench = pytest.mark.skipif(not HAS_PGBENCH, reason="no pgbench is here")

LAWS = """
\\set u random(1, 10)
\\set g random_gaussian(1, 10, 2.5)
\\set e random_exponential(1, 10, 3)
\\set z random_zipfian(1, 10, 1.5)
\\set s random_zipfian(1, 10, 15)
\\set f random(-9000000000000000000, 0) % 7
INSERT INTO drawn VALUES ('u', :u), ('g', :g), ('e', :e), ('z', :z), ('s', :s), ('f', :f);
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


def run(url: str, folder: Path, *words: str | Path) -> StoredRun:
    """Run a script here; gives what was kept."""
    ended = call("run", *words, "--url", url, "--out", folder / "runs", "--json")
    assert ended.code == 0, ended.err
    return StoredRun(folder / "runs" / "latest")


def drawn(url: str) -> dict[str, Counter[int]]:
    found: dict[str, Counter[int]] = {}
    for law, value, count in query(url, "SELECT law, value, count(*) FROM drawn GROUP BY 1, 2"):
        found.setdefault(str(law), Counter())[int(value or 0)] = int(count or 0)
    query(url, "TRUNCATE drawn")
    return found


def chi_squared(one: Counter[int], other: Counter[int]) -> tuple[float, int]:
    """The statistic of two samples, and its degrees of freedom; rare values count as one."""
    total, others = sum(one.values()), sum(other.values())
    values = sorted(one | other, key=lambda value: -(one[value] + other[value]))
    common = [value for value in values if (one[value] + other[value]) >= 20]
    rare = [value for value in values if value not in common]
    cells = [(one[value], other[value]) for value in common]
    cells += [(sum(one[value] for value in rare), sum(other[value] for value in rare))] if rare else []
    share = total / (total + others)
    statistic = sum(
        (mine - (mine + theirs) * share) ** 2 / ((mine + theirs) * share * (1 - share))
        for mine, theirs in cells
        if mine + theirs
    )
    return statistic, len(cells) - 1


@needs_pgbench
def test_draws_follow_the_laws_of_pgbench(server: Server, tmp_path: Path) -> None:
    url = server.new_database()
    query(url, "CREATE TABLE drawn (law text, value bigint)")
    script = tmp_path / "laws.sql"
    script.write_text(LAWS)
    assert pgbench(url, script, "-t", "3000").returncode == 0
    theirs = drawn(url)
    run(url, tmp_path, "--pgbench", script, "-T", "2", "-c", "2")
    mine = drawn(url)
    for law, counts in theirs.items():
        statistic, freedom = chi_squared(mine[law], counts)
        # Beyond this once in a million draws of 10 values.
        assert statistic < freedom + 10 * (2 * freedom + 4) ** 0.5, (law, mine[law], counts)


WHOLE = """
-- Every command; what it leads to is written down.
\\set n 5 + \\
  3 * 2
\\set half case when :n > 10 then 2.5 else null end
\\set bucket abs(hash(:n)) % 100
\\set flag :n > 10 and not (:half is null)
SELECT :n::int AS one, 'it''s; x' AS two, 3 AS three \\gset q_
\\if :q_one = 11
  \\set r 1
\\elif :no_such_thing = 1
  \\set r 2
\\else
  \\set r 3
\\endif
\\if false
  \\set r 4
  INSERT INTO written VALUES ('never', '');
\\elif :q_three = 3
  \\set s 5
\\endif
SELECT 1 AS a \\; SELECT 2 AS b \\; SELECT 3 AS c, 4 AS d \\aset z_
SELECT 5 AS e WHERE false \\aset z_
BEGIN ISOLATION LEVEL REPEATABLE READ;
INSERT INTO written VALUES ('mode', current_setting('transaction_isolation')); -- it is set; or not
END;
\\startpipeline
START TRANSACTION;
INSERT INTO written VALUES ('n', :n), ('half', :half), ('bucket', :bucket), ('flag', :flag);
INSERT INTO written VALUES ('r', :r), ('s', :s), ('a', :z_a), ('d', :z_d), ('slice', (ARRAY[1,2,3])[:z_a::int]);
COMMIT;
\\endpipeline
\\sleep 1 ms
BEGIN;
INSERT INTO written VALUES ('gone', '');
ROLLBACK;
INSERT INTO written VALUES ('big', :big), ('scale', :scale), ('client', :client_id), ('text', $a$ :n $a$), ('q', :q_one)
"""


def written(url: str) -> set[tuple[str | None, ...]]:
    rows = {tuple(row) for row in query(url, "SELECT DISTINCT name, value FROM written")}
    query(url, "TRUNCATE written")
    return rows


@needs_pgbench
@pytest.mark.parametrize("mode", ["simple", "prepared"])
def test_a_script_has_the_effects_that_it_has_in_pgbench(server: Server, tmp_path: Path, mode: str) -> None:
    url = server.new_database()
    query(url, "CREATE TABLE written (name text, value text)")
    script = tmp_path / "whole.sql"
    # Pipelines are for the extended protocol alone there, and statements that \\; joins for the simple one.
    text = WHOLE.replace("$a$ :n $a$", "'plain'")
    if mode == "simple":
        text = text.replace("\\startpipeline\n", "").replace("\\endpipeline\n", "")
    else:
        text = text.replace("1 AS a \\; SELECT 2 AS b \\; SELECT 3 AS c", "1 AS a, 3 AS c").replace(
            "\\; SELECT", ""
        )
        text = text.replace("VALUES ('n', :n)", "VALUES ('n', :n::text)")
    script.write_text(text)
    options = ["-D", "big=9223372036854775807", "-D", "scale=3", "-D", "default_seed=42", "-M", mode]
    ended = pgbench(url, script, "-t", "2", *options, "-D", "no_such_thing=0")
    assert ended.returncode == 0, ended.stderr
    theirs = written(url)
    run(url, tmp_path, "--pgbench", script, "-T", "1", *options, "-D", "no_such_thing=0")
    mine = written(url)
    assert mine == theirs
    assert ("mode", "repeatable read") in mine
    assert ("d", "4") in mine


IN_TEXT = """
\\set n random(1, 1)
\\set half 0.5
CREATE TEMPORARY TABLE IF NOT EXISTS part_:n (a int, b text);
TRUNCATE part_1;
INSERT INTO part_:n VALUES (:n, 'n is :n, half :half, at 12:30, :unknown');
SET application_name = 'client_:n';
INSERT INTO written SELECT a::text, b FROM part_:n;
INSERT INTO written VALUES ('name', current_setting('application_name'));
"""


@needs_pgbench
def test_values_stand_where_no_parameter_may(server: Server, tmp_path: Path) -> None:
    url = server.new_database()
    query(url, "CREATE TABLE written (name text, value text)")
    script = tmp_path / "in_text.sql"
    script.write_text(IN_TEXT)
    assert pgbench(url, script, "-t", "2").returncode == 0
    theirs = written(url)
    run(url, tmp_path, "--pgbench", script, "-T", "1")
    assert written(url) == theirs
    assert ("1", "n is 1, half 0.5, at 12:30, :unknown") in theirs


def test_variables_last_as_long_as_a_session(server: Server, tmp_path: Path) -> None:
    url = server.new_database()
    query(url, "CREATE TABLE counted (client int, value int)")
    script = tmp_path / "counting.sql"
    script.write_text("\\set count :count + 1\nINSERT INTO counted VALUES (:client_id, :count);\n")
    run(url, tmp_path, "--pgbench", script, "-D", "count=10", "-c", "2", "-T", "1")
    sql = "SELECT client, min(value), max(value) - count(*), count(distinct value) = count(*) FROM counted GROUP BY 1"
    assert sorted(map(tuple, query(url, sql))) == [("0", "11", "10", "t"), ("1", "11", "10", "t")]


def test_scripts_run_by_their_weights(server: Server, tmp_path: Path) -> None:
    url = server.new_database()
    for name in ("one", "two", "none"):
        (tmp_path / f"{name}.sql").write_text("SELECT 1;\n")
    words = [
        "--pgbench",
        f"{tmp_path}/one.sql@3",
        "-f",
        f"{tmp_path}/two.sql",
        "-f",
        f"{tmp_path}/none.sql@0",
    ]
    stored = run(url, tmp_path, *words, "-T", "1")
    counts: Counter[str] = Counter()
    for series in stored.intervals.to_pylist():
        counts[series["transaction"]] += series["committed"]
    total = counts.total()
    assert set(counts) == {"one", "two"}
    # Five standard deviations.
    assert abs(counts["one"] - 0.75 * total) < 5 * (0.75 * 0.25 * total) ** 0.5


def test_built_in_scripts_are_the_workload_tpcb(server: Server, tmp_path: Path) -> None:
    url = server.new_database()
    (tmp_path / "count.sql").write_text("SELECT count(*) FROM pgbench_branches;\n")
    stored = run(url, tmp_path, "--pgbench", "simple-update@3", "-S", "-c", "2", "-T", "1")
    assert stored.manifest["workload"]["name"] == "tpcb"
    names = {series["transaction"] for series in stored.intervals.to_pylist() if series["committed"]}
    assert names == {"simple_update", "select_only"}
    words = ["--pgbench", f"{tmp_path}/count.sql", "-b", "tpcb", "-T", "1", "--set", "workload.external=true"]
    stored = run(url, tmp_path, *words)
    names = {series["transaction"] for series in stored.intervals.to_pylist() if series["committed"]}
    assert names == {"count", "tpcb_like"}
    assert call("check", "--pgbench", "tpcb-like", "--url", url).code == 0


REFUSED = {
    "\\setshell x echo 1\nSELECT 1;": ":1: \\setshell runs a program",
    "SELECT 1;\n\\foo\n": ":2: \\foo is not known; meta commands are \\set, ",
    "\\set x 1 +\nSELECT 1;": ":1: \\set x 1 +: a value is missing before the end",
    "\\set 1\nSELECT 1;": ":1: expected \\set NAME EXPRESSION",
    "\\if true\nSELECT 1;\n": ":1: the \\if has no \\endif",
    "\\endif\nSELECT 1;\n": ":1: \\endif without an \\if",
    "\\if true\n\\else\n\\elif true\n\\endif\nSELECT 1;": ":3: \\elif behind the \\else",
    "\\startpipeline\nSELECT 1;\n": ":1: the \\startpipeline has no \\endpipeline",
    "\\gset\nSELECT 1;": ":1: \\gset follows a statement",
    "SELECT 'a;\n": ":1: the quotation that begins with ' does not end",
    "\nSELECT 1 /* a;\n": ":2: the comment that begins with /* does not end",
    "\\set n 1\n": ":1: the script has no SQL",
    "SELECT 1;\nCOMMIT AND CHAIN;": ":2: COMMIT AND CHAIN: transactions end by COMMIT, END, ROLLBACK or ABORT alone",
    "\\sleep soon\nSELECT 1;": ":1: expected \\sleep NUMBER, and us, ms or s behind it",
    "SELECT 1;\nSELECT :n;": ":2: :n is never set; -D n=VALUE or workload.options.n sets it",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_wrong_in_a_script_is_named_with_its_line(tmp_path: Path, text: str) -> None:
    script = tmp_path / "wrong.sql"
    script.write_text(text)
    ended = call("workloads", f"pgbench:{script}")
    assert ended.code == 2
    assert f"wrong.sql{REFUSED[text]}" in ended.err


OPTIONS = {
    "-h localhost": "pgbench -h: the server and its database are named by --url",
    "-t 5": "pgbench -t: a run ends by time: -T SECONDS",
    "-C": "pgbench -C: sessions keep their connections here",
    "-c 0": "pgbench -c: '0' must be a whole number from 1 on",
    "-c": "pgbench -c: its value is missing",
    "-b foo": "pgbench -b foo: built-in scripts are tpcb-like, simple-update, select-only",
    "-M fast": "pgbench -M fast: protocols are simple, extended, prepared",
    "-D x": "pgbench -D x: expected NAME=VALUE",
    "--frobnicate": "pgbench --frobnicate: not known here; known are -f, ",
    "bank": "pgbench: 'bank': the server and its database are named by --url, and a study stands before",
    "": "--pgbench: scripts of pgbench have no tables of their own; --url says where they are",
}


@pytest.mark.parametrize("words", OPTIONS)
def test_options_without_a_counterpart_are_refused_by_name(tmp_path: Path, words: str) -> None:
    script = tmp_path / "fine.sql"
    script.write_text("SELECT 1;")
    ended = call("run", "--pgbench", script, *words.split())
    assert (ended.code, ended.out) == (2, "")
    assert OPTIONS[words] in ended.err


def test_the_same_script_makes_the_same_workload(tmp_path: Path) -> None:
    described = []
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "script.sql").write_text(
            WHOLE.replace(":n $a$", "$a$").replace(":no_such_thing", "0")
        )
        options = ["--set", 'big="1"', "--json"]
        described.append(
            json.loads(call("workloads", f"pgbench:{tmp_path}/{place}/script.sql", *options).out)[0]
        )
    files = [description.pop("files") for description in described]
    assert described[0] == described[1]
    assert len(files[0]) == len(files[1])


def test_what_fails_while_a_script_runs_is_named_by_its_line_first(server: Server, tmp_path: Path) -> None:
    script = tmp_path / "divide.sql"
    script.write_text("\\set zero 0\n\\set x 1 / :zero\nSELECT :x;\n")
    words = ("run", "--pgbench", script, "-T", "1", "--url", server.url, "--out", tmp_path / "runs")
    ended = call(*words)
    assert ended.code == 1, ended.out
    assert "divide.lua:2: division by zero" in ended.err, ended.err


def test_a_workload_of_scripts_is_shown_with_their_names_and_not_with_a_temporary_folder(
    tmp_path: Path,
) -> None:
    script = tmp_path / "one.sql"
    script.write_text("SELECT 1;\n")
    shown = call("workloads", f"pgbench:{script}")
    assert shown.code == 0, shown.err
    assert f"pgbench:{script}" in shown.out.replace("\n", "")
    assert "nephoscope-" not in shown.out
