"""Designs: balanced, orthogonal, of the resolution that they say, in an order that the seed gives again."""

# ruff: noqa: RUF001 - times

from __future__ import annotations

import itertools
from math import prod

import pytest

from nephoscope.errors import InputError
from nephoscope.experiments.design import Design, fractional, full, of_resolution, ordered

NAMES = "ABCDEFGHIJKL"


def signs(design: Design) -> list[dict[str, int]]:
    return [
        {name: 2 * level - 1 for name, level in zip(design.factors, treatment, strict=True)}
        for treatment in design.treatments
    ]


def column(design: Design, term: frozenset[str]) -> list[int]:
    """The column of a term, multiplied out from the treatments: it knows no algebra."""
    return [prod(row[name] for name in term) for row in signs(design)]


def test_a_full_design_has_each_combination_once() -> None:
    design = full({"nodes": 3, "cache": 2})
    assert sorted(design.treatments) == list(itertools.product(range(3), range(2)))
    assert (design.words, design.resolution) == ((), None)


@pytest.mark.parametrize(
    ("number", "resolution", "runs"),
    # The smallest fractions of each resolution, as textbooks list them.
    [
        (3, 3, 4),
        (5, 3, 8),
        (6, 3, 8),
        (7, 3, 8),
        (11, 3, 16),
        (4, 4, 8),
        (6, 4, 16),
        (7, 4, 16),
        (8, 4, 16),
        (5, 5, 16),
        (6, 6, 32),
        (8, 5, 64),
        (12, 4, 32),
    ],
)
def test_the_smallest_fraction_of_a_resolution_is_found(number: int, resolution: int, runs: int) -> None:
    design = of_resolution(NAMES[:number], resolution)
    assert len(set(design.treatments)) == len(design.treatments) == runs
    assert design.resolution is not None
    assert design.resolution >= resolution
    # Every term shorter than the resolution is balanced, which is what the resolution promises; a word is constant.
    for length in range(1, min(resolution, 4)):
        for term in itertools.combinations(design.factors, length):
            assert sum(column(design, frozenset(term))) == 0, term
    assert all(abs(sum(column(design, word))) == runs for word in design.words)
    assert len(design.words) == 2**number // runs - 1


def test_aliases_are_the_terms_with_the_same_column() -> None:
    design = fractional("ABCDE", {"D": "AB", "E": "AC"})
    assert design.resolution == 3
    terms = [frozenset(term) for n in (1, 2, 3) for term in itertools.combinations("ABCDE", n)]
    for term in terms:
        same = {other for other in terms if other != term and column(design, other) == column(design, term)}
        assert same == {alias for alias in design.aliases(term) if 1 <= len(alias) <= 3}
    assert [design.write(one) for one in design.aliases(frozenset("A"))[:2]] == ["B × D", "C × E"]


def test_no_fraction_means_a_message() -> None:
    with pytest.raises(InputError, match="4 factors have no fraction of resolution 5"):
        of_resolution("ABCD", 5)


def test_the_order_is_random_and_given_again_by_its_seed() -> None:
    design = full({"nodes": 3, "cache": 2})
    orders = [ordered(design, 2, (), seed) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    for order in orders:
        assert [run.replicate for run in order] == [1] * 6 + [2] * 6
        assert sorted(run.treatment for run in order) == sorted([*range(6)] * 2)


def test_each_order_of_three_runs_is_as_likely() -> None:
    design = full({"nodes": 3})
    seen = [tuple(run.treatment for run in ordered(design, 1, (), seed)) for seed in range(600)]
    counts = [seen.count(order) for order in itertools.permutations(range(3))]
    assert sum(counts) == 600
    assert all(60 < count < 140 for count in counts)  # 100 ± 4.4 standard deviations


def test_the_factor_of_the_blocks_changes_once_a_level() -> None:
    design = full({"nodes": 3, "cache": 2})
    order = ordered(design, 4, ["nodes"], 7)
    levels = [design.treatments[run.treatment][0] for run in order]
    stretches = [
        level for level, _ in itertools.groupby(zip(levels, (run.block for run in order), strict=True))
    ]
    assert len(stretches) == 4 * 3 == len({run.block for run in order})
    first = {tuple(dict.fromkeys(levels[at : at + 6])) for at in range(0, 24, 6)}
    assert len(first) > 1, "the order of the levels is drawn for each replicate"


def test_several_factors_of_the_blocks_change_once_a_combination() -> None:
    design = full({"nodes": 2, "cache": 2, "copies": 2})
    order = ordered(design, 3, ["copies", "nodes"], 7)
    settings = [
        (design.treatments[run.treatment][2], design.treatments[run.treatment][0], run.block) for run in order
    ]
    assert len(list(itertools.groupby(settings))) == 3 * 4 == len({run.block for run in order})
