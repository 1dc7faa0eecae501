"""TPC-C: its population and its transactions are as specified, and each condition finds what breaks it."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from scipy.stats import binomtest

from commands import call
from nephoscope.store import StoredRun
from sample_studies import phases, workload_study, write_study
from simulated import UNLIKELY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sample_studies import Tables

WAREHOUSES = 2
SMALL = {"items": 100, "customers": 30}
CUSTOMERS = 1200
"""Enough of a district for last names that are drawn."""

FAULTS = {
    "condition_1": "UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 2",
    "condition_2": "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3",
    "condition_3": "UPDATE new_order SET no_o_id = 10 * no_o_id WHERE rowid = (SELECT max(rowid) FROM new_order)",
    "condition_4": "DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 10 AND ol_o_id = 3 AND ol_number = 1",
    "condition_5": "UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 1",
    "condition_6": "UPDATE orders SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 1 THEN 1 ELSE -1 END WHERE o_id < 3",
    "condition_7": "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_o_id = 1 AND ol_number = 1 AND ol_d_id = 4",
    "condition_8": "DELETE FROM history WHERE h_c_id = 7 AND h_c_d_id = 7",
    "condition_9": "UPDATE history SET h_d_id = h_d_id % 10 + 1 WHERE h_c_id = 7 AND h_d_id = 7",
    "condition_10": "UPDATE customer SET c_balance = c_balance + 1 WHERE c_id = 5",
    "condition_11": "DELETE FROM orders WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 3",
    "condition_12": "UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_id = 5",
    "orders_are_there": "DELETE FROM orders WHERE o_id = 1 AND o_d_id = 1",
    "payments_are_there": "UPDATE warehouse SET w_ytd = w_ytd - 10",
    "deliveries_are_there": "UPDATE customer SET c_delivery_cnt = 1 WHERE c_id = 1",
}


def study_of(database: Path, options: Mapping[str, int] = SMALL) -> Tables:
    url = f"sqlite://{database}?begin=immediate&synchronous=off"
    measure = phases({"duration": "4s", "mix": "TPCC", "concurrency": 4})
    tables = workload_study(url, "tpcc", measure, scale=WAREHOUSES, options=dict(options))
    return {**tables, "load": {"interval": "100ms"}}


def load(folder: Path, options: Mapping[str, int] = SMALL) -> Path:
    database = folder / "tpcc.db"
    ended = call("load", write_study(folder, study_of(database, options)))
    assert ended.code == 0, ended.err
    return database


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return load(tmp_path)


def answer(database: Path, sql: str) -> tuple[Any, ...]:
    with sqlite3.connect(database) as connection:
        found: tuple[Any, ...] = connection.execute(sql).fetchone()
    return found


def verdicts(database: Path) -> dict[str, str]:
    study = write_study(database.parent, study_of(database))
    return {one["name"]: one["verdict"] for one in json.loads(call("check", study, "--json").out)}


def likely(count: int, of: int, share: float) -> bool:
    return bool(binomtest(count, of, share).pvalue > UNLIKELY)


def test_the_population_is_as_specified(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"items": 1000, "customers": CUSTOMERS})
    districts = WAREHOUSES * 10
    # Each customer of a district has one order, in an order of chance; the last 30 % are not delivered.
    assert (
        answer(
            loaded, "SELECT count(DISTINCT o_w_id * 1000000 + o_d_id * 10000 + o_c_id), count(*) FROM orders"
        )
        == (districts * CUSTOMERS,) * 2
    )
    assert answer(loaded, "SELECT count(*) FROM orders WHERE o_id < 1000 AND o_c_id = o_id")[0] < 100
    assert answer(loaded, "SELECT count(*), min(no_o_id), max(no_o_id) FROM new_order") == (
        districts * 360,
        841,
        CUSTOMERS,
    )
    assert answer(loaded, "SELECT count(*) FROM orders WHERE (o_carrier_id IS NULL) <> (o_id > 840)") == (0,)
    assert answer(
        loaded, "SELECT count(*) FROM order_line WHERE (ol_amount = 0) <> (ol_delivery_d IS NOT NULL)"
    ) == (0,)
    assert answer(loaded, "SELECT min(o_ol_cnt), max(o_ol_cnt) FROM orders") == (5, 15)
    # Last names: one of each for the first thousand customers, by NURand for the others.
    for number, name in {0: "BARBARBAR", 371: "PRICALLYOUGHT", 999: "EINGEINGEING"}.items():
        assert answer(loaded, f"SELECT DISTINCT c_last FROM customer WHERE c_id = {number + 1}") == (name,)
    assert answer(
        loaded, "SELECT count(DISTINCT c_last) FROM customer WHERE c_id <= 1000 AND c_w_id = 1"
    ) == (1000,)
    assert 200 < answer(loaded, "SELECT count(DISTINCT c_last) FROM customer WHERE c_id > 1000")[0] < 1000
    assert likely(
        answer(loaded, "SELECT count(*) FROM customer WHERE c_credit = 'BC'")[0], districts * CUSTOMERS, 0.1
    )
    for table, column in (("item", "i_data"), ("stock", "s_data")):
        counted = f"count(*), sum({column} LIKE '%ORIGINAL%')"
        rows, original = answer(loaded, f"SELECT {counted} FROM {table}")
        assert likely(original, rows, 0.1)
        assert answer(loaded, f"SELECT min(length({column})), max(length({column})) FROM {table}") == (26, 50)


def test_after_loading_every_condition_holds(database: Path) -> None:
    assert set(verdicts(database).values()) == {"holds"}


@pytest.mark.parametrize("condition", FAULTS)
def test_a_condition_finds_what_breaks_it(database: Path, condition: str) -> None:
    with sqlite3.connect(database) as connection:
        assert connection.execute(FAULTS[condition]).rowcount > 0
    assert verdicts(database)[condition] == "broken"


def test_every_condition_has_a_fault(database: Path) -> None:
    assert set(verdicts(database)) == set(FAULTS)


@pytest.mark.parametrize("batched", [True, False])
def test_what_chance_decides_is_as_often_as_specified(database: Path, *, batched: bool) -> None:
    study = write_study(database.parent, study_of(database, {**SMALL, "batched": batched}))
    ended = call("run", study, "--out", database.parent / "runs")
    assert ended.code == 0, ended.err
    rows = StoredRun(database.parent / "runs" / "latest").intervals.to_pylist()
    entered = {
        outcome: sum(row[outcome] for row in rows if row["transaction"] == "new_order")
        for outcome in ("committed", "aborted")
    }
    assert likely(entered["aborted"], sum(entered.values()), 0.01)
    payments, elsewhere = answer(
        database,
        "SELECT count(*), sum(h_w_id <> h_c_w_id) FROM history WHERE h_amount <> 10 OR h_w_id <> h_c_w_id",
    )
    assert likely(elsewhere, payments, 0.15)
    lines, remote = answer(
        database,
        f"SELECT count(*), sum(ol_supply_w_id <> ol_w_id) FROM order_line WHERE ol_o_id > {SMALL['customers']}",
    )
    assert likely(remote, lines, 0.01)
    assert answer(database, "SELECT count(*) FROM stock WHERE s_quantity NOT BETWEEN 10 AND 100") == (0,)
    found = verdicts(database)
    assert found.pop("condition_11") == "not checked"
    assert set(found.values()) == {"holds"}
