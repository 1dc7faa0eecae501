"""Limits of a workload: what is planted comes out, on a terminal, in the files and on the page."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from commands import call
from nephoscope import _engine
from nephoscope.results.limits import limits_of
from nephoscope.results.scores import scores_of
from nephoscope.store import StoredRun
from nephoscope.study.workload import KeptWorkload
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    from pathlib import Path

    from nephoscope.evaluators.points import Point
    from nephoscope.store.protocol import Selection

WORKLOAD = """
local w = workload "limited"
local function settings(limit) return { keying = 0.01, think = 0.01, limit = limit } end
w:transaction("brief", settings { p90 = 0.06 }, function(tx) tx:exec("one") end)
w:transaction("long", settings { p50 = 0.01, p90 = 30 }, function(tx) for _ = 1, 4 do tx:exec("one") end end)
w:mix("BOTH", { brief = 3, long = 1 }, {
  at_least = { brief = 50, long = 50 },
})
w:mix("BRIEF", { brief = 1 }, {
  at_least = { brief = 100 },
  rate = { name = "bpm", transaction = "brief", per = "minute", pauses = true },
})
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose round trips take 20 ms each, without and with the workload's pauses."""
    folder = tmp_path_factory.mktemp("limits")
    workload = folder / "limited"
    workload.mkdir()
    (workload / "workload.lua").write_text(WORKLOAD)
    (workload / "statements.sql").write_text("-- name: one\nSELECT 1\n")
    course = phases(
        {"duration": "2s", "mix": "BOTH", "concurrency": 4},
        {"duration": "1s", "mix": "BRIEF"},
        {"duration": "1s", "think": "workload"},
    )
    tables = sim_study(course, planted="latency=constant(20ms)")
    tables["workload"] = {"name": str(workload)}
    ended = call("run", write_study(folder, tables), "--out", folder / "runs")
    assert ended.code == 0, ended.err
    (found,) = (path for path in (folder / "runs").iterdir() if path.is_dir() and not path.is_symlink())
    assert "Limits of the workload" in ended.out
    return found


def test_what_is_planted_comes_out(run: Path) -> None:
    scores = scores_of(StoredRun(run))
    stored = json.loads((run / "scores.json").read_text())["limits"]
    assert scores["limits"] == stored, "a stored run that is read again gives the same"
    both = [row for row in stored if row["mix"] == "BOTH"]
    assert {row["concurrency"] for row in both} == {4}
    assert [(row["what"], row["bound"], row["wanted"], row["outcome"]) for row in both] == [
        ("brief, p90 of the response time", "at most", 0.06, "holds"),
        ("long, p50 of the response time", "at most", 0.01, "does not hold"),
        ("long, p90 of the response time", "at most", 30, "holds"),
        ("brief, share of the mix", "at least", 50, "holds"),
        ("long, share of the mix", "at least", 50, "does not hold"),
    ]
    assert 0.02 <= both[0]["measured"] < 0.06
    assert 0.08 <= both[1]["measured"] < 0.2
    assert both[3]["measured"] + both[4]["measured"] == pytest.approx(100)
    assert 60 < both[3]["measured"] < 90


def test_the_rate_has_its_name_only_with_the_pauses_that_it_needs(run: Path) -> None:
    scores = scores_of(StoredRun(run))
    free, paced = (row for row in scores["limits"] if row["unit"] == "per minute")
    points = [point for point in scores["points"] if point["mix"] == "BRIEF"]
    for row, point in zip((free, paced), points, strict=True):
        assert row["what"] == "bpm: brief committed"
        # The four sessions may bring transactions of the mix before it with them.
        count = row["measured"] * point["seconds"] / 60
        assert point["committed"] - 4 <= round(count, 6) <= point["committed"]
    assert (free["outcome"], paced["outcome"]) == ("does not hold", "holds")
    assert free["why"] == 'the load has no keying and think times: think = "workload" asks for them'
    assert paced["measured"] < 0.8 * free["measured"], "the pauses were kept"


def test_the_table_stands_in_markdown_and_on_the_page(run: Path) -> None:
    shown = call("report", run, "--format", "markdown")
    assert "| long, share of the mix | ≥ 50 % |" in " ".join(shown.out.split()), shown.err + shown.out
    page = (run / "report.html").read_text()
    assert '<section id="limits">' in page
    assert "long, share of the mix" in page


# --- what is not known ------------------------------------------------------------------------------------------


def rows(ended_ms: list[float], late_ms: list[float], counts: dict[str, tuple[int, int]]) -> dict[str, Any]:
    """The limits of a made-up phase, by what they are about."""

    def merged(selection: Selection) -> _engine.Histogram:
        histogram = _engine.Histogram()
        for time_ms in late_ms if selection.kind == "censored" else ended_ms:
            histogram.record(round(time_ms * 1e6))
        return histogram

    made = [
        {"phase": 1, "transaction": name, "committed": c, "aborted": a} for name, (c, a) in counts.items()
    ]
    phase = SimpleNamespace(number=1, labels={"mix": "M"})
    run = SimpleNamespace(phases=[phase], intervals=pa.Table.from_pylist(made), merged=merged)
    point = SimpleNamespace(slot=None, mix="M", concurrency=1.0, rate=None, phase=1, seconds=60.0)
    kept = KeptWorkload(
        {
            "transactions": [{"name": "t", "limits": [{"percentile": 50.0, "seconds": 0.01}]}, {"name": "u"}],
            "mixes": [
                {
                    "name": "M",
                    "weights": {"t": 1, "u": 1},
                    "at_least": {"t": 50},
                    "rate": {"name": "r", "transaction": "t", "per": "hour", "pauses": False},
                }
            ],
        }
    )
    found = limits_of(cast("StoredRun", run), [cast("Point", point)], kept)
    return {row["what"].partition(",")[2] or row["what"]: row for row in found}


TIME, SHARE, RATE = " p50 of the response time", " share of the mix", "r: t committed"


def test_a_response_time_that_unfinished_transactions_could_move_is_not_known() -> None:
    counts = {"t": (3, 0), "u": (1, 0)}
    assert rows([5, 5, 5], [], counts)[TIME]["outcome"] == "holds"
    found = rows([5, 5, 5], [1] * 4, counts)
    assert found[TIME]["outcome"] == "not known"
    assert "could move it" in found[TIME]["why"]
    assert found[RATE]["outcome"] == "not known", "a rate has its name where all limits hold"
    assert rows([5, 5, 5], [50] * 4, counts)[TIME]["outcome"] == "does not hold"
    assert rows([], [], {"t": (0, 3), "u": (0, 1)})[TIME]["outcome"] == "not known"


@pytest.mark.parametrize(
    ("t", "u", "outcome"),
    [((50, 1), (49, 0), "holds"), ((45, 2), (53, 0), "not known"), ((100, 0), (900, 0), "does not hold")],
)
def test_a_share_below_its_least_by_chance_alone_is_not_known(
    t: tuple[int, int], u: tuple[int, int], outcome: str
) -> None:
    found = rows([5] * sum(t), [], {"t": t, "u": u})
    assert found[SHARE]["outcome"] == outcome
    assert found[SHARE]["measured"] == pytest.approx(100 * sum(t) / (sum(t) + sum(u)))
    assert found[RATE]["outcome"] == outcome
    assert found[RATE]["measured"] == t[0] * 60
