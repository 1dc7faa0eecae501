"""What changes during a capture: planted growth is followed, chance is not taken for growth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from nephoscope.storage.distances import divergence
from nephoscope.storage.features import Cell
from nephoscope.storage.models.base import Training
from nephoscope.storage.models.drift import Drift, fit_drift

if TYPE_CHECKING:
    from nephoscope.storage.models.base import Vector

RUNS, SECONDS, CELLS = 24, 30, 6
RATES = np.array([30.0, 10.0])
USUAL = np.array([0.3, 0.3, 0.1, 0.1, 0.1, 0.1])


def law_of(run: int) -> Vector:
    """A table that grows: of the last four cells one is written, another one every six runs."""
    live = np.zeros(CELLS)
    live[2 + run // 6] = 0.4
    return np.array([0.3, 0.3, 0, 0, 0, 0]) + live


def data(*, grows: bool) -> Training:
    random = np.random.default_rng(4)
    z, y = np.zeros((RUNS, 2, CELLS)), []
    for run in range(RUNS):
        requests = 400 * (1.02**run if grows else 1)
        z[run, 0] = random.multinomial(int(requests * SECONDS), law_of(run) if grows else USUAL)
        y.append(np.array([random.poisson(requests, SECONDS), np.zeros(SECONDS)], dtype=float))
    return Training(
        types=("one", "other"),
        cells=[Cell(at, 1) for at in range(CELLS)],
        x=[np.repeat(RATES[:, None], SECONDS, axis=1)] * RUNS,
        y=y,
        z=z,
        mixes=["mix"] * RUNS,
        targets=np.full(RUNS, 40.0),
        write_bytes={},
        order=np.arange(RUNS, dtype=float),
    )


def pooled(_rates: Vector) -> Vector:
    return np.array([USUAL, np.zeros(CELLS)])


def steady(_rates: Vector) -> Vector:
    return np.array([400 * 1.02 ** (RUNS / 2), 0.0])


def test_planted_growth_is_followed() -> None:
    drift = fit_drift(data(grows=True), steady, pooled)
    assert drift is not None
    for run in (2, 8, 15, 21):  # in the middle of what a cell is written for
        found = drift.weights(pooled(RATES), run)
        assert divergence(law_of(run), found[0]) < 0.1 * divergence(law_of(run), USUAL)
        assert drift.mean(run)[0] * steady(RATES)[0] == pytest.approx(400 * 1.02**run, rel=0.03)
        assert found[1].tolist() == [0.0] * CELLS
        assert drift.mean(run)[1] == 1
    last = drift.weights(pooled(RATES), None)
    assert last.tolist() == drift.weights(pooled(RATES), RUNS - 1).tolist(), (
        "without a time: as it was in the end"
    )


def test_chance_is_not_taken_for_growth() -> None:
    assert fit_drift(data(grows=False), lambda _: np.array([400.0, 0.0]), pooled) is None


def test_what_was_learned_is_kept_and_damage_is_refused() -> None:
    drift = fit_drift(data(grows=True), steady, pooled)
    assert drift is not None
    again = Drift.restored(drift.state(), CELLS)
    assert again.weights(pooled(RATES), 7).tolist() == drift.weights(pooled(RATES), 7).tolist()
    for name, array in {
        "widths": np.full((2, 2), 99),
        "means": np.full((RUNS, 2), -1.0),
        "captured": np.full((RUNS, 2, CELLS), -1.0),
    }.items():
        with pytest.raises(ValueError, match="drift"):
            Drift.restored({**drift.state(), name: array}, CELLS)
