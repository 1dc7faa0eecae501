"""What changes during a capture: planted growth is followed, chance is not taken for growth."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nephoscope.storage.corpus import Relations
from nephoscope.storage.distances import divergence
from nephoscope.storage.features import Cell
from nephoscope.storage.models.base import Training
from nephoscope.storage.models.drift import Drift, fit_drift
from nephoscope.storage.sizes import WriteSizes

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
        write_bytes=WriteSizes(np.arange(CELLS), {}),
        order=np.arange(RUNS, dtype=float),
        relations=Relations(np.zeros(CELLS, dtype=np.int64), np.arange(CELLS), 1),
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


def test_how_writes_are_divided_among_relations_is_left_to_the_mix() -> None:
    """Two relations of two segments each, and a read: other runs tell where in a relation, and how many are reads."""
    whole = data(grows=True)
    relations = Relations(np.array([0, 0, 2, 2, 4, 4]), np.array([0, 1] * 3), 1)
    cells = [*whole.cells[:4], Cell(4, 0), Cell(5, 0)]
    z = whole.z.copy()
    z[:, 0] = np.array([300.0, 100, 300, 100, 100, 100])
    usual = np.array([0.1, 0.1, 0.2, 0.2, 0.2, 0.2])
    drift = fit_drift(
        replace(whole, cells=cells, z=z, relations=relations), steady, lambda _: np.array([usual, 0 * usual])
    )
    assert drift is not None
    found = drift.weights(np.array([usual, 0 * usual]), 5)[0]
    assert found == pytest.approx([0.2, 0.2 / 3, 0.4, 0.4 / 3, 0.1, 0.1], rel=0.05)
