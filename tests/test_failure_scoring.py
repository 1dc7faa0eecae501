"""F and R of several failures: within a role first, then over the roles."""

from __future__ import annotations

import math

import pytest

from nephoscope.scoring.failures import over_roles, recovery
from nephoscope.scoring.formulas import Absent, Score


def test_a_role_counts_once_however_often_its_nodes_failed() -> None:
    found = over_roles("F", {"rw": [2.0, 2.0, 2.0, 6.0], "ro": [1.0]})
    assert isinstance(found, Score)
    assert found.value == pytest.approx((3.0 + 1.0) / 2)
    assert found.detail["median"] == pytest.approx((2.0 + 1.0) / 2)
    assert found.detail["roles"]["rw"] == {"mean": 3.0, "median": 2.0, "values": [2.0, 2.0, 2.0, 6.0]}
    # How much the only failure of ro would differ in another one, nobody knows.
    assert (found.ci95, found.repetitions) == (None, 1)


def test_what_differs_between_roles_is_no_noise() -> None:
    apart = over_roles("F", {"rw": [9.0, 10.0, 11.0], "ro": [0.9, 1.0, 1.1]})
    assert isinstance(apart, Score)
    assert apart.ci95 is not None
    # Student's t of three is 4.303.
    half = 4.303 * math.hypot(1.0, 0.1) / math.sqrt(3) / 2
    low, high = apart.ci95
    # The interval of rw and that of ro are both above 0, and so are their ends.
    assert (low, high) == pytest.approx((5.5 - half, 5.5 + half), rel=1e-3)


def test_an_interval_never_reaches_below_0() -> None:
    found = over_roles("F", {"rw": [0.1, 0.1, 2.0], "ro": [0.0, 0.3, 0.1]})
    assert isinstance(found, Score)
    assert found.ci95 is not None
    assert found.ci95[0] >= 0.0


def test_a_recovery_below_its_resolution_lies_between_0_and_that() -> None:
    assert recovery(0.2, 0.5) == (0.25, 0.25)
    assert recovery(0.5, 0.5) == (0.5, 0.0)
    values, halves = zip(*(recovery(seconds, 0.5) for seconds in (0.0, 0.3, 0.1)), strict=True)
    found = over_roles("R", {"rw": values}, half_widths={"rw": halves})
    assert isinstance(found, Score)
    assert (found.value, found.ci95) == (0.25, (0.0, 0.5))
    # Of a single failure, too.
    alone = over_roles("R", {"rw": [0.25]}, half_widths={"rw": [0.25]})
    assert isinstance(alone, Score)
    assert alone.ci95 == (0.0, 0.5)


def test_a_failure_without_an_end_makes_the_score_absent_with_its_role() -> None:
    gone = Absent(reason="the service did not come back")
    found = over_roles("F", {"rw": [1.0, 2.0], "ro": [1.0, gone]})
    assert found == Absent(reason="ro: repetition 2: the service did not come back")
    assert over_roles("F", {}) == Absent(reason="not measured")
