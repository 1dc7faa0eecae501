"""What vendors charge: how resources become what is billed, by bills reckoned by hand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephoscope.errors import InputError
from nephoscope.scoring.offers import NotPricedError, Usage
from nephoscope.scoring.prices import (
    RESOURCES,
    PriceBook,
    Stretch,
    allocated_cost,
    bill,
    built_in_price_books,
    cost,
    load_price_book,
    load_unit_costs,
)
from nephoscope.settings.resources import Resources

if TYPE_CHECKING:
    from pathlib import Path

USED = Usage(io_requests_per_s=1000, transfer_gb_per_hour=0)
RDS = load_price_book("aws-rds-postgresql-us-east-1").used(USED)
AURORA = load_price_book("aws-aurora-postgresql-us-east-1").used(USED)
SERVERLESS = load_price_book("aws-aurora-serverless-us-east-1").used(USED)
POLARDB = load_price_book("alibaba-polardb-serverless-singapore")
HYPERSCALE = load_price_book("azure-sql-hyperscale-eastus")
POOL = load_price_book("azure-sql-pool-cloudybench")
NEON = load_price_book("neon-launch-2024")
VENDORS = [name for name in built_in_price_books() if load_price_book(name).is_offer]

NOTHING = Resources(vcores=0, memory_gb=0, storage_gb=0)

VALID = """
name = "ours"
currency = "USD"
reference = "an offer"
vendor = "us"
region = "here"
date = "2026-11-23"

[compute]
source = "a page"
minimum_s = 60
[[compute.classes]]
name = "small"
vcores = 2
memory_gb = 8
per_hour = 1
source = "a page"

[storage]
per_gb_month = 73
source = "a page"

[iops]
per_month = 7.3
included = 100
source = "a page"

[io_requests]
per_million = 2
source = "a page"

[data_transfer]
per_gb = 3
source = "a page"
"""


UNIT = """
name = "unit"
per_hour = 1
source = "a page"
"""


def node(vcores: float, memory_gb: float, **others: Any) -> Resources:
    return Resources(vcores=vcores, memory_gb=memory_gb, **({"storage_gb": 0} | others))


def billed(resources: Resources, book: PriceBook, seconds: float) -> dict[str, tuple[Any, ...]]:
    lines = bill(resources, book, seconds).lines
    return {str(line.resource): (line.quantity, line.unit, line.billed_s, line.amount) for line in lines}


def written(folder: Path, content: str) -> Path:
    path = folder / "ours.toml"
    path.write_text(content)
    return path


# --- what the paper says (section III-G)


def test_rds_charges_for_ten_minutes_at_least() -> None:
    found = billed(node(4, 16, nodes=2, storage_gb=42, iops=1000), RDS, 60)
    assert found["compute"] == (2, "db.m6g.xlarge", 600, pytest.approx(2 * 0.318 / 6))
    assert found["storage_gb"] == (84, "GB", 600, pytest.approx(84 * 0.115 / 730 / 6))
    assert set(found) == {"compute", "storage_gb"}  # 3,000 IOPS of each node are in the price
    # From then on each second that has begun.
    assert billed(node(4, 16), RDS, 1000.2)["compute"][2] == 1001


def test_an_elastic_pool_is_charged_for_an_hour_at_least() -> None:
    # Three tenants of 4 vCores and 12 GB share it (section III-D).
    found = billed(node(12, 36), POOL, 360)
    assert found["compute"] == (12, "vCore", 3600, pytest.approx(12 * 0.42))
    assert billed(node(12, 36), POOL, 3601)["compute"][2] == 7200


def test_a_vcore_is_16_cents_at_the_one_and_42_at_the_other() -> None:
    assert bill(node(1, 4), NEON, 3600).total == pytest.approx(0.16)
    assert bill(node(1, 3), POOL, 3600).total == pytest.approx(0.42)
    assert bill(node(4, 16), NEON, 60).total == pytest.approx(4 * 0.16 / 60)


# --- from resources to what is billed


def test_a_node_is_the_cheapest_class_that_has_its_vcores_and_its_memory() -> None:
    classes = {
        (2, 8): "db.m6g.large",
        (2, 9): "db.r6g.large",
        (3, 16): "db.m6g.xlarge",
        (4, 17): "db.r6g.xlarge",
    }
    for (vcores, memory_gb), name in classes.items():
        assert billed(node(vcores, memory_gb), RDS, 600)["compute"][1] == name
    with pytest.raises(
        NotPricedError, match=r"aws-rds.*no instance class has 17 vCores and 64 GB.*db.m6g.large"
    ):
        cost(node(17, 64), RDS)


def test_a_node_is_as_many_units_as_the_larger_of_cores_and_memory_asks_for() -> None:
    # PCU: 1 vCore and 2 GB, in halves. CU: 1 vCore and 4 GB, in quarters. ACU: 2 GB. Azure: an even number of vCores.
    assert billed(node(2, 2), POLARDB, 60)["compute"][:2] == (2, "PCU")
    assert billed(node(1, 5), POLARDB, 60)["compute"][0] == 2.5
    assert billed(node(1.1, 0), POLARDB, 60)["compute"][0] == 1.5
    assert billed(node(1, 6), NEON, 60)["compute"][:2] == (1.5, "CU")
    assert billed(node(0.1, 0.1), NEON, 60)["compute"][0] == 0.25
    assert billed(node(4, 8), SERVERLESS, 60)["compute"][:2] == (4, "ACU")
    assert billed(node(3, 100), HYPERSCALE, 60)["compute"][0] == 4


@pytest.mark.parametrize("book", [RDS, SERVERLESS, POLARDB, HYPERSCALE, NEON], ids=lambda book: book.name)
def test_a_node_that_is_paused_has_no_compute(book: PriceBook) -> None:
    assert "compute" not in billed(node(0, 0, storage_gb=10), book, 60)


def test_storage_is_of_each_node_or_of_one_volume_that_all_share() -> None:
    three = node(2, 8, nodes=3, storage_gb=10)
    assert billed(three, RDS, 3600)["storage_gb"][0] == 30
    for book, per_hour in ((AURORA, 0.10 / 730), (POLARDB, 0.000408), (NEON, 1.75 / 730)):
        assert billed(three, book, 3600)["storage_gb"] == (10, "GB", 3600, pytest.approx(10 * per_hour))


def test_iops_beyond_what_each_node_has_are_provisioned() -> None:
    found = billed(node(2, 8, nodes=2, iops=7000), RDS, 3600)
    assert found["iops"] == (1000, "IOPS", 3600, pytest.approx(1000 * 0.02 / 730))


def test_requests_and_transfer_are_by_use() -> None:
    book = AURORA.used(Usage(transfer_gb_per_hour=6))
    found = billed(node(2, 16), book, 600)
    # 1,000 a second for ten minutes are 600,000; 6 GB an hour are one.
    assert found["io_requests"][3] == pytest.approx(0.6 * 0.20)
    assert found["data_transfer"][3] == pytest.approx(0.09)
    bare = load_price_book("aws-aurora-postgresql-us-east-1")
    with pytest.raises(NotPricedError, match=r"charges for I/O requests.*\[cost.usage\] io_requests_per_s"):
        bill(node(2, 16), bare, 600)
    with pytest.raises(NotPricedError, match=r"data transfer.*transfer_gb_per_hour"):
        bill(node(2, 16), bare.used(Usage(io_requests_per_s=0)), 600)


# --- an allocation over time


def test_the_vendors_own_example_of_a_bill() -> None:
    # PolarDB, Serverless billing: 2 PCUs for 30 minutes, then 1 PCU for 30 minutes, are 1.5 x the price.
    steps = [Stretch(1800, node(2, 4)), Stretch(1800, node(1, 2))]
    assert allocated_cost(steps, POLARDB) == pytest.approx(1.5 * 0.116)


def test_capacity_units_are_paid_for_as_long_as_they_were_there() -> None:
    # Table VI, CDB1, single peak: up within 14 s, and down within 479 s.
    steps = [
        Stretch(14, node(1, 2)),
        Stretch(525, node(4, 8)),
        Stretch(30, NOTHING),
        Stretch(31, node(1, 2)),
    ]
    requests = 0.6 * 0.20  # the use is a mean over the whole window
    dollars = (14 * 1 + 525 * 4 + 31 * 1) / 3600 * 0.12
    assert allocated_cost(steps, SERVERLESS) == pytest.approx(dollars + requests)


def test_each_change_of_class_is_billed_for_ten_minutes() -> None:
    steps = [Stretch(60, node(2, 8)), Stretch(60, node(8, 32)), Stretch(480, node(2, 8))]
    assert allocated_cost(steps, RDS) == pytest.approx((0.159 + 0.636 + 0.159) / 6)
    stopped = [Stretch(60, node(2, 8)), Stretch(900, NOTHING), Stretch(60, node(2, 8))]
    assert allocated_cost(stopped, RDS) == pytest.approx(2 * 0.159 / 6)


def test_a_node_that_comes_begins_a_period_of_its_own_and_none_of_the_others() -> None:
    steps = [Stretch(700, node(2, 8)), Stretch(200, node(2, 8, nodes=3)), Stretch(700, node(2, 8))]
    # The first: 1,600 s. Two more: 200 s, billed for 600.
    assert allocated_cost(steps, RDS) == pytest.approx((1600 + 2 * 600) * 0.159 / 3600)


def test_an_hour_of_a_pool_is_billed_at_its_highest() -> None:
    steps = [Stretch(600, node(4, 12)), Stretch(60, node(12, 36)), Stretch(600, node(4, 12))]
    assert allocated_cost(steps, POOL) == pytest.approx(12 * 0.42)
    longer = [Stretch(3000, node(4, 12)), Stretch(1200, node(8, 24)), Stretch(3100, node(2, 6))]
    # 0 to 1 h: 8; 1 h to 2 h: 8 until 4,200 s; the third hour, of 100 s: 2.
    assert allocated_cost(longer, POOL) == pytest.approx((8 + 8 + 2) * 0.42)


@pytest.mark.parametrize("count", [1, 10**12])
def test_many_nodes_take_no_more_time_than_one(count: int) -> None:
    steps = [Stretch(3600, node(2, 8, nodes=count))]
    assert allocated_cost(steps, RDS) == pytest.approx(count * 0.159)


amounts = st.floats(min_value=0, max_value=16)
offered = st.builds(
    Resources,
    nodes=st.integers(1, 5),
    vcores=amounts,
    memory_gb=amounts,
    storage_gb=st.floats(min_value=0, max_value=1e5),
    iops=st.floats(min_value=0, max_value=1e5),
)
durations = st.floats(min_value=1, max_value=1e5)


@pytest.mark.parametrize("name", VENDORS)
@settings(deadline=None, max_examples=30)
@given(given_=offered, seconds=durations, more=durations)
def test_a_bill_is_the_sum_of_its_lines_and_never_falls_with_time(
    name: str, given_: Resources, seconds: float, more: float
) -> None:
    book = load_price_book(name).used(USED)
    short, long = bill(given_, book, seconds), bill(given_, book, seconds + more)
    assert short.total == pytest.approx(math.fsum(line.amount for line in short.lines))
    assert long.total >= short.total * (1 - 1e-12)
    assert short.per_minute >= cost(given_, book).per_minute * (1 - 1e-9)
    whole = allocated_cost([Stretch(seconds, given_)], book, RESOURCES)
    assert whole == pytest.approx(short.total)
    pieces = [Stretch(seconds / 4, given_)] * 4
    assert allocated_cost(pieces, book, RESOURCES) == pytest.approx(whole)


# --- the books themselves


@pytest.mark.parametrize("name", VENDORS)
def test_a_vendors_book_says_what_to_check_and_from_where_each_price_is(name: str) -> None:
    book = load_price_book(name)
    assert "check before use" in (book.notice or "")
    assert book.vendor
    assert book.region
    assert book.date
    sources: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            priced = any(key.startswith("per_") and one is not None for key, one in value.items())
            assert not priced or value["source"]
            sources.append(value.get("source", ""))
            for one in value.values():
                walk(one)
        elif isinstance(value, list):
            for one in value:
                walk(one)

    walk(book.model_dump())
    assert len([source for source in sources if source]) >= 3


def test_every_system_of_the_paper_has_a_book() -> None:
    vendors = " ".join(load_price_book(name).vendor or "" for name in VENDORS)
    for system in ("RDS", "Aurora", "PolarDB", "Hyperscale", "elastic pool", "Neon"):
        assert system in vendors


def test_a_book_of_ones_own_survives_json(tmp_path: Path) -> None:
    book = load_price_book(written(tmp_path, VALID + "[usage]\nio_requests_per_s = 5\n"))
    assert PriceBook.model_validate(book.model_dump(mode="json")) == book
    assert book.used(Usage(transfer_gb_per_hour=1)).usage == Usage(
        io_requests_per_s=5, transfer_gb_per_hour=1
    )
    found = billed(node(1, 1, storage_gb=10, iops=200), book.used(Usage(transfer_gb_per_hour=4)), 30)
    per_hour = {
        "compute": 2,
        "storage_gb": 10 * 0.1,
        "iops": 1,
        "io_requests": 0.018 * 2,
        "data_transfer": 12,
    }
    assert {name: line[3] for name, line in found.items()} == {
        name: pytest.approx(price / (60 if name == "compute" else 120) / (2 if name == "compute" else 1))
        for name, price in per_hour.items()
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('vendor = "us"\n', ""), r"it needs per_hour \(unit costs\), or, of a vendor, also vendor"),
        (('date = "2026-11-23"', 'date = "yesterday"'), "date: string should match pattern"),
        (('source = "a page"\nminimum_s', "minimum_s"), r"compute\.source is missing"),
        (("minimum_s = 60", "minimum_s = 1e9"), r"compute\.minimum_s: .*less than or equal to 2678400"),
        (("minimum_s = 60", 'counts = "highest"'), r'compute: counts = "highest" needs a step_s of 60 s or more'),
        (("[compute]", "[compute.unit]\n" + UNIT + "vcores = 1\n[compute]"), "compute: it needs .* and not both"),
        (("[compute]", "[compute.unit]\n" + UNIT + "[compute]"), r"compute\.unit: it needs vcores or memory_gb"),
        (("per_hour = 1\n", "per_hour = 1\ngpus = 2\n"), r"compute\.classes\.0\.gpus is not a key; allowed: source"),
        (("vcores = 2", "vcores = 0"), r"compute\.classes\.0\.vcores: .*greater than 0"),
        (("per_gb_month = 73", ""), "storage: it needs per_gb_month or per_gb_hour, and not both"),
        (("per_gb_month = 73", "per_gb_month = 73\nper_gb_hour = 1"), "storage: it needs per_gb_month or per_gb_hour"),
        (("per_million = 2", "per_million = inf"), r"io_requests\.per_million: .*finite"),
        (("[storage]", "[minimum_billing_s]\nall = 1\n[storage]"), "minimum_billing_s is of unit costs"),
        (("[data_transfer]", "[usage]\nio_requests_per_s = -1\n[data_transfer]"), r"usage\.io_requests_per_s: "),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_vendors_book_is_said(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    assert change[0] in VALID
    with pytest.raises(InputError, match=said) as caught:
        load_price_book(written(tmp_path, VALID.replace(change[0], change[1], 1)))
    assert str(tmp_path) in str(caught.value)


def test_a_vendors_prices_are_no_unit_costs() -> None:
    assert load_unit_costs("cloudybench-2024").per_hour
    with pytest.raises(InputError, match=r"neon-launch: it has one vendor's prices.*cost\.starred"):
        load_unit_costs("neon-launch")
