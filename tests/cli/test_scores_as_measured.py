"""A run tells each score when its evaluator has finished; that costs the run nothing, and cannot end it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from nephoscope.measuring.measurement import run_study
from nephoscope.measuring.silence import Silence
from nephoscope.scoring.formulas import Score
from nephoscope.study.reading import make_study
from nephoscope.tables.columns import score_line
from sample_studies import phases, sim_study, throughput, write_study

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BOTH = sim_study(
    throughput(duration="500ms", repetitions=2),
    phases({"name": "after", "concurrency": 1, "duration": "500ms"}),
)


def test_a_score_is_told_before_the_next_is_measured(tmp_path: Path) -> None:
    ended = call("run", write_study(tmp_path, BOTH), "--out", tmp_path)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    (told,) = (place for place, line in enumerate(lines) if line.startswith("P: "))
    (after,) = (place for place, line in enumerate(lines) if line.endswith(" s  after"))
    last = max(place for place, line in enumerate(lines) if line.endswith(" s  SELECT c=2"))
    assert last < told < after
    stored = json.loads((tmp_path / "latest" / "scores.json").read_text())["scores"]["P"]
    assert lines[told] == score_line("P", Score.model_validate(stored))
    assert "±" in lines[told] or "…" in lines[told]
    assert "TPS per $/min" in lines[told]


def test_machines_are_told_the_whole_score(tmp_path: Path) -> None:
    ended = call("run", write_study(tmp_path, BOTH), "--out", tmp_path, "--json")
    events = [json.loads(line) for line in ended.out.splitlines()]
    (told,) = (dict(event) for event in events if event["event"] == "score")
    assert told.pop("event") == "score"
    assert told.pop("score") == "P"
    stored = events[-1]["scores"]["P"]
    assert set(told) == set(stored)
    assert told["value"] == pytest.approx(stored["value"], rel=1e-9)
    assert told["ci95"] == pytest.approx(stored["ci95"], rel=1e-9)
    names = [event.get("name") for event in events if event["event"] in ("phase", "score")]
    assert names.index("after") > names.index(None)


class Spoiler(Silence):
    """Makes the run's study unreadable while the first evaluator measures, and whole again afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.study = ""

    def begin(self, folder: Path, seconds: float) -> None:
        super().begin(folder, seconds)
        self.file = folder / "study.toml"

    def phase(self, record: Mapping[str, Any]) -> None:
        super().phase(record)
        if record["name"] == "after":
            self.file.write_text(self.study)
        elif not self.study:
            self.study = self.file.read_text()
            self.file.write_text("[[[")

    def score(self, name: str, score: Score) -> None:
        del score
        self.told.append(name)


def test_a_score_that_cannot_be_computed_yet_ends_no_run(tmp_path: Path) -> None:
    spoiler = Spoiler()
    outcome = run_study(make_study(BOTH, "study"), tmp_path, spoiler)
    assert spoiler.told == []
    assert outcome.status == "measured"
    assert "P" in outcome.scores["scores"]
