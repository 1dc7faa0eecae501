"""Price books, and what systems cost by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephoscope.errors import InputError
from nephoscope.scoring.prices import (
    RESOURCES,
    Bill,
    Cost,
    PriceBook,
    Stretch,
    allocated_cost,
    bill,
    built_in_price_books,
    cost,
    load_price_book,
)
from nephoscope.settings.resources import Resources

if TYPE_CHECKING:
    from pathlib import Path

BOOK = load_price_book()
EXAMPLE = load_price_book("example-minimum-billing")

# Table V: what one node was given, and the cost of each column per minute as the paper prints it.
TABLE_V = {
    "AWS RDS": ((4, 16, 42, 1000, 10, "tcp"), ("0.0123", "0.0025", "0.0006", "0.000025", "0.0128"), "0.0437"),
    "CDB1": ((4, 32, 126, 1000, 10, "tcp"), ("0.0123", "0.0051", "0.0018", "0.000025", "0.0128"), "0.0512"),
    "CDB2": ((4, 20, 63, 327680, 10, "tcp"), ("0.0123", "0.0032", "0.0009", "0.008192", "0.0128"), "0.0538"),
    "CDB3": ((4, 16, 63, 1000, 10, "tcp"), ("0.0123", "0.0025", "0.0009", "0.000025", "0.0128"), "0.0443"),
    "CDB4": ((4, 40, 63, 84000, 10, "rdma"), ("0.0123", "0.0063", "0.0009", "0.0021", "0.0385"), "0.0797"),
}

# Table VII: the totals of all tenants, and the cost per minute.
TABLE_VII = {
    "CDB2": ((12, 36, 189, 54000, 10, "tcp"), "0.060"),
    "CDB3": ((12, 48, 63, 3000, 10, "tcp"), "0.058"),
    "AWS RDS": ((12, 48, 126, 3000, 30, "tcp"), "0.085"),
    "CDB1": ((12, 96, 378, 3000, 30, "tcp"), "0.096"),
    "CDB4": ((12, 120, 189, 84000, 30, "rdma"), "0.176"),
}

VALID = """
name = "mine"
currency = "USD"
reference = "an offer"

[per_hour]
vcore = 1
memory_gb = 0.5
storage_gb = 0.25
iops_100 = 0.125
tcp_gbps = 0.0625
rdma_gbps = 0.03125
"""

amounts = st.floats(min_value=0, max_value=1e6, allow_nan=False)
durations = st.floats(min_value=1, max_value=1e6)
resources = st.builds(
    Resources,
    nodes=st.integers(1, 20),
    vcores=amounts,
    memory_gb=amounts,
    storage_gb=amounts,
    iops=amounts,
    network_gbps=amounts,
    network=st.sampled_from(["tcp", "rdma"]),
)


def given_resources(row: tuple[float, float, float, float, float, str], nodes: int) -> Resources:
    vcores, memory, storage, iops, network_gbps, network = row
    return Resources.model_validate(
        {
            "nodes": nodes,
            "vcores": vcores,
            "memory_gb": memory,
            "storage_gb": storage,
            "iops": iops,
            "network_gbps": network_gbps,
            "network": network,
        }
    )


def as_printed(value: float, printed: str) -> str:
    return f"{value:.{len(printed.split('.')[1])}f}"


def written(folder: Path, content: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(content)
    return path


@pytest.mark.parametrize("system", TABLE_V)
def test_table_v_costs_per_minute_are_reproduced_to_the_printed_precision(system: str) -> None:
    row, _, total = TABLE_V[system]
    # One RW and one RO node; IOPS and network are those of the system.
    assert as_printed(cost(given_resources(row, nodes=2), BOOK).per_minute, total) == total


@pytest.mark.parametrize("system", TABLE_V)
def test_table_v_resource_columns_are_reproduced_to_the_printed_precision(system: str) -> None:
    row, columns, _ = TABLE_V[system]
    lines = cost(given_resources(row, nodes=1), BOOK).lines  # the paper prints the columns of one node
    assert tuple(line.resource for line in lines) == RESOURCES
    assert (
        tuple(as_printed(line.per_minute, printed) for line, printed in zip(lines, columns, strict=True))
        == columns
    )


@pytest.mark.parametrize("system", TABLE_VII)
def test_table_vii_costs_are_of_the_totals_that_it_names(system: str) -> None:
    row, total = TABLE_VII[system]
    assert as_printed(cost(given_resources(row, nodes=1), BOOK).per_minute, total) == total


def test_metrics_costs_of_table_vii_are_reproduced_to_four_digits() -> None:
    per_minute = {
        name: cost(given_resources(row, 1), BOOK).per_minute for name, (row, _) in TABLE_VII.items()
    }
    assert per_minute["AWS RDS"] == pytest.approx(0.0849, abs=5e-5)
    assert per_minute["CDB4"] == pytest.approx(0.1762, abs=5e-5)


def test_a_line_says_quantity_unit_and_prices() -> None:
    lines = {line.resource: line for line in cost(given_resources(TABLE_V["CDB4"][0], nodes=2), BOOK).lines}
    assert (lines["vcores"].quantity, lines["vcores"].unit, lines["vcores"].per_hour) == (8, "vCore", 0.1847)
    assert (lines["iops"].quantity, lines["iops"].unit) == (840, "100 IOPS")
    assert (lines["network_gbps"].unit, lines["network_gbps"].per_hour) == ("Gbps RDMA", 0.23088)


def test_a_resource_of_which_there_is_none_has_no_line() -> None:
    found = cost(Resources(vcores=2, memory_gb=4, storage_gb=0), BOOK)
    assert [line.resource for line in found.lines] == ["vcores", "memory_gb"]


def test_a_cost_survives_json() -> None:
    found = cost(given_resources(TABLE_V["CDB4"][0], nodes=2), BOOK)
    assert Cost.model_validate_json(found.model_dump_json()) == found


@settings(deadline=None)
@given(resources)
def test_a_cost_is_the_sum_of_its_lines_and_each_line_its_product(given_: Resources) -> None:
    found = cost(given_, BOOK)
    assert found.per_minute == pytest.approx(sum(line.per_minute for line in found.lines))
    for line in found.lines:
        assert line.per_minute == pytest.approx(line.quantity * line.per_hour / 60)


@settings(deadline=None)
@given(resources, st.floats(min_value=1, max_value=100))
def test_a_cost_grows_with_every_resource(given_: Resources, factor: float) -> None:
    least = cost(given_, BOOK).per_minute
    for field in RESOURCES:
        more = given_.model_copy(update={field: getattr(given_, field) * factor})
        assert cost(more, BOOK).per_minute >= least * (1 - 1e-12)


@settings(deadline=None)
@given(resources, st.floats(min_value=1e-3, max_value=1e3))
def test_a_cost_scales_with_the_prices(given_: Resources, factor: float) -> None:
    prices = {key: price * factor for key, price in BOOK.model_dump()["per_hour"].items()}
    scaled = PriceBook.model_validate({**BOOK.model_dump(), "per_hour": prices})
    assert cost(given_, scaled).per_minute == pytest.approx(cost(given_, BOOK).per_minute * factor)


@settings(deadline=None)
@given(resources, durations)
def test_without_minimum_periods_a_bill_is_the_cost_of_its_minutes(given_: Resources, seconds: float) -> None:
    found = bill(given_, BOOK, seconds)
    assert found.per_minute == pytest.approx(cost(given_, BOOK).per_minute)
    assert found.total == pytest.approx(cost(given_, BOOK).per_minute * seconds / 60)


@settings(deadline=None)
@given(resources, durations, durations)
def test_a_bill_never_falls_with_time_and_its_rate_never_rises(
    given_: Resources, seconds: float, more: float
) -> None:
    short, long = bill(given_, EXAMPLE, seconds), bill(given_, EXAMPLE, seconds + more)
    assert long.total >= short.total * (1 - 1e-12)
    assert long.per_minute <= short.per_minute * (1 + 1e-12)
    assert short.per_minute >= cost(given_, EXAMPLE).per_minute * (1 - 1e-12)


def test_minimum_periods_hold_per_resource() -> None:
    found = bill(given_resources(TABLE_V["AWS RDS"][0], nodes=2), EXAMPLE, duration_s=60)
    billed = {line.resource: line.billed_s for line in found.lines}
    assert billed == {"vcores": 600, "memory_gb": 600, "storage_gb": 3600, "iops": 600, "network_gbps": 60}
    vcores = next(line for line in found.lines if line.resource == "vcores")
    assert vcores.amount == pytest.approx(8 * 0.1847 / 6)
    assert found.total == pytest.approx(sum(line.amount for line in found.lines))
    assert Bill.model_validate_json(found.model_dump_json()) == found


def test_allocated_cost_counts_cpu_memory_and_iops_stretch_by_stretch() -> None:
    up = Resources(vcores=4, memory_gb=8, storage_gb=100, iops=1000, network_gbps=10)
    paused = Resources(vcores=0, memory_gb=0, storage_gb=100, iops=0, network_gbps=10)
    found = allocated_cost([Stretch(120, up), Stretch(480, paused)], BOOK)
    assert found == pytest.approx((4 * 0.1847 + 8 * 0.0095 + 10 * 0.00015) / 30)


def test_a_change_starts_a_billing_period_for_the_changed_resource_only() -> None:
    one = Resources(vcores=1, memory_gb=2, storage_gb=0)
    two = Resources(vcores=2, memory_gb=2, storage_gb=0)
    found = allocated_cost([Stretch(300, one), Stretch(300, two)], EXAMPLE)
    assert found == pytest.approx((1 + 2) * 0.1847 / 6 + 2 * 0.0095 / 6)


@settings(deadline=None)
@given(resources, st.lists(durations, min_size=1, max_size=5))
def test_cutting_a_stretch_into_pieces_changes_nothing(given_: Resources, pieces: list[float]) -> None:
    cut = [Stretch(seconds, given_) for seconds in pieces]
    whole = [Stretch(sum(pieces), given_)]
    assert allocated_cost(cut, EXAMPLE) == pytest.approx(allocated_cost(whole, EXAMPLE))
    assert allocated_cost(whole, EXAMPLE, RESOURCES) == pytest.approx(
        bill(given_, EXAMPLE, sum(pieces)).total
    )


def test_no_allocation_costs_nothing() -> None:
    assert allocated_cost([], BOOK) == 0


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_duration_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="duration"):
        bill(Resources(vcores=1, memory_gb=1, storage_gb=1), BOOK, seconds)
    with pytest.raises(ValueError, match="duration"):
        Stretch(seconds, Resources(vcores=1, memory_gb=1, storage_gb=1))


def test_an_unknown_resource_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(ValueError, match=r"gpu.*vcores"):
        cost(Resources(vcores=1, memory_gb=1, storage_gb=1), BOOK, ["gpu"])  # type: ignore[list-item]


@pytest.mark.parametrize("name", built_in_price_books())
def test_every_built_in_price_book_loads_under_its_own_name(name: str) -> None:
    assert load_price_book(name).name == name


def test_the_default_price_book_is_table_iii() -> None:
    assert BOOK.name == "cloudybench-2024"
    assert BOOK.model_dump()["per_hour"] == {
        "vcore": 0.1847,
        "memory_gb": 0.0095,
        "storage_gb": 0.000853,
        "iops_100": 0.00015,
        "tcp_gbps": 0.07696,
        "rdma_gbps": 0.23088,
    }
    assert all(BOOK.minimum_billing_s.of(resource) == 0 for resource in RESOURCES)


def test_a_price_book_is_read_from_a_path(tmp_path: Path) -> None:
    path = written(tmp_path, VALID + "[minimum_billing_s]\nall = 60\niops = 0\n")
    book = load_price_book(path)
    assert book == load_price_book(str(path))
    assert book.per_hour is not None
    assert (book.per_hour.vcore, book.minimum_billing_s.of("vcores"), book.minimum_billing_s.of("iops")) == (
        1,
        60,
        0,
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("vcore = 1\n", ""), r"per_hour\.vcore is missing"),
        (("vcore = 1\n", "vcore = 1\ngpu = 2\n"), r"per_hour\.gpu is not a key; allowed: vcore, memory_gb"),
        (("vcore = 1\n", "vcore = -1\n"), r"per_hour\.vcore: .*greater than or equal to 0"),
        (("vcore = 1\n", 'vcore = "1"\n'), r"per_hour\.vcore: .*valid number"),
        (("vcore = 1\n", "vcore = true\n"), r"per_hour\.vcore: .*valid number"),
        (("vcore = 1\n", "vcore = inf\n"), r"per_hour\.vcore: .*finite"),
        (('"USD"', '"EUR"'), r"currency: .*'USD'"),
        (('name = "mine"', 'name = "mine"\ntax = 1'), "tax is not a key; allowed: name, currency"),
        (("[per_hour]", "[storage]\nper_gb_hour = 1\nsource = 'x'\n[per_hour]"), "allowed: one"),
        (
            ("[per_hour]", "[minimum_billing_s]\ndisk = 1\n[per_hour]"),
            "disk is not a key; allowed: all, vcores",
        ),
        (("[per_hour]", "[per_hour"), "not a TOML file"),
    ],
)
def test_what_is_wrong_in_a_price_book_is_said_with_file_and_key(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    path = written(tmp_path, VALID.replace(*change))
    with pytest.raises(InputError, match=said) as caught:
        load_price_book(path)
    assert str(path) in str(caught.value)


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, VALID.replace("vcore = 1\n", "").replace('"USD"', '"EUR"'))
    with pytest.raises(InputError, match=r"currency.*; per_hour\.vcore is missing"):
        load_price_book(path)


def test_bytes_that_are_no_text_are_not_a_toml_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a TOML file"):
        load_price_book(path)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'azure'.*cloudybench-2024, example-minimum-billing, neon"):
        load_price_book("azure")


@pytest.mark.parametrize("path", ["nowhere.toml", "no/where"])
def test_a_path_that_leads_nowhere_is_named(path: str) -> None:
    with pytest.raises(InputError, match=path):
        load_price_book(path)
