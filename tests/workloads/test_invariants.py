"""What is planted into the data of a built-in workload breaks the invariant that it is about."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest
from matrix import SMALL

from commands import call
from sample_studies import throughput, workload_study, write_study

if TYPE_CHECKING:
    from pathlib import Path

FAULTS = [
    ("seats", "UPDATE flight SET f_seats_left = f_seats_left - 1 WHERE f_id = 7", "as many seats left"),
    ("seats", "DELETE FROM reservation WHERE r_id = 7", "every reservation that was acknowledged is there"),
    (
        "auctionmark",
        "UPDATE item SET i_num_bids = i_num_bids + 1 WHERE i_id = 7",
        "as many bids and comments",
    ),
    ("auctionmark", "DELETE FROM item_purchase", "each was paid once"),
    ("chbenchmark", "DELETE FROM supplier WHERE su_suppkey = 7", "every stock has a supplier"),
    ("epinions", "UPDATE review SET rating = 6 WHERE a_id = 7", "each review is of an item"),
    ("epinions", "UPDATE review_rating SET a_id = 0 WHERE rowid = 7", "each rating is of a review"),
    ("epinions", "INSERT INTO trust SELECT * FROM trust WHERE rowid = 7", "users trust users, once each"),
    ("jpab", "DELETE FROM person WHERE id = 7", "there are as many persons"),
    ("jpab", "UPDATE person SET version = 1 WHERE id = 7", "as often as the version says"),
    ("jpab", "UPDATE node SET child1_id = 8 WHERE id = 7", "each node but the first has one parent"),
    (
        "resourcestresser",
        "UPDATE iotable SET data7 = 'half' WHERE empid = 7",
        "a wide row is written as a whole",
    ),
    (
        "resourcestresser",
        "UPDATE iotablesmallrow SET flag1 = 1 WHERE empid = 7",
        "each small row that was written",
    ),
    ("resourcestresser", "UPDATE locktable SET salary = 1 WHERE empid = 7", "the salaries are as high"),
    (
        "smallbank",
        "UPDATE checking SET balance = balance + 1 WHERE custid = 7",
        "the bank has what it began with",
    ),
    (
        "smallbank",
        "DELETE FROM saving WHERE custid = 7",
        "each customer has a savings and a checking account",
    ),
    ("sysbench", "DELETE FROM sbtest2 WHERE id = 7", "as many rows as were loaded"),
    ("sysbench", "UPDATE sbtest1 SET c = 'short' WHERE id = 7", "c and pad are groups of 11 digits"),
    ("sysbench", "INSERT INTO sbtest_bulk VALUES (7, 7)", "each row of a bulk insert that was acknowledged"),
    (
        "tatp",
        "UPDATE subscriber SET sub_nbr = '000000000000000' WHERE s_id = 7",
        "the number of a subscriber",
    ),
    ("tatp", "DELETE FROM access_info WHERE s_id = 7", "each subscriber has 1 to 4 access data"),
    ("tatp", "DELETE FROM special_facility WHERE s_id < 20", "calls are forwarded by facilities that exist"),
    ("twitter", "DELETE FROM followers WHERE f1 = 7", "who follows a user is one of the user's followers"),
    (
        "twitter",
        "UPDATE user_profiles SET followers = followers + 1 WHERE uid = 7",
        "a profile says how many followers",
    ),
    ("twitter", "UPDATE tweets SET uid = 0 WHERE id = 7", "each tweet is a user's"),
    (
        "twitter",
        "INSERT INTO added_tweets VALUES (1, 7, 'again', '2009-09-01')",
        "each tweet that was acknowledged",
    ),
    (
        "voter",
        "INSERT INTO votes VALUES (2015550100, 'NJ', 1, '2009-09-01')",
        "each vote that was acknowledged",
    ),
    ("voter", "INSERT INTO votes VALUES (2015550100, 'NY', 1, '2009-09-01')", "by a number of the state"),
    (
        "wikipedia",
        "UPDATE page SET page_latest = page_latest + 1 WHERE page_id = 7",
        "a page shows its newest revision",
    ),
    (
        "wikipedia",
        "UPDATE text SET old_text = 'cut' WHERE old_id = (SELECT page_latest FROM page)",
        "a page shows its newest",
    ),
    (
        "wikipedia",
        "UPDATE useracct SET user_editcount = 1 WHERE user_id = 7",
        "each edit that was acknowledged",
    ),
    ("wikipedia", "UPDATE revision SET rev_parent_id = 0 WHERE rev_id = 7", "a revision has one parent"),
    ("wikipedia", "UPDATE watchlist SET wl_user = 0 WHERE rowid = 7", "pages are watched by users"),
    ("ycsb", "DELETE FROM usertable WHERE rowid = 7", "there are as many records"),
    ("ycsb", "UPDATE usertable SET field7 = '' WHERE rowid = 7", "no field is empty"),
]


@pytest.mark.parametrize(("workload", "fault", "broken"), FAULTS)
def test_a_planted_fault_breaks_an_invariant(tmp_path: Path, workload: str, fault: str, broken: str) -> None:
    file = tmp_path / "data.db"
    url, measure = f"sqlite://{file}?synchronous=off", throughput(mixes=["1:0"])
    study = write_study(tmp_path, workload_study(url, workload, measure, **SMALL[workload]))
    assert call("load", study).code == 0
    before = call("check", study)
    assert (before.code, "✗" in before.out) == (0, False), before.out
    with sqlite3.connect(file) as database:
        assert database.execute(fault).rowcount > 0
    after = call("check", study)
    assert after.code == 1
    assert any("✗" in line and broken in line for line in after.out.splitlines()), after.out
