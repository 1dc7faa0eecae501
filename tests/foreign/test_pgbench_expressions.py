"""pgbench's expressions have the values here that pgbench itself computes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pgbench_peer import HAS_PGBENCH, Result, ours, theirs

from databases import running_server
from nephoscope.foreign.pgbench.expressions import ExpressionError, expression

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


VARIABLES = {
    "i": "12",
    "d": "2.5",
    "big": "9223372036854775807",
    "default_seed": "42",
    "t": "true",
    "n": "null",
}

INTEGERS = ["0", "1", "2", "3", "7", "63", "1000000007", "9223372036854775807", ":i", ":big", "null", ":n"]
DOUBLES = ["2.5", "0.5", "3.5", "1e3", ".25", "4.", "1E-2", ":d"]
BOOLEANS = ["true", "FALSE", ":t", "null"]
_TWO = [" + ", " - ", "*", "/", " % ", " & ", "|", " # ", "<<", ">> "]
_COMPARED = ["<", " <= ", "=", " <> ", "!=", ">", " >="]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with running_server() as server:
        yield server.new_database()


def _joined(parts: tuple[str, str, str]) -> str:
    return "".join(parts)


def _numbers(leaf: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def deeper(one: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        truth = st.tuples(one, st.sampled_from(_COMPARED), one).map(_joined)
        return st.one_of(
            st.tuples(one, st.sampled_from(_TWO), one).map(_joined),
            one.map(lambda text: f"({text})"),
            one.map(lambda text: f"- {text}"),
            one.map(lambda text: f"~ {text}"),
            st.tuples(st.sampled_from(["abs", "INT", "double", "sqrt", "hash", "hash_fnv1a"]), one).map(
                lambda call: f"{call[0]}({call[1]})"
            ),
            st.tuples(st.sampled_from(["mod", "hash_murmur2", "least", "greatest"]), one, one).map(
                lambda call: f"{call[0]}({call[1]}, {call[2]})"
            ),
            st.tuples(truth, one, one).map(
                lambda case: f"case when {case[0]} then {case[1]} else {case[2]} end"
            ),
        )

    return st.recursive(leaf, deeper, max_leaves=5)


def _truths() -> st.SearchStrategy[str]:
    number = _numbers(st.sampled_from(INTEGERS + DOUBLES))
    leaf = st.one_of(
        st.sampled_from(BOOLEANS),
        st.tuples(number, st.sampled_from(_COMPARED), number).map(_joined),
        number.map(lambda text: f"({text}) is null"),
    )
    return st.recursive(
        leaf,
        lambda one: st.one_of(
            st.tuples(one, st.sampled_from([" and ", " OR "]), one).map(_joined),
            one.map(lambda text: f"not {text}"),
            st.tuples(
                one, st.sampled_from([" is not null", " notnull", " isnull", " is true", " IS NOT FALSE"])
            ).map(lambda parts: f"({parts[0]}){parts[1]}"),
        ),
        max_leaves=4,
    )


def agree(mine: Result, their: Result) -> bool:
    if mine.kind == "error" or their.kind == "error":
        return mine.kind == their.kind
    if mine.kind != their.kind:
        return False
    if mine.kind != "double":
        return mine.text == their.text
    # debug shows six digits.
    one, other = float(mine.text), float(their.text)
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-5)


@pytest.mark.skipif(not HAS_PGBENCH, reason="no pgbench is here")
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.one_of(
            _numbers(st.sampled_from(INTEGERS)), _numbers(st.sampled_from(INTEGERS + DOUBLES)), _truths()
        ),
        min_size=20,
        max_size=60,
    )
)
def test_expressions_have_the_values_of_pgbench(database: str, tmp_path: Path, texts: list[str]) -> None:
    mine = ours(tmp_path / "ours", texts, VARIABLES)
    failing = [text for text, result in zip(texts, mine, strict=True) if result.kind == "error"]
    fine = [(text, result) for text, result in zip(texts, mine, strict=True) if result.kind != "error"]
    their = theirs(database, tmp_path, [text for text, _ in fine], VARIABLES)
    for (text, result), found in zip(fine, their, strict=False):
        assert agree(result, found), text
    assert len(their) == len(fine)
    # An error ends a script, so each has one of its own.
    for text in failing[:3]:
        assert theirs(database, tmp_path, [text], VARIABLES)[-1].kind == "error", text


KNOWN = {
    "5 / 2": "int 2",
    "-7 % 3": "int -1",
    "5 / 2.0": "double 2.5",
    "int(5.4 + 3.8)": "int 9",
    "int(2.5)": "int 2",
    "2 + 3 * 4 # 1": "int 15",
    "not 1 = 2 and null is null": "boolean true",
    "greatest(5, 4, 3.0)": "double 5",
    "-9223372036854775808": "int -9223372036854775808",
    "mod(54, 32)": "int 22",
    "power(2, 10)": "double 1024",
    "case when null then 1 end": "null",
    "hash_fnv1a(10, 5432)": "int -7793829335365542153",
    "hash_murmur2(10, 5432)": "int -5817877081768721676",
    "random(7, 7) + random_zipfian(2, 2, 1.5)": "int 9",
}
"""Some of them are the examples of pgbench's documentation."""


def test_known_values(tmp_path: Path) -> None:
    texts = [text for text in KNOWN if "random" not in text]
    found = ours(tmp_path, texts, {})
    assert [f"{result.kind} {result.text}".strip() for result in found] == [KNOWN[text] for text in texts]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 +", "a value is missing before the end"),
        ("1 2", '"2" is one too many'),
        ("(1", 'expected ")" before the end'),
        ("foo(1)", "there is no function foo; functions are abs, debug"),
        ("random(1)", "random takes 2 values; 1 are given"),
        ("9223372036854775808", "beyond the integers of 64 bits"),
        ("1 < 2 < 3", '"<" is one too many'),
        ("1 $ 2", '"$" cannot stand here'),
        ("case 1 end", 'expected "WHEN"'),
        ("(" * 50 + "1" + ")" * 50, "nested more than 40 deep"),
        ("1" + " + 1" * 500, "too long for one"),
    ],
)
def test_a_slip_is_named(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as error:
        expression(text, lambda name: name)
    assert message in str(error.value)
