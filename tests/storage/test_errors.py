from __future__ import annotations

import math

import numpy as np
import pytest

from nephoscope.storage.distances import (
    divergence,
    log_distance,
    mean_write_bytes,
    read_share,
    relative_error,
    rhythm,
)
from nephoscope.storage.features import Cell
from nephoscope.storage.sizes import WriteSizes


def test_a_poisson_process_has_a_dispersion_of_one_and_no_memory() -> None:
    found = rhythm(np.random.default_rng(1).poisson(50, 20_000))
    assert found.mean == pytest.approx(50, rel=0.01)
    assert found.dispersion == pytest.approx(1, abs=0.05)
    assert found.lag1 == pytest.approx(0, abs=0.03)


def test_memory_from_one_second_to_the_next_is_found() -> None:
    noise = np.random.default_rng(2).normal(0, 1, 20_000)
    for at in range(1, len(noise)):
        noise[at] += 0.6 * noise[at - 1]
    found = rhythm(100 + noise)
    assert found.lag1 == pytest.approx(0.6, abs=0.03)
    assert found.deviation == pytest.approx(1 / math.sqrt(1 - 0.36), rel=0.03)


def test_planted_errors_are_measured() -> None:
    assert relative_error(110, 100) == pytest.approx(0.1)
    assert relative_error(90, 100) == pytest.approx(0.1)
    assert relative_error(1, 0) is None
    assert log_distance(2, 1) == log_distance(1, 2) == pytest.approx(math.log(2))
    assert log_distance(0, 1) == math.inf
    assert log_distance(1, 0) is None


def test_the_divergence_is_that_of_the_formula() -> None:
    p, q = np.array([50.0, 50.0]), np.array([0.9, 0.1])
    wanted = 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1)
    assert divergence(p, q, smoothing=0) == pytest.approx(wanted)
    assert divergence(p, 10 * p, smoothing=0) == pytest.approx(0)


def test_a_cell_that_was_never_seen_costs_what_smoothing_says() -> None:
    # Half of the truth lies where nothing was foretold: q there is smoothing / C.
    found = divergence(np.array([1.0, 1.0]), np.array([1.0, 0.0]), smoothing=0.01)
    assert found == pytest.approx(0.5 * math.log(0.5 / 0.995) + 0.5 * math.log(0.5 / 0.005))
    assert math.isfinite(divergence(np.array([1.0, 1.0]), np.zeros(2)))


def test_reads_and_sizes_are_weighed() -> None:
    cells = [Cell(1, 0), Cell(1, 2), Cell(2, 8)]
    weights = np.array([6.0, 3.0, 1.0])
    assert read_share(cells, weights) == pytest.approx(0.6)
    sizes = WriteSizes(np.array([0, 1, 2]), {(1, 2): np.array([1100, 1900], np.uint32)})
    assert mean_write_bytes(cells, weights, sizes) == pytest.approx((3 * 1500 + 8192) / 4)
    assert mean_write_bytes(cells[:1], weights[:1], sizes) is None
