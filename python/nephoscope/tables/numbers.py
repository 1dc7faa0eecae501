"""How the report writes numbers: significant digits, thousands separators, and a dash for what is absent.

Nothing here ever writes "nan" or "inf": a number that is not finite is absent.
"""

from __future__ import annotations

import math

from nephoscope.tables.model import interval

ABSENT = "\u2013"
MINUS = "\u2212"
FIGURE_SPACE = "\u2007"
PUNCTUATION_SPACE = "\u2008"

# Where a percentile has fewer transactions than this beyond it, it says more about chance than about the
# system.
FEW_BEYOND = 10


def finite(value: object) -> float | None:
    """Return the value as a float, or None if it is no finite number (a flag is not a number either)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def decimals_for(value: float, digits: int, most: int = 9) -> int:
    """Return the decimal places that give ``value`` this many significant digits, at most ``most``."""
    if value == 0:
        return 0
    return max(0, min(most, digits - 1 - math.floor(math.log10(abs(value)))))


def rounded(value: float, digits: int) -> float:
    """Return the value with this many significant digits."""
    # Beyond 1e15 a float has no decimals to round, and rounding up the very largest would overflow.
    if value == 0 or abs(value) >= 1e15:  # noqa: PLR2004
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def number(value: object, digits: int = 4) -> str:
    """Return a measured number in so many significant digits, thousands separated; a dash if absent."""
    given = finite(value)
    if given is None:
        return ABSENT
    shown = rounded(given, digits)
    if shown == 0:
        return "0"
    # A whole number is likely a count or a setting: it gets no decimals that were never measured.
    places = 0 if given == int(given) else decimals_for(shown, digits)
    return _minus(f"{shown:,.{places}f}")


def plain(value: object) -> str:
    """Return a setting, as a person would have typed it: no more digits than it has."""
    given = finite(value)
    return ABSENT if given is None else _minus(f"{given:,.10g}")


def count(value: object) -> str:
    """Return a whole number, counted and so written in full."""
    given = finite(value)
    return ABSENT if given is None else _minus(f"{round(given):,}")


def milliseconds(value: object) -> tuple[str, str]:
    """Return a latency in ms and the padding that aligns the points of a column.

    It has three significant digits, and is no finer than 1 µs.
    """
    given = finite(value)
    if given is None:
        return ABSENT, ""
    shown = rounded(given, 3) if abs(given) < 1000 else round(given)  # noqa: PLR2004 - four digits before the point
    places = decimals_for(shown, 3, most=3)
    padding = FIGURE_SPACE * (3 - places) + (PUNCTUATION_SPACE if places == 0 else "")
    return f"{shown:,.{places}f}", padding


def spread(value: object, ci95: tuple[float, float] | None, *, by_ends: bool = False) -> str:
    """Return a 95 % interval beside its value, as tables everywhere have it: ``± 410`` or ``(0.2 … 1.9)``."""
    return _minus(interval(finite(value), ci95, by_ends=by_ends))


def percent(share: object, digits: int = 3) -> str:
    """Return a share (0 to 1) in per cent."""
    given = finite(share)
    return ABSENT if given is None else f"{number(100 * given, digits)} %"


def amount(value: object, digits: int = 4) -> str:
    """Return an amount of money without its sign: the decimals that its digits need, but no idle zeros."""
    given = finite(value)
    if given is None:
        return ABSENT
    text = f"{given:,.{decimals_for(given, digits, most=10)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def dollars(value: object) -> str:
    """Return an amount of US dollars in three significant digits."""
    given = finite(value)
    if given is None:
        return ABSENT
    return f"${given:,.{max(2, decimals_for(given, 3, most=7))}f}"


def duration(seconds: object) -> str:
    """Return a length of time as one says it: ``850 ms``, ``2.1 s``, ``2 min 31 s``, ``1 h 2 min``."""
    given = finite(seconds)
    if given is None or given < 0:
        return ABSENT
    if given < 1:
        return f"{number(given * 1000, 3)} ms"
    if given < 60:  # noqa: PLR2004 - a minute
        return f"{number(given, 3)} s"
    whole = round(given)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{part} {unit}" for part, unit in parts if part) or "0 s"


def elapsed(seconds: object) -> str:
    """Return a moment of the run as a stopwatch shows it: ``3:07``, ``1:02:45``; tenths below ten seconds."""
    given = finite(seconds)
    if given is None:
        return ABSENT
    if 0 <= given < 10 and given != round(given):  # noqa: PLR2004 - short runs need the tenths
        return f"0:{given:04.1f}"
    whole = round(given)
    sign, whole = (MINUS, -whole) if whole < 0 else ("", whole)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{sign}{hours}:{minutes:02}:{rest:02}" if hours else f"{sign}{minutes}:{rest:02}"


def _minus(text: str) -> str:
    return text.replace("-", MINUS)
