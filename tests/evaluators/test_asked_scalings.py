"""What is told of scalings where the allocation was asked for: no time that is finer than the asking."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nephoscope.evaluators.elasticity.allocations import AllocationTimeline, Answer
from nephoscope.evaluators.elasticity.reading import _rarely_asked, _Reader
from nephoscope.evaluators.elasticity.tables import elasticity, transitions
from nephoscope.scoring.prices import DEFAULT_PRICE_BOOK, load_price_book
from nephoscope.settings.resources import Resources
from nephoscope.tables.columns import RunFigures

PERIOD_S, ASKING_S, SLOT_S, REST_S = 1.0, 0.1, 20.0, 10.0
CHANGES = (REST_S, REST_S + SLOT_S, REST_S + 2 * SLOT_S)
"""Of the load: two slots, and nothing after them."""


def timeline(*steps: tuple[float, float], silent: tuple[float, float] = (0.0, 0.0)) -> AllocationTimeline:
    """Ask each second about vCores that truly change at these times; ``silent`` is a time without answers."""
    answers = []
    for at in (number * PERIOD_S for number in range(60)):
        if not silent[0] <= at < silent[1]:
            vcores = [1.0, *(level for since, level in steps if since <= at)][-1]
            given = Resources(vcores=vcores, memory_gb=4, storage_gb=10)
            answers.append(Answer(at, at + ASKING_S, given))
    return AllocationTimeline.asked(answers, CHANGES)


def detail_of(line: AllocationTimeline) -> dict[str, Any]:
    """Read a pattern of two slots, as a run's scores have it."""
    slots = [
        SimpleNamespace(
            start_s=start, end_s=start + SLOT_S, number=place, labels={"slot": place + 1, "sessions": of}
        )
        for place, (start, of) in enumerate(zip(CHANGES, (8, 2), strict=False))
    ]
    points = [SimpleNamespace(tps=100.0, latency_ms=None, failed=0) for _ in slots]
    played: Any = SimpleNamespace(
        pattern="p", repetition=1, tau=8, slots=slots, points=points, start_s=REST_S, end_s=58.0,
        mean_tps=100.0, ci95=(90.0, 110.0),
    )  # fmt: skip
    stored: Any = SimpleNamespace(run=SimpleNamespace(events=[]))
    score = _Reader(stored, line, load_price_book(DEFAULT_PRICE_BOOK), 100.0, None).score([played], "told")
    return {**score.model_dump(mode="json"), "warnings": _rarely_asked([played], line)}


def shown(score: dict[str, Any]) -> tuple[str, list[str]]:
    """Return what the tables show: the slowest scaling, and each one."""
    run = RunFigures("run", None, {"scores": {"E1": score}})  # type: ignore[arg-type]
    of_pattern, changes = elasticity([run]), transitions([run])
    assert "scaling times to 1.1 s, as the allocation was asked for" in of_pattern.title
    assert changes.title.endswith("scaling times to 1.1 s, as the allocation was asked for")
    place = of_pattern.headings.index("slowest scaling")
    return of_pattern.cells[0][place], [row[changes.headings.index("scaling")] for row in changes.cells]


def test_a_system_that_is_scaled_up_and_down_within_a_pattern_is_seen() -> None:
    score = detail_of(timeline((15.4, 8.0), (37.7, 1.0)))
    (pattern,) = score["detail"]["patterns"]
    up, down, _ = pattern["transitions"]
    assert (up["from_vcores"], up["to_vcores"], down["to_vcores"]) == (1, 8, 1)
    for change, truth in ((up, 5.4), (down, 7.7)):
        assert change["scaling_low_s"] <= truth <= change["scaling_high_s"]
        assert change["scaling_high_s"] - change["scaling_low_s"] == pytest.approx(PERIOD_S + ASKING_S)
        assert change["scaling_s"] == pytest.approx(truth, abs=(PERIOD_S + ASKING_S) / 2)
    assert pattern["mean_vcores"] == pytest.approx(1 + 7 * 22.3 / 48, abs=7 * 1.1 / 48)
    assert pattern["cost_low"] < pattern["cost"] < pattern["cost_high"]
    low, high = score["ci95"]
    assert low == pytest.approx(90 / pattern["cost_high"])
    assert high == pytest.approx(110 / pattern["cost_low"])
    assert score["detail"]["allocation_gap_s"] == pytest.approx(1.1)
    assert shown(score) == ("7.55 (7.0 … 8.1) s", ["5.55 (5.0 … 6.1) s", "7.55 (7.0 … 8.1) s", "–"])  # noqa: RUF001
    assert score["warnings"] == []


@pytest.mark.parametrize("follows_s", [0.05, 0.5, 0.95])
def test_a_scaling_that_is_finer_than_the_asking_is_told_as_at_most(follows_s: float) -> None:
    score = detail_of(timeline((REST_S + follows_s, 8.0)))
    (pattern,) = score["detail"]["patterns"]
    up = pattern["transitions"][0]
    assert (up["scaling_s"], up["scaling_cost"]) == (None, None)
    assert up["scaling_low_s"] <= follows_s <= up["scaling_high_s"]
    assert shown(score) == ("at most 1.1 s", ["at most 1.1 s", "–", "–"])  # noqa: RUF001


def test_a_slot_that_may_have_passed_unseen_has_a_warning() -> None:
    score = detail_of(timeline((15.4, 8.0), silent=(25.0, 50.0)))
    (warning,) = score["warnings"]
    assert (
        "asked for less than once a slot in p: for 26.1 s nothing was known of it, and a slot has 20 s"
        in warning
    )
    assert "at most 26.1 s apart" in score["detail"]["allocation"]
