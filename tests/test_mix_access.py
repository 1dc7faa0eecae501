"""A mix's own access distribution, and a study's in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from sample_studies import phases, sim_study, throughput, write_study

if TYPE_CHECKING:
    from pathlib import Path

WORKLOAD = """
local w = workload "newest"
w:table("item", { rows = 1000, columns = { { "i_id", serial() } } })
w:transaction("read", { read_only = true }, function(tx, pick)
  local key = pick.item()
  if key <= 990 then error("an old key") end
  tx:exec("one", key)
end)
w:mix("NEWEST", { read = 1 }, { access = "ACCESS" })
w:mix("ANY", { read = 1 })
"""


def run(folder: Path, measure: dict[str, Any], access: str = "latest-10") -> tuple[int, str]:
    workload = folder / "newest"
    workload.mkdir()
    (workload / "workload.lua").write_text(WORKLOAD.replace("ACCESS", access))
    (workload / "statements.sql").write_text("-- name: one\nSELECT :key\n")
    (workload / "schema.sql").write_text("-- name: create\nCREATE TABLE item (i_id bigint);\n")
    tables = sim_study(measure)
    tables["workload"] = {"name": str(workload)}
    ended = call("run", write_study(folder, tables), "--out", folder / "runs")
    return ended.code, ended.err


def of_phases(**later: Any) -> dict[str, Any]:
    return phases({"mix": "NEWEST", "concurrency": 1, "duration": "200ms"}, {"duration": "200ms", **later})


@pytest.mark.parametrize(
    ("measure", "code"),
    [
        (throughput(mixes=["NEWEST"], duration="300ms"), 0),
        (throughput(mixes=["NEWEST"], duration="300ms", access="uniform"), 1),
        (throughput(mixes=["NEWEST", "ANY"], duration="300ms"), 1),
        (of_phases(), 0),
        (of_phases(mix="ANY"), 1),
        (of_phases(mix="ANY", access="latest-5"), 0),
        (of_phases(access="uniform"), 1),
    ],
)
def test_the_mixes_own_access_holds_unless_the_study_says_otherwise(
    tmp_path: Path, measure: dict[str, Any], code: int
) -> None:
    ended, err = run(tmp_path, measure)
    assert ended == code, err
    assert ("an old key" in err) == (code == 1)


def test_an_access_that_is_not_known_is_refused(tmp_path: Path) -> None:
    code, err = run(tmp_path, throughput(mixes=["NEWEST"]), access="newest-10")
    assert code == 2
    assert (
        "newest: the access of the mix NEWEST is 'newest-10': expected uniform, latest-10, zipfian-0.99"
        in err
    )
    assert len(err.splitlines()) == 1
