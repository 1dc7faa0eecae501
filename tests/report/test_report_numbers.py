"""Numbers on the page."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.tables import numbers

NOT_NUMBERS = [None, math.nan, math.inf, -math.inf, "12", True]
MINUS = "\u2212"


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (52344.7, 4, "52,340"),
        (1234567.0, 4, "1,235,000"),
        (0.0061566, 4, "0.006157"),
        (9.9996, 4, "10.00"),
        (0.1, 3, "0.100"),
        (24, 4, "24"),
        (0.0, 4, "0"),
        (-3.14159, 3, f"{MINUS}3.14"),
    ],
)
def test_a_number_has_its_significant_digits(value: float, digits: int, text: str) -> None:
    assert numbers.number(value, digits) == text


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_what_is_no_number_is_a_dash(value: object) -> None:
    for show in (
        numbers.number,
        numbers.count,
        numbers.plain,
        numbers.percent,
        numbers.dollars,
        numbers.amount,
        numbers.duration,
        numbers.elapsed,
    ):
        assert show(value) == numbers.ABSENT
    assert numbers.milliseconds(value) == (numbers.ABSENT, "")


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_no_number_ever_reads_nan_or_inf(value: float) -> None:
    shown = [
        numbers.number(value),
        numbers.milliseconds(value)[0],
        numbers.amount(value),
        numbers.duration(value),
    ]
    assert not any("nan" in text or "inf" in text for text in shown)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1423, "0.142"), (0.0004, "0.000"), (12.34, "12.3"), (123.4, "123"), (1234.5, "1,234")],
)
def test_a_latency_is_shown_to_the_microsecond_at_most(value: float, text: str) -> None:
    assert numbers.milliseconds(value)[0] == text


def test_latencies_of_a_column_align_at_their_points() -> None:
    widths = {
        len(digits.partition(".")[2]) + len(padding.replace(numbers.PUNCTUATION_SPACE, ""))
        for digits, padding in map(numbers.milliseconds, (0.142, 12.3, 123.0, 4321.0))
    }
    assert widths == {3}


def test_an_even_interval_is_one_half_width() -> None:
    assert numbers.spread(52340.0, (51930.0, 52750.0)) == "± 410"


@pytest.mark.parametrize(
    ("value", "ci95", "text"),
    [
        (100.0, (90.0, 140.0), "(90 … 140)"),
        (0.35, (0.0, 0.7), "± 0.35"),
        (0.35, (0.0, 0.72), "(0.00 … 0.72)"),
        (3_484_448.0, (2_326_000.0, 4_642_900.0), "± 1,200,000"),
        (0.4, (-0.11, 0.91), "± 0.51"),
        (0.8, (-0.11, 0.91), f"({MINUS}0.1 … 0.9)"),
        (0.0, (0.0, 0.0), "± 0"),
        (1.0, (float("-inf"), 2.0), ""),
    ],
)
def test_an_interval_says_both_ends_where_a_half_width_would_mislead(
    value: float, ci95: tuple[float, float], text: str
) -> None:
    assert numbers.spread(value, ci95) == text


def test_an_interval_without_a_value_is_not_shown() -> None:
    assert numbers.spread(None, (1.0, 2.0)) == ""
    assert numbers.spread(1.0, None) == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.85, "850 ms"),
        (2.1, "2.10 s"),
        (12, "12 s"),
        (151, "2 min 31 s"),
        (3725, "1 h 2 min 5 s"),
        (3600, "1 h"),
    ],
)
def test_a_duration_is_said_as_one_says_it(seconds: float, text: str) -> None:
    assert numbers.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (3.25, "0:03.2"), (187, "3:07"), (3765, "1:02:45")]
)
def test_a_moment_reads_like_a_stopwatch(seconds: float, text: str) -> None:
    assert numbers.elapsed(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0437, "$0.0437"), (12.5, "$12.50"), (0.000025, "$0.000025"), (1234.5, "$1,234.50")]
)
def test_money_keeps_the_decimals_that_it_needs(value: float, text: str) -> None:
    assert numbers.dollars(value).startswith(text)


def test_a_unit_price_has_no_idle_zeros() -> None:
    assert [numbers.amount(value) for value in (0.1847, 0.0095, 0.0000015, 10.0)] == [
        "0.1847",
        "0.0095",
        "0.0000015",
        "10",
    ]
