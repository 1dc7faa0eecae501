"""Effects: what is planted is read back, and intervals cover it as often as they say."""

# ruff: noqa: RUF001 - times

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nephoscope.experiments.design import Design, fractional, full, ordered
from nephoscope.experiments.effects import Analysis, analyse, pooled_means
from nephoscope.experiments.pareto import Knee, knee, standings
from nephoscope.experiments.scaling import linearity, ratios
from nephoscope.statistics import MeanEstimate
from nephoscope.study.factors import FactorTable
from simulated import allowance, generator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nephoscope.experiments.design import Planned


def factor(name: str, *levels: Any) -> FactorTable:
    return FactorTable(name=name, key=f"load.{name}", levels=list(levels))


A, B, C = factor("a", "off", "on"), factor("b", 1, 2, 4), factor("c", "x", "y", "z")


def planned(
    factors: Sequence[FactorTable], replicates: int, blocks: Sequence[str] = ()
) -> tuple[Design, list[Planned]]:
    design = full({one.name: len(one.levels) for one in factors})
    return design, ordered(design, replicates, blocks, 1)


def analysed(
    factors: Sequence[FactorTable],
    truth: Callable[[Planned, tuple[int, ...]], float | None],
    replicates: int = 2,
    blocks: Sequence[str] = (),
) -> Analysis:
    design, runs = planned(factors, replicates, blocks)
    values = [truth(run, design.treatments[run.treatment]) for run in runs]
    found = analyse("tps", factors, design, runs, values, blocks=blocks)
    assert found is not None
    return found


def test_planted_effects_are_read_exactly() -> None:
    coded = {0: -1.0, 1: -1 / 3, 2: 1.0}

    def truth(run: Planned, at: tuple[int, ...]) -> float:
        a, b = 2 * at[0] - 1, coded[at[1]]
        return 100 + 5 * a + 7 * b - 4 * b * b + 2 * a * b + 1000 * run.replicate

    found = analysed([A, B], truth)
    values = {effect.label: effect.value for effect in found.effects}
    assert values == pytest.approx({"a": 10, "b": 14, "b²": -4, "a × b": 4})
    assert [effect.clear for effect in found.effects] == [True] * 4
    # 12 runs, 2 replicates, 4 terms.
    assert {effect.freedom for effect in found.effects} == {6}


def test_effects_that_multiply_are_read_of_logarithms() -> None:
    rng = generator()
    rounds, covered = 200, 0
    factors = [A, factor("b", 0, 1)]
    design, runs = planned(factors, 4)
    for _ in range(rounds):
        # The spread grows with the response; a alone makes it five times as large, b has no effect.
        values = [
            3 * 5.0 ** design.treatments[run.treatment][0] * np.exp(0.1 * rng.standard_normal())
            for run in runs
        ]
        found = analyse("p99_ms", factors, design, runs, values, blocks=(), logarithmic=True)
        assert found is not None
        assert found.mean == pytest.approx(3 * np.sqrt(5), rel=0.15)
        assert found.fitted[0] == pytest.approx(3, rel=0.2)
        effects = {effect.label: effect for effect in found.effects}
        low, high = effects["a"].ci95 or (1.0, 0.0)
        covered += low <= 400 <= high
    assert abs(covered / rounds - 0.95) < allowance(0.95, rounds)
    assert effects["a"].value == pytest.approx(400, rel=0.2)
    assert abs(effects["b"].value) < 30


def test_what_has_no_logarithm_is_told() -> None:
    design, runs = planned([A], 3)
    values = [0.0, *(2.0 for _ in runs[1:])]
    found = analyse("failed", [A], design, runs, values, blocks=(), logarithmic=True)
    assert found is not None
    assert found.notes == ("failed: 1 of 6 runs lack it",)


def test_levels_that_are_names_have_deviations() -> None:
    found = analysed([A, C], lambda _, at: 10 + [3, -1, -2][at[1]] + (2 * at[0] - 1) * [1, 0, -1][at[1]])
    values = {effect.label: effect.value for effect in found.effects}
    assert values["c=x"] == pytest.approx(3)
    assert values["c=y"] == pytest.approx(-1)
    assert values["a"] == pytest.approx(0)
    assert values["a × c=x"] == pytest.approx(2)
    assert found.fitted == pytest.approx([12, 9, 9, 14, 9, 7])


def test_aliases_of_a_fraction_are_named_and_not_counted_twice() -> None:
    design = fractional("abcd", {"d": "abc"})
    factors = [factor(name, 0, 1) for name in "abcd"]
    runs = ordered(design, 2, (), 1)
    signs = [[2 * level - 1 for level in design.treatments[run.treatment]] for run in runs]
    found = analyse("tps", factors, design, runs, [3.0 * s[0] * s[1] for s in signs], blocks=())
    assert found is not None
    effects = {effect.label: effect for effect in found.effects}
    assert list(effects) == ["a", "b", "c", "d", "a × b", "a × c", "a × d"]
    assert effects["a × b"].value == pytest.approx(6)
    assert effects["a × b"].aliases == ("c × d",)
    assert effects["a"].aliases == ()


def test_without_replicates_a_saturated_model_has_no_interval() -> None:
    found = analysed([A, factor("d", 0, 1)], lambda _, at: 1.0 + at[0], replicates=1)
    assert [(effect.ci95, effect.clear) for effect in found.effects] == [(None, None)] * 3
    assert found.notes == ("tps: as many terms as runs: there are no intervals; more replicates give them",)


def test_missing_runs_are_told() -> None:
    found = analysed([A, B], lambda run, at: None if run.block == 1 and at == (0, 0) else 2.0 * at[0])
    assert {e.label: e.value for e in found.effects}["a"] == pytest.approx(2)
    assert found.notes == ("tps: 1 of 12 runs lack it",)
    blocked = analysed([A, B], lambda run, at: None if run.block == 1 and at[1] else at[0], blocks=["a"])
    assert "a" not in {effect.label for effect in blocked.effects}
    assert "tps: the effect of a needs every run" in blocked.notes


@pytest.mark.parametrize("blocks", [[], ["a"], ["a", "b"]])
def test_intervals_cover_what_is_planted(blocks: Sequence[str]) -> None:
    """Also of the factors of the blocks, each of whose settings adds an error of its own."""
    rng = generator()
    rounds = 400
    covered = dict.fromkeys(("a", "b", "a × b"), 0)
    false = 0
    for _ in range(rounds):
        stretch: dict[int, float] = {}

        def truth(run: Planned, at: tuple[int, ...], stretch: dict[int, float] = stretch) -> float:
            shared = stretch.setdefault(run.block, 5 * rng.standard_normal())
            return 10 * at[0] + 6 * (at[1] == 2) - 6 * (at[1] == 0) + shared + rng.standard_normal()

        found = analysed([A, factor("b", 1, 2, 3)], truth, replicates=4, blocks=blocks)
        effects = {effect.label: effect for effect in found.effects}
        for name, planted in (("a", 10), ("b", 12), ("a × b", 0)):
            low, high = effects[name].ci95 or (1.0, 0.0)
            covered[name] += low <= planted <= high
        false += bool(effects["a × b"].clear) or bool(effects["b²"].clear)
    for name, number in covered.items():
        assert abs(number / rounds - 0.95) < allowance(0.95, rounds), name
    assert false / rounds < 0.05 + allowance(0.05, rounds)


def test_the_means_of_treatments_share_their_spread() -> None:
    found = pooled_means({0: [1.0, 1.0], 1: [2.0, 4.0], 2: [9.0]})
    assert [found[at].mean for at in range(3)] == [1, 3, 9]
    # s² = 2 / 2 = 1 with 2 degrees of freedom: t = 4.303.
    assert found[0].ci95 == pytest.approx((1 - 4.30265 / np.sqrt(2), 1 + 4.30265 / np.sqrt(2)))
    assert found[2].ci95 == pytest.approx((9 - 4.30265, 9 + 4.30265))
    assert pooled_means({0: [1.0]})[0].ci95 is None
    # Of what is computed, and the same each time, no spread is left by rounding.
    assert [of.ci95 for of in pooled_means({0: [0.1] * 3, 1: [0.7] * 3}).values()] == [
        (0.1, 0.1),
        (0.7, 0.7),
    ]


def test_intervals_of_logarithms_grow_with_their_means() -> None:
    found = pooled_means({0: [10.0, 12.0], 1: [1000.0, 1200.0]}, logarithmic=True)
    assert [found[0].mean, found[1].mean] == [11, 1100]
    small, large = found[0].ci95, found[1].ci95
    assert small is not None
    assert large is not None
    assert [end * 100 for end in small] == pytest.approx(large)
    assert small[0] < found[0].mean - 1
    assert small[1] > found[0].mean + 1
    # What is not above 0 has no logarithm.
    plain = {0: [0.0, 2.0], 1: [3.0, 4.0]}
    assert pooled_means(plain, logarithmic=True) == pooled_means(plain)


def about(mean: float, half: float | None) -> MeanEstimate:
    return MeanEstimate(mean, None if half is None else (mean - half, mean + half), 2, "student t")


def test_the_front_says_what_the_intervals_tell() -> None:
    # Throughput, the higher the better; cost, the lower the better.
    best, worse, near, dear = (
        [about(100, 5), about(1, 0)],
        [about(50, 5), about(2, 0)],
        [about(97, 5), about(1, 0)],
        [about(150, 5), about(3, 0)],
    )
    assert standings([best, worse, dear], [True, False]) == ["not dominated", "dominated", "not dominated"]
    assert standings([best, near], [True, False]) == ["cannot tell", "cannot tell"]
    assert standings([best, [about(100, None), about(1, 0)]], [True, False]) == ["cannot tell", "cannot tell"]
    same = [about(1, 0), about(1, 0)]
    assert standings([same, list(same)], [True, False]) == ["not dominated", "not dominated"]


def test_scaling_is_read_of_pairs() -> None:
    # Twice the nodes have 1.5 times the throughput, whatever else there is.
    tps: dict[tuple[float, tuple[object, ...]], float] = {
        (n, (load, r)): load * 1.5 ** np.log2(n)
        for n in (1.0, 2.0, 4.0)
        for load in (10, 1000)
        for r in (1, 2)
    }
    two, four = ratios(tps)
    assert (two.level, two.pairs, four.level) == (2, 4, 4)
    assert (two.value, four.value) == pytest.approx((1.5, 2.25))
    assert two.ci95 == pytest.approx((1.5, 1.5))
    assert ratios({(1.0, (1,)): 8.0, (2.0, (1,)): 2.0}, inverse=True)[0].value == pytest.approx(4)
    assert linearity({(n, ()): 3 * n + 1 for n in (1.0, 2.0, 5.0)}) == pytest.approx(1)
    assert linearity({(1.0, ()): 1.0, (2.0, ()): 2.0}) is None


@pytest.mark.parametrize(
    ("values", "higher", "place", "clear"),
    [
        ([10, 18, 20, 21, 21.5], True, 1, True),
        ([100, 40, 30, 28, 27], False, 1, True),
        ([10, 17, 20.2, 21, 21.5], True, 2, True),
        # The third is nearly as far from the line as the second, and the two could change places.
        ([10, 15.2, 18.1, 21, 22.1], True, 1, False),
    ],
)
def test_the_knee_is_where_an_objective_begins_to_gain_less_than_it_costs(
    values: list[float], *, higher: bool, place: int, clear: bool
) -> None:
    costs = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert knee(costs, [about(value, 0.1) for value in values], higher) == Knee(place, clear)
    # What is dearer and no better than another is not looked at.
    worse = [*(about(value, 0.1) for value in values), about(values[0], 0.1)]
    assert knee([*costs, 4.5], worse, higher) == Knee(place, clear)


@pytest.mark.parametrize("values", [[10, 20, 30, 40], [10, 12, 20, 40], [10, 40, 40, 40], [10, 10, 10, 10]])
def test_without_a_bend_there_is_no_knee(values: list[float]) -> None:
    assert knee([1, 2, 3, 4], [about(value, 0.1) for value in values], higher=True) is None


def test_a_knee_without_intervals_is_not_clear() -> None:
    values = [about(10, None), about(18, None), about(20, None), about(21, None)]
    assert knee([1, 2, 3, 4], values, higher=True) == Knee(1, clear=False)
