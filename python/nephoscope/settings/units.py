"""Lengths of time and access distributions as a study writes them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

_UNITS = {
    "us": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "min": Decimal(60),
    "h": Decimal(3600),
}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(us|ms|s|min|m|h)")


def parse_duration(value: Any) -> float:  # noqa: ANN401 - whatever TOML can hold
    """Read ``"250ms"``, ``"30s"``, ``"1m30s"``, ``"1h"``, or a number of seconds; in seconds.

    Raises ``ValueError`` with what is allowed.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        text = value.strip() if isinstance(value, str) else ""
        parts = _DURATION.findall(text)
        if not parts or _DURATION.sub("", text).strip():
            raise ValueError('expected a length of time such as "250ms", "30s", "5m" or a number of seconds')
        # In decimals: the text that `format_duration` writes is read as the same number.
        seconds = float(sum(Decimal(number) * _UNITS[unit] for number, unit in parts))
    if not 0 <= seconds < 1e8:  # noqa: PLR2004 - three years
        raise ValueError("a length of time must be 0 or more, and finite")
    return seconds


def format_duration(seconds: float) -> str:
    """Write a length of time so that ``parse_duration`` reads it again: ``250ms``, ``30s``."""
    exact = Decimal(repr(seconds))
    if seconds and seconds < 1:
        return f"{(exact * 1000).normalize():f}ms"
    return f"{exact.normalize():f}s"


Duration = Annotated[
    float, BeforeValidator(parse_duration), PlainSerializer(format_duration, return_type=str)
]
"""Seconds; in a study a text such as ``"30s"``."""


def one_as_list(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    """Read a single text or number where a list is wanted: one needs no brackets."""
    return [value] if isinstance(value, str | int | float) and not isinstance(value, bool) else value


def describe_seconds(seconds: float) -> str:
    """Write a length of time for people: ``8 s``, ``2 min 5 s``, ``1 h 3 min``."""
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004
        return f"{whole} s"
    if whole < 3600:  # noqa: PLR2004
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def describe_count(number: int, noun: str) -> str:
    """Write how many there are of something: ``1 replica``, ``1,200 replicas``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def describe_bytes(number: int) -> str:
    """Write a size for people, in powers of ten: ``2.2 GB``, ``340 kB``."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} bytes"


def parse_percent(text: str) -> float:
    """Read a share in percent, ``"5%"`` or ``"0.5 %"``; as a share. Raises ``ValueError`` with what is allowed."""
    match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%", text.strip())
    if match is None or float(match[1]) > 100:  # noqa: PLR2004
        raise ValueError('expected a share from 0 % to 100 %, such as "5%"')
    return float(Decimal(match[1]) / 100)


_SIZES = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE = re.compile(r"([0-9]{1,15}) ?([kKMG]i?B|)")


def parse_bytes(text: str) -> int:
    """Read a size: ``"16MiB"``, ``"8 KiB"``, ``"2GB"`` or a number of bytes.

    Raises ``ValueError`` with what is allowed.
    """
    match = _SIZE.fullmatch(text)
    if match is None or match[2] not in _SIZES:
        raise ValueError('expected a size such as "16MiB", "2GB" or a number of bytes')
    return int(match[1]) * _SIZES[match[2]]


def describe_value(value: object) -> str:
    """Write the value of an option: a whole number without its fraction."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
