"""A file of SQL alone is a workload: loaded, run, checked, on each dialect that runs here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commands import call
from databases import SERVERS, query
from nephoscope.store.reader import StoredRun

if TYPE_CHECKING:
    from pathlib import Path

SHOP = """
-- about: a small shop
-- keys: products = 1 to 100 * scale

-- schema: create
CREATE TABLE product (id int PRIMARY KEY, price int, stock int);
CREATE TABLE sale (product int, amount int, cost int, buyer varchar(20));

-- schema: keys
INSERT INTO product
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100 * :scale)
SELECT i, i % 7, 1000000 FROM n;

-- schema: drop
DROP TABLE IF EXISTS sale;
DROP TABLE IF EXISTS product;

-- name: look weight: 3
-- :id = key(products)
SELECT price, stock FROM product WHERE id = :id;

-- name: buy
-- :id = key("products")
-- :amount = integer(1, 3)
SELECT price, stock FROM product WHERE id = :id;
-- :cost = row.price * :amount
-- :buyer = choice('Ann', 'Bob', letters(3, 8))
UPDATE product SET stock = stock - :amount WHERE id = :id; -- what is left
INSERT INTO sale VALUES (:id, :amount, :cost, :buyer);

-- name: seek weight: 0
-- :id = key(101, 200)
SELECT price FROM product WHERE id = :id;
-- :price = row.price
UPDATE product SET stock = stock - :price WHERE id = :id;

-- check: nothing_is_lost
SELECT p.id FROM product p JOIN (SELECT product, sum(amount) AS sold FROM sale GROUP BY product) s ON s.product = p.id
WHERE p.stock + s.sold <> 1000000;
"""


@pytest.mark.parametrize("dialect", SERVERS)
def test_a_file_of_sql_is_loaded_run_and_checked(dialect: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.sql"
    file.write_text(SHOP)
    with SERVERS[dialect]() as server:
        url = server.new_database()
        ended = call("run", "--sql", file, "-T", "1", "-c", "1", "--url", url, "--out", tmp_path / "runs")
        assert ended.code == 0, ended.err
        stored = StoredRun(tmp_path / "runs" / "latest")
        counts = {"look": 0, "buy": 0}
        for series in stored.intervals.to_pylist():
            counts[series["transaction"]] += series["committed"]
        total = sum(counts.values())
        # Five standard deviations.
        assert abs(counts["look"] - 0.75 * total) < 5 * (0.75 * 0.25 * total) ** 0.5
        assert int(query(url, "SELECT count(*) FROM sale")[0][0] or 0) == counts["buy"]
        assert query(
            url, "SELECT count(*) FROM sale JOIN product ON id = product WHERE cost <> price * amount"
        ) == [["0"]]
        assert call("check", "--sql", file, "--url", url).code == 0
        query(url, "UPDATE product SET stock = 0")
        assert call("check", "--sql", file, "--url", url).code == 1


def test_a_row_that_is_not_there_gives_the_transaction_up(tmp_path: Path) -> None:
    file = tmp_path / "shop.sql"
    file.write_text(SHOP.replace("weight: 0", "weight: 1000000"))
    url = f"sqlite://{tmp_path}/shop.db"
    assert call("run", "--sql", file, "-T", "1", "--url", url, "--out", tmp_path / "runs").code == 0
    series = [
        one
        for one in StoredRun(tmp_path / "runs" / "latest").intervals.to_pylist()
        if one["transaction"] == "seek"
    ]
    assert sum(one["aborted"] for one in series) > 0
    assert sum(one["committed"] for one in series) == 0


def test_a_study_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "shop.sql").write_text(SHOP)
    study = tmp_path / "study.toml"
    study.write_text(
        f'[study]\nname = "shop"\n[system]\nprovider = "url"\nrw = "sqlite://{tmp_path}/shop.db"\n'
        '[workload]\nname = "shop.sql"\n[[measure]]\nevaluator = "throughput"\nconcurrency = [1]\nwarmup = "100ms"\n'
        'duration = "500ms"\nrepetitions = 1\n'
    )
    ended = call("run", study, "--out", tmp_path / "runs")
    assert ended.code == 0, ended.err
    stored = StoredRun(tmp_path / "runs" / "latest")
    assert stored.manifest["workload"]["name"] == "shop"
    assert {phase.labels["mix"] for phase in stored.phases if phase.kind == "measure"} == {"ALL"}


WRONG = {
    "SELECT 1;": ":1: SQL before the first line -- name: …",
    "-- nothing": ":1: no line -- name: … begins a transaction",
    "-- name: a b": ":1: 'b' is not known; allowed are weight: NUMBER and read only",
    "-- name: 1a\nSELECT 1;": ":1: a name is one word of letters, digits and underscores",
    "-- name: a\n": ":1: the transaction a has no SQL",
    "-- name: a\nSELECT 1;\n-- name: a\nSELECT 1;": ":3: a second name is called a",
    "-- name: a\nSELECT :x;": ":2: :x is not drawn above; write -- :x = key(1, 1000), say",
    "-- name: a\n-- :x = keys(1, 2)\nSELECT :x;": ":2: nothing is called keys; allowed are key, integer, ",
    "-- name: a\n-- :x = integer(1)\nSELECT :x;": ":2: integer takes 2 values; 1 are given",
    "-- name: a\n-- :x = key(orders)\nSELECT :x;": ":2: no keys are called orders; there are none",
    "-- name: a\n-- :x = row.y\nSELECT :x;": ":2: row: no statement stands before it",
    "-- name: a\n-- :x = 1 +\nSELECT :x;": ":2: a value is missing",
    "-- name: a\n-- :x = 1 $ 2\nSELECT :x;": ":2: '$ 2' cannot stand in a value",
    "-- name: a\nSELECT\n-- :x = 1\n:x;": ":3: :x is drawn within a statement",
    "-- keys: orders 1 to 10\n-- name: a\nSELECT 1;": ":1: expected -- keys: NAME = LOW to HIGH",
    "-- schema: make\n-- name: a\nSELECT 1;": ":1: there is no section make; sections are create, keys, drop",
    "-- name: a weight: 0\nSELECT 1;": ":1: no transaction has a weight above 0",
    "-- name: a\n\\set x 1\nSELECT 1;": ":2: \\set: such commands are pgbench's",
    "-- name: a\nSELECT 1;\n-- check: b\nSELECT 1; SELECT 2;": ":3: a check is one statement",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "wrong.sql"
    file.write_text(text)
    ended = call("workloads", file)
    assert ended.code == 2
    assert f"wrong.sql{WRONG[text]}" in ended.err
