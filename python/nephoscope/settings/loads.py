"""Loads and their parts in a study: levels, ramps, think time, access distributions, mixes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from nephoscope.settings.base import Settings
from nephoscope.settings.units import Duration, one_as_list

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    """Check that a list has no value twice. Raises ``ValueError`` that names the repeated value."""
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

    law: Literal["constant", "exponential", "workload"] = "constant"
    """Always the same, or exponential with ``time`` as its mean, or as the workload says."""
    time: Duration | None = None
    """How long the pause is; required, but for the law ``workload``."""

    @field_validator("time")
    @classmethod
    def _ends(cls, seconds: float | None) -> float | None:
        if seconds is not None and seconds >= 1e6:  # noqa: PLR2004
            raise ValueError("a pause must be shorter than 1000000s")
        return seconds

    @model_validator(mode="after")
    def _has_a_time(self) -> ThinkSetting:
        if self.law == "workload" and self.time is not None:
            raise ValueError(
                'the workload itself says how long its pauses are, so the law "workload" has no time'
            )
        if self.law != "workload" and self.time is None:
            raise ValueError("time is missing: how long the pause is")
        return self

    def to_engine(self) -> dict[str, Any]:
        """Describe the pause for the engine."""
        return {"law": self.law} if self.time is None else {"law": self.law, "ms": self.time * 1000}


def _think(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    if value == "workload":
        return {"law": value}
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


class LatestZipfianAccess(Settings):
    """The i-th newest key in proportion to 1/i**theta."""

    distribution: Literal["latest-zipfian"] = "latest-zipfian"
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
    "latest-zipfian": re.compile(r"latest-zipfian(-(?P<theta>\d+(\.\d+)?))?"),
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
        "expected uniform, latest-10, zipfian-0.99, latest-zipfian-0.99, hotspot-0.2-0.8, or a table with "
        '"distribution"'
    )


AccessSetting = Annotated[
    Annotated[
        UniformAccess | LatestAccess | ZipfianAccess | LatestZipfianAccess | HotspotAccess,
        Field(discriminator="distribution"),
    ],
    BeforeValidator(_access),
]

_ACCESS: TypeAdapter[AccessSetting] = TypeAdapter(AccessSetting)


def parse_access(text: str) -> AccessSetting:
    """Read the short form of an access distribution. Raises ``ValueError`` with what is allowed."""
    try:
        return _ACCESS.validate_python(text)
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def skew_between(before: AccessSetting, after: AccessSetting, share: float) -> AccessSetting:
    """Return the access distribution on the way from one to another; ``share`` of the way lies behind, 0 to 1.

    The numbers of the distribution move in a straight line. Raises ``ValueError`` where the two are not of one kind.
    """
    if isinstance(before, UniformAccess) and isinstance(after, ZipfianAccess | LatestZipfianAccess):
        before = type(after)(theta=0.0)
    if isinstance(after, UniformAccess) and isinstance(before, ZipfianAccess | LatestZipfianAccess):
        after = type(before)(theta=0.0)
    if type(before) is not type(after):
        raise ValueError(
            "access moves between distributions of one kind, such as zipfian-0.5 and zipfian-0.99 (uniform is"
            f" zipfian-0), and these are {before.distribution} and {after.distribution}"
        )
    moved = {}
    for name, low in before.model_dump(exclude={"distribution"}).items():
        number = low + (getattr(after, name) - low) * share
        moved[name] = round(number) if isinstance(low, int) else number
    return type(after)(**moved)


def mix_between(before: Mapping[str, float], after: Mapping[str, float], share: float) -> dict[str, float]:
    """Return the mix on the way from one to another: each transaction's share moves in a straight line."""

    def part(mix: Mapping[str, float], name: str) -> float:
        return mix.get(name, 0.0) / (sum(mix.values()) or 1.0)

    names = [*before, *(name for name in after if name not in before)]
    return {name: (1 - share) * part(before, name) + share * part(after, name) for name in names}


Isolation = Literal["read uncommitted", "read committed", "repeatable read", "serializable"]
"""An isolation level, in the words of SQL."""

Reads = Literal["rw", "ro", "all"]
"""Where transactions run that only read; with ``all`` each session reads on one endpoint of both roles."""

READS: Mapping[str, str] = {
    "all": "reads are spread over the node that takes writes and all read-only nodes",
    "ro": "reads are on the read-only nodes alone as soon as there is one",
}
"""The same in words, for scale-out: its E2 is another figure with each."""

MixSetting = str | dict[str, Annotated[float, Field(ge=0, lt=1e12)]]
Mixes = Annotated[list[MixSetting], BeforeValidator(one_as_list), Field(min_length=1)]


class LoadBeside(Settings):
    """A load beside which probes measure."""

    name: Annotated[str, Field(pattern=r"^[^|,\x00-\x1f]{1,40}$")]
    """Its name in the report."""
    mix: MixSetting | None = None
    """Which transactions run: see [mixes](#mixes). None: the system is idle."""


"""Mixes that are gone through."""


def _one_level(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    # A word may stand in place of a list of levels: the message should not ask for a number.
    return value if isinstance(value, str) else one_as_list(value)


Levels = Annotated[
    list[Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)]], BeforeValidator(_one_level), Field(min_length=1)
]
"""Concurrencies that are gone through."""
"""The name of a workload's mix, a ratio such as ``15:5:80`` in the order of its transactions, or weights."""


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """Endpoints that replace a tenant's; a role that is None stays.

    After its transaction each session moves to its endpoint by ``load.balance``; it keeps a connection that leads there
    already.
    """

    # Not in the text form: these URLs may hold passwords.
    rw: Sequence[str] | None = field(default=None, repr=False)
    ro: Sequence[str] | None = field(default=None, repr=False)
    reads: Reads | None = None
    """Where transactions run that only read: with ``ro`` and ``all`` on rw as long as there is no ro endpoint."""

    def to_engine(self) -> dict[str, Any]:
        """Describe them for the engine."""
        urls = {role: list(given) for role, given in (("rw", self.rw), ("ro", self.ro)) if given is not None}
        return {**urls, "reads": self.reads}


@dataclass(frozen=True, kw_only=True)
class Load:
    """A tenant's load, or a change of it: a value that is None stays."""

    concurrency: Level | None = None
    think: Think | None = None
    rate: Level | None = None
    arrivals: str | None = None
    mix: Mapping[str, float] | None = None
    access: AccessSetting | None = None
    release: bool | None = None
    """Whether sessions that are not wanted close their connections, so that an idle system may pause."""
    isolation: str | None = None
    """The isolation level in which transactions begin that declare none, in the words of SQL."""
    endpoints: Endpoints | None = None
    """Other endpoints, after nodes were added or removed."""
    transition: float | None = None
    """How long mix and access move from those before to these, in s; at once if None."""

    def to_engine(self, seconds: float | None) -> dict[str, Any]:
        """Describe the load for the engine; a ramp without a length takes ``seconds``."""
        description: dict[str, Any] = {}
        if self.concurrency is not None:
            description["concurrency"] = _level(self.concurrency, seconds)
        if self.rate is not None:
            description["rate"] = _level(self.rate, seconds)
        if self.think is not None:
            description["think"] = self.think.to_engine()
        if self.arrivals is not None:
            description["arrivals"] = self.arrivals
        if self.mix is not None:
            description["mix"] = dict(self.mix)
        if self.access is not None:
            description["access"] = self.access.model_dump()
        if self.release is not None:
            description["release"] = self.release
        if self.isolation is not None:
            description["isolation"] = self.isolation
        if self.endpoints is not None:
            description["endpoints"] = self.endpoints.to_engine()
        return description


def closed_or_open(concurrency: float, rate: float | None) -> dict[str, Any]:
    """Return the keys of a load that is closed, or open where a rate is given."""
    return {"concurrency": float(concurrency)} if rate is None else {"rate": rate}


def lets_go(load: Load | Sequence[Load] | Mapping[str, Load]) -> bool:
    """Tell whether no tenant has a load, and none keeps a connection."""
    several = load.values() if isinstance(load, Mapping) else load
    loads = [several] if isinstance(several, Load) else several
    return all(one.concurrency == 0 and bool(one.release) for one in loads)


def _level(level: Level, seconds: float | None) -> Any:  # noqa: ANN401 - a number or a table
    if isinstance(level, RampSetting):
        return {"from": level.from_, "to": level.to, "seconds": level.over or seconds}
    return level


def pauses(load: Load | Sequence[Load] | Mapping[str, Load], tenant: str) -> str | None:
    """Return the law of the pauses that a tenant's sessions are to make; None where the load leaves that as it is.

    Of several loads at a time it is the first one's.
    """
    several = load if isinstance(load, Mapping) else {tenant: load if isinstance(load, Load) else load[0]}
    one = several.get(tenant, several.get("*"))
    return one.think.law if one is not None and one.think is not None else None
