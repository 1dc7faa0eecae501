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
    "pgbench": [
        "\\set x ", "random(1, 9)", "1", ":x", " + ", "-", "case when ", " then ", "end", "\\if ", "\\endif", "\\gset ",
        "\\startpipeline", "\\endpipeline", "SELECT ", "BEGIN", "COMMIT", ";", "\\;", "'", '"', "$$", "--", "/*", "*/", "(",
        ")", "\n", " ", "\\\n", "\\sleep 1 ms", "a_1",
    ],
    "sql": [
        "-- name: ", "a", "b", " weight: 3", " read only", "-- :x = ", "key(1, 2)", "row.y", "key(k)", "-- keys: k = 1 to 9",
        "-- schema: create", "-- check: c", "SELECT ", ":x", ";", "\n", " ", "'", "(", ")", "BEGIN", "COMMIT", "--", "+ 1",
    ],
    "ycsb": ["recordcount", "=", ":", "1", "\\", "\n", "#", "!", "scanproportion", "0.5", " ", "requestdistribution", "latest"],
}  # fmt: skip


@pytest.mark.parametrize("tool", _PIECES)
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_text_is_read_or_refused_with_its_place(tool: str, tmp_path: Path, data: st.DataObject) -> None:
    pieces = st.one_of(st.sampled_from(_PIECES[tool]), st.characters(exclude_categories=["Cs"]))
    file = tmp_path / "any.text"
    file.write_text("".join(data.draw(st.lists(pieces, max_size=40))))
    name = f"{tool}:{file}"
    try:
        found = named(name)
        assert found is not None
        meant = found.meant().workload.get("name", name)
        workload = Workload(find_workload(meant), 1.0, 7, {}, "noop://?dialect=postgres")
        assert workload.description["transactions"]
    except InputError as error:
        # A statement that the scanner here takes may be one that the engine's own lexer does not.
        assert re.search(
            r"any\.text(:\d+)?: |workload\.lua:\d+: |any_?\w*\.lua:\d+: |ycsb: |any\.text:\d+", str(error)
        ), error
        assert "syntax error" not in str(error) or tool != "pgbench"
