"""A load whose mix and skew move: what was asked is what came, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commands import call
from nephoscope.store import StoredRun
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    from pathlib import Path

EVOLVING = phases(
    {"name": "reads", "duration": "1s", "rate": 2000, "mix": "SELECT"},
    {
        "name": "moving",
        "duration": "4s",
        "mix": "SIMPLE",
        "access": "zipfian-0.8",
        "transition": "4s",
        "rate": {"from": 2000, "to": 1000},
    },
    {"name": "writes", "duration": "1s"},
)


def test_mix_and_skew_move_from_one_phase_to_the_next(tmp_path: Path) -> None:
    study = write_study(tmp_path, sim_study(EVOLVING, planted="latency=constant(0ms)"))
    ran = call("run", study, "--out", tmp_path / "runs")
    assert ran.code == 0, ran.err
    kept = StoredRun(tmp_path / "runs" / "latest")
    assert kept.scores is not None
    course = kept.scores["course"]
    moving = [one for one in course if one["phase"] == "moving"]
    begun = moving[0]["start_s"]
    for one in moving:
        share = ((one["start_s"] + one["end_s"]) / 2 - begun) / 4
        assert one["mix_asked"].get("simple_update", 0.0) == pytest.approx(share, abs=0.021)
        assert one["access"]["theta"] == pytest.approx(0.8 * share, abs=0.017)
        assert one["rate"] == pytest.approx(2000 - 1000 * share, abs=1)
    # What came: binomial, with some 150 transactions a stretch; all stretches together are far nearer.
    asked, came = (
        sum(one[of].get("simple_update", 0.0) * one["tps"] for one in moving)
        / sum(one["tps"] for one in moving)
        for of in ("mix_asked", "mix")
    )
    assert came == pytest.approx(asked, abs=0.03)
    early, late = moving[: len(moving) // 4], moving[-len(moving) // 4 :]
    assert sum(one["mix"].get("simple_update", 0) for one in early) < 0.25 * len(early)
    assert sum(one["mix"].get("simple_update", 0) for one in late) > 0.75 * len(late)
    assert {one["mix"].get("simple_update") for one in course if one["phase"] == "writes"} == {1.0}
    page = (kept.folder / "report.html").read_text()
    assert all(
        f'id="{chart}"' in page or chart in page for chart in ("time-asked", "time-mix", "time-access")
    )


def test_a_load_that_does_not_move_has_no_course(tmp_path: Path) -> None:
    study = write_study(tmp_path, sim_study(phases({"concurrency": 1, "duration": "300ms"})))
    assert call("run", study, "--out", tmp_path / "runs").code == 0
    kept = StoredRun(tmp_path / "runs" / "latest")
    assert kept.scores is not None
    assert kept.scores["course"] == []


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"rate": 1, "transition": "1s"}], "nothing before it that a transition could move from"),
        ([{"rate": 1}, {"duration": "1s", "transition": "1s"}], "the phase gives neither"),
        ([{"rate": 1}, {"duration": "1s", "mix": "SIMPLE", "transition": "2s"}], "ends within its phase"),
        (
            [
                {"rate": 1, "access": "latest-10"},
                {"duration": "1s", "access": "zipfian", "transition": "1s"},
            ],
            "one kind",
        ),
    ],
)
def test_a_transition_without_a_way_is_refused(
    tmp_path: Path, entries: list[dict[str, object]], message: str
) -> None:
    path = write_study(tmp_path, sim_study(phases(*entries)))
    refused = call("run", path, "--out", tmp_path / "runs")
    assert refused.code == 2
    assert message in " ".join(refused.err.split())
    assert not (tmp_path / "runs").exists()
