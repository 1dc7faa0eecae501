"""What a vendor charges for, and how a system's resources become what is billed (METRICS, section 2).

A vendor sells no vCores and gigabytes apart but instance classes or capacity units, storage, I/O and transfer. The
mapping, the same for every book:

* a node is the cheapest instance class that has its vCores and its memory at least, or as many capacity units as the
  larger of the two asks for, rounded up to the unit's step; a node without vCores and memory (paused) is none;
* storage is that of a node times the nodes, or that of one node where all nodes share a volume;
* I/O operations per second beyond what each node has included are billed as provisioned;
* I/O requests and transfer are billed by use, which resources do not tell: `Usage` does.

Bandwidth itself is billed by no vendor here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from nephoscope.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from nephoscope.settings.resources import Resources

Resource = Literal["vcores", "memory_gb", "storage_gb", "iops", "network_gbps"]
"""The resources of a system, by the fields of ``Resources``."""

Charged = Literal[Resource, "compute", "io_requests", "data_transfer"]
"""The subject of a line of a cost or bill: a resource with unit costs, a part of the offer with a vendor's book."""

HOURS_PER_MONTH = 730
"""The month of AWS's and Azure's price lists."""

_SECONDS_PER_HOUR = 3600
_MILLION = 1e6
_LONGEST_S = 31 * 24 * 3600
_SHORTEST_STEP_S = 60
_TINY = 1e-9
"""A share of a step that is rounding, and no use."""


class NotPricedError(InputError):
    """A price book lacks a price, or the amount that was used is unknown."""


class PriceTable(BaseModel):
    """A table of a price book: unknown keys, text for numbers, and infinities are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Billing(PriceTable):
    """By which times something is billed."""

    minimum_s: float = Field(default=0, ge=0, le=_LONGEST_S)
    """The least time, in seconds, from each change on."""
    step_s: float = Field(default=0, ge=0, le=_LONGEST_S)
    """Billed times are rounded up to a multiple of so many seconds; 0 is not at all."""
    counts: Literal["each", "highest"] = "each"
    """The amount that is billed within a step: each amount for its own time, or the highest for the whole step."""

    @model_validator(mode="after")
    def _steps(self) -> Self:
        if self.counts == "highest" and self.step_s < _SHORTEST_STEP_S:
            raise ValueError(f'counts = "highest" needs a step_s of {_SHORTEST_STEP_S} s or more')
        return self

    def billed_s(self, duration_s: float) -> float:
        """Return the seconds that are billed for a time without a change."""
        seconds = max(duration_s, self.minimum_s)
        return math.ceil(seconds / self.step_s - _TINY) * self.step_s if self.step_s else seconds


class _Line(PriceTable):
    source: str = Field(min_length=1)
    """The place of its publication."""


class InstanceClass(_Line):
    """An entry of ``[[compute.classes]]``."""

    name: str = Field(min_length=1)
    """What the vendor calls it."""
    vcores: float = Field(gt=0)
    """Virtual cores."""
    memory_gb: float = Field(gt=0)
    """Memory, in units of 2**30 bytes."""
    per_hour: float = Field(ge=0)
    """Price of an hour."""


class CapacityUnit(_Line):
    """``[compute.unit]``: at least one of ``vcores`` and ``memory_gb`` says what it has."""

    name: str = Field(min_length=1)
    """What the vendor calls it."""
    vcores: float | None = Field(default=None, gt=0)
    """Virtual cores of a unit; left out where cores are not what is counted."""
    memory_gb: float | None = Field(default=None, gt=0)
    """Memory of a unit, in units of 2**30 bytes; left out where it comes with the cores."""
    per_hour: float = Field(ge=0)
    """Price of a unit for an hour."""
    step: float = Field(default=1.0, gt=0)
    """A node has a multiple of so many units."""
    least: float = Field(default=0.0, ge=0)
    """The fewest units of a node that runs."""

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if self.vcores is None and self.memory_gb is None:
            raise ValueError("it needs vcores or memory_gb, or both: what a unit has")
        return self

    def units(self, vcores: float, memory_gb: float) -> float:
        """Return how many units a node is billed for."""
        needed = max(
            vcores / self.vcores if self.vcores else 0.0,
            memory_gb / self.memory_gb if self.memory_gb else 0.0,
            self.least,
        )
        return math.ceil(needed / self.step - _TINY) * self.step


class Compute(Billing, _Line):
    """``[compute]``: what a node is billed as; classes or a unit."""

    classes: list[InstanceClass] = Field(default_factory=list)
    """The instance classes that can be had."""
    unit: CapacityUnit | None = None
    """The unit of capacity."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.classes) == (self.unit is not None):
            raise ValueError("it needs [[compute.classes]] or [compute.unit], and not both")
        names = [one.name for one in self.classes]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"the class {twice[0]} is there more than once")
        return self

    def node(self, vcores: float, memory_gb: float) -> tuple[float, str, float]:
        """Return quantity, unit and price of a unit for an hour, of one node. Raises ``NotPricedError``."""
        if self.unit is not None:
            return self.unit.units(vcores, memory_gb), self.unit.name, self.unit.per_hour
        fitting = [one for one in self.classes if one.vcores >= vcores and one.memory_gb >= memory_gb]
        if not fitting:
            sizes = ", ".join(f"{one.name} ({one.vcores:g}, {one.memory_gb:g})" for one in self.classes)
            raise NotPricedError(
                f"no instance class has {vcores:g} vCores and {memory_gb:g} GB; those with (vCores, GB) are {sizes}"
            )
        cheapest = min(fitting, key=lambda one: one.per_hour)
        return 1.0, cheapest.name, cheapest.per_hour


class Storage(Billing, _Line):
    """``[storage]``."""

    per_gb_month: float | None = Field(default=None, ge=0)
    """Price of a GB for a month of 730 hours."""
    per_gb_hour: float | None = Field(default=None, ge=0)
    """In its place: price of a GB for an hour."""
    shared: bool = False
    """Whether all nodes share one volume, which is then billed once."""

    @model_validator(mode="after")
    def _one_price(self) -> Self:
        if (self.per_gb_month is None) == (self.per_gb_hour is None):
            raise ValueError("it needs per_gb_month or per_gb_hour, and not both")
        return self

    @property
    def per_hour(self) -> float:
        """Price of a GB for an hour."""
        return (
            self.per_gb_hour if self.per_gb_hour is not None else (self.per_gb_month or 0) / HOURS_PER_MONTH
        )


class ProvisionedIops(Billing, _Line):
    """``[iops]``; without it I/O operations come with the offer."""

    per_month: float = Field(ge=0)
    """Price of one I/O operation per second for a month of 730 hours."""
    included: float = Field(default=0.0, ge=0)
    """How many each node has for nothing."""


class IoRequests(_Line):
    """``[io_requests]``."""

    per_million: float = Field(ge=0)
    """Price of a million requests."""


class DataTransfer(_Line):
    """``[data_transfer]``."""

    per_gb: float = Field(ge=0)
    """Price of a GB that leaves."""


class Usage(PriceTable):
    """What is billed by use: what a system does on average while it is measured."""

    io_requests_per_s: float | None = Field(default=None, ge=0)
    """I/O requests per second that the vendor counts, of all nodes together."""
    transfer_gb_per_hour: float | None = Field(default=None, ge=0)
    """GB per hour that leave and are billed; 0 where the client is in the database's own zone."""


@dataclass(frozen=True, slots=True)
class Charge:
    """Something that is billed, at one moment."""

    resource: Charged
    quantity: float
    """Units of one node, or of the whole system where ``nodes`` is 1."""
    unit: str
    per_hour: float
    """Price of one unit for an hour."""
    billing: Billing
    nodes: int = 1

    @property
    def rate(self) -> float:
        """Price of one node's units for an hour."""
        return self.quantity * self.per_hour


@dataclass(frozen=True, slots=True)
class Offer:
    """The parts of a vendor's price book, and the use of those that are billed by use."""

    compute: Compute
    storage: Storage
    iops: ProvisionedIops | None
    io_requests: IoRequests | None
    data_transfer: DataTransfer | None
    usage: Usage

    def charges(self, resources: Resources, only: Collection[Resource]) -> Iterator[Charge]:
        """Map resources to billed quantities; ``only`` selects the parts of the offer that belong to some resources.

        Raises ``NotPricedError``.
        """
        if {"vcores", "memory_gb"} & set(only) and (resources.vcores or resources.memory_gb):
            quantity, unit, per_hour = self.compute.node(resources.vcores, resources.memory_gb)
            yield Charge("compute", quantity, unit, per_hour, self.compute, resources.nodes)
        if "storage_gb" in only:
            nodes = 1 if self.storage.shared else resources.nodes
            yield Charge("storage_gb", resources.storage_gb, "GB", self.storage.per_hour, self.storage, nodes)
        if "iops" in only:
            yield from self._io(resources)
        if "network_gbps" in only and self.data_transfer:
            used = _told(self.usage.transfer_gb_per_hour, "data transfer", "transfer_gb_per_hour")
            yield Charge("data_transfer", used, "GB an hour", self.data_transfer.per_gb, Billing())

    def _io(self, resources: Resources) -> Iterator[Charge]:
        if self.iops:
            beyond = max(resources.iops - self.iops.included * resources.nodes, 0.0)
            yield Charge("iops", beyond, "IOPS", self.iops.per_month / HOURS_PER_MONTH, self.iops)
        if self.io_requests:
            used = _told(self.usage.io_requests_per_s, "I/O requests", "io_requests_per_s")
            millions = used * _SECONDS_PER_HOUR / _MILLION
            price = self.io_requests.per_million
            yield Charge("io_requests", millions, "million requests an hour", price, Billing())


def _told(used: float | None, what: str, key: str) -> float:
    if used is None:
        raise NotPricedError(
            f"it charges for {what}, and nobody has said how much is used: [cost.usage] {key} of a study, "
            f"usage.{key} of a system's figures"
        )
    return used


def amount_over(held: list[tuple[Charge | None, float]]) -> float:
    """Return the amount due for one node's charges over time, each with the seconds for which it was held."""
    if (billing := next((charge.billing for charge, _ in held if charge), None)) is None:
        return 0.0
    if billing.counts == "highest":
        return _highest(held, billing.step_s)
    amounts: list[float] = []
    period: Charge | None = None
    seconds: list[float] = []
    for charge, duration_s in [*held, (None, 0.0)]:
        if not _same(charge, period):
            if period is not None:
                amounts.append(period.rate * billing.billed_s(math.fsum(seconds)) / _SECONDS_PER_HOUR)
            period, seconds = charge, []
        seconds.append(duration_s)
    return math.fsum(amounts)


def _same(one: Charge | None, other: Charge | None) -> bool:
    """Whether one period goes on: how many nodes have the same is no change to this one."""
    if one is None or other is None:
        return one is other
    return (one.quantity, one.unit, one.per_hour) == (other.quantity, other.unit, other.per_hour)


def _highest(held: list[tuple[Charge | None, float]], step_s: float) -> float:
    """Bill each step, from the first charge on, at the highest rate within it."""
    highest: dict[int, float] = {}
    began: float | None = None
    now = 0.0
    for charge, duration_s in held:
        end = now + duration_s
        if charge is not None:
            began = now if began is None else began
            first = math.floor((now - began) / step_s + _TINY)
            after = math.ceil((end - began) / step_s - _TINY)
            for step in range(first, after):
                highest[step] = max(highest.get(step, 0.0), charge.rate)
        now = end
    return math.fsum(highest.values()) * step_s / _SECONDS_PER_HOUR
