"""Loads, as evaluators' tables in a study hold them: levels and ramps, think time, access distributions, mixes."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from nephoscope.systems.base import Settings
from nephoscope.units import Duration


class RampSetting(Settings):
    """A level that moves in a straight line."""

    from_: Annotated[float, Field(ge=0, alias="from")]
    """The level at the beginning."""
    to: Annotated[float, Field(ge=0)]
    """The level at the end."""
    over: Duration | None = None
    """How long it moves; the whole phase if left out."""

    @field_validator("over")
    @classmethod
    def _moves(cls, seconds: float | None) -> float | None:
        if seconds == 0:
            raise ValueError("a ramp takes time: it needs a length above 0, or a level in its place")
        return seconds


def each_once(values: Any) -> Any:  # noqa: ANN401 - a list, or a word in its place
    """Check that a list to be gone through has nothing twice. Raises ``ValueError`` with what is there again."""
    if isinstance(values, list):
        # To Python true is 1; to whoever is set to it, it is not.
        typed = [(type(value), value) for value in values]
        if again := [value for at, (_, value) in enumerate(typed) if typed[at] in typed[:at]]:
            raise ValueError(f"the same twice: {again[0]}; repetitions say how often each is measured")
    return values


Level = Annotated[float, Field(ge=0)] | RampSetting
MOST_CONCURRENCY = 100_000
HIGHEST_RATE = 1e8
"""Levels above these are slips of the pen; the engine does not take them."""


class ThinkSetting(Settings):
    """The pause of a session between two transactions."""

    law: Literal["constant", "exponential"] = "constant"
    """Always the same, or exponential with ``time`` as its mean."""
    time: Duration
    """How long the pause is."""

    @field_validator("time")
    @classmethod
    def _ends(cls, seconds: float) -> float:
        if seconds >= 1e6:  # noqa: PLR2004
            raise ValueError("a pause must be shorter than 1000000s")
        return seconds


def _think(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    return {"time": value} if isinstance(value, str | int | float) else value


Think = Annotated[ThinkSetting, BeforeValidator(_think)]


def _bound(seconds: float) -> float:
    if seconds <= 0:
        raise ValueError("a latency bound must be above 0")
    return seconds


LatencyBound = Annotated[Duration, AfterValidator(_bound)]
"""The longest latency of a transaction that counts as good (an SLO)."""


class UniformAccess(Settings):
    """Every key alike."""

    distribution: Literal["uniform"] = "uniform"


class LatestAccess(Settings):
    """The ``k`` newest keys alike."""

    distribution: Literal["latest"] = "latest"
    k: Annotated[int, Field(ge=1)]
    """How many keys are the newest."""


class ZipfianAccess(Settings):
    """The i-th most popular key in proportion to 1/i**theta."""

    distribution: Literal["zipfian"] = "zipfian"
    theta: Annotated[float, Field(ge=0, le=10)] = 0.99
    """The skew: 0 is uniform, 0.99 is YCSB's."""


class HotspotAccess(Settings):
    """A share of the keys gets a share of the accesses."""

    distribution: Literal["hotspot"] = "hotspot"
    keys: Annotated[float, Field(ge=0, le=1)] = 0.2
    """The share of keys that is hot."""
    accesses: Annotated[float, Field(ge=0, le=1)] = 0.8
    """The share of accesses that goes to them."""


ACCESS_WORDS = {
    "uniform": re.compile(r"uniform"),
    "latest": re.compile(r"latest-(?P<k>\d+)"),
    "zipfian": re.compile(r"zipfian(-(?P<theta>\d+(\.\d+)?))?"),
    "hotspot": re.compile(r"hotspot(-(?P<keys>\d+(\.\d+)?)-(?P<accesses>\d+(\.\d+)?))?"),
}


def _access(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    """Read the short form of an access distribution: ``uniform``, ``latest-10``, ``zipfian-0.99`` and so on."""
    if not isinstance(value, str):
        return value
    for distribution, pattern in ACCESS_WORDS.items():
        if found := pattern.fullmatch(value):
            numbers = {key: float(text) for key, text in found.groupdict().items() if text is not None}
            whole = {key: int(number) for key, number in numbers.items() if key == "k"}
            return {"distribution": distribution, **numbers, **whole}
    raise ValueError(
        'expected uniform, latest-10, zipfian-0.99, hotspot-0.2-0.8, or a table with "distribution"'
    )


AccessSetting = Annotated[
    Annotated[
        UniformAccess | LatestAccess | ZipfianAccess | HotspotAccess, Field(discriminator="distribution")
    ],
    BeforeValidator(_access),
]

MixSetting = str | dict[str, Annotated[float, Field(ge=0, lt=1e12)]]
"""The name of a workload's mix, a ratio such as ``15:5:80`` in the order of its transactions, or weights."""
