"""Miss-ratio curves of planted accesses, and the distance of two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nephoscope.storage.distances import curve_distance
from nephoscope.storage.reuse import MissRatioCurve, miss_ratio_curve

PAGE = 8192


def columns(pages: Any) -> dict[str, Any]:
    numbers = np.asarray(pages)
    return {
        "segment": np.zeros(len(numbers), np.uint32),
        "offset": (numbers * PAGE).astype(np.uint64),
        "bytes": np.full(len(numbers), PAGE, np.uint32),
    }


def curve(sizes: list[int], ratios: list[float], page: int = PAGE) -> MissRatioCurve:
    of = np.array(sizes) * page
    return MissRatioCurve(page, of, np.array(ratios), np.zeros(len(sizes)), 1.0, 100, float(sizes[-1]))


def test_a_cyclic_scan_misses_until_all_of_it_fits() -> None:
    found = miss_ratio_curve(columns(np.arange(10_240) % 1024))
    assert found.is_exact
    assert found.cache_bytes[-1] == 1024 * PAGE
    assert found.miss_ratio[-1] == 0.1
    assert (found.miss_ratio[:-1] == 1).all()
    assert (found.standard_error == 0).all()


def test_uniform_accesses_hit_by_the_share_that_fits() -> None:
    found = miss_ratio_curve(columns(np.random.default_rng(1).integers(0, 1000, 400_000)))
    fitting = found.cache_bytes / PAGE / 1000
    inside = fitting < 0.9
    assert found.miss_ratio[inside] == pytest.approx(1 - fitting[inside], abs=0.01)


def test_a_sample_of_zipf_is_near_the_exact_curve() -> None:
    likely = np.arange(1, 50_001) ** -0.9
    pages = np.random.default_rng(2).choice(50_000, 600_000, p=likely / likely.sum())
    exact, sampled = miss_ratio_curve(columns(pages)), miss_ratio_curve(columns(pages), rate=0.1)
    assert not sampled.is_exact
    assert sampled.pages == pytest.approx(exact.pages, rel=0.1)
    truth = np.interp(np.log2(sampled.cache_bytes), np.log2(exact.cache_bytes), exact.miss_ratio)
    assert (np.abs(sampled.miss_ratio - truth) < 4 * sampled.standard_error + 0.005).all()
    assert curve_distance(exact, sampled) < sampled.standard_error.max() < 0.1


def test_no_access_gives_no_curve() -> None:
    assert not len(miss_ratio_curve(columns([])).cache_bytes)


def test_a_curve_has_no_distance_from_itself() -> None:
    found = curve([1, 2, 4, 8], [1.0, 0.7, 0.3, 0.1])
    assert curve_distance(found, found) == 0


def test_the_distance_is_the_mean_over_the_logarithm_of_the_size() -> None:
    # They differ by 0.5 from 1 to 4 pages, two of the four factors of two, and then fall together.
    one, other = curve([1, 4, 8, 16], [1.0, 1.0, 0.0, 0.0]), curve([1, 4, 8, 16], [0.5, 0.5, 0.0, 0.0])
    assert curve_distance(one, other) == pytest.approx((2 * 0.5 + 0.25) / 4, abs=1e-3)
    assert curve_distance(other, one) == curve_distance(one, other)


def test_a_shorter_curve_stays_where_it_ends() -> None:
    assert curve_distance(curve([1, 2], [1.0, 0.2]), curve([1, 2, 8], [1.0, 0.2, 0.2])) == pytest.approx(0)


def test_curves_that_cross_between_two_sizes_differ() -> None:
    one, other = curve([1, 4], [1.0, 0.0]), curve([1, 4], [0.0, 1.0])
    assert curve_distance(one, other) == pytest.approx(0.5, abs=1e-3)


def test_pages_of_two_sizes_are_not_compared() -> None:
    with pytest.raises(ValueError, match="8192 and of 4096"):
        curve_distance(curve([1], [1.0]), curve([1], [1.0], 4096))
    with pytest.raises(ValueError, match="without an access"):
        curve_distance(curve([1], [1.0]), miss_ratio_curve(columns([])))
