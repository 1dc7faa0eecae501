"""Fingerprints beside those of PostgreSQL's own parser (libpg_query): the same statements have the same."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pglast.parser import ParseError, fingerprint

from nephoscope import _engine

WORKLOADS = Path(__file__).parent.parent.parent / "workloads"

HARD = [
    "SELECT {}",
    "SELECT a - {}, b-{}, c -{} FROM t",
    "SELECT a FROM t WHERE b = {}",
    "SELECT a FROM t WHERE b = {} AND c = {}",
    "SELECT a FROM t WHERE b <> {}",
    "SELECT a FROM t WHERE b != {} -- not the same",
    "SELECT a FROM t WHERE z IN ({})",
    "SELECT a FROM t WHERE z IN ({}, {}, {})",
    "SELECT a FROM t WHERE z NOT IN ({}, {})",
    "SELECT a FROM t WHERE (b, c) IN (({}, {}), ({}, {}))",
    "SELECT a FROM t WHERE b BETWEEN {} AND {} ORDER BY c LIMIT 5 OFFSET 7",
    "SELECT a FROM t WHERE b IS NULL AND c = {}",
    "SELECT a FROM t WHERE b IS NOT NULL AND c = {}",
    "SELECT a FROM t WHERE b IS TRUE AND c = {}",
    "SELECT a FROM t WHERE y = ANY ({})",
    "SELECT a[1], ARRAY[{}, {}] FROM t",
    "SELECT CASE WHEN a = {} THEN {} ELSE {} END FROM t",
    "SELECT /* a comment */ count(*) FROM t WHERE b LIKE {}",
    "SELECT count ( * ) FROM t WHERE c LIKE {}",
    "INSERT INTO t (a, b) VALUES ({}, {})",
    "INSERT INTO t (a, b) VALUES ({}, {}), ({}, {}), ({}, {})",
    "INSERT INTO t (a, b) VALUES ({}, now()), ({}, now()) ON CONFLICT DO NOTHING",
    "UPDATE t SET a = {}, b = b + {} WHERE c = {}",
    "UPDATE t SET a = {} WHERE c = {} RETURNING a",
    "DELETE FROM t WHERE a = {} AND b @> {}",
    "WITH x AS (SELECT {} AS a) SELECT a FROM x WHERE a = {}",
    'SELECT "A b" FROM t WHERE c = {}',
    "SELECT a FROM T WHERE C = {} AND d ->> {} = {}",
    "BEGIN",
    "COMMIT",
]
VALUES = st.one_of(
    st.integers(-999, 99999).map(str),
    st.sampled_from(
        ["0.5", "-1e10", ".25", "NULL", "'it''s'", "E'a\\'b'", "$q$ x '$q$", "X'1F'", "B'01'", "''"]
    ),
    st.text("abc ,;()$é", max_size=6).map(lambda text: f"'{text}'"),
)

DIFFER = {
    "SELECT 1::int": "a cast of a constant is seen here; pg_query takes it for a part of the constant",
    "SELECT b, a FROM t": "the order of columns counts here; pg_query sorts them",
    "SELECT a AS x FROM t": "the name of a column of the result counts here",
    'SELECT "a" FROM t': "a name in quotes stays in them here, because it may be a keyword",
    "SELECT a FROM t AS u": "AS is a word here; in the tree it is none",
    "SELECT (a) FROM t": "brackets that change nothing count here",
    "SELECT a FROM t WHERE (b = 1)": "as above",
    "INSERT INTO t (a, b) VALUES (1, DEFAULT)": "DEFAULT is a word here; pg_query passes over it",
    "INSERT INTO t VALUES (1, 2)": "the values of a row count here",
    "SELECT a FROM t WHERE b IN (1, 2)": "a list of IN is none of `=` here; in the tree both are the operator",
}
"""Statements that have another fingerprint here than their like, on purpose, and why; the like is in LIKE."""
LIKE = {
    "SELECT 1::int": "SELECT 1",
    "SELECT b, a FROM t": "SELECT a, b FROM t",
    "SELECT a AS x FROM t": "SELECT a FROM t",
    'SELECT "a" FROM t': "SELECT a FROM t",
    "SELECT a FROM t AS u": "SELECT a FROM t u",
    "SELECT (a) FROM t": "SELECT a FROM t",
    "SELECT a FROM t WHERE (b = 1)": "SELECT a FROM t WHERE b = 1",
    "INSERT INTO t (a, b) VALUES (1, DEFAULT)": "INSERT INTO t (a, b) VALUES (1, 2)",
    "INSERT INTO t VALUES (1, 2)": "INSERT INTO t VALUES (1)",
    "SELECT a FROM t WHERE b IN (1, 2)": "SELECT a FROM t WHERE b = 1",
}


def ours(sql: str) -> int:
    return _engine.fingerprint_sql(sql, "postgres")[1]


def _with_rows(insert: re.Match[str]) -> str:
    row = ", ".join("17" for _ in insert[1].split(","))
    return f"({insert[1]}) VALUES ({row}), ({row})"


def workload_statements() -> list[str]:
    """Every statement of a built-in workload, with values in the places of its parameters."""
    found = []
    for path in sorted(WORKLOADS.glob("*/statements.sql")):
        for part in re.split(r"^-- name: \w+\s*$", path.read_text(), flags=re.MULTILINE)[1:]:
            rows = re.sub(r"\(([^()]*)\)\s*VALUES\s+:\w+…", _with_rows, part)
            lists = re.sub(r"(?<!:):\w+…", "1, 2, 3", rows)
            found.append(re.sub(r"(?<![:\w]):([A-Za-z_]\w*)", "17", lists).strip().rstrip(";"))
    return found


def grouped(statements: list[str]) -> tuple[set[frozenset[int]], set[frozenset[int]]]:
    """Put statements together that have one fingerprint: here, and by pg_query."""
    here: dict[int, set[int]] = defaultdict(set)
    there: dict[str, set[int]] = defaultdict(set)
    for at, sql in enumerate(statements):
        try:
            there[fingerprint(sql)].add(at)
        except ParseError:  # no PostgreSQL's
            continue
        here[ours(sql)].add(at)
    return set(map(frozenset, here.values())), set(map(frozenset, there.values()))


def test_the_statements_of_workloads_are_told_apart_as_by_the_parser() -> None:
    statements = workload_statements()
    assert len(statements) > 150
    again = [re.sub(r"\b(17|1|2|3)\b", "99", sql) for sql in statements]
    here, there = grouped([*statements, *again])
    assert sum(map(len, here)) > 300
    assert here == there


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_hard_statements_are_told_apart_as_by_the_parser(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(HARD), min_size=4, max_size=10))
    statements = [re.sub(r"\{\}", lambda _: data.draw(VALUES), sql) for sql in chosen]
    here, there = grouped(statements)
    assert here == there, statements


@pytest.mark.parametrize("sql", LIKE)
def test_what_differs_on_purpose_does(sql: str) -> None:
    assert sql in DIFFER
    assert fingerprint(sql) == fingerprint(LIKE[sql])
    assert ours(sql) != ours(LIKE[sql])
