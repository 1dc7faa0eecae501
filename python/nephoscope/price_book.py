"""What resources cost: price books, the cost of a system per minute, and what would be billed for it.

METRICS, section 2; CloudyBench, section II-F and Table III. A price book gives each resource a unit price per
hour. Two readings of it are kept apart:

* `cost`: the price of the resources per minute, as if they were billed by the instant (P, E1, T);
* `bill` and `allocated_cost`: what is due for a duration under the book's minimum billing periods (P*, E1*,
T*).

`Prices` is a book with the choice between the two.

Money is in plain floats, on purpose: these are quotients for scores, not a ledger. A figure is one product
per resource and one correctly rounded sum (`math.fsum`), so its relative error stays below 1e-15, eleven
digits beyond what the paper's tables print.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import resources as package_files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nephoscope.errors import InputError
from nephoscope.files import USER_FILE_BYTES, parse_toml, read_regular

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from nephoscope.systems.base import Resources

Resource = Literal["vcores", "memory_gb", "storage_gb", "iops", "network_gbps"]
"""What a system is charged for, by the names of the fields of ``Resources``."""

RESOURCES: tuple[Resource, ...] = get_args(Resource)
ELASTIC_RESOURCES: tuple[Resource, ...] = ("vcores", "memory_gb", "iops")
"""The resources that E1 counts (equation 2)."""

DEFAULT_PRICE_BOOK = "cloudybench-2024"

_SECONDS_PER_HOUR = 3600
_MINUTES_PER_HOUR = 60
_SECONDS_PER_MINUTE = 60
_IOPS_UNIT = 100


class _Table(BaseModel):
    """A table of a price book: unknown keys, text for numbers, and infinities are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class UnitPrices(_Table):
    """Prices in the book's currency per unit and hour (Table III)."""

    vcore: float = Field(ge=0)
    """Per virtual core."""
    memory_gb: float = Field(ge=0)
    """Per GB of memory."""
    storage_gb: float = Field(ge=0)
    """Per GB of storage."""
    iops_100: float = Field(ge=0)
    """Per 100 I/O operations per second."""
    tcp_gbps: float = Field(ge=0)
    """Per Gbps of a TCP/IP network."""
    rdma_gbps: float = Field(ge=0)
    """Per Gbps of an RDMA network."""


class MinimumBilling(_Table):
    """The least time, in seconds, that a resource is billed for once it was allocated."""

    all: float = Field(default=0, ge=0)
    """For every resource that is not named itself."""
    vcores: float | None = Field(default=None, ge=0)
    """For virtual cores."""
    memory_gb: float | None = Field(default=None, ge=0)
    """For memory."""
    storage_gb: float | None = Field(default=None, ge=0)
    """For storage."""
    iops: float | None = Field(default=None, ge=0)
    """For I/O operations."""
    network_gbps: float | None = Field(default=None, ge=0)
    """For network bandwidth."""

    def of(self, resource: Resource) -> float:
        """Seconds for one resource."""
        own: float | None = getattr(self, resource)
        return self.all if own is None else own


class PriceBook(_Table):
    """Unit prices with their source, and minimum billing periods where a vendor has them."""

    name: str = Field(min_length=1)
    """What figures name it by."""
    currency: Literal["USD"]
    """The only one so far."""
    reference: str = Field(min_length=1)
    """Where the prices come from: a score without it cannot be checked."""
    per_hour: UnitPrices
    """Unit prices."""
    minimum_billing_s: MinimumBilling = MinimumBilling()
    """Minimum billing periods, in seconds."""


class CostLine(_Table):
    """One resource of a cost: ``per_minute`` is ``quantity`` times ``per_hour`` / 60."""

    resource: Resource
    quantity: float
    """Units that are charged, all nodes together."""
    unit: str
    per_hour: float
    """Price of one unit for an hour."""
    per_minute: float


class Cost(_Table):
    """What a system's resources cost per minute, line by line; the ``cost`` of ``scores.json``."""

    price_book: str
    nodes: int
    lines: tuple[CostLine, ...]
    per_minute: float


class BillLine(_Table):
    """One resource of a bill: ``amount`` is ``quantity`` times ``per_hour`` times ``billed_s`` / 3600."""

    resource: Resource
    quantity: float
    unit: str
    per_hour: float
    billed_s: float
    amount: float


class Bill(_Table):
    """What is due for a duration, minimum billing periods included."""

    price_book: str
    nodes: int
    duration_s: float
    lines: tuple[BillLine, ...]
    total: float
    per_minute: float
    """``total`` per minute of the actual duration: the cost of the starred scores."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """A stretch of time over which a system's resources stayed the same."""

    duration_s: float
    resources: Resources

    def __post_init__(self) -> None:
        """Refuse a stretch without a length."""
        _check_duration(self.duration_s)


@dataclass(frozen=True, slots=True)
class Prices:
    """A price book, and whether its minimum billing periods count."""

    book: PriceBook
    held_s: float | None = None
    """For how many seconds the resources are billed, for the starred scores; None prices them by the instant."""

    def per_minute(self, resources: Resources) -> float:
        """Price resources per minute: by `cost`, or by `bill` for as long as they were held."""
        if self.held_s is None:
            return cost(resources, self.book).per_minute
        return bill(resources, self.book, self.held_s).per_minute


def cost(resources: Resources, book: PriceBook, only: Collection[Resource] = RESOURCES) -> Cost:
    """Price resources per minute (the denominator of equation 1).

    vCores, memory and storage are multiplied by the nodes; IOPS and network are the system's as a whole, the
    reading that reproduces Table V (METRICS, section 2). ``only`` narrows the cost to some of the resources,
    for instance to ``ELASTIC_RESOURCES``. A resource of which there is none has no line.
    """
    lines = []
    for resource in _in_order(only):
        quantity, unit, per_hour = _priced(resource, resources, book)
        if quantity > 0:
            per_minute = quantity * per_hour / _MINUTES_PER_HOUR
            lines.append(
                CostLine(
                    resource=resource, quantity=quantity, unit=unit, per_hour=per_hour, per_minute=per_minute
                )
            )
    return Cost(
        price_book=book.name,
        nodes=resources.nodes,
        lines=tuple(lines),
        per_minute=math.fsum(line.per_minute for line in lines),
    )


def bill(
    resources: Resources, book: PriceBook, duration_s: float, only: Collection[Resource] = RESOURCES
) -> Bill:
    """Bill resources that were held for ``duration_s`` seconds and then given back.

    Each resource is billed for the duration or for its minimum billing period, whichever is longer. Under a
    book without minimum periods ``per_minute`` equals that of `cost`. Raises ``ValueError`` for a duration
    that is not positive and finite.
    """
    _check_duration(duration_s)
    lines = []
    for line in cost(resources, book, only).lines:
        billed_s = max(duration_s, book.minimum_billing_s.of(line.resource))
        lines.append(
            BillLine(
                resource=line.resource,
                quantity=line.quantity,
                unit=line.unit,
                per_hour=line.per_hour,
                billed_s=billed_s,
                amount=line.quantity * line.per_hour * billed_s / _SECONDS_PER_HOUR,
            )
        )
    total = math.fsum(line.amount for line in lines)
    return Bill(
        price_book=book.name,
        nodes=resources.nodes,
        duration_s=duration_s,
        lines=tuple(lines),
        total=total,
        per_minute=total / (duration_s / _SECONDS_PER_MINUTE),
    )


def allocated_cost(
    allocations: Sequence[Allocation], book: PriceBook, only: Collection[Resource] = ELASTIC_RESOURCES
) -> float:
    """Dollars for what was allocated over a window, stretch by stretch (the denominator of E1, equation 2).

    Where the book has minimum billing periods (E1*), a period starts whenever the quantity of a resource
    changes, and each is billed for its minimum at least, as services that bill after a change of status do.
    Stretches over which a resource stays the same are one period, whatever the other resources do.
    """
    amounts: list[float] = []
    for resource in _in_order(only):
        priced = [(_priced(resource, step.resources, book), step.duration_s) for step in allocations]
        for (quantity, _, per_hour), stretch in groupby(priced, key=lambda item: item[0]):
            duration_s = math.fsum(seconds for _, seconds in stretch)
            billed_s = max(duration_s, book.minimum_billing_s.of(resource))
            amounts.append(quantity * per_hour * billed_s / _SECONDS_PER_HOUR)
    return math.fsum(amounts)


def built_in_price_books() -> tuple[str, ...]:
    """Names of the price books that come with nephoscope."""
    folder = package_files.files("nephoscope") / "price_books"
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_price_book(name_or_path: str | Path = DEFAULT_PRICE_BOOK) -> PriceBook:
    """Read a price book: a built-in one by its name, or a TOML file by its path.

    A ``Path``, and text with a folder or the suffix ``.toml`` in it, is a path; any other text is a name.
    Raises ``InputError`` that names the file, the key and what is allowed there.
    """
    if (
        isinstance(name_or_path, Path)
        or name_or_path.endswith(".toml")
        or Path(name_or_path).name != name_or_path
    ):
        path = Path(name_or_path)
        try:
            return _parsed(read_regular(path, USER_FILE_BYTES), str(path))
        except OSError as error:
            raise InputError(f"price book {path}: cannot be read: {error.strerror}") from error
    return built_in_price_book(name_or_path)


def built_in_price_book(name: str) -> PriceBook:
    """Read a price book that comes with nephoscope; whatever the name is, no other file is opened.

    Raises ``InputError``.
    """
    known = built_in_price_books()
    if name not in known:
        raise InputError(
            f"price book {name!r}: not built in; allowed: {', '.join(known)}, or a .toml file's path"
        )
    file = package_files.files("nephoscope") / "price_books" / f"{name}.toml"
    return _parsed(file.read_bytes(), name)


def _parsed(content: bytes, where: str) -> PriceBook:
    try:
        table = parse_toml(content)
    except ValueError as error:
        raise InputError(f"price book {where}: not a TOML file: {error}") from error
    try:
        return PriceBook.model_validate(table)
    except ValidationError as error:
        faults = "; ".join(
            _fault(list(fault["loc"]), fault["type"], fault["msg"]) for fault in error.errors()
        )
        raise InputError(f"price book {where}: {faults}") from error


def _fault(location: list[Any], kind: str, message: str) -> str:
    key = ".".join(str(part) for part in location)
    if kind == "missing":
        return f"{key} is missing"
    if kind == "extra_forbidden":
        tables: dict[str, type[BaseModel]] = {"per_hour": UnitPrices, "minimum_billing_s": MinimumBilling}
        table = tables.get(str(location[0]), PriceBook) if len(location) > 1 else PriceBook
        return f"{key} is not a key; allowed: {', '.join(table.model_fields)}"
    return f"{key}: {message[0].lower()}{message[1:]}"


def _priced(resource: Resource, resources: Resources, book: PriceBook) -> tuple[float, str, float]:
    """Quantity over all nodes, unit, and price of one unit for an hour."""
    prices = book.per_hour
    if resource == "vcores":
        return resources.nodes * resources.vcores, "vCore", prices.vcore
    if resource == "memory_gb":
        return resources.nodes * resources.memory_gb, "GB", prices.memory_gb
    if resource == "storage_gb":
        return resources.nodes * resources.storage_gb, "GB", prices.storage_gb
    if resource == "iops":
        return resources.iops / _IOPS_UNIT, "100 IOPS", prices.iops_100
    if resources.network == "rdma":
        return resources.network_gbps, "Gbps RDMA", prices.rdma_gbps
    return resources.network_gbps, "Gbps TCP/IP", prices.tcp_gbps


def _in_order(only: Collection[Resource]) -> list[Resource]:
    """Put the named resources in the order of Table V, so that lines never depend on how they were named."""
    unknown = set(only) - set(RESOURCES)
    if unknown:
        raise ValueError(f"not a resource: {', '.join(sorted(unknown))}; allowed: {', '.join(RESOURCES)}")
    return [resource for resource in RESOURCES if resource in only]


def _check_duration(duration_s: float) -> None:
    if not (math.isfinite(duration_s) and duration_s > 0):
        raise ValueError(f"a duration is {duration_s} s; allowed: any positive, finite number")
