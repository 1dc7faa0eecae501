"""Whatever text a tool's file holds, reading it ends in a workload or in one message with file and line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nephoscope.errors import InputError
from nephoscope.foreign.naming import named
from nephoscope.study.packaged import find_workload
from nephoscope.study.workload import Workload

if TYPE_CHECKING:
    from pathlib import Path

_PIECES = {
    "pgbench": (
        r"\set x |random(1, 9)|1|:x| + |-|case when | then |end|\if |\endif|\gset |\startpipeline|\endpipeline|SELECT "
        r"""|BEGIN|COMMIT|;|\;|'|"|$$|--|/*|*/|(|)| |\sleep 1 ms|a_1"""
    ),
    "sql": (
        "-- name: |a|b| weight: 3| read only|-- :x = |key(1, 2)|row.y|key(k)|-- keys: k = 1 to 9|-- schema: create"
        "|-- check: c|SELECT |:x|;| |'|(|)|BEGIN|COMMIT|--|+ 1"
    ),
    "ycsb": r"recordcount|=|:|1|\|#|!|scanproportion|0.5| |requestdistribution|latest",
}
"""Pieces of each tool's files, beside a new line."""

_PLACE = re.compile(r"any\.text(:\d+)?: |(workload|any_?\w*)\.lua:\d+: |ycsb: ")


def fault_of(name: str) -> str | None:
    """What is said of a tool's file; None where it is a workload."""
    try:
        found = named(name)
        assert found is not None
        meant = found.meant().workload.get("name", name)
        workload = Workload(find_workload(meant), 1.0, 7, {}, "noop://?dialect=postgres")
        assert workload.description["transactions"]
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("tool", _PIECES)
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_text_is_read_or_refused_with_its_place(tool: str, tmp_path: Path, data: st.DataObject) -> None:
    known = [*_PIECES[tool].split("|"), "\n"]
    pieces = st.one_of(st.sampled_from(known), st.characters(exclude_categories=["Cs"]))
    file = tmp_path / "any.text"
    file.write_text("".join(data.draw(st.lists(pieces, max_size=40))))
    fault = fault_of(f"{tool}:{file}")
    assert fault is None or _PLACE.search(fault), fault
    # What is written is Lua, whatever it was made of.
    assert fault is None or "near '" not in fault
