"""What resources cost: price books, the cost of a system per minute, and what would be billed for it.

METRICS, section 2; CloudyBench, section II-F and Table III. A price book has unit costs, a price per hour of each
resource, the same for every vendor; or it has what one vendor charges in one region (``offers``). Two readings of
it are kept apart:

* `cost`: the price of the resources per minute, as if they were billed by the instant (P, E1, T);
* `bill` and `allocated_cost`: what is due for a duration under the book's minimum billing periods and steps (P*,
E1*, T*).

`Prices` is a book with the choice between the two.

Money is in plain floats, on purpose: these are quotients for scores, not a ledger. A figure is one product
per resource and one correctly rounded sum (`math.fsum`), so its relative error stays below 1e-15, eleven
digits beyond what the paper's tables print.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args, get_type_hints

from pydantic import BaseModel, Field, StringConstraints, ValidationError, model_validator

from nephoscope.errors import InputError
from nephoscope.files import USER_FILE_BYTES, packaged, parse_toml, read_regular
from nephoscope.scoring.offers import (
    Billing,
    Charge,
    Charged,
    Compute,
    DataTransfer,
    IoRequests,
    NotPricedError,
    Offer,
    PriceTable,
    ProvisionedIops,
    Resource,
    Storage,
    Usage,
    amount_over,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from nephoscope.settings.resources import Resources

RESOURCES: tuple[Resource, ...] = get_args(Resource)
ELASTIC_RESOURCES: tuple[Resource, ...] = ("vcores", "memory_gb", "iops")
"""The resources that E1 counts (equation 2)."""

DEFAULT_PRICE_BOOK = "cloudybench-2024"

_SECONDS_PER_HOUR = 3600
_MINUTES_PER_HOUR = 60
_SECONDS_PER_MINUTE = 60
_IOPS_UNIT = 100

_PARTS = ("compute", "storage", "iops", "io_requests", "data_transfer")
_NEEDED = ("vendor", "region", "date", "compute", "storage")
"""The keys that every vendor's book has."""


class UnitPrices(PriceTable):
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


class MinimumBilling(PriceTable):
    """The minimum billing period of a resource, in seconds from its allocation."""

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


class PriceBook(PriceTable):
    """Unit costs of resources, or a vendor's prices in a region, with their source."""

    name: str = Field(min_length=1)
    """What figures name it by."""
    currency: Literal["USD"]
    """The only one so far."""
    reference: str = Field(min_length=1)
    """The source of the prices, so that a score can be checked."""
    per_hour: UnitPrices | None = None
    """Unit costs; a vendor's book has `compute` and `storage` in their place."""
    minimum_billing_s: MinimumBilling = MinimumBilling()
    """Minimum billing periods of unit costs, in seconds; each part of a vendor's book has its own."""
    vendor: str | None = Field(default=None, min_length=1)
    """Whose prices they are, of a vendor's book."""
    region: str | None = Field(default=None, min_length=1)
    """The region in which the prices are valid."""
    date: Annotated[str, StringConstraints(pattern=r"^20\d\d(-\d\d){0,2}$")] | None = None
    """When they held: a year, a month or a day."""
    notice: str | None = Field(default=None, min_length=1)
    """A notice to the user of these prices; printed as a warning."""
    compute: Compute | None = None
    """What a node is billed as."""
    storage: Storage | None = None
    """What storage costs."""
    iops: ProvisionedIops | None = None
    """What provisioned I/O operations cost; left out where they come with the offer."""
    io_requests: IoRequests | None = None
    """What I/O requests cost, where they are billed by use."""
    data_transfer: DataTransfer | None = None
    """What data that leaves costs, where it is billed by use."""
    usage: Usage = Usage()
    """What is used of that; the `cost.usage` of a study, or the `usage` of a system's figures, takes its place."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        """Refuse a book that is neither of unit costs nor of a vendor, or mixes them."""
        if self.per_hour is not None:
            if parts := [name for name in _PARTS if getattr(self, name) is not None]:
                raise ValueError(
                    f"per_hour is for unit costs and {parts[0]} for a vendor's prices; allowed: one"
                )
            return self
        if missing := [name for name in _NEEDED if getattr(self, name) is None]:
            raise ValueError(f"it needs per_hour (unit costs), or, of a vendor, also {', '.join(missing)}")
        if any(value not in (None, 0) for value in self.minimum_billing_s.model_dump().values()):
            raise ValueError(
                "minimum_billing_s is of unit costs; a vendor's parts have minimum_s and step_s each"
            )
        return self

    @property
    def is_offer(self) -> bool:
        """Whether it has a vendor's prices, and no unit costs."""
        return self.per_hour is None

    def used(self, usage: Usage) -> PriceBook:
        """Return the book with a system's use of what is billed by use; values that are left out stay."""
        given = usage.model_dump(exclude_none=True)
        return self.model_copy(update={"usage": self.usage.model_copy(update=given)})

    def charges(self, resources: Resources, only: Collection[Resource]) -> list[Charge]:
        """Map resources to charges, in the order of Table V. Raises ``NotPricedError``."""
        unknown = set(only) - set(RESOURCES)
        if unknown:
            raise ValueError(f"not a resource: {', '.join(sorted(unknown))}; allowed: {', '.join(RESOURCES)}")
        if self.compute is None or self.storage is None:
            found = [self._unit_cost(resource, resources) for resource in RESOURCES if resource in only]
        else:
            parts = (self.iops, self.io_requests, self.data_transfer)
            offer = Offer(self.compute, self.storage, *parts, self.usage)
            try:
                found = list(offer.charges(resources, only))
            except NotPricedError as error:
                raise NotPricedError(f"price book {self.name}: {error}") from None
        return [charge for charge in found if charge.quantity > 0]

    def _unit_cost(self, resource: Resource, resources: Resources) -> Charge:
        """Quantity over all nodes, unit, and price of one unit for an hour."""
        if (prices := self.per_hour) is None:
            raise NotPricedError(f"price book {self.name}: it has no unit costs")
        quantity, unit, per_hour = {
            "vcores": (resources.nodes * resources.vcores, "vCore", prices.vcore),
            "memory_gb": (resources.nodes * resources.memory_gb, "GB", prices.memory_gb),
            "storage_gb": (resources.nodes * resources.storage_gb, "GB", prices.storage_gb),
            "iops": (resources.iops / _IOPS_UNIT, "100 IOPS", prices.iops_100),
            "network_gbps": (resources.network_gbps, "Gbps TCP/IP", prices.tcp_gbps)
            if resources.network == "tcp"
            else (resources.network_gbps, "Gbps RDMA", prices.rdma_gbps),
        }[resource]
        billing = Billing(minimum_s=self.minimum_billing_s.of(resource))
        return Charge(resource, quantity, unit, per_hour, billing)


class CostLine(PriceTable):
    """One resource of a cost: ``per_minute`` is ``quantity`` times ``per_hour`` / 60."""

    resource: Charged
    quantity: float
    """Units that are charged, all nodes together."""
    unit: str
    per_hour: float
    """Price of one unit for an hour."""
    per_minute: float


class Cost(PriceTable):
    """The cost of a system's resources per minute, line by line: ``cost`` in ``scores.json``."""

    price_book: str
    nodes: int
    lines: tuple[CostLine, ...]
    per_minute: float


class BillLine(PriceTable):
    """One resource of a bill: ``amount`` is ``quantity`` times ``per_hour`` times ``billed_s`` / 3600."""

    resource: Charged
    quantity: float
    unit: str
    per_hour: float
    billed_s: float
    amount: float


class Bill(PriceTable):
    """The amount due for a duration, minimum billing periods included."""

    price_book: str
    nodes: int
    duration_s: float
    lines: tuple[BillLine, ...]
    total: float
    per_minute: float
    """``total`` per minute of the actual duration: the cost of the starred scores."""


@dataclass(frozen=True, slots=True)
class Stretch:
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

    By unit costs vCores, memory and storage are multiplied by the nodes; IOPS and network are the system's as a
    whole, the reading that reproduces Table V (METRICS, section 2). By a vendor's book they become what is billed, as
    ``offers`` says. ``only`` narrows the cost to some of the resources, for instance to ``ELASTIC_RESOURCES``. A
    resource of which there is none has no line. Raises ``NotPricedError`` where the book has no price.
    """
    lines = []
    for charge in book.charges(resources, only):
        quantity = charge.nodes * charge.quantity
        lines.append(
            CostLine(
                resource=charge.resource,
                quantity=quantity,
                unit=charge.unit,
                per_hour=charge.per_hour,
                per_minute=quantity * charge.per_hour / _MINUTES_PER_HOUR,
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

    Each line is billed for the duration or for its minimum billing period, whichever is longer, and rounded up to
    the billing step. Under a book without these ``per_minute`` equals that of `cost`. Raises ``ValueError`` for a
    duration that is not positive and finite, and ``NotPricedError`` where the book has no price.
    """
    _check_duration(duration_s)
    lines = []
    for charge in book.charges(resources, only):
        billed_s = charge.billing.billed_s(duration_s)
        lines.append(
            BillLine(
                resource=charge.resource,
                quantity=charge.nodes * charge.quantity,
                unit=charge.unit,
                per_hour=charge.per_hour,
                billed_s=billed_s,
                amount=charge.nodes * charge.rate * billed_s / _SECONDS_PER_HOUR,
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
    allocations: Sequence[Stretch], book: PriceBook, only: Collection[Resource] = ELASTIC_RESOURCES
) -> float:
    """Dollars for what was allocated over a window, stretch by stretch (the denominator of E1, equation 2).

    Where the book has minimum billing periods (E1*), a period starts whenever the quantity of a resource
    changes, and each is billed for its minimum at least, as services that bill after a change of status do.
    Stretches over which a resource stays the same are one period, whatever the other resources do. By a vendor's
    book each node has its own: one that is added changes nothing for those that are there. Raises
    ``NotPricedError`` where the book has no price.
    """
    found = [
        ({charge.resource: charge for charge in book.charges(step.resources, only)}, step.duration_s)
        for step in allocations
    ]
    amounts: list[float] = []
    for resource in dict.fromkeys(resource for charges, _ in found for resource in charges):
        held = [(charges.get(resource), duration_s) for charges, duration_s in found]
        fewer = 0
        for nodes in sorted({charge.nodes for charge, _ in held if charge}):
            # The nodes between two counts come and go together.
            of_each = amount_over([(one if one and one.nodes >= nodes else None, s) for one, s in held])
            amounts.append((nodes - fewer) * of_each)
            fewer = nodes
    return math.fsum(amounts)


def built_in_price_books() -> tuple[str, ...]:
    """Names of the price books that come with nephoscope."""
    return tuple(packaged("price_books"))


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
    known = packaged("price_books")
    if (file := known.get(name)) is None:
        raise InputError(
            f"price book {name!r}: not built in; allowed: {', '.join(known)}, or a .toml file's path"
        )
    return _parsed(file.read_bytes(), name)


def load_unit_costs(name_or_path: str | Path) -> PriceBook:
    """Read a price book that every system can be compared by. Raises ``InputError``."""
    book = load_price_book(name_or_path)
    if book.is_offer:
        raise InputError(
            f"price book {book.name}: it has one vendor's prices, which are for the starred scores (cost.starred); "
            "cost.price_book needs unit costs ([per_hour])"
        )
    return book


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
        return f"{key} is not a key; allowed: {', '.join(_table_at(location[:-1]).model_fields)}"
    said = message.removeprefix("Value error, ")
    return f"{key}: {said[0].lower()}{said[1:]}" if key else said


def _table_at(location: Sequence[Any]) -> type[BaseModel]:
    """Find the table that a place in a book belongs to."""
    table: type[BaseModel] = PriceBook
    for part in location:
        if isinstance(part, str):
            table = next(one for one in _types_in(get_type_hints(table)[part]) if issubclass(one, BaseModel))
    return table


def _types_in(hint: Any) -> list[type]:  # noqa: ANN401 - whatever a field is declared as
    return [hint] if isinstance(hint, type) else [one for inner in get_args(hint) for one in _types_in(inner)]


def _check_duration(duration_s: float) -> None:
    if not (math.isfinite(duration_s) and duration_s > 0):
        raise ValueError(f"a duration is {duration_s} s; allowed: any positive, finite number")
